package runs

import (
	"math"
	"slices"
	"sort"

	"brood/runtime/archive"
	"brood/runtime/axis"
	"brood/runtime/event"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

// OverlayState holds the curves of the selected runs: the loaded runs, joined into a set, and their columns at the
// width of the panel. layOut recomputes it only if the set, the axis or the width has changed.
type OverlayState struct {
	loaded    map[string]*loadedRun // by directory
	Axis      axis.Axis
	At        int  // cell under the cursor, -1 for none
	Seeds     bool // draw runs that differ only in their seeds as mean and band
	sinceFork bool // draw only from the fork, if a branch is shown with its parent

	Stale  bool                 // the fields below have to be recomputed
	Set    []*archive.Run       // selected runs with curves
	index  map[*archive.Run]int // number of the letter of a run
	Lines  []overlayLine
	Plots  []Plot
	Width  int     // of a plot in cells, for which the columns were computed
	Lo, Hi float64 // shown range of the axis

	Rows          []figureRow // of the table
	Cols          []panel.Column[figureRow]
	differing     []string // names of settings
	oldTests      string   // note: runs that have trained since their last test
	unequalCosts  string   // note: no run is best by its costs, see [archive.Unequal]
	unlikeResults string   // note: no run has the best result, see [archive.Unlike]
	unlikeLosses  string   // note: no run has the least training loss, see [archive.Tried]
}

// overlayLine is a line of the charts: a run, or several runs that differ only in their seeds.
type overlayLine struct {
	Runs   []*archive.Run
	letter rune
	role   cell.Role
	Name   string
}

// Plot is a chart of one quantity of all lines.
type Plot struct {
	quantity
	Lines [][]view.Bucket        // columns of each line; nil if it has no values
	Read  [][][]archive.Point    // measured values, by line and run
	Raw   [][]view.Bucket        // the columns that are not nil, for the axis
	Axes  map[[2]bool]chart.Axis // cache of fit, by logarithmic and with outliers
}

// hold stores a loaded run. If 2*MaxMarks runs are stored it first drops all runs that are not in marks.
func (o *OverlayState) hold(dir string, h *loadedRun, marks []string) {
	for d := range o.loaded {
		if len(o.loaded) >= 2*MaxMarks && !slices.Contains(marks, d) {
			delete(o.loaded, d)
		}
	}
	o.loaded[dir], o.Stale = h, true
}

// step moves the cursor by d cells. Without a cursor it starts at the right end for d < 0, else at the left end.
func (o *OverlayState) step(d int) {
	switch {
	case o.Width == 0:
	case o.At < 0 && d < 0:
		o.At = o.Width - 1
	case o.At < 0:
		o.At = 0
	default:
		o.At = min(max(0, o.At+d), o.Width-1)
	}
}

// lastValues summarizes the last values of the runs of a line: their mean, least and largest.
type lastValues struct {
	view.Bucket
	X float64 // position of the earliest of these values on the axis
}

// LastValues returns the last values of a line's runs up to the cursor, or at their ends without a cursor. ok is false
// if one of the runs has no value there.
func (o *OverlayState) LastValues(runs [][]archive.Point) (out lastValues, ok bool) {
	out = lastValues{view.Bucket{Min: math.Inf(1), Max: math.Inf(-1)}, math.Inf(1)}
	for _, points := range runs {
		i := len(points)
		if _, end := o.Cell(); o.At >= 0 {
			i = sort.Search(i, func(i int) bool { return points[i].X > end })
		}
		if i == 0 {
			return out, false
		}
		p := points[i-1]
		v := p.Mean()
		out.Min, out.Max, out.Sum, out.Count = min(out.Min, v), max(out.Max, v), out.Sum+v, out.Count+1
		out.X = min(out.X, p.X)
	}
	return out, len(runs) > 0
}

// Cell returns the part of the axis under the cursor. Values after begin and up to end are drawn in that cell.
func (o *OverlayState) Cell() (begin, end float64) {
	step := (o.Hi - o.Lo) / float64(max(1, o.Width))
	slack := 1e-9 * (o.Hi - o.Lo) // for rounding errors
	return o.Lo + step*float64(o.At) + slack, o.Lo + step*float64(o.At+1) + slack
}

// x returns the axis position of the middle of the cell under the cursor.
func (o *OverlayState) x() float64 {
	return o.Lo + (o.Hi-o.Lo)*(float64(o.At)+0.5)/float64(max(1, o.Width))
}

// plotWidth returns the width in cells of a plot in the overlay panel, or on the whole screen if it is not placed.
func plotWidth(m *panel.Host) int {
	in := cell.Rect{W: m.W, H: m.H}
	for _, p := range m.Placed {
		if p.Panel == panel.Overlay {
			in = p.Area
		}
	}
	in = in.Inset()
	return chart.Plot(cell.Rect{W: in.W - 1, H: in.H}).W // one column is for the letters of the lines
}

// layOut returns the overlay of the selected runs. It recomputes lines, plots and table if they are stale or the width
// has changed.
func (r *Runs) layOut(m *panel.Host) *OverlayState {
	o, width := &r.Overlay, plotWidth(m)
	if !o.Stale && o.Width == width {
		return o
	}
	if o.Width != width {
		o.At = -1
	}
	o.Stale, o.Width, o.Plots, o.Lines = false, width, nil, nil
	var read []*archive.Run
	var letters []int
	entries := r.selectedRuns(m)
	var names []string
	for _, e := range entries {
		if h := o.loaded[e.Dir]; h != nil && h.run != nil {
			read, names = append(read, h.run), append(names, r.name(e))
			letters = append(letters, max(0, slices.Index(r.Marks, e.Dir)))
		}
	}
	if o.Set = archive.Set(read); len(o.Set) == 0 {
		return o
	}
	for i, run := range o.Set {
		run.Name = names[i]
	}
	o.group(letters)
	o.Lo, o.Hi = archive.Spanned(o.Set, o.Axis)
	if !(o.Hi > o.Lo) && o.Axis != axis.Rounds {
		o.Axis = axis.Rounds
		o.Lo, o.Hi = archive.Spanned(o.Set, o.Axis)
	}
	o.applySinceFork()
	o.Rows, o.Cols, o.differing = o.figures()
	o.oldTests, o.unequalCosts = o.oldTestsNote(), archive.Unequal(o.Set)
	o.unlikeResults, o.unlikeLosses = archive.Unlike(o.Set), archive.Tried(o.Set)
	for _, q := range o.Quantities(m) {
		if p, some := o.plot(q, 2*width); some {
			o.Plots = append(o.Plots, p)
		}
	}
	return o
}

// quantity is a measured quantity of runs that a chart can show.
type quantity struct {
	Title string
	log   bool
	text  func(float64) string
	cols  func(run *archive.Run, n int) []view.Bucket
	All   func(run *archive.Run) []archive.Point // in the order of the axis
	ticks func(float64) string                   // labels of the y axis; nil: numbers
}

// plot returns the chart of a quantity with n columns a line. some is false if no line has values.
func (o *OverlayState) plot(q quantity, n int) (p Plot, some bool) {
	p = Plot{quantity: q, Axes: map[[2]bool]chart.Axis{}}
	for _, l := range o.Lines {
		var all [][]view.Bucket
		var read [][]archive.Point
		for _, run := range l.Runs {
			cols := q.cols(run, n)
			if slices.ContainsFunc(cols, func(b view.Bucket) bool { return !b.Empty() }) {
				all, read = append(all, cols), append(read, q.All(run))
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
		p.Lines, p.Read = append(p.Lines, cols), append(p.Read, read)
		if cols != nil {
			p.Raw, some = append(p.Raw, cols), true
		}
	}
	return p, some
}

// Fit returns the y axis for the current settings and caches it. The axis includes the middle of every line; otherwise
// a run far from the others would not be visible.
func (p Plot) Fit(m *panel.Host) chart.Axis {
	want := [2]bool{p.log && m.LogAxis, m.Outliers}
	a, ok := p.Axes[want]
	if !ok {
		a = m.FitAxis(want[0], p.Raw)
		p.Axes[want] = a
	}
	return a
}

// Quantities returns the quantities that get a chart, the most wanted first: loss, test metrics, bytes sent, then all
// other series.
func (o *OverlayState) Quantities(m *panel.Host) (out []quantity) {
	has := func(name string) bool {
		return slices.ContainsFunc(o.Set, func(run *archive.Run) bool { return run.View.Find(name) != nil })
	}
	series := func(name, title string, log bool) {
		out = append(out, quantity{title, log, func(x float64) string { return textfmt.SeriesText(name, x) },
			func(run *archive.Run, n int) []view.Bucket {
				cols, _ := run.Curve(name, o.Axis, o.Lo, o.Hi, n)
				return cols
			}, func(run *archive.Run) []archive.Point { return run.Measured(name, o.Axis) }, nil})
	}
	some := func(of func(run *archive.Run) bool) bool { return slices.ContainsFunc(o.Set, of) }
	maximises := func(run *archive.Run) bool { return run.View.Config.Maximises() }
	centre := func(title string, log, fitness bool) {
		out = append(out, quantity{title, log, textfmt.Number, func(run *archive.Run, n int) []view.Bucket {
			if maximises(run) != fitness {
				return make([]view.Bucket, n)
			}
			cols, _ := run.Curve(view.CentreLoss, o.Axis, o.Lo, o.Hi, n)
			if fitness {
				cols = panel.Negate(cols)
			}
			return cols
		}, func(run *archive.Run) []archive.Point {
			if maximises(run) != fitness {
				return nil
			}
			points := slices.Clone(run.Measured(view.CentreLoss, o.Axis))
			for i := range points {
				if fitness {
					points[i].Bucket = panel.Negate([]view.Bucket{points[i].Bucket})[0]
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
		for _, s := range event.TestScores {
			loss := s.Series == view.TestLoss
			if !loss || some(func(run *archive.Run) bool { return run.View.Config.Score().Series == view.TestLoss }) {
				series(s.Series, s.Heading(), loss)
			}
		}
	}
	if o.Axis != axis.Bytes && some(func(run *archive.Run) bool { _, sent := run.Span(axis.Bytes); return sent > 0 }) {
		out = append(out, quantity{"bytes sent", false, textfmt.Size[float64], func(run *archive.Run, n int) []view.Bucket {
			return run.Reached(axis.Bytes, o.Axis, o.Lo, o.Hi, n)
		}, func(run *archive.Run) []archive.Point { return run.Commits(axis.Bytes, o.Axis) }, textfmt.ShortSize})
	}
	if has(view.CentreLoss) && has("loss") {
		series("loss", "training loss, median of members", true)
	}
	for _, name := range []string{view.Fitness, view.Spread} {
		if has(name) {
			series(name, name+", median of members", false)
		}
	}
	drawn := []string{view.Fitness, view.Spread, view.CentreLoss, "loss", view.Parent, view.Founder, view.Partner}
	for _, s := range event.TestScores {
		drawn = append(drawn, s.Series)
	}
	for _, run := range o.Set {
		for i := range run.View.Series {
			if name := run.View.Series[i].Name; !slices.Contains(drawn, name) {
				drawn = append(drawn, name)
				series(name, m.SeriesName(name), false)
			}
		}
	}
	return out
}

// group sets the lines, in the order of their letters. Runs of one setting with several seeds become one line if
// o.Seeds is set. letters are the numbers of the letters of the runs in o.Set.
func (o *OverlayState) group(letters []int) {
	index := map[*archive.Run]int{}
	for i, run := range o.Set {
		index[run] = letters[i]
	}
	o.index = index
	for _, g := range archive.Groups(o.Set) {
		if !o.Seeds || g.Seeds() < 2 {
			for _, run := range g.Runs {
				letter, role := chart.KindLetter(index[run])
				o.Lines = append(o.Lines, overlayLine{[]*archive.Run{run}, letter, role, run.Name})
			}
			continue
		}
		letter, role := chart.KindLetter(index[g.Runs[0]])
		o.Lines = append(o.Lines, overlayLine{g.Runs, letter, role, "mean of " + textfmt.Count(g.Seeds(), "seed")})
	}
	slices.SortStableFunc(o.Lines, func(a, b overlayLine) int { return index[a.Runs[0]] - index[b.Runs[0]] })
}
