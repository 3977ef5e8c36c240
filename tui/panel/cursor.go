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

// cursorRange are the first and the last round that the cursor can stand at; false where there is none.
func (m *Host) cursorRange() (first, last uint64, ok bool) {
	lo, hi := m.Rounds()
	last = min(max(hi, 1)-1, m.Shown.Progress.Rounds)
	first = max(lo, 1)
	return first, last, first <= last
}

// MoveCursor moves the cursor by a cell of the loss chart; where there was none it begins at an end of what is shown.
func (m *Host) MoveCursor(d int) tea.Cmd {
	first, last, ok := m.cursorRange()
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
		*at = m.cursorAfter(*at, d)
	}
	m.Cursor.On, *at = true, min(max(*at, first), last)
	return nil
}

// cursorAfter is the round a cell of the loss chart before another or behind it, and at least one round from there.
func (m *Host) cursorAfter(at uint64, d int) uint64 {
	from, to := m.AxisRange()
	by := float64(max(1, (to-from)/uint64(max(1, m.LossPlot().W))))
	if d < 0 {
		return min(at-min(1, at), m.roundAt(float64(m.AxisPosition(at))-by))
	}
	return max(at+1, m.roundAt(float64(m.AxisPosition(at))+by))
}

// LossPlot is where the loss is drawn, as the panel is placed.
func (m *Host) LossPlot() cell.Rect {
	in := cell.Rect{W: m.W, H: m.H}
	for _, p := range m.Placed {
		if p.Panel == Loss {
			in = p.Area
		}
	}
	return ChartPlot(in.Inset())
}

// ChartPlot is the dots' part of a chart panel whose inside is r: below there is a legend, and at the right a blank.
func ChartPlot(r cell.Rect) cell.Rect {
	area, _ := r.Top(r.H - 1)
	area, _ = area.Left(area.W - 1)
	return chart.Plot(area)
}

// PointRound puts the cursor where the mouse is.
func PointRound(m *Host, r cell.Rect, x, y int) { m.PointIn(ChartPlot(r), x, y) }

// PointIn does so in a plot. In a recording it moves nothing, and says only over which round the mouse is.
func (m *Host) PointIn(p cell.Rect, x, y int) {
	first, last, ok := m.cursorRange()
	if !ok || !p.Has(x, y) {
		return
	}
	from, to := m.AxisRange()
	at := m.roundAt(float64(from) + float64(to-from)*(float64(x-p.X)+0.5)/float64(p.W)) // the middle of the cell
	if edges := m.Edges(p.W); edges[x-p.X] < edges[x-p.X+1] {                           // but a round that is drawn there
		at = min(max(at, edges[x-p.X]), edges[x-p.X+1]-1)
	}
	if m.Under = min(max(at, first), last); m.Replay == nil {
		m.Cursor = Cursor{true, m.Under}
	}
}

// cursorLine is the line that charts draw at the cursor, nil for none.
func (m *Host) cursorLine() *uint64 {
	if !m.Cursor.On {
		return nil
	}
	return &m.Cursor.Round
}

// CursorNote says for a title where the cursor stands: at several rounds, where the view keeps them as one.
func (m *Host) CursorNote() string {
	at, w, also := m.Cursor.Round, uint64(1), ""
	if a := m.ActiveAxis(); a != axis.Rounds {
		also = " · " + AxisText(a, float64(m.AxisPosition(at))/AxisUnits(a))
	}
	if s := m.Shown.Find(m.MainSeries()); s != nil {
		w = s.Width()
	}
	if from := at - at%w; w > 1 {
		return "at rounds " + textfmt.Grouped(from) + "–" + textfmt.Grouped(from+w-1) + also
	}
	return "at round " + textfmt.Grouped(at) + also
}

// ShownValue is a member's value at the cursor, or without one its newest.
func (m *Host) ShownValue(s *view.Series, id engine.Member) (x float64, ok bool) {
	if !m.Cursor.On {
		return s.Last(id)
	}
	x, _, ok = s.At(id, m.Cursor.Round)
	return x, ok
}

// MemberValues are the members' values at the cursor, or without one their newest, from the highest to the lowest.
func (m *Host) MemberValues(s *view.Series) []view.Value {
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

// CursorScoreText is the score at the cursor, of the score before it where there is none of its round.
func (m *Host) CursorScoreText() string {
	id, _ := m.ScoreSeries()
	s := m.Shown.Find(id)
	x, ok := m.ShownValue(s, view.Whole)
	if !ok {
		return "–"
	}
	return m.WithRound(s, ScoreText(m.Shown.Config.Score(), x))
}

// RecentTraffic is what was sent of late, or in the commit under the cursor; ok is false where it is not known any more.
func (m *Host) RecentTraffic() (ops []view.Bytes, overhead int64, rounds uint64, ok bool) {
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

// DrawCursorMark marks the cursor under w cells of the axis from x on, and says in which column; -1 for none.
func (m *Host) DrawCursorMark(g *cell.Grid, x, y, w int) int {
	lo, hi := m.Rounds()
	at := m.Cursor.Round
	if !m.Cursor.On || at < lo || at >= hi {
		return -1
	}
	from, to := m.AxisRange()
	x += int((m.AxisPosition(at) - from) * uint64(w) / (to - from))
	g.Set(x, y, '▲', cell.Focus)
	return x
}
