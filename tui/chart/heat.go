package chart

import (
	"math"

	"brood/runtime/view"
	"brood/tui/cell"
)

const (
	minDifference    = 0.05 // share of the median below which a difference is not shown
	chanceDeviations = 3    // standard deviations of random changes below which a difference is not shown
	chanceColumns    = 3    // columns on either side that are used to estimate random changes
)

// DrawHeat draws a heat map, one column a cell. A shade compares a value with the median of its column,
//
// \t░ lower   ▒ within half a step   ▓ higher   █ by a step and a half
//
// A step is a quarter of the column's range, at least 2*minDifference of the median, and at least 2*chanceDeviations
// standard deviations of the random changes between columns: rows whose ranks change from column to column look equal,
// a row that stays above the others does not.
func DrawHeat(g *cell.Grid, x, y int, rows [][]view.Bucket) {
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
				d := (r[c].Mean() - mid[c]) / step
				if d != d { // the values are too large to compare
					d = 0
				}
				shade := shades[1+int(min(max(d+1.5, 0), Shades-1))]
				g.Set(x+c, y+i, shade, ShadeRole(shade))
			}
		}
	}
}

// AllEqual reports whether all values of a map are equal, and returns the value.
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

// FillGaps fills empty columns with the value before them, except unmeasured columns and those after the last value. It
// prevents stripes in series that have a point every few columns.
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

// distinct drops rows that repeat the previous one.
func distinct(rows [][]view.Bucket) (out [][]view.Bucket) {
	for _, r := range rows {
		if n := len(out); n == 0 || len(r) == 0 || &r[0] != &out[n-1][0] {
			out = append(out, r)
		}
	}
	return out
}

// columnMedians returns the median of each column, and the standard deviation of the random changes of a row's distance
// to it, NaN if unknown. It estimates the deviation from the median change of the distances since the last column with
// values; for normal values that median is 0.6745 sqrt(2) deviations.
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

// meanAround returns the mean of the known deviations near column c; 0 if there are none.
func meanAround(jump []float64, c int) float64 {
	sum, n := 0.0, 0.0
	for _, x := range jump[max(0, c-chanceColumns):min(len(jump), c+chanceColumns+1)] {
		if x == x {
			sum, n = sum+x, n+1
		}
	}
	return sum / max(n, 1)
}
