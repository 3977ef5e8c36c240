package data

import (
	"encoding/binary"

	"brood/models/noise"
)

// canvas is a raster of glyphSide rows.
type canvas [glyphSide * glyphSide]byte

// dice returns the random words of one noise stream in order.
type dice struct {
	s    *noise.Schedule
	ctr  [4]uint32
	w    [4]uint32
	used int
}

func (d *dice) word() uint32 {
	if d.used%4 == 0 {
		d.w = d.s.Block(d.ctr)
		d.ctr[0]++
	}
	d.used++
	return d.w[(d.used-1)%4]
}

// below returns a uniform number in [0, n).
func (d *dice) below(n int) int { return int(uint64(d.word()) * uint64(n) >> 32) }

// within returns a uniform number in [lo, hi].
func (d *dice) within(lo, hi int) int { return lo + d.below(hi-lo+1) }

func (d *dice) fill(c *canvas) {
	for i := 0; i < len(c); i += 4 {
		binary.LittleEndian.PutUint32(c[i:], d.word())
	}
}

// Positions are fixed-point numbers with frac fractional bits, in units of a field sample. All values fit 32 bits.
const (
	frac = 11
	one  = 1 << frac
	mesh = 5 // nodes of the elastic grid per direction, glyphSide/(mesh-1) pixels apart

	maxBend = 2 // upper bound of the elastic displacement, in field samples
)

// warp maps the pixels of a canvas to field positions: an affine map about the middle plus an elastic displacement.
type warp struct {
	xx, xy, yx, yy int // field samples per pixel
	dx, dy         int // displacement of the middle
	bend           [2][mesh][mesh]int
}

// randomWarp draws a warp. If away is not 0, the middle of the glyph is near or beyond the border of the canvas.
func randomWarp(d *dice, away int) (w warp) {
	w.xx, w.yy = d.within(one*85/100, one*125/100), d.within(one*85/100, one*115/100)
	w.xy, w.yx = d.within(-one*26/100, one*26/100), d.within(-one*12/100, one*12/100)
	if away == 0 {
		w.dx, w.dy = d.within(-one*220/100, one*220/100), d.within(-one*220/100, one*220/100)
	} else {
		w.dx, w.dy = d.within(-16*one, 16*one), d.within(18*one, 24*one)
		if d.below(2) == 1 {
			w.dx, w.dy = w.dy, w.dx
		}
		if d.below(2) == 1 {
			w.dx, w.dy = -w.dx, -w.dy
		}
	}
	for a := range w.bend {
		for y := range mesh {
			for x := range mesh {
				w.bend[a][y][x] = d.within(-one*120/100, one*120/100)
			}
		}
	}
	return w
}

// row returns the displacement along axis a of the pixels of row y, interpolated bilinearly between the nodes.
func (w *warp) row(a, y int) (out [glyphSide]int) {
	const gap = glyphSide / (mesh - 1)
	top, low, v := &w.bend[a][y/gap], &w.bend[a][y/gap+1], y%gap
	for i := range mesh - 1 {
		left, right := top[i]*(gap-v)+low[i]*v, top[i+1]*(gap-v)+low[i+1]*v
		for u := range gap {
			out[i*gap+u] = (left*(gap-u) + right*u) / (gap * gap)
		}
	}
	return out
}

// paint sets each pixel of dst to the maximum of itself and the coverage by the warped field. heavier moves the outline
// outward, in sixteenths of a field sample; slope is the steepness of its edge.
func (w *warp) paint(dst *canvas, f *[glyphCell * glyphCell]uint8, heavier, slope int) {
	const mid, end = (glyphCell - 1) * one / 2, (glyphCell - 1) * one
	for y := range glyphSide {
		v := 2*y - (glyphSide - 1)
		if misses(w.xx, w.xy*v/2+w.dx) || misses(w.yx, w.yy*v/2+w.dy) {
			continue
		}
		bx, by := w.row(0, y), w.row(1, y)
		for x := range glyphSide {
			u := 2*x - (glyphSide - 1)
			sx := mid + (w.xx*u+w.xy*v)>>1 + w.dx + bx[x]
			sy := mid + (w.yx*u+w.yy*v)>>1 + w.dy + by[x]
			if uint(sx) >= end || uint(sy) >= end {
				continue
			}
			i, p, q := sy>>frac*glyphCell+sx>>frac, sx&(one-1), sy&(one-1)
			cell := f[i : i+glyphCell+2]
			top := int(cell[0])*(one-p) + int(cell[1])*p
			low := int(cell[glyphCell])*(one-p) + int(cell[glyphCell+1])*p
			level := (top*(one-q)+low*q)>>(2*frac) - 128 + heavier
			c := byte(max(0, min(255, 128+level*slope)))
			dst[y*glyphSide+x] = max(dst[y*glyphSide+x], c)
		}
	}
}

// misses reports whether a row of pixels cannot intersect the field along one axis. at is the position of the row's
// middle relative to the field's middle, and slope the step per pixel.
func misses(slope, at int) bool {
	return max(at, -at)-max(slope, -slope)*glyphSide/2 > (glyphCell/2+maxBend)*one
}

// bar clears a random small rectangle with probability 1/2.
func bar(c *canvas, d *dice) {
	x, y, w, h, on := d.below(glyphSide-8), d.below(glyphSide-8), d.within(2, 8), d.within(2, 8), d.below(2)
	if on == 0 {
		return
	}
	for j := y; j < y+h; j++ {
		clear(c[j*glyphSide+x : j*glyphSide+x+w])
	}
}
