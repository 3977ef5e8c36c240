package chart

import (
	"math"
	"testing"

	"brood/tui/cell"
)

// TestSketch checks the positions of lines and the clipping.
func TestSketch(t *testing.T) {
	for _, ascii := range []bool{false, true} {
		g := cell.New(8, 4)
		s := NewSketch(8, 4)
		if s.Top() != 1 {
			t.Fatalf("the upper edge is at %v", s.Top())
		}
		s.Line(-1, 0.9, 1, 0.9, cell.Faint, '-')
		s.Line(0, -5, 0, 0.5, cell.Centre, '|')
		s.Line(math.NaN(), 0, math.Inf(1), 0, cell.Alert, '!')
		s.Draw(g, g.Rect(), ascii)
		for x := range 8 {
			if c := g.At(x, 0); c.Role != cell.Faint || ascii && c.R != '-' {
				t.Errorf("ascii %t: the line has %+v at %d", ascii, c, x)
			}
		}
		for y := range 4 {
			for x := range 8 {
				c := g.At(x, y)
				if stands := x == 4 && y >= 1; y > 0 && stands != (c.Role == cell.Centre) || c.Role == cell.Alert {
					t.Errorf("ascii %t: %+v at %d, %d", ascii, c, x, y)
				}
			}
		}
	}
}
