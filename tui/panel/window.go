package panel

import (
	"fmt"
	"math"
	"slices"

	tea "charm.land/bubbletea/v2"

	"brood/models/engine"
	"brood/optim"
	"brood/runtime/axis"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
	"brood/tui/textfmt"
)

// Window is the range of rounds that charts show. The zero window is the whole run.
type Window struct {
	Span  uint64 // rounds, 0 for all
	Right uint64 // one past the last round; 0 follows the newest
}

// Extent returns the range [lo, hi) of rounds with measurements; 0, 0 if there are none.
func (m *Host) Extent() (lo, hi uint64) {
	lo = math.MaxUint64
	for i := range m.Shown.Series {
		a, b := m.Shown.Series[i].Rounds()
		if b > a {
			lo, hi = min(lo, a), max(hi, b)
		}
	}
	if lo == math.MaxUint64 {
		return 0, 0
	}
	return max(lo, 1), max(hi, m.Shown.Progress.Rounds+1) // the first bucket of a long series has no round 0
}

// Rounds returns the shown range [lo, hi) of rounds. A window at the end follows the run, see followEnd.
func (m *Host) Rounds() (lo, hi uint64) {
	lo, hi = m.Extent()
	w := m.Window
	if w.Span == 0 || w.Span >= hi-lo {
		return lo, hi
	}
	if w.Right > 0 {
		hi = min(hi, max(w.Right, lo+w.Span))
	}
	return hi - w.Span, hi
}

// MinWindow returns the narrowest window in rounds: four buckets of the main series, at least 8 rounds.
func (m *Host) MinWindow() uint64 {
	n := uint64(1)
	if s := m.Shown.Find(m.MainSeries()); s != nil {
		n = s.Width()
	}
	return max(8, 4*n)
}

// Zoom halves or doubles the width of the window on the current x axis. Its right end stays.
func (m *Host) Zoom(in bool) tea.Cmd {
	first, end := m.Extent()
	lo, hi := m.Rounds()
	from, to := m.AxisRange()
	width := 2 * float64(to-from)
	if in {
		width /= 4
	}
	least, most := m.axisRangeOf(first, end)
	if !in && width >= 0.9*float64(most-least) { // tolerance: a half rounded to whole rounds may be less
		return m.WholeRun()
	}
	left, right := float64(to)-width, hi
	if left < float64(least) { // extend to the right what does not fit on the left
		left, right = float64(least), min(end, max(hi, m.roundAt(float64(least)+width)))
	}
	span := right - min(right, m.roundAt(left))
	if in && (span < m.MinWindow() || span == hi-lo) {
		m.Say(cell.Warn, fmt.Sprintf("this is the largest zoom: %d rounds", hi-lo))
		return nil
	}
	m.Window = Window{Span: span, Right: right}
	m.followEnd(end)
	return nil
}

// ZoomAt halves or doubles the width of the window and keeps the round at in its place.
func (m *Host) ZoomAt(at uint64, in bool) tea.Cmd {
	first, end := m.Extent()
	from, to := m.AxisRange()
	old, width := m.Window, float64(to-from)
	if m.Zoom(in); m.Window == old || m.Window.Span == 0 {
		return nil
	}
	x, left := float64(m.AxisPosition(at)), width*2
	if in {
		left = width / 2
	}
	left, width = x-(x-float64(from))/width*left, left
	lo := m.roundAt(left)
	span := min(max(m.roundAt(left+width)-lo, m.MinWindow()), end-first)
	m.ShowRounds(min(max(lo, first), end-span), span)
	return nil
}

// ShowRounds sets the window to span rounds from lo. A window that reaches the end follows the run.
func (m *Host) ShowRounds(lo, span uint64) {
	_, end := m.Extent()
	m.Window = Window{Span: span, Right: lo + span}
	m.followEnd(end)
}

// Pan moves the window by a quarter of its width, to earlier rounds for d < 0, else to later ones.
func (m *Host) Pan(d int) tea.Cmd {
	first, end := m.Extent()
	lo, hi := m.Rounds()
	step := max(1, (hi-lo)/4)
	switch {
	case hi-lo >= end-first:
		m.Say(cell.Warn, "the whole run is in view: + zooms in")
		return nil
	case d < 0:
		hi -= min(step, lo-first)
	default:
		hi = min(hi+step, end)
	}
	m.Window.Right = hi
	m.followEnd(end)
	return nil
}

// followEnd lets a window that reaches the end of the extent follow the run.
func (m *Host) followEnd(end uint64) {
	if m.Window.Right >= end {
		m.Window.Right = 0
	}
}

// WholeRun shows all rounds.
func (m *Host) WholeRun() tea.Cmd { m.Window = Window{}; return nil }

// WindowNote returns the shown rounds and the x axis for a title. Its width is constant while the window follows the
// run.
func (m *Host) WindowNote() string {
	first, end := m.Extent()
	lo, hi := m.Rounds()
	by := ""
	if m.ActiveAxis() != axis.Rounds {
		by = " by " + m.ActiveAxis().String()
	}
	switch {
	case m.Cursor.On:
		return m.CursorNote()
	case hi-lo >= end-first:
		return m.ActiveAxis().String()
	case m.Window.Right == 0:
		return "last " + textfmt.Grouped(hi-lo) + " rounds" + by
	}
	return "rounds " + textfmt.Grouped(lo) + "–" + textfmt.Grouped(hi-1) + by
}

// Smoothings returns the selectable weights of the past in the moving average; 0: no smoothing.
func Smoothings() []float64 { return []float64{0, 0.6, 0.9, 0.97} }

// SmoothingWeight returns the weight of the past in the moving average.
func (m *Host) SmoothingWeight() float64 { return Smoothings()[m.Smoothing] }

// noisy reports whether each value of a series is computed on a mini-batch, so that it is smoothed: training losses,
// gradient norms, and the fitness of candidates. Metrics of all validation or test samples, counts and settings are not
// smoothed, since their average would lag behind them.
func (m *Host) noisy(s *view.Series) bool {
	if s == nil || m.Alg == nil || !m.IsMemberSeries(s) {
		return false
	}
	if s.Name == optim.SeriesGradient.Name {
		return true
	}
	return slices.ContainsFunc(m.Alg.Series, func(x optim.Series) bool {
		return x.Name == s.Name && (x.Name == optim.SeriesLoss.Name && x.Unit == optim.SeriesLoss.Unit ||
			x.Name == optim.SeriesFitness.Name && !x.Validation)
	})
}

// IsSmoothed reports whether the curves of a series are drawn as moving averages.
func (m *Host) IsSmoothed(s *view.Series) bool { return m.SmoothingWeight() > 0 && m.noisy(s) }

// SmoothNote returns the smoothing of these series for a title; "" if none of them is smoothed.
func (m *Host) SmoothNote(of ...*view.Series) string {
	if m.SmoothingWeight() == 0 || !slices.ContainsFunc(of, m.noisy) {
		return ""
	}
	return fmt.Sprintf("ema %g · ", m.SmoothingWeight())
}

// ChangeSmoothing selects the next (d = 1) or previous (d = -1) weight of the moving average.
func (m *Host) ChangeSmoothing(d int) tea.Cmd {
	n := len(Smoothings())
	m.Smoothing = (m.Smoothing + d + n) % n
	if m.SmoothingWeight() == 0 {
		m.Say(cell.Plain, "curves as measured")
	} else {
		m.Say(cell.Plain,
			fmt.Sprintf("mini-batch curves: moving average with weight %g of the past, measured values behind it",
				m.SmoothingWeight()))
	}
	return nil
}

// Curves are the layers of a chart. Measured values of smoothed series are drawn behind all other layers.
type Curves struct{ Under, Over []chart.Layer }

// Layers returns all layers in the order of drawing.
func (c Curves) Layers() []chart.Layer { return append(c.Under, c.Over...) }

// Axis returns the y axis of all layers, without outliers unless the user asked for them. It includes the smoothed
// layers, since an average can be outside the range of the window. Line layers, the centre, are always included,
// although they have few values compared with a band.
func (c Curves) Axis(m *Host, log bool) chart.Axis {
	var held, sets [][]view.Bucket
	for _, l := range c.Layers() {
		if l.Style == chart.Line || l.Style == chart.Thick {
			held = append(held, l.Columns)
		} else {
			sets = append(sets, l.Columns)
		}
	}
	return m.FitAxis(log, held, sets...)
}

// Add adds the layer of series s, in n columns of the shown rounds. A noisy series gets two layers: the smoothed one,
// and the measured values behind it. columns aggregates the series over the given edges, such as s.Median.
func (c *Curves) Add(m *Host, s *view.Series, columns func(edges []uint64) []view.Bucket, n int, role cell.Role,
	style chart.Style) {
	lo, hi := m.Rounds()
	edges := m.edgesOf(lo, hi, n)
	raw, void := columns(edges), s.Unmeasured(edges)
	if !m.IsSmoothed(s) {
		c.Over = append(c.Over, chart.Layer{Columns: raw, Void: void, Role: role, Style: style})
		return
	}
	// The average starts before the window: with the resolution of the window over one window width, coarser before
	// that.
	first, _ := m.Extent()
	edge := lo - lo%s.Width()
	var before []view.Bucket
	if edge > first {
		from := edge - min(edge-first, hi-lo)
		from -= from % s.Width()
		old, near := m.edgesOf(first, from, n), m.edgesOf(from, edge, n)
		before = append(columns(old), columns(near)...)
		unmeasured := append(s.Unmeasured(old), s.Unmeasured(near)...)
		for i := len(before) - 1; i >= 0; i-- {
			if unmeasured[i] {
				before = before[i+1:]
				break
			}
		}
	}
	c.Under = append(c.Under, chart.Layer{Columns: raw, Void: void, Role: cell.Raw, Style: style})
	c.Over = append(c.Over, chart.Layer{
		Columns: chart.Smooth(m.SmoothingWeight(), before, raw, void),
		Void:    void,
		Role:    role,
		Style:   style,
	})
}

// AddMembers adds a line for each member, with its name. Of a smoothed series it adds no measured values: there are too
// many lines for them, and a band shows their range.
func (c *Curves) AddMembers(m *Host, s *view.Series, ids []engine.Member, n int) {
	for _, id := range ids {
		var one Curves
		one.Add(m, s, MemberColumns(s, id), n, cell.Replica(int(id)), chart.Thin)
		line := one.Over[0]
		line.Name = LineName(id)
		c.Over = append(c.Over, line)
	}
}

// FitAxis returns the y axis of the drawn columns: of all values if the user asked for outliers, else without outliers
// but with the middle of each curve in held.
func (m *Host) FitAxis(log bool, held [][]view.Bucket, sets ...[]view.Bucket) chart.Axis {
	if m.Outliers {
		return chart.FitAxis(log, slices.Concat(held, sets)...)
	}
	return chart.Robust(log, held, sets...)
}

// ToggleOutliers toggles whether axes include outliers.
func (m *Host) ToggleOutliers() tea.Cmd {
	if m.Outliers = !m.Outliers; m.Outliers {
		m.Say(cell.Plain, "axes include outliers")
	} else {
		m.Say(cell.Plain, "axes exclude outliers and mark them")
	}
	return nil
}

// OutliersHint is the hint in a chart how to show outliers.
const OutliersHint = ", A shows all"

// MemberColumns returns the function that aggregates the values of a member into columns.
func MemberColumns(s *view.Series, id engine.Member) func(edges []uint64) []view.Bucket {
	return func(edges []uint64) []view.Bucket { return s.Columns(id, edges) }
}
