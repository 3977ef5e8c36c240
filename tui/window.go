package tui

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
)

// window is the range of rounds that charts show. The zero window is the whole run.
type window struct {
	span  uint64 // rounds, 0 for all
	right uint64 // one past the last round; 0 follows the newest
}

// extent returns the range [lo, hi) of rounds with measurements; 0, 0 if there are none.
func (m *model) extent() (lo, hi uint64) {
	lo = math.MaxUint64
	for i := range m.shown.Series {
		a, b := m.shown.Series[i].Rounds()
		if b > a {
			lo, hi = min(lo, a), max(hi, b)
		}
	}
	if lo == math.MaxUint64 {
		return 0, 0
	}
	return lo, max(hi, m.shown.Progress.Rounds+1)
}

// rounds returns the shown range [lo, hi) of rounds. A window at the end follows the run, see followEnd.
func (m *model) rounds() (lo, hi uint64) {
	lo, hi = m.extent()
	w := m.window
	if w.span == 0 || w.span >= hi-lo {
		return lo, hi
	}
	if w.right > 0 {
		hi = min(hi, max(w.right, lo+w.span))
	}
	return hi - w.span, hi
}

// finest returns the narrowest window in rounds: four buckets of the main series, at least 8 rounds.
func (m *model) finest() uint64 {
	n := uint64(1)
	if s := m.shown.Find(m.mainSeries()); s != nil {
		n = s.Width()
	}
	return max(8, 4*n)
}

// zoom halves or doubles the width of the window on the current x axis. Its right end stays.
func (m *model) zoom(in bool) tea.Cmd {
	first, end := m.extent()
	lo, hi := m.rounds()
	from, to := m.foot()
	width := 2 * float64(to-from)
	if in {
		width /= 4
	}
	least, most := m.footOf(first, end)
	if !in && width >= 0.9*float64(most-least) { // tolerance: a half rounded to whole rounds may be less
		return m.wholeRun()
	}
	left, right := float64(to)-width, hi
	if left < float64(least) { // extend to the right what does not fit on the left
		left, right = float64(least), min(end, max(hi, m.roundAt(float64(least)+width)))
	}
	span := right - min(right, m.roundAt(left))
	if in && (span < m.finest() || span == hi-lo) {
		m.say(cell.Warn, fmt.Sprintf("this is as near as it goes: %d rounds", hi-lo))
		return nil
	}
	m.window = window{span: span, right: right}
	m.followEnd(end)
	return nil
}

// zoomAt halves or doubles the width of the window and keeps the round at in its place.
func (m *model) zoomAt(at uint64, in bool) tea.Cmd {
	first, end := m.extent()
	from, to := m.foot()
	old, width := m.window, float64(to-from)
	if m.zoom(in); m.window == old || m.window.span == 0 {
		return nil
	}
	x, left := float64(m.spot(at)), width*2
	if in {
		left = width / 2
	}
	left, width = x-(x-float64(from))/width*left, left
	lo := m.roundAt(left)
	span := min(max(m.roundAt(left+width)-lo, m.finest()), end-first)
	m.show(min(max(lo, first), end-span), span)
	return nil
}

// show sets the window to span rounds from lo. A window that reaches the end follows the run.
func (m *model) show(lo, span uint64) {
	_, end := m.extent()
	m.window = window{span: span, right: lo + span}
	m.followEnd(end)
}

// drag is a mouse drag over a chart, which selects a range of rounds.
type drag struct {
	panel  panelID
	x, y   int
	from   uint64 // round under the press; 0: not on a chart
	before cursor // chart cursor before the press
}

// press handles a click, which may start a drag.
func (m *model) press(x, y int) tea.Cmd {
	before := m.cursor
	m.under = 0
	cmd := m.click(x, y)
	m.drag = drag{panel: m.focus, x: x, y: y, from: m.under, before: before}
	return cmd
}

// release ends a drag and shows the range of rounds that it covered. A move of one cell or less is a click.
func (m *model) release(x int) {
	d := m.drag
	m.drag = drag{}
	i := slices.IndexFunc(m.placed, func(p placement) bool { return p.panel == d.panel && p.at.Has(x, d.y) })
	if d.from == 0 || i < 0 || m.popup != nil || x-d.x >= -1 && x-d.x <= 1 {
		return
	}
	here := m.cursor
	m.under = 0
	m.panel(d.panel).point(m, m.placed[i].at.Inset(), x, d.y)
	m.cursor = here
	if m.under == 0 {
		return
	}
	m.cursor = d.before
	first, end := m.extent()
	lo, hi := min(d.from, m.under), max(d.from, m.under)+1
	span := min(max(hi-lo, m.finest()), end-first)
	m.show(min(max(lo, first), end-span), span)
}

// pan moves the window by a quarter of its width, to earlier rounds for d < 0, else to later ones.
func (m *model) pan(d int) tea.Cmd {
	first, end := m.extent()
	lo, hi := m.rounds()
	step := max(1, (hi-lo)/4)
	switch {
	case hi-lo >= end-first:
		m.say(cell.Warn, "the whole run is in view: + zooms in")
		return nil
	case d < 0:
		hi -= min(step, lo-first)
	default:
		hi = min(hi+step, end)
	}
	m.window.right = hi
	m.followEnd(end)
	return nil
}

// followEnd lets a window that reaches the end of the extent follow the run.
func (m *model) followEnd(end uint64) {
	if m.window.right >= end {
		m.window.right = 0
	}
}

func (m *model) wholeRun() tea.Cmd { m.window = window{}; return nil }

// windowNote returns the shown rounds and the x axis for a title. Its width is constant while the window follows the
// run.
func (m *model) windowNote() string {
	first, end := m.extent()
	lo, hi := m.rounds()
	by := ""
	if m.over() != axis.Rounds {
		by = " by " + m.over().String()
	}
	switch {
	case m.cursor.on:
		return m.cursorNote()
	case hi-lo >= end-first:
		return m.over().String()
	case m.window.right == 0:
		return "last " + round(hi-lo) + " rounds" + by
	}
	return "rounds " + round(lo) + "–" + round(hi-1) + by
}

// smoothings returns the selectable weights of the past in the moving average; 0: no smoothing.
func smoothings() []float64 { return []float64{0, 0.6, 0.9, 0.97} }

// keep returns the weight of the past in the moving average.
func (m *model) keep() float64 { return smoothings()[m.smoothing] }

// noisy reports whether each value of a series is computed on a mini-batch, so that it is smoothed: training losses,
// gradient norms, and the fitness of candidates. Metrics of all validation or test samples, counts and settings are not
// smoothed, since their average would lag behind them.
func (m *model) noisy(s *view.Series) bool {
	if s == nil || m.alg == nil || !m.isOfMembers(s) {
		return false
	}
	if s.Name == optim.SeriesGradient.Name {
		return true
	}
	return slices.ContainsFunc(m.alg.Series, func(x optim.Series) bool {
		return x.Name == s.Name && (x.Name == optim.SeriesLoss.Name && x.Unit == optim.SeriesLoss.Unit ||
			x.Name == optim.SeriesFitness.Name && !x.Validation)
	})
}

// smoothNote returns the smoothing of these series for a title; "" if none of them is smoothed.
func (m *model) smoothNote(of ...*view.Series) string {
	if m.keep() == 0 || !slices.ContainsFunc(of, m.noisy) {
		return ""
	}
	return fmt.Sprintf("ema %g · ", m.keep())
}

func (m *model) turnSmoothing(d int) tea.Cmd {
	n := len(smoothings())
	m.smoothing = (m.smoothing + d + n) % n
	if m.keep() == 0 {
		m.say(cell.Plain, "curves as measured")
	} else {
		m.say(cell.Plain, fmt.Sprintf("curves of mini-batches smoothed: moving average that keeps %g of the past, "+
			"as measured behind it", m.keep()))
	}
	return nil
}

// curves are the layers of a chart. Measured values of smoothed series are drawn behind all other layers.
type curves struct{ behind, front []chart.Layer }

func (c curves) layers() []chart.Layer { return append(c.behind, c.front...) }

// axis returns the y axis of all layers, without outliers unless the user asked for them. It includes the smoothed
// layers, since an average can be outside the range of the window. Line layers, the centre, are always included,
// although they have few values compared with a band.
func (c curves) axis(m *model, log bool) chart.Axis {
	var held, sets [][]view.Bucket
	for _, l := range c.layers() {
		if l.Style == chart.Line {
			held = append(held, l.Columns)
		} else {
			sets = append(sets, l.Columns)
		}
	}
	return m.fit(log, held, sets...)
}

// add adds the layer of series s, in n columns of the shown rounds. A noisy series gets two layers: the smoothed one,
// and the measured values behind it. columns aggregates the series over the given edges, such as s.Median.
func (c *curves) add(m *model, s *view.Series, columns func(edges []uint64) []view.Bucket, n int, role cell.Role,
	style chart.Style) {
	lo, hi := m.rounds()
	edges := m.edgesOf(lo, hi, n)
	raw, void := columns(edges), s.Unmeasured(edges)
	if m.keep() == 0 || !m.noisy(s) {
		c.front = append(c.front, chart.Layer{Columns: raw, Void: void, Role: role, Style: style})
		return
	}
	// The average starts before the window: with the resolution of the window over one window width, coarser before that.
	first, _ := m.extent()
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
	c.behind = append(c.behind, chart.Layer{Columns: raw, Void: void, Role: cell.Raw, Style: style})
	c.front = append(c.front, chart.Layer{
		Columns: chart.Smooth(m.keep(), before, raw, void),
		Void:    void,
		Role:    role,
		Style:   style,
	})
}

// fit returns the y axis of the drawn columns: of all values if the user asked for outliers, else without outliers but
// with the middle of each curve in held.
func (m *model) fit(log bool, held [][]view.Bucket, sets ...[]view.Bucket) chart.Axis {
	if m.outliers {
		return chart.Fit(log, slices.Concat(held, sets)...)
	}
	return chart.Robust(log, held, sets...)
}

// showAll toggles whether axes include outliers.
func (m *model) showAll() tea.Cmd {
	if m.outliers = !m.outliers; m.outliers {
		m.say(cell.Plain, "axes hold all that was measured")
	} else {
		m.say(cell.Plain, "axes leave out what lies far outside, and mark it")
	}
	return nil
}

// allHint is the hint in a chart how to show outliers.
const allHint = ", A shows all"

func columnsOf(s *view.Series, id engine.Member) func(edges []uint64) []view.Bucket {
	return func(edges []uint64) []view.Bucket { return s.Columns(id, edges) }
}
