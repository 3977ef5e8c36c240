package chart

import (
	"math"

	"brood/tui/cell"
)

// Sketch is a drawing of straight lines in dots, 2 x 4 a cell. Its plane has x from -1 to 1 across its width, and y
// upwards in the same unit, with 0 in the middle.
type Sketch struct {
	raster *raster
	layers []Layer
}

// NewSketch returns an empty sketch of w x h cells.
func NewSketch(w, h int) *Sketch { return &Sketch{raster: newRaster(max(w, 0), max(h, 0))} }

// Top returns the y of the upper edge; the lower edge is at -Top.
func (s *Sketch) Top() float64 { return 2 * float64(s.raster.h) / float64(max(1, s.raster.w)) }

// Line draws a line from (x0, y0) to (x1, y1); dots outside the sketch are dropped. In ASCII its character is glyph.
func (s *Sketch) Line(x0, y0, x1, y1 float64, role cell.Role, glyph rune) {
	owner := int8(len(s.layers))
	s.layers = append(s.layers, Layer{Role: role, Glyph: glyph})
	unit := float64(s.raster.w) // dots per unit of length
	middle := float64(2 * s.raster.h)
	n := math.Ceil(2 * unit * max(math.Abs(x1-x0), math.Abs(y1-y0)))
	if !(n < 1<<12) {
		return
	}
	for i := range int(n) + 1 {
		at := float64(i) / max(1, n)
		x, y := x0+at*(x1-x0), y0+at*(y1-y0)
		s.raster.dot(int(math.Floor(unit*(1+x))), int(math.Floor(middle-unit*y)), owner)
	}
}

// Draw writes the sketch at the upper left corner of r.
func (s *Sketch) Draw(g *cell.Grid, r cell.Rect, ascii bool) { s.raster.write(g, r, s.layers, ascii) }
