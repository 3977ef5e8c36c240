package panel

import (
	"brood/models/engine"
	"brood/runtime/axis"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
	"brood/tui/textfmt"
)

// Cursor is the round that the user selected in the charts. It stays while new rounds arrive. A recording has no such
// cursor: its position takes that role.
type Cursor struct {
	On    bool
	Round uint64
}

// cursorRange returns the first and the last of the shown rounds at which the cursor may be; ok is false if there are
// none.
func (m *Host) cursorRange() (first, last uint64, ok bool) { return m.completed(m.Rounds()) }

// completed returns the first and the last completed round of the rounds [lo, hi); ok is false if there are none.
func (m *Host) completed(lo, hi uint64) (first, last uint64, ok bool) {
	first, last = max(lo, 1), min(max(hi, 1)-1, m.Shown.Progress.Rounds)
	return first, last, first <= last
}

// SetCursor moves the cursor to a round of the run, or to the nearest one that has measurements. A window that does not
// contain it moves there.
func (m *Host) SetCursor(round uint64) {
	lo, end := m.Extent()
	first, last, ok := m.completed(lo, end)
	if !ok {
		m.Say(cell.Warn, "there is no round to point at yet")
		return
	}
	at := min(max(round, first), last)
	m.Cursor = Cursor{true, at}
	if from, to := m.Rounds(); at < from || at >= to {
		span := to - from
		m.ShowRounds(min(max(at-min(at, span/2), lo), end-span), span)
	}
}

// MoveCursor moves the cursor by a share of the shown rounds, at least one round, or by one round for 0 percent: to the
// left for d < 0. Without a cursor it starts at the right end for d < 0, else at the left end.
func (m *Host) MoveCursor(d int, percent uint64) {
	first, last, _ := m.cursorRange()
	switch on := m.Cursor.On; {
	case !on && d < 0:
		m.SetCursor(last)
	case !on:
		m.SetCursor(first)
	default:
		m.SetCursor(m.cursorAfter(m.Cursor.Round, d, percent))
	}
}

// cursorAfter returns the round that is a share of the shown x axis before or after at, at least one round away.
func (m *Host) cursorAfter(at uint64, d int, percent uint64) uint64 {
	from, to := m.AxisRange()
	by := float64((to-from)*percent) / 100
	switch {
	case percent == 0 && d < 0:
		return at - min(1, at)
	case percent == 0:
		return at + 1
	case d < 0:
		return min(at-min(1, at), m.roundAt(float64(m.AxisPosition(at))-by))
	}
	return max(at+1, m.roundAt(float64(m.AxisPosition(at))+by))
}

// ChartArea returns the areas of the chart and of the legend in a panel with the inside r: the legend is the last line,
// and the column right of the chart is blank.
func ChartArea(r cell.Rect) (area, legend cell.Rect) {
	area, legend = r.Top(r.H - 1)
	area, _ = area.Left(area.W - 1)
	return area, legend
}

// ChartPlot returns the plot area of a chart panel with the inside r.
func ChartPlot(r cell.Rect) cell.Rect {
	area, _ := ChartArea(r)
	return chart.Plot(area)
}

// PlotRound is the Plot of a panel with one chart.
func PlotRound(_ *Host, r cell.Rect, _, _ int) cell.Rect { return ChartPlot(r) }

// RoundUnder returns the round under the mouse in the plot area p; 0 if there is none.
func (m *Host) RoundUnder(p cell.Rect, x, y int) uint64 {
	first, last, ok := m.cursorRange()
	if !ok || !p.Has(x, y) {
		return 0
	}
	from, to := m.AxisRange()
	at := m.roundAt(float64(from) + float64(to-from)*(float64(x-p.X)+0.5)/float64(p.W)) // middle of the cell
	if edges := m.Edges(p.W); edges[x-p.X] < edges[x-p.X+1] {                           // a round drawn in that cell
		at = min(max(at, edges[x-p.X]), edges[x-p.X+1]-1)
	}
	return min(max(at, first), last)
}

// CursorNote returns the position of the cursor for a title. It is a range of rounds if the view merged several into
// one point.
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

// ShownValue returns the value of a member at the cursor, or its newest one without a cursor.
func (m *Host) ShownValue(s *view.Series, id engine.Member) (x float64, ok bool) {
	if !m.Cursor.On {
		return s.Last(id)
	}
	x, _, ok = s.At(id, m.Cursor.Round)
	return x, ok
}

// MemberValues returns the values of the members at the cursor, or their newest ones without a cursor, in descending
// order.
func (m *Host) MemberValues(s *view.Series) []view.Value {
	if !m.Cursor.On {
		return s.Latest(m.Shown.Members())
	}
	l, _ := s.LatestAt(m.Shown.Members(), m.Cursor.Round)
	return l
}

// Dropped reports whether a series is no longer measured, so that its last value is outdated. It is false with a
// cursor, which selects the value of its round.
func (m *Host) Dropped(s *view.Series) bool { return s == nil || !m.Cursor.On && m.Shown.Dropped(s) }

// Fresh reports whether the shown value of a series belongs to the shown round.
func (m *Host) Fresh(s *view.Series) bool {
	if !m.Cursor.On {
		return m.Shown.Fresh(s)
	}
	_, at, ok := s.At(view.Whole, m.Cursor.Round)
	return ok && at == m.Cursor.Round
}

// CursorScoreText formats the score at the cursor, or the last one before it with its round; a dash if there is none.
func (m *Host) CursorScoreText() string {
	id, _ := m.ScoreSeries()
	s := m.Shown.Find(id)
	x, ok := m.ShownValue(s, view.Whole)
	if !ok {
		return "–"
	}
	return m.WithRound(s, ScoreText(m.Shown.Config.Score(), x))
}

// RecentTraffic returns the traffic of the last commits, or of the commit under the cursor. ok is false if that commit
// is no longer in the ledger.
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

// DrawCursorMark marks the cursor in an axis of w cells from x. It returns the column of the mark, -1 if the cursor is
// not in the shown range.
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
