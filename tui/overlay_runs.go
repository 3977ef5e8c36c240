package tui

import (
	"math"
	"slices"
	"sort"

	"brood/runtime/archive"

	"brood/runtime/axis"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
)

// overlayState holds the curves of the selected runs: the loaded runs, joined into a set, and their columns at the
// width of the panel. [runs.lay] recomputes it only if the set, the axis or the width has changed.
type overlayState struct {
	loaded map[string]*loadedRun // by directory
	axis   axis.Axis
	at     int  // cell under the cursor, -1 for none
	seeds  bool // draw runs that differ only in their seeds as mean and band
	race   bool // draw only from the fork, if a branch is shown with its parent

	stale  bool                 // the fields below have to be recomputed
	set    []*archive.Run       // selected runs with curves
	index  map[*archive.Run]int // number of the letter of a run
	lines  []overlayLine
	plots  []plot
	width  int     // of a plot in cells, for which the columns were computed
	lo, hi float64 // shown range of the axis

	rows      []figureRow // of the table
	cols      []column[figureRow]
	differing []string // names of settings
	aged      string   // note: runs that have trained since their last test
	unequal   string   // note: no run is best by its costs, see [compare.Unequal]
	unlike    string   // note: no run has the best result, see [compare.Unlike]
	tried     string   // note: no run has the least training loss, see [compare.Tried]
}

// overlayLine is a line of the charts: a run, or several runs that differ only in their seeds.
type overlayLine struct {
	runs   []*archive.Run
	letter rune
	role   cell.Role
	name   string
}

// plot is a chart of one quantity of all lines.
type plot struct {
	quantity
	lines [][]view.Bucket        // columns of each line; nil if it has no values
	read  [][][]archive.Point    // measured values, by line and run
	raw   [][]view.Bucket        // the columns that are not nil, for the axis
	axes  map[[2]bool]chart.Axis // cache of fit, by logarithmic and with outliers
}

// hold stores a loaded run. If 2*maxMarks runs are stored it first drops all runs that are not in marks.
func (o *overlayState) hold(dir string, h *loadedRun, marks []string) {
	for d := range o.loaded {
		if len(o.loaded) >= 2*maxMarks && !slices.Contains(marks, d) {
			delete(o.loaded, d)
		}
	}
	o.loaded[dir], o.stale = h, true
}

// step moves the cursor by d cells. Without a cursor it starts at the right end for d < 0, else at the left end.
func (o *overlayState) step(d int) {
	switch {
	case o.width == 0:
	case o.at < 0 && d < 0:
		o.at = o.width - 1
	case o.at < 0:
		o.at = 0
	default:
		o.at = min(max(0, o.at+d), o.width-1)
	}
}

// lastRead summarizes the last values of the runs of a line: their mean, least and largest.
type lastRead struct {
	view.Bucket
	x float64 // position of the earliest of these values on the axis
}

// read returns the last values of a line's runs up to the cursor, or at their ends without a cursor. ok is false if one
// of the runs has no value there.
func (o *overlayState) read(runs [][]archive.Point) (out lastRead, ok bool) {
	out = lastRead{view.Bucket{Min: math.Inf(1), Max: math.Inf(-1)}, math.Inf(1)}
	for _, points := range runs {
		i := len(points)
		if _, end := o.cell(); o.at >= 0 {
			i = sort.Search(i, func(i int) bool { return points[i].X > end })
		}
		if i == 0 {
			return out, false
		}
		p := points[i-1]
		v := p.Mean()
		out.Min, out.Max, out.Sum, out.Count = min(out.Min, v), max(out.Max, v), out.Sum+v, out.Count+1
		out.x = min(out.x, p.X)
	}
	return out, len(runs) > 0
}

// cell returns the part of the axis under the cursor. Values after begin and up to end are drawn in that cell.
func (o *overlayState) cell() (begin, end float64) {
	step := (o.hi - o.lo) / float64(max(1, o.width))
	slack := 1e-9 * (o.hi - o.lo) // for rounding errors
	return o.lo + step*float64(o.at) + slack, o.lo + step*float64(o.at+1) + slack
}

// x returns the axis position of the middle of the cell under the cursor.
func (o *overlayState) x() float64 {
	return o.lo + (o.hi-o.lo)*(float64(o.at)+0.5)/float64(max(1, o.width))
}

// plotWidth returns the width in cells of a plot in the overlay panel, or on the whole screen if it is not placed.
func (m *model) plotWidth() int {
	in := cell.Rect{W: m.w, H: m.h}
	for _, p := range m.placed {
		if p.panel == overlayPanel {
			in = p.at
		}
	}
	in = in.Inset()
	return chart.Plot(cell.Rect{W: in.W - 1, H: in.H}).W // one column is for the letters of the lines
}

// lay returns the overlay of the selected runs. It recomputes lines, plots and table if they are stale or the width has
// changed.
func (r *runs) lay(m *model) *overlayState {
	o, width := &r.overlay, m.plotWidth()
	if !o.stale && o.width == width {
		return o
	}
	if o.width != width {
		o.at = -1
	}
	o.stale, o.width, o.plots, o.lines = false, width, nil, nil
	var read []*archive.Run
	var letters []int
	entries := r.selectedRuns(m)
	var names []string
	for _, e := range entries {
		if h := o.loaded[e.Dir]; h != nil && h.run != nil {
			read, names = append(read, h.run), append(names, r.name(e))
			letters = append(letters, max(0, slices.Index(r.marks, e.Dir)))
		}
	}
	if o.set = archive.Set(read); len(o.set) == 0 {
		return o
	}
	for i, run := range o.set {
		run.Name = names[i]
	}
	o.group(letters)
	o.lo, o.hi = archive.Spanned(o.set, o.axis)
	if !(o.hi > o.lo) && o.axis != axis.Rounds {
		o.axis = axis.Rounds
		o.lo, o.hi = archive.Spanned(o.set, o.axis)
	}
	o.near()
	o.rows, o.cols, o.differing = o.figures()
	o.aged, o.unequal, o.unlike, o.tried = o.older(), archive.Unequal(o.set), archive.Unlike(o.set), archive.Tried(o.set)
	for _, q := range o.quantities(m) {
		if p, some := o.plot(q, 2*width); some {
			o.plots = append(o.plots, p)
		}
	}
	return o
}

// quantity is a measured quantity of runs that a chart can show.
type quantity struct {
	title string
	log   bool
	text  func(float64) string
	cols  func(run *archive.Run, n int) []view.Bucket
	all   func(run *archive.Run) []archive.Point // in the order of the axis
	ticks func(float64) string                   // labels of the y axis; nil: numbers
}

// plot returns the chart of a quantity with n columns a line. some is false if no line has values.
func (o *overlayState) plot(q quantity, n int) (p plot, some bool) {
	p = plot{quantity: q, axes: map[[2]bool]chart.Axis{}}
	for _, l := range o.lines {
		var all [][]view.Bucket
		var read [][]archive.Point
		for _, run := range l.runs {
			cols := q.cols(run, n)
			if slices.ContainsFunc(cols, func(b view.Bucket) bool { return !b.Empty() }) {
				all, read = append(all, cols), append(read, q.all(run))
			}
		}
		var cols []view.Bucket
		switch len(all) {
		case 0:
		case 1:
			cols = all[0]
		default:
			cols = archive.Mean(all)
		}
		p.lines, p.read = append(p.lines, cols), append(p.read, read)
		if cols != nil {
			p.raw, some = append(p.raw, cols), true
		}
	}
	return p, some
}

// fit returns the y axis for the current settings and caches it. The axis includes the middle of every line; otherwise
// a run far from the others would not be visible.
func (p plot) fit(m *model) chart.Axis {
	want := [2]bool{p.log && m.logAxis, m.outliers}
	a, ok := p.axes[want]
	if !ok {
		a = m.fit(want[0], p.raw)
		p.axes[want] = a
	}
	return a
}

// quantities returns the quantities that get a chart, the most wanted first: loss, test metrics, bytes sent, then all
// other series.
func (o *overlayState) quantities(m *model) (out []quantity) {
	has := func(name string) bool {
		return slices.ContainsFunc(o.set, func(run *archive.Run) bool { return run.View.Find(name) != nil })
	}
	series := func(name, title string, log bool) {
		out = append(out, quantity{title, log, func(x float64) string { return SeriesText(name, x) },
			func(run *archive.Run, n int) []view.Bucket {
				cols, _ := run.Curve(name, o.axis, o.lo, o.hi, n)
				return cols
			}, func(run *archive.Run) []archive.Point { return run.Measured(name, o.axis) }, nil})
	}
	some := func(of func(run *archive.Run) bool) bool { return slices.ContainsFunc(o.set, of) }
	maximises := func(run *archive.Run) bool { return run.View.Config.Maximises() }
	centre := func(title string, log, fitness bool) {
		out = append(out, quantity{title, log, Number, func(run *archive.Run, n int) []view.Bucket {
			if maximises(run) != fitness {
				return make([]view.Bucket, n)
			}
			cols, _ := run.Curve(view.CentreLoss, o.axis, o.lo, o.hi, n)
			if fitness {
				cols = minus(cols)
			}
			return cols
		}, func(run *archive.Run) []archive.Point {
			if maximises(run) != fitness {
				return nil
			}
			points := slices.Clone(run.Measured(view.CentreLoss, o.axis))
			for i := range points {
				if fitness {
					points[i].Bucket = minus([]view.Bucket{points[i].Bucket})[0]
				}
			}
			return points
		}, nil})
	}
	if has(view.CentreLoss) {
		centre("loss of the centre", true, false)
		centre("fitness of the centre", false, true)
	} else if has("loss") {
		series("loss", "training loss", true)
	}
	if some(func(run *archive.Run) bool { return run.View.Evaluations > 1 }) {
		series(view.TestBits, "test bits a byte", false)
		series(view.TestError, "test error  %", false)
		series(view.TestFitness, "test fitness", false)
		series(view.TestHamming, "test Hamming  %", false)
		series(view.TestRMSE, "test RMSE", false)
		series(view.TestR2, "test R2", false)
		if some(func(run *archive.Run) bool { return run.View.Config.Score().Series == view.TestLoss }) {
			series(view.TestLoss, "test loss", true)
		}
	}
	if o.axis != axis.Bytes && some(func(run *archive.Run) bool { _, sent := run.Span(axis.Bytes); return sent > 0 }) {
		out = append(out, quantity{"bytes sent", false, Size, func(run *archive.Run, n int) []view.Bucket {
			return run.Reached(axis.Bytes, o.axis, o.lo, o.hi, n)
		}, func(run *archive.Run) []archive.Point { return run.Commits(axis.Bytes, o.axis) }, brief})
	}
	if has(view.CentreLoss) && has("loss") {
		series("loss", "training loss, median of members", true)
	}
	for _, name := range []string{view.Fitness, view.Spread} {
		if has(name) {
			series(name, name+", median of members", false)
		}
	}
	drawn := []string{view.Fitness, view.Spread, view.CentreLoss, "loss", view.TestBits, view.TestError, view.TestFitness,
		view.TestHamming, view.TestRMSE, view.TestR2, view.TestLoss, view.Parent, view.Founder, view.Partner}
	for _, run := range o.set {
		for i := range run.View.Series {
			if name := run.View.Series[i].Name; !slices.Contains(drawn, name) {
				drawn = append(drawn, name)
				series(name, m.nameOf(name), false)
			}
		}
	}
	return out
}

// group sets the lines, in the order of their letters. Runs of one setting with several seeds become one line if
// o.seeds is set. letters are the numbers of the letters of the runs in o.set.
func (o *overlayState) group(letters []int) {
	index := map[*archive.Run]int{}
	for i, run := range o.set {
		index[run] = letters[i]
	}
	o.index = index
	for _, g := range archive.Groups(o.set) {
		if !o.seeds || g.Seeds() < 2 {
			for _, run := range g.Runs {
				letter, role := chart.Letter(index[run])
				o.lines = append(o.lines, overlayLine{[]*archive.Run{run}, letter, role, run.Name})
			}
			continue
		}
		letter, role := chart.Letter(index[g.Runs[0]])
		o.lines = append(o.lines, overlayLine{g.Runs, letter, role, "mean of " + count(g.Seeds(), "seed")})
	}
	slices.SortStableFunc(o.lines, func(a, b overlayLine) int { return index[a.runs[0]] - index[b.runs[0]] })
}
