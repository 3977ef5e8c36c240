package archive

import (
	"math"

	"brood/runtime/axis"
	"brood/runtime/view"
)

// Loss is the series that stands for what a run trains for: the loss of the centre, else of the members; of an
// objective the fitness; else what it measured first; "" where it measured nothing.
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

// Reached is how far the run was on one axis over another, in n equal columns from lo to hi of that: the bytes it had
// sent by a round, for instance. Columns before its start and behind its end are empty.
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

// Commits are how far the run was on one axis over another after each commit that is kept, in order. The slice is the
// caller's.
func (r *Run) Commits(of, over axis.Axis) []Point {
	out := make([]Point, len(r.clock.Ticks))
	for i, t := range r.clock.Ticks {
		out[i] = Point{uint64(t[axis.Rounds]), t[over], single(t[of])}
	}
	return out
}

// At is the value of a curve in column i as its line is drawn: the mean there, or between the columns beside it; ok is
// false before its first value and behind its last.
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

// Mean is the curve of runs that are repeated with other seeds: in each column their least and largest value and, as
// its mean, the mean of all of them. It is empty where one of them has no value: else it would jump where one ends.
// Each run's curve has the same columns; the slice is the caller's.
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
