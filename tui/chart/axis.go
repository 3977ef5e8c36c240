package chart

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"brood/runtime/view"
	"brood/tui/cell"
)

// Axis maps values to rows. The zero Axis is linear from 0 to 1.
type Axis struct {
	Lo, Hi float64
	Log    bool
}

// FitAxis returns an axis with round bounds around the finite values of columns. A logarithmic axis ignores values <=
// 0; it becomes linear if there are no others.
func FitAxis(log bool, sets ...[]view.Bucket) Axis {
	log = log && slices.ContainsFunc(sets, func(s []view.Bucket) bool {
		return slices.ContainsFunc(s, func(b view.Bucket) bool { return !b.Empty() && b.Max > 0 })
	})
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, s := range sets {
		for _, b := range s {
			if b.Empty() {
				continue
			}
			if hi = max(hi, b.Max); !log || b.Min > 0 {
				lo = min(lo, b.Min)
			} else if b.Max > 0 {
				lo = min(lo, b.Max)
			}
		}
	}
	return Span(log, lo, hi)
}

// minRelativeRange is the range, relative to its values, below which an axis shows a single value: floating point has
// too few numbers between its bounds.
const minRelativeRange = 1e-9

// minMagnitude is the magnitude below which values count as 0, since denormal numbers lose digits.
const minMagnitude = 1e-290

// Span returns the axis with round bounds around lo..hi.
func Span(log bool, lo, hi float64) Axis {
	switch {
	case !(lo <= hi):
		return Axis{0, 1, false}
	case log && lo > minMagnitude:
		return Axis{1 / axisEnd(1/lo), axisEnd(hi), true}.nonEmpty()
	}
	if lo > 0 && lo < hi/3 {
		lo = 0
	}
	if hi-lo <= max(minMagnitude, minRelativeRange*max(math.Abs(lo), math.Abs(hi))) {
		d := max(math.Abs(lo)/2, 1e-6)
		lo, hi = lo-d, hi+d
	}
	step := niceStep((hi - lo) / 6)
	return Axis{math.Floor(lo/step+1e-9) * step, math.Ceil(hi/step-1e-9) * step, false}.nonEmpty()
}

// nonEmpty returns the axis with Hi > Lo.
func (a Axis) nonEmpty() Axis {
	if a.Hi <= a.Lo {
		a.Hi = a.Lo + max(math.Abs(a.Lo), 1e-9)
	}
	return a
}

// Dot returns the row of a value among n, counted from the top. Values outside of the axis are clamped.
func (a Axis) Dot(x float64, n int) int { return a.scale(n).dot(x) }

// scale is an axis of a number of rows, with the terms that are common to all values.
type scale struct {
	log      bool
	rows     int
	lo, span float64
}

// scale is an axis of a number of rows, with the terms that are common to all values.
func (a Axis) scale(rows int) scale {
	if a.Log {
		return scale{true, rows, math.Log(a.Lo), math.Log(a.Hi) - math.Log(a.Lo)}
	}
	return scale{false, rows, a.Lo, a.Hi - a.Lo}
}

func (s scale) dot(x float64) int {
	t := 0.0
	switch {
	case s.log && x <= 0:
	case s.log:
		t = (math.Log(x) - s.lo) / s.span
	default:
		t = (x - s.lo) / s.span
	}
	return s.rows - 1 - int(math.Round(min(max(t, 0), 1)*float64(s.rows-1)))
}

// draw draws the axis line and the labels of round values.
func (a Axis) draw(g *cell.Grid, p cell.Rect, label func(float64) string) {
	x := p.X - 1
	for y := p.Y; y < p.Y+p.H; y++ {
		g.Set(x, y, '│', cell.Border)
	}
	last, written := -9, map[string]bool{}
	for _, v := range a.ticks(p.H) {
		y := p.Y + a.Dot(v, 4*p.H)/4
		if y-last < 2 {
			continue
		}
		last = y
		g.Set(x, y, '┤', cell.Border)
		if l := label(v); !written[l] { // values with the same digits get one label
			written[l] = true
			g.Right(x, y, gutter-2, cell.Faint, l)
		}
	}
}

// ticks returns round values from high to low, about one for every three rows. A logarithmic axis with few round values
// in its decades gets linear ticks.
func (a Axis) ticks(rows int) (out []float64) {
	if a.Log {
		if out = a.decades(rows); len(out) >= min(3, rows/3) {
			return out
		}
		out = nil
	}
	step := niceStep((a.Hi - a.Lo) / max(1, float64(rows)/3))
	for i := math.Floor(a.Hi/step + 1e-9); i*step >= a.Lo-step*1e-9; i-- {
		out = append(out, i*step)
	}
	return out
}

// decades returns the round values of a logarithmic axis from high to low.
func (a Axis) decades(rows int) (out []float64) {
	decades := math.Log10(a.Hi / a.Lo)
	every, within := math.Ceil(decades/max(1, float64(rows)/2)), []float64{5, 2, 1}
	if decades > float64(rows)/4 {
		within = within[2:]
	}
	for e := math.Floor(math.Log10(a.Hi)); ; e -= every {
		for _, m := range within {
			v := m * math.Pow(10, e)
			if v < a.Lo*(1-1e-9) {
				return out
			}
			if v <= a.Hi*(1+1e-9) {
				out = append(out, v)
			}
		}
	}
}

// niceStep returns the smallest 1, 2 or 5 times a power of ten that is at least x.
func niceStep(x float64) float64 {
	if x <= 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return 1
	}
	p := math.Pow(10, math.Floor(math.Log10(x)))
	for _, m := range []float64{1, 2, 5} {
		if m*p >= x*(1-1e-9) {
			return m * p
		}
	}
	return 10 * p
}

// axisEnd returns a bound of a logarithmic axis at or above x. It is finer than the ticks, to waste little space.
func axisEnd(x float64) float64 {
	p := math.Pow(10, math.Floor(math.Log10(x)))
	for _, m := range []float64{1, 1.5, 2, 3, 4, 5, 6, 8} {
		if m*p >= x*(1-1e-9) {
			return m * p
		}
	}
	return 10 * p
}

// labelWidth is the width of a y label in cells.
const labelWidth = 6

// Label formats a value in at most six characters, with as many of its first four digits as fit: 0.0012, 1.2e-4,
// 125e-6.
func Label(v float64) string {
	a := math.Abs(v)
	switch {
	case math.IsNaN(v):
		return "nan"
	case math.IsInf(v, 0):
		return "inf"
	case v == 0:
		return "0"
	case a >= 999.5e3 && a < 999.5e6:
		return strconv.FormatFloat(v/1e6, 'g', 3, 64) + "M"
	case a >= 1e4 && a < 999.5e3:
		return strconv.FormatFloat(v/1e3, 'g', 3, 64) + "k"
	}
	for digits := 4; digits > 1; digits-- {
		for i, text := range spellings(v, digits) {
			if len(text) <= labelWidth && (i > 0 || a >= 1e-3) {
				return text
			}
		}
	}
	return spellings(v, 1)[1]
}

// spellings returns a value with this many digits in three forms: decimal, with an exponent, and as an integer with an
// exponent.
func spellings(v float64, digits int) [3]string {
	mantissa, e, _ := strings.Cut(strconv.FormatFloat(v, 'e', digits-1, 64), "e")
	exponent, _ := strconv.Atoi(e)
	if strings.Contains(mantissa, ".") {
		mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
	}
	short := mantissa + "e" + strconv.Itoa(exponent)
	value, _ := strconv.ParseFloat(short, 64)
	whole := short
	if head, behind, ok := strings.Cut(mantissa, "."); ok {
		whole = head + behind + "e" + strconv.Itoa(exponent-len(behind))
	}
	return [3]string{strconv.FormatFloat(value, 'f', -1, 64), short, whole}
}
