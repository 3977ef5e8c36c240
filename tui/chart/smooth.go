package chart

import (
	"math"

	"brood/runtime/view"
)

// Smooth is the debiased exponential moving average of columns, at the end of each: over points x_1, x_2, ...
//
//	s_i = keep s_{i-1} + (1-keep) x_i,   shown as s_i / (1 - keep^i)
//
// It goes over columns and not over points: the points of one column count as so many of their mean, so the cost is
// that of the columns, and a column of one point is exact. before is what lies to the left of the first column, in
// order; its columns may be of another width. Empty columns stay empty. Where nobody measured (nil: nowhere) the
// average begins anew.
func Smooth(keep float64, before, cols []view.Bucket, void []bool) []view.Bucket {
	sum, weight := 0.0, 0.0
	next := func(b view.Bucket) float64 {
		k := math.Pow(keep, float64(b.Count))
		sum, weight = k*sum+(1-k)*b.Mean(), k*weight+(1-k)
		return sum / weight
	}
	for _, b := range before {
		if !b.Empty() {
			next(b)
		}
	}
	out := make([]view.Bucket, len(cols))
	for i, b := range cols {
		if i < len(void) && void[i] {
			sum, weight = 0, 0
		}
		if !b.Empty() {
			x := next(b)
			out[i] = view.Bucket{Min: x, Max: x, Sum: x, Count: 1}
		}
	}
	return out
}
