package chart

import (
	"math"

	"brood/runtime/view"
)

// Smooth returns the debiased exponential moving average of columns, evaluated at the end of each: over points x_1,
// x_2, ...
//
// \ts_i = keep s_{i-1} + (1-keep) x_i,   shown as s_i / (1 - keep^i)
//
// It runs over columns instead of points: a column counts as that many points of its mean, so the cost depends only on
// the number of columns, and a column of one point is exact. before holds the columns to the left of the first one, in
// order, possibly of other widths. Empty columns stay empty. The average restarts at unmeasured columns (void; nil:
// none).
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
