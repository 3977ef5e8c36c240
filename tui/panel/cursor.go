package panel

import (
	tea "charm.land/bubbletea/v2"

	"brood/models/engine"
	"brood/runtime/axis"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
	"brood/tui/textfmt"
)

// Cursor is a round that a person points at, in all charts of a run that is followed: it stays there while new rounds
// arrive. In a recording the round is where the recording stands.
type Cursor struct {
	On    bool
	Round uint64
}

// ends are the first and the last round that the cursor can stand at; false where there is none.
func (m *Host) ends() (first, last uint64, ok bool) {
	lo, hi := m.Rounds()
	last = min(max(hi, 1)-1, m.Shown.Progress.Rounds)
	first = max(lo, 1)
	return first, last, first <= last
}

// Step moves the cursor by a cell of the loss chart; where there was none it begins at an end of what is shown.
func (m *Host) Step(d int) tea.Cmd {
	first, last, ok := m.ends()
	if !ok {
		m.Say(cell.Warn, "there is no round to point at yet")
		return nil
	}
	at := &m.Cursor.Round
	switch on := m.Cursor.On; {
	case !on && d < 0:
		*at = last
	case !on:
		*at = first
	default:
		*at = m.stepped(*at, d)
	}
	m.Cursor.On, *at = true, min(max(*at, first), last)
	return nil
}

// stepped is the round a cell of the loss chart before another or behind it, and at least one round from there.
func (m *Host) stepped(at uint64, d int) uint64 {
	from, to := m.Foot()
	by := float64(max(1, (to-from)/uint64(max(1, m.LossPlot().W))))
	if d < 0 {
		return min(at-min(1, at), m.roundAt(float64(m.Spot(at))-by))
	}
	return max(at+1, m.roundAt(float64(m.Spot(at))+by))
}

// LossPlot is where the loss is drawn, as the panel is placed.
func (m *Host) LossPlot() cell.Rect {
	in := cell.Rect{W: m.W, H: m.H}
	for _, p := range m.Placed {
		if p.Panel == Loss {
			in = p.At
		}
	}
	return Plotted(in.Inset())
}

// Plotted is the dots' part of a chart panel whose inside is r: below there is a legend, and at the right a blank.
func Plotted(r cell.Rect) cell.Rect {
	area, _ := r.Top(r.H - 1)
	area, _ = area.Left(area.W - 1)
	return chart.Plot(area)
}

// PointRound puts the cursor where the mouse is.
func PointRound(m *Host, r cell.Rect, x, y int) { m.PointIn(Plotted(r), x, y) }

// PointIn does so in a plot. In a recording it moves nothing, and says only over which round the mouse is.
func (m *Host) PointIn(p cell.Rect, x, y int) {
	first, last, ok := m.ends()
	if !ok || !p.Has(x, y) {
		return
	}
	from, to := m.Foot()
	at := m.roundAt(float64(from) + float64(to-from)*(float64(x-p.X)+0.5)/float64(p.W)) // the middle of the cell
	if edges := m.Edges(p.W); edges[x-p.X] < edges[x-p.X+1] {                           // but a round that is drawn there
		at = min(max(at, edges[x-p.X]), edges[x-p.X+1]-1)
	}
	if m.Under = min(max(at, first), last); m.Replay == nil {
		m.Cursor = Cursor{true, m.Under}
	}
}

// nowLine is the line that charts draw at the cursor, nil for none.
func (m *Host) nowLine() *uint64 {
	if !m.Cursor.On {
		return nil
	}
	return &m.Cursor.Round
}

// CursorNote says for a title where the cursor stands: at several rounds, where the view keeps them as one.
func (m *Host) CursorNote() string {
	at, w, also := m.Cursor.Round, uint64(1), ""
	if a := m.Over(); a != axis.Rounds {
		also = " · " + AxisText(a, float64(m.Spot(at))/Fine(a))
	}
	if s := m.Shown.Find(m.MainSeries()); s != nil {
		w = s.Width()
	}
	if from := at - at%w; w > 1 {
		return "at rounds " + textfmt.Round(from) + "–" + textfmt.Round(from+w-1) + also
	}
	return "at round " + textfmt.Round(at) + also
}

// Last is a member's value at the cursor, or without one its newest.
func (m *Host) Last(s *view.Series, id engine.Member) (x float64, ok bool) {
	if !m.Cursor.On {
		return s.Last(id)
	}
	x, _, ok = s.At(id, m.Cursor.Round)
	return x, ok
}

// Ranked are the members' values at the cursor, or without one their newest, from the highest to the lowest.
func (m *Host) Ranked(s *view.Series) []view.Value {
	if !m.Cursor.On {
		return s.Latest(m.Shown.Members())
	}
	l, _ := s.LatestAt(m.Shown.Members(), m.Cursor.Round)
	return l
}

// Dropped says that a series is no longer measured, so that its last value says nothing of now; where a person points
// at a round it says what it was.
func (m *Host) Dropped(s *view.Series) bool { return s == nil || !m.Cursor.On && m.Shown.Dropped(s) }

// Fresh says that what is shown of a series needs no round beside it.
func (m *Host) Fresh(s *view.Series) bool {
	if !m.Cursor.On {
		return m.Shown.Fresh(s)
	}
	_, at, ok := s.At(view.Whole, m.Cursor.Round)
	return ok && at == m.Cursor.Round
}

// TestedThen is the score at the cursor, of the score before it where there is none of its round.
func (m *Host) TestedThen() string {
	id, _ := m.ScoreSeries()
	s := m.Shown.Find(id)
	x, ok := m.Last(s, view.Whole)
	if !ok {
		return "–"
	}
	return m.Dated(s, ScoreText(m.Shown.Config.Score(), x))
}

// Recent is what was sent of late, or in the commit under the cursor; ok is false where it is not known any more.
func (m *Host) Recent() (ops []view.Bytes, overhead int64, rounds uint64, ok bool) {
	l := &m.Shown.Ledger
	if !m.Cursor.On {
		ops, overhead, rounds = l.Recent()
		return ops, overhead, rounds, true
	}
	for _, c := range l.Ring {
		if at := m.Cursor.Round; c.To-c.Rounds < at && at <= c.To {
			return c.Ops, c.Overhead, c.Rounds, true
		}
	}
	return nil, 0, 0, false
}

// Arrow marks the cursor under w cells of the axis from x on, and says in which column; -1 for none.
func (m *Host) Arrow(g *cell.Grid, x, y, w int) int {
	lo, hi := m.Rounds()
	at := m.Cursor.Round
	if !m.Cursor.On || at < lo || at >= hi {
		return -1
	}
	from, to := m.Foot()
	x += int((m.Spot(at) - from) * uint64(w) / (to - from))
	g.Set(x, y, '▲', cell.Focus)
	return x
}
