package archive

import (
	"math"

	"brood/runtime/axis"
	"brood/runtime/view"
)

// Loss returns the name of the series that shows the success of a run: the loss of the centre, else of the members; for
// an objective that is maximised, the fitness; else the first measured series; "" if nothing was measured.
func (r *Run) Loss() string {
	names := []string{view.CentreLoss, "loss"}
	if r.View.Config.Maximises() {
		names = []string{view.Fitness}
	}
	for _, name := range names {
		if r.View.Find(name) != nil {
			return name
		}
	}
	if len(r.View.Series) > 0 {
		return r.View.Series[0].Name
	}
	return ""
}

// Reached returns the position of the run on one axis over another, in n equal columns from lo to hi of the latter: for
// instance the bytes sent by a round. Columns before the start and after the end of the run are empty.
func (r *Run) Reached(of, over axis.Axis, lo, hi float64, n int) []view.Bucket {
	cols := make([]view.Bucket, n)
	first, last := r.Span(over)
	for i := range cols {
		from, to := lo+(hi-lo)*float64(i)/float64(n), lo+(hi-lo)*float64(i+1)/float64(n)
		if to < first || from > last {
			continue
		}
		x := r.clock.At(of, over, min(to, last))
		cols[i] = single(x)
	}
	return cols
}

// Commits returns the position of the run on one axis over another after each commit that its clock stores, in order.
// The caller owns the slice.
func (r *Run) Commits(of, over axis.Axis) []Point {
	out := make([]Point, len(r.clock.Ticks))
	for i, t := range r.clock.Ticks {
		out[i] = Point{uint64(t[axis.Rounds]), t[over], single(t[of])}
	}
	return out
}

// At returns the value of a curve in column i as its line is drawn: the mean of the column, or a linear interpolation
// between the nearest columns with values. ok is false before the first value and after the last.
func At(cols []view.Bucket, i int) (x float64, ok bool) {
	if i < 0 || i >= len(cols) {
		return 0, false
	}
	a, b := i, i
	for a >= 0 && cols[a].Empty() {
		a--
	}
	for b < len(cols) && cols[b].Empty() {
		b++
	}
	switch {
	case a < 0 || b == len(cols):
		return 0, false
	case a == b:
		return cols[a].Mean(), true
	}
	x, y := cols[a].Mean(), cols[b].Mean()
	return x + (y-x)*float64(i-a)/float64(b-a), true
}

// Mean returns the mean curve of runs that differ in their seeds. Each column has their least and largest value and, as
// its mean, the mean over the runs. A column is empty if one run has no value there: otherwise the curve would jump
// where a run ends. All curves must have the same columns. The caller owns the slice.
func Mean(curves [][]view.Bucket) []view.Bucket {
	if len(curves) == 0 {
		return nil
	}
	out := make([]view.Bucket, len(curves[0]))
	for i := range out {
		b := view.Bucket{Min: math.Inf(1), Max: math.Inf(-1)}
		for _, c := range curves {
			x, ok := At(c, i)
			if !ok {
				break
			}
			b.Min, b.Max, b.Sum, b.Count = min(b.Min, x), max(b.Max, x), b.Sum+x, b.Count+1
		}
		if b.Count == uint64(len(curves)) {
			out[i] = b
		}
	}
	return out
}
