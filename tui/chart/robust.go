package chart

import (
	"math"
	"slices"

	"brood/runtime/view"
	"brood/tui/cell"
)

const (
	tail   = 0.1 // share of the columns' ends, on either side, that may lie far outside
	fences = 2   // ranges of what is between the tails, by which a value may lie outside of it
	gain   = 2   // an axis is shortened where that makes what it keeps so many times as high
)

// Robust is [Fit] of what is not far outside: one divergence, or the first rounds, would press everything else onto a
// line. What lies outside is marked by [Draw].
func Robust(log bool, sets ...[]view.Bucket) Axis {
	full := Fit(log, sets...)
	scale, back := func(x float64) float64 { return x }, func(x float64) float64 { return x }
	if full.Log {
		scale, back = math.Log, math.Exp
	}
	var all []float64
	for _, s := range sets {
		for _, b := range s {
			if b.Empty() {
				continue
			}
			for _, x := range []float64{b.Min, b.Max} {
				if !full.Log || x > 0 {
					all = append(all, scale(x))
				}
			}
		}
	}
	if len(all) == 0 {
		return full
	}
	slices.Sort(all)
	low, high := all[int(tail*float64(len(all)-1))], all[int((1-tail)*float64(len(all)-1))]
	room := fences * (high - low)
	first, _ := slices.BinarySearch(all, low-room)
	last, _ := slices.BinarySearch(all, math.Nextafter(high+room, math.Inf(1)))
	lo, hi := all[first], all[last-1]
	if high == low || all[len(all)-1]-all[0] < gain*(hi-lo) {
		return full
	}
	return Span(full.Log, back(lo), back(hi))
}

// clipped marks the columns whose values lie above or below the axis, and says how far they go. It ends with how to see
// them.
func (c Chart) clipped(g *cell.Grid, p cell.Rect) {
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
