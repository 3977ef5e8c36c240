package chart

import (
	"math"

	"brood/runtime/view"
	"brood/tui/cell"
)

const (
	minDifference    = 0.05 // part of the middle value by which values differ without meaning anything
	chanceDeviations = 3    // standard deviations by which chance makes them differ
	chanceColumns    = 3    // columns to either side that tell how much chance there is
)

// DrawHeat draws rows of shades, one column a cell: how a value compares with the middle one of its column,
//
//	░ lower   ▒ within half a step   ▓ higher   █ by a step and a half
//
// A step is a quarter of the column's range, but at least 2 `alike` of the middle value, and 2 `chance` standard
// deviations of what does not last: rows whose places change from column to column look even, and one that stays above
// the others does not.
func DrawHeat(g *cell.Grid, x, y int, rows [][]view.Bucket, role cell.Role) {
	if len(rows) == 0 {
		return
	}
	mid, jump := columnMedians(distinct(rows))
	for c := range rows[0] {
		lo, hi := math.Inf(1), math.Inf(-1)
		for _, r := range rows {
			if !r[c].Empty() {
				lo, hi = min(lo, r[c].Mean()), max(hi, r[c].Mean())
			}
		}
		step := max((hi-lo)/4, 2*minDifference*math.Abs(mid[c]), 2*chanceDeviations*meanAround(jump, c), minMagnitude)
		for i, r := range rows {
			if !r[c].Empty() {
				n := 1.0 // alike, where values are too large to compare
				if d := (r[c].Mean() - mid[c]) / step; d == d {
					n = min(max(math.Floor(d+1.5), 0), Shades-1)
				}
				g.Set(x+c, y+i, shades[1+int(n)], role)
			}
		}
	}
}

// AllEqual says whether all values of a map are one, and which: there is nothing to compare then.
func AllEqual(rows [][]view.Bucket) (x float64, ok bool) {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, r := range rows {
		for _, b := range r {
			if !b.Empty() {
				lo, hi = min(lo, b.Min), max(hi, b.Max)
			}
		}
	}
	return lo, lo == hi
}

// FillGaps fills columns without values with what was before them, but for those in which nobody measured and those behind
// the last value: a series that has a point every few columns is no stripes.
func FillGaps(cols []view.Bucket, void []bool) []view.Bucket {
	last := len(cols) - 1
	for last >= 0 && cols[last].Empty() {
		last--
	}
	for i := 1; i < last; i++ {
		if cols[i].Empty() && !void[i] {
			cols[i] = cols[i-1]
		}
	}
	return cols
}

// distinct leaves out rows that repeat the one before.
func distinct(rows [][]view.Bucket) (out [][]view.Bucket) {
	for _, r := range rows {
		if n := len(out); n == 0 || len(r) == 0 || &r[0] != &out[n-1][0] {
			out = append(out, r)
		}
	}
	return out
}

// columnMedians are the median of each column, and what chance makes of it: the standard deviation of a row's distance to it,
// from the median jump of those distances since the last column with values, NaN where there is none. Of normal values
// that is 0.6745 sqrt(2) deviations.
func columnMedians(rows [][]view.Bucket) (mid, jump []float64) {
	n, w := len(rows), len(rows[0])
	mid, jump = make([]float64, w), make([]float64, w)
	before, seen := make([]float64, n), make([]bool, n)
	var all []float64
	for c := range w {
		all = all[:0]
		for _, r := range rows {
			if !r[c].Empty() {
				all = append(all, r[c].Mean())
			}
		}
		mid[c], all = view.Median(all), all[:0]
		for i, r := range rows {
			if r[c].Empty() {
				continue
			}
			d := r[c].Mean() - mid[c]
			if seen[i] {
				all = append(all, math.Abs(d-before[i]))
			}
			before[i], seen[i] = d, true
		}
		jump[c] = view.Median(all) / (0.6745 * math.Sqrt2)
	}
	return mid, jump
}

// meanAround is the mean of what is known near column c, 0 where nothing is.
func meanAround(jump []float64, c int) float64 {
	sum, n := 0.0, 0.0
	for _, x := range jump[max(0, c-chanceColumns):min(len(jump), c+chanceColumns+1)] {
		if x == x {
			sum, n = sum+x, n+1
		}
	}
	return sum / max(n, 1)
}
