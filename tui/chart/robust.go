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

// Robust is [FitAxis] of what is not far outside: one divergence, or the first rounds, would press everything else onto a
// line. Of each curve that is held, it is what is not far outside of that curve itself, however few of all values those
// are. What lies outside is marked by [Draw].
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

// columnEnds are the ends of all columns as the axis has them, ascending.
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

// bulk is the range of ascending values without those that lie far outside, and of all where there is no middle to be
// far from, or leaving some out would gain little.
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
