package archive

import (
	"math"
	"slices"

	"brood/runtime/axis"
	"brood/runtime/view"
)

// Span returns the start and the end of a run on an axis.
func (r *Run) Span(a axis.Axis) (from, to float64) {
	if len(r.clock.Ticks) > 0 {
		from = r.clock.Ticks[0][a]
	}
	return from, r.clock.End()[a]
}

// At returns the position of the run on an axis after this many rounds. It interpolates linearly between commits.
func (r *Run) At(a axis.Axis, round uint64) float64 {
	return r.clock.At(a, axis.Rounds, float64(round))
}

// Spanned returns the range of runs on an axis: from the first start to the last end.
func Spanned(runs []*Run, a axis.Axis) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, r := range runs {
		from, to := r.Span(a)
		lo, hi = min(lo, from), max(hi, to)
	}
	return lo, hi
}

// Curve returns a series of the run in n equal columns from lo to hi of an axis: the median for a series with a value
// for each member. A column contains the rounds that ended in it. It is empty if none did, and outside the span of the
// run. If the view stores several rounds as one bucket, every column that the bucket overlaps has it. ok is false if
// the run has no such series. The caller owns the slice.
func (r *Run) Curve(series string, a axis.Axis, lo, hi float64, n int) (cols []view.Bucket, ok bool) {
	s := r.View.Find(series)
	if s == nil || n < 1 || !(hi > lo) {
		return nil, s != nil
	}
	cols = make([]view.Bucket, n)
	first, last := r.Span(a)
	// the first round that ends at x or later
	round := func(x float64) uint64 { return uint64(math.Ceil(r.clock.At(axis.Rounds, a, x) - 1e-6)) }
	for i := range cols {
		from, to := lo+(hi-lo)*float64(i)/float64(n), lo+(hi-lo)*float64(i+1)/float64(n)
		if to <= first || from > last {
			continue
		}
		begin, end := round(max(from, first)), round(to)
		if i == n-1 || to > last { // include a round that ends exactly at the end
			end++
		}
		if end <= begin {
			continue
		}
		cols[i] = s.Band(view.Even(begin, end, 1))[0]
	}
	return cols, true
}

// Point is a series in one or more consecutive rounds, of which Round is the last.
type Point struct {
	Round uint64
	X     float64 // position of that round on the requested axis
	view.Bucket
}

// Points returns a series as at most n points in order, which together contain all its values: the median for a series
// with a value for each member. It returns nil if the run has no such series.
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

// Measured returns all points of a series that the view stores, in order: the medians for a series with a value for
// each member. The last point is the last value as it was measured. It returns nil if the run has no such series. The
// caller owns the slice.
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

// Shared returns the series that all runs have, in the order of the first run.
func Shared(runs []*Run) (out []string) {
	for _, s := range runs[0].View.Series {
		if !slices.ContainsFunc(runs, func(r *Run) bool { return r.View.Find(s.Name) == nil }) {
			out = append(out, s.Name)
		}
	}
	return out
}
