package archive

import (
	"math"
	"slices"

	"brood/runtime/axis"
	"brood/runtime/view"
)

// Span is how far a run got on an axis, from where it set out.
func (r *Run) Span(a axis.Axis) (from, to float64) {
	if len(r.clock.Ticks) > 0 {
		from = r.clock.Ticks[0][a]
	}
	return from, r.clock.End()[a]
}

// At is how far the run was on an axis once so many rounds were done. What lies between two commits counts as even.
func (r *Run) At(a axis.Axis, round uint64) float64 {
	return r.clock.At(a, axis.Rounds, float64(round))
}

// Spanned is the part of an axis on which runs are: from the first that sets out to the last that ends.
func Spanned(runs []*Run, a axis.Axis) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, r := range runs {
		from, to := r.Span(a)
		lo, hi = min(lo, from), max(hi, to)
	}
	return lo, hi
}

// Curve is a series of the run in n equal columns from lo to hi of an axis; of a series with a value for each member it
// is their median. A column holds the rounds that ended in it, and is empty where none did or the run did not get
// there; where the view keeps several rounds as one bucket, every column that it reaches into has it. ok is false where
// the run measured no such series. The slice is the caller's.
func (r *Run) Curve(series string, a axis.Axis, lo, hi float64, n int) (cols []view.Bucket, ok bool) {
	s := r.View.Find(series)
	if s == nil || n < 1 || !(hi > lo) {
		return nil, s != nil
	}
	cols = make([]view.Bucket, n)
	first, last := r.Span(a)
	// the first that ends at x or later
	round := func(x float64) uint64 { return uint64(math.Ceil(r.clock.At(axis.Rounds, a, x) - 1e-6)) }
	for i := range cols {
		from, to := lo+(hi-lo)*float64(i)/float64(n), lo+(hi-lo)*float64(i+1)/float64(n)
		if to <= first || from > last {
			continue
		}
		begin, end := round(max(from, first)), round(to)
		if i == n-1 || to > last { // a round that ends at the very end is part of it
			end++
		}
		if end <= begin {
			continue
		}
		cols[i] = s.Band(view.Even(begin, end, 1))[0]
	}
	return cols, true
}

// Point is what a series was in a few rounds, of which Round is the last: in one round where there are few.
type Point struct {
	Round uint64
	X     float64 // of that round, on the axis that was asked for
	view.Bucket
}

// Points are at most n points of a series, with all its values in order; nil where the run measured no such series. Of
// a series with a value for each member they are of the median.
func (r *Run) Points(series string, a axis.Axis, n int) (out []Point) {
	s := r.View.Find(series)
	lo, hi := s.Rounds()
	n = int(min(hi-lo, uint64(n)))
	if n == 0 {
		return nil
	}
	for i, b := range s.Band(view.Even(lo, hi, n)) {
		if !b.Empty() {
			last := lo + (hi-lo)*uint64(i+1)/uint64(n) - 1
			out = append(out, Point{last, r.clock.At(a, axis.Rounds, float64(last)), b})
		}
	}
	return out
}

// Measured are all points of a series that the view keeps, in order, the last of them as it was measured; nil where the
// run measured no such series. Of a series with a value for each member they are of the median. The slice is the
// caller's.
func (r *Run) Measured(series string, a axis.Axis) []Point {
	s := r.View.Find(series)
	lo, hi := s.Rounds()
	if hi == lo {
		return nil
	}
	w := s.Width()
	n := (hi - lo + w - 1) / w
	var out []Point
	for i, b := range s.Band(view.Even(lo, lo+n*w, int(n))) {
		if !b.Empty() {
			last := min(lo+uint64(i+1)*w, hi) - 1
			out = append(out, Point{last, r.clock.At(a, axis.Rounds, float64(last)), b})
		}
	}
	if x, ok := s.Last(view.Whole); ok && len(out) > 0 && x-x == 0 {
		out[len(out)-1].Bucket = single(x)
	}
	return out
}

func single(x float64) view.Bucket { return view.Bucket{Min: x, Max: x, Sum: x, Count: 1} }

// Shared are the series that all runs measured, in the order of the first run.
func Shared(runs []*Run) (out []string) {
	for _, s := range runs[0].View.Series {
		if !slices.ContainsFunc(runs, func(r *Run) bool { return r.View.Find(s.Name) == nil }) {
			out = append(out, s.Name)
		}
	}
	return out
}
