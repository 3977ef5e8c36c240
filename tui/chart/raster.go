package chart

import (
	"slices"

	"brood/runtime/view"
	"brood/tui/cell"
)

// raster holds w x h cells of 2 x 4 dots. A cell belongs to the last layer with a dot in it.
type raster struct {
	w, h  int
	bits  []uint8
	owner []int8
}

func newRaster(w, h int) *raster {
	r := &raster{w: w, h: h, bits: make([]uint8, w*h), owner: make([]int8, w*h)}
	for i := range r.owner {
		r.owner[i] = -1
	}
	return r
}

// braille holds the bit of each dot by [row][column], in the order of Unicode.
var braille = [4][2]uint8{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}

func (r *raster) dot(x, y int, owner int8) {
	if x < 0 || y < 0 || x >= 2*r.w || y >= 4*r.h {
		return
	}
	i := y/4*r.w + x/2
	if r.owner[i] != owner {
		r.owner[i], r.bits[i] = owner, 0
	}
	r.bits[i] |= braille[y&3][x&1]
}

// layer draws the dots of a layer. It connects columns across empty ones with straight lines, except across unmeasured
// columns.
func (r *raster) layer(l Layer, owner int8, a Axis) {
	s, last, lastTop, lastBottom := a.scale(4*r.h), -1, 0, 0
	for x, b := range l.Columns[:min(len(l.Columns), 2*r.w)] {
		if x < len(l.Void) && l.Void[x] {
			last = -1
		}
		if b.Empty() {
			continue
		}
		top, bottom := s.dot(b.Max), s.dot(b.Min)
		if l.Style == Thin || l.Style == Dots {
			top = s.dot(b.Mean())
			bottom = top
		}
		for c := last + 1; last >= 0 && c < x; c++ {
			t, u := between(lastTop, top, c-last, x-last), between(lastBottom, bottom, c-last, x-last)
			if l.Style == Line || l.Style == Thick {
				t = between((lastTop+lastBottom)/2, (top+bottom)/2, c-last, x-last)
				u = t
			}
			r.run(l, c, t, u, owner)
		}
		if l.Style != Fill && last >= 0 {
			r.step(l, last, x, lastTop, lastBottom, top, bottom, owner)
		}
		r.run(l, x, top, bottom, owner)
		last, lastTop, lastBottom = x, top, bottom
	}
}

func between(a, b, i, n int) int { return a + (b-a)*i/n }

// step closes the vertical gap between neighbouring columns, in the later one. Across empty columns it follows the
// slope.
func (r *raster) step(l Layer, x0, x, top0, bottom0, top, bottom int, owner int8) {
	if n := x - x0; n > 1 {
		for c := x0 + 1; c <= x; c++ {
			p, q := between((top0+bottom0)/2, (top+bottom)/2, c-1-x0, n), between((top0+bottom0)/2, (top+bottom)/2,
				c-x0, n)
			r.run(l, c, min(p+1, q), max(p-1, q), owner)
		}
		return
	}
	if bottom0 < top {
		r.run(l, x, bottom0+1, top, owner)
	} else if top0 > bottom {
		r.run(l, x, bottom, top0-1, owner)
	}
}

func (r *raster) run(l Layer, x, top, bottom int, owner int8) {
	if l.Style == Dots && x%4 >= 2 {
		return
	}
	if l.Style == Fill {
		r.fill(x, top, bottom, owner)
		return
	}
	for y := top; y <= bottom; y++ {
		r.dot(x, y, owner)
	}
	if l.Style == Thick {
		r.thicken(x, top, bottom, owner)
	}
}

// thicken widens a vertical run by a dot downwards, or upwards at the lower edge, and to the width of its cell. It
// stays within the cell horizontally, so that the end of a curve is not drawn later than its last value.
func (r *raster) thicken(x, top, bottom int, owner int8) {
	if bottom < 4*r.h-1 {
		bottom++
	} else {
		top--
	}
	for y := top; y <= bottom; y++ {
		r.dot(x, y, owner)
		r.dot(x^1, y, owner)
	}
}

// fill draws a stippled column with solid ends.
func (r *raster) fill(x, top, bottom int, owner int8) {
	for y := top; y <= bottom; y++ {
		if y == top || y == bottom || (x+y)%2 == 0 {
			r.dot(x, y, owner)
		}
	}
}

func (r *raster) write(g *cell.Grid, p cell.Rect, layers []Layer, ascii bool) {
	for i, bits := range r.bits {
		if bits == 0 {
			continue
		}
		l := layers[r.owner[i]]
		c := 0x2800 + rune(bits)
		if ascii {
			if c = l.Glyph; c == 0 {
				c = '*'
			}
		}
		g.Set(p.X+i%r.w, p.Y+i/r.w, c, l.Role)
	}
}

// Curve draws layers into r without an axis.
func Curve(g *cell.Grid, r cell.Rect, a Axis, ascii bool, layers ...Layer) {
	raster := newRaster(max(r.W, 0), max(r.H, 0))
	for i, l := range layers {
		raster.layer(l, int8(i), a)
	}
	raster.write(g, r, layers, ascii)
	raster.names(g, r, layers)
}

// names writes the name of each layer on its curve, in the last column where the curve is visible and has no name yet.
// Names distinguish curves without colours.
func (r *raster) names(g *cell.Grid, p cell.Rect, layers []Layer) {
	taken := make([]bool, len(r.bits))
	for i, l := range slices.Backward(layers) {
		if l.Name == 0 {
			continue
		}
		if at := r.lastOf(int8(i), taken); at >= 0 {
			taken[at] = true
			g.Set(p.X+at%r.w, p.Y+at/r.w, l.Name, l.Role)
		}
	}
}

// lastOf returns the index of the rightmost cell of a layer that is not taken; -1 if there is none.
func (r *raster) lastOf(owner int8, taken []bool) int {
	for x := r.w - 1; x >= 0; x-- {
		for y := range r.h {
			if i := y*r.w + x; r.bits[i] != 0 && r.owner[i] == owner && !taken[i] {
				return i
			}
		}
	}
	return -1
}

// Of returns a bucket for each value; an empty one if the value is not finite.
func Of(values []float64) []view.Bucket {
	out := make([]view.Bucket, len(values))
	for i, x := range values {
		if x-x == 0 {
			out[i] = view.Bucket{Min: x, Max: x, Sum: x, Count: 1}
		}
	}
	return out
}
