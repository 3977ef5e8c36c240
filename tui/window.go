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

// window is the rounds that charts show. The zero window is the whole run.
type window struct {
	span  uint64 // rounds, 0 for all
	right uint64 // one past the last; 0 follows the newest
}

// extent is the rounds that anything was measured in.
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

// rounds is what charts show of the extent: a window that touched the end stays there while the run goes on.
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

// finest is the narrowest window: some buckets of the series that is drawn, and some rounds.
func (m *model) finest() uint64 {
	n := uint64(1)
	if s := m.shown.Find(m.mainSeries()); s != nil {
		n = s.Width()
	}
	return max(8, 4*n)
}

// zoom makes the window half or twice as wide; its right end stays.
func (m *model) zoom(in bool) tea.Cmd {
	first, end := m.extent()
	lo, hi := m.rounds()
	from, to := m.foot()
	width := 2 * float64(to-from)
	if in {
		width /= 4
	}
	least, most := m.footOf(first, end)
	if !in && width >= 0.9*float64(most-least) { // half of it, in whole rounds, may have been less than a half
		return m.wholeRun()
	}
	left, right := float64(to)-width, hi
	if left < float64(least) { // what is missing on this side comes on the other
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

// zoomAt makes the window half or twice as wide; a round stays where it is.
func (m *model) zoomAt(at uint64, in bool) tea.Cmd {
	first, end := m.extent()
	from, to := m.foot()
	was, width := m.window, float64(to-from)
	if m.zoom(in); m.window == was || m.window.span == 0 {
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

// show puts a window into the extent.
func (m *model) show(lo, span uint64) {
	_, end := m.extent()
	m.window = window{span: span, right: lo + span}
	m.followEnd(end)
}

// drag is a part of a chart that is drawn out with the mouse.
type drag struct {
	panel  panelID
	x, y   int
	from   uint64 // the round that it began at, 0 for none
	before cursor
}

// grasp is a click, which may begin a drag.
func (m *model) press(x, y int) tea.Cmd {
	before := m.cursor
	m.under = 0
	cmd := m.click(x, y)
	m.drag = drag{panel: m.focus, x: x, y: y, from: m.under, before: before}
	return cmd
}

// release ends a drag: what it went over is what charts show from then on. One that moved by a cell was a click.
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

// pan moves the window by a quarter of its width.
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

// touch lets a window that reaches the end follow it.
func (m *model) followEnd(end uint64) {
	if m.window.right >= end {
		m.window.right = 0
	}
}

func (m *model) wholeRun() tea.Cmd { m.window = window{}; return nil }

// windowNote says for a title which rounds are shown, over which axis. It keeps its width while the window follows.
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

// smoothings are the weights of the past that a person may choose, 0 for none.
func smoothings() []float64 { return []float64{0, 0.6, 0.9, 0.97} }

func (m *model) keep() float64 { return smoothings()[m.smoothing] }

// noisy says of a series that its values are of a mini-batch each, so that an average tells more than they do: training
// losses, gradient norms, and the fitness of candidates. What is measured of all validation or test samples, counted or
// set is drawn as it is: its average would lag behind it.
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

// smoothNote says how curves of these series are smoothed: nothing where none of them is.
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
		m.say(cell.Plain, fmt.Sprintf("curves of mini-batches smoothed: moving average that keeps %g of the past, as measured behind it", m.keep()))
	}
	return nil
}

// curves are layers of a chart: what was measured goes behind all that is smoothed.
type curves struct{ behind, front []chart.Layer }

func (c curves) layers() []chart.Layer { return append(c.behind, c.front...) }

// axis holds all of them, or all that is not far outside: an average may lie outside of what its window holds. The
// centre, which is a line, is held though it has few values beside those of a band.
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

// add draws s in n columns of what is shown: one that is noisy smoothed over what was measured, else the latter alone.
// columns is s.Median or the like.
func (c *curves) add(m *model, s *view.Series, columns func(edges []uint64) []view.Bucket, n int, role cell.Role,
	style chart.Style) {
	lo, hi := m.rounds()
	edges := m.edgesOf(lo, hi, n)
	raw, void := columns(edges), s.Unmeasured(edges)
	if m.keep() == 0 || !m.noisy(s) {
		c.front = append(c.front, chart.Layer{Columns: raw, Void: void, Role: role, Style: style})
		return
	}
	// What the average remembers from before the window: near it as fine as the window is, coarser before that.
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

// fit is the axis of what is drawn: of all of it where a person asked for that, else of what is not far outside, with
// the middle of each curve that is held.
func (m *model) fit(log bool, held [][]view.Bucket, sets ...[]view.Bucket) chart.Axis {
	if m.outliers {
		return chart.Fit(log, slices.Concat(held, sets)...)
	}
	return chart.Robust(log, held, sets...)
}

// showAll turns over whether axes hold what lies far outside.
func (m *model) showAll() tea.Cmd {
	if m.outliers = !m.outliers; m.outliers {
		m.say(cell.Plain, "axes hold all that was measured")
	} else {
		m.say(cell.Plain, "axes leave out what lies far outside, and mark it")
	}
	return nil
}

// allHint says in a chart how to see what its axis leaves out.
const allHint = ", A shows all"

func columnsOf(s *view.Series, id engine.Member) func(edges []uint64) []view.Bucket {
	return func(edges []uint64) []view.Bucket { return s.Columns(id, edges) }
}
