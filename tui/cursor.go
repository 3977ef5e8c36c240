package tui

import (
	tea "charm.land/bubbletea/v2"

	"brood/models/engine"
	"brood/runtime/axis"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
)

// cursor is a round that a person points at, in all charts of a run that is followed: it stays there while new rounds
// arrive. In a recording the round is where the recording stands.
type cursor struct {
	on    bool
	round uint64
}

// charting says whether the arrows move the cursor: elsewhere they have other work.
func (m *model) charting() bool {
	return m.replay == nil && m.screens()[m.screen].charts && !m.onKnobs()
}

// ends are the first and the last round that the cursor can stand at; false where there is none.
func (m *model) ends() (first, last uint64, ok bool) {
	lo, hi := m.rounds()
	last = min(max(hi, 1)-1, m.shown.Progress.Rounds)
	first = max(lo, 1)
	return first, last, first <= last
}

// step moves the cursor by a cell of the loss chart; where there was none it begins at an end of what is shown.
func (m *model) step(d int) tea.Cmd {
	first, last, ok := m.ends()
	if !ok {
		m.say(cell.Warn, "there is no round to point at yet")
		return nil
	}
	at := &m.cursor.round
	switch on := m.cursor.on; {
	case !on && d < 0:
		*at = last
	case !on:
		*at = first
	default:
		*at = m.stepped(*at, d)
	}
	m.cursor.on, *at = true, min(max(*at, first), last)
	return nil
}

// stepped is the round a cell of the loss chart before another or behind it, and at least one round from there.
func (m *model) stepped(at uint64, d int) uint64 {
	from, to := m.foot()
	by := float64(max(1, (to-from)/uint64(max(1, m.lossPlot().W))))
	if d < 0 {
		return min(at-min(1, at), m.roundAt(float64(m.spot(at))-by))
	}
	return max(at+1, m.roundAt(float64(m.spot(at))+by))
}

// lossPlot is where the loss is drawn, as the panel is placed.
func (m *model) lossPlot() cell.Rect {
	in := cell.Rect{W: m.w, H: m.h}
	for _, p := range m.placed {
		if p.panel == lossPanel {
			in = p.at
		}
	}
	return plotted(in.Inset())
}

// plotted is the dots' part of a chart panel whose inside is r: below there is a legend, and at the right a blank.
func plotted(r cell.Rect) cell.Rect {
	area, _ := r.Top(r.H - 1)
	area, _ = area.Left(area.W - 1)
	return chart.Plot(area)
}

// pointRound puts the cursor where the mouse is.
func pointRound(m *model, r cell.Rect, x, y int) { m.pointIn(plotted(r), x, y) }

// pointIn does so in a plot. In a recording it moves nothing, and says only over which round the mouse is.
func (m *model) pointIn(p cell.Rect, x, y int) {
	first, last, ok := m.ends()
	if !ok || !p.Has(x, y) {
		return
	}
	from, to := m.foot()
	at := m.roundAt(float64(from) + float64(to-from)*(float64(x-p.X)+0.5)/float64(p.W)) // the middle of the cell
	if edges := m.edges(p.W); edges[x-p.X] < edges[x-p.X+1] {                           // but a round that is drawn there
		at = min(max(at, edges[x-p.X]), edges[x-p.X+1]-1)
	}
	if m.under = min(max(at, first), last); m.replay == nil {
		m.cursor = cursor{true, m.under}
	}
}

// nowLine is the line that charts draw at the cursor, nil for none.
func (m *model) nowLine() *uint64 {
	if !m.cursor.on {
		return nil
	}
	return &m.cursor.round
}

// cursorNote says for a title where the cursor stands: at several rounds, where the view keeps them as one.
func (m *model) cursorNote() string {
	at, w, also := m.cursor.round, uint64(1), ""
	if a := m.over(); a != axis.Rounds {
		also = " · " + axisText(a, float64(m.spot(at))/fine(a))
	}
	if s := m.shown.Find(m.mainSeries()); s != nil {
		w = s.Width()
	}
	if from := at - at%w; w > 1 {
		return "at rounds " + round(from) + "–" + round(from+w-1) + also
	}
	return "at round " + round(at) + also
}

// last is a member's value at the cursor, or without one its newest.
func (m *model) last(s *view.Series, id engine.Member) (x float64, ok bool) {
	if !m.cursor.on {
		return s.Last(id)
	}
	x, _, ok = s.At(id, m.cursor.round)
	return x, ok
}

// ranked are the members' values at the cursor, or without one their newest, from the highest to the lowest.
func (m *model) ranked(s *view.Series) []view.Value {
	if !m.cursor.on {
		return s.Latest(m.shown.Members())
	}
	l, _ := s.LatestAt(m.shown.Members(), m.cursor.round)
	return l
}

// dropped says that a series is no longer measured, so that its last value says nothing of now; where a person points
// at a round it says what it was.
func (m *model) dropped(s *view.Series) bool { return s == nil || !m.cursor.on && m.shown.Dropped(s) }

// fresh says that what is shown of a series needs no round beside it.
func (m *model) fresh(s *view.Series) bool {
	if !m.cursor.on {
		return m.shown.Fresh(s)
	}
	_, at, ok := s.At(view.Whole, m.cursor.round)
	return ok && at == m.cursor.round
}

// testedThen is the score at the cursor, of the score before it where there is none of its round.
func (m *model) testedThen() string {
	id, _ := m.scoreSeries()
	s := m.shown.Find(id)
	x, ok := m.last(s, view.Whole)
	if !ok {
		return "–"
	}
	return m.dated(s, scoreText(m.shown.Config.Score(), x))
}

// recent is what was sent of late, or in the commit under the cursor; ok is false where it is not known any more.
func (m *model) recent() (ops []view.Bytes, overhead int64, rounds uint64, ok bool) {
	l := &m.shown.Ledger
	if !m.cursor.on {
		ops, overhead, rounds = l.Recent()
		return ops, overhead, rounds, true
	}
	for _, c := range l.Ring {
		if at := m.cursor.round; c.To-c.Rounds < at && at <= c.To {
			return c.Ops, c.Overhead, c.Rounds, true
		}
	}
	return nil, 0, 0, false
}

// arrow marks the cursor under w cells of the axis from x on, and says in which column; -1 for none.
func (m *model) arrow(g *cell.Grid, x, y, w int) int {
	lo, hi := m.rounds()
	at := m.cursor.round
	if !m.cursor.on || at < lo || at >= hi {
		return -1
	}
	from, to := m.foot()
	x += int((m.spot(at) - from) * uint64(w) / (to - from))
	g.Set(x, y, '▲', cell.Focus)
	return x
}
