package chart

import (
	"math"
	"slices"

	"brood/runtime/view"
	"brood/tui/cell"
)

const (
	tail   = 0.1 // share of the values on either side that may be outliers
	fences = 2   // distance from the values between the tails, in their ranges, from which a value is an outlier
	gain   = 2   // least ratio of the full range to the range without outliers for which they are excluded
)

// Robust returns the axis of [FitAxis] without outliers: a divergence or the first rounds would flatten all other
// values. A curve in held is always included, except for its own outliers. [Draw] marks values outside of the axis.
func Robust(log bool, held [][]view.Bucket, sets ...[]view.Bucket) Axis {
	sets = append(slices.Clone(held), sets...)
	full := FitAxis(log, sets...)
	all := columnEnds(full.Log, sets...)
	if len(all) == 0 {
		return full
	}
	lo, hi := bulk(all)
	for _, h := range held {
		if own := columnEnds(full.Log, h); len(own) > 0 {
			l, u := bulk(own)
			lo, hi = min(lo, l), max(hi, u)
		}
	}
	if all[len(all)-1]-all[0] < gain*(hi-lo) || lo == all[0] && hi == all[len(all)-1] {
		return full
	}
	if full.Log {
		lo, hi = math.Exp(lo), math.Exp(hi)
	}
	return Span(full.Log, lo, hi)
}

// columnEnds returns the minima and maxima of all columns on the scale of the axis, ascending.
func columnEnds(log bool, sets ...[]view.Bucket) (all []float64) {
	for _, s := range sets {
		for _, b := range s {
			if b.Empty() {
				continue
			}
			for _, x := range []float64{b.Min, b.Max} {
				switch {
				case !log:
					all = append(all, x)
				case x > 0:
					all = append(all, math.Log(x))
				}
			}
		}
	}
	slices.Sort(all)
	return all
}

// bulk returns the range of ascending values without outliers. It is the full range if the middle values are equal, or
// if outliers add little to the range.
func bulk(all []float64) (lo, hi float64) {
	low, high := all[int(tail*float64(len(all)-1))], all[int((1-tail)*float64(len(all)-1))]
	room := fences * (high - low)
	first, _ := slices.BinarySearch(all, low-room)
	last, _ := slices.BinarySearch(all, math.Nextafter(high+room, math.Inf(1)))
	lo, hi = all[first], all[last-1]
	if high == low || all[len(all)-1]-all[0] < gain*(hi-lo) {
		return all[0], all[len(all)-1]
	}
	return lo, hi
}

// markOutliers marks the columns with values outside of the axis and writes the extreme values, with the hint how to
// show them.
func (c Chart) markOutliers(g *cell.Grid, p cell.Rect) {
	slack := 1e-9 * max(math.Abs(c.Axis.Lo), math.Abs(c.Axis.Hi))
	top, bottom := math.Inf(-1), math.Inf(1)
	look := func(x int, b view.Bucket, means bool) {
		if b.Empty() {
			return
		}
		hi, lo := b.Max, b.Min
		if means {
			hi = b.Mean()
			lo = hi
		}
		if hi > c.Axis.Hi+slack {
			top = max(top, hi)
			g.Set(x, p.Y, '▲', cell.Warn)
		}
		if lo < c.Axis.Lo-slack {
			bottom = min(bottom, lo)
			g.Set(x, p.Y+p.H-1, '▼', cell.Warn)
		}
	}
	for _, l := range c.Layers {
		for i, b := range l.Columns[:min(len(l.Columns), 2*p.W)] {
			look(p.X+i/2, b, l.Style == Thin || l.Style == Dots)
		}
	}
	for _, row := range c.Density {
		for i, b := range row[:min(len(row), p.W)] {
			look(p.X+i, b, true)
		}
	}
	say := func(y int, text string) {
		for _, t := range []string{text + c.Hint, text} {
			if n := cell.Width(t); n <= p.W/2 {
				g.Right(p.X+p.W, y, n, cell.Warn, t)
				return
			}
		}
	}
	if top > c.Axis.Hi {
		say(p.Y, " ▲ to "+Label(top))
	}
	if bottom < c.Axis.Lo {
		say(p.Y+p.H-1, " ▼ to "+Label(bottom))
	}
}
