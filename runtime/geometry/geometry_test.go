package geometry

import (
	"math"
	"testing"

	"brood/models/engine"
	"brood/optim"
)

// TestGeometry: of three points in the plane, whose angles are known.
func TestGeometry(t *testing.T) {
	at := [][2]float64{{1, 0}, {0, 2}, {-3, 0}}
	g := &Geometry{Members: []engine.Member{1, 4, 6}}
	for _, a := range at {
		g.Length = append(g.Length, math.Hypot(a[0], a[1]))
		var row []float64
		for _, b := range at {
			row = append(row, math.Hypot(a[0]-b[0], a[1]-b[1]))
		}
		g.Distance = append(g.Distance, row)
	}
	for i, row := range [][]float64{{1, 0, -1}, {0, 1, 0}, {-1, 0, 1}} {
		for j, want := range row {
			if got := g.Overlap(i, j); math.Abs(got-want) > 1e-15 {
				t.Errorf("overlap of %d and %d: %v, want %v", i, j, got, want)
			}
		}
	}
	if a, b := g.Furthest(); a != 1 || b != 6 {
		t.Errorf("furthest apart are %d and %d", a, b)
	}
	if least, mean, most, ok := g.Overlaps(); !ok || least != -1 || math.Abs(mean+1.0/3) > 1e-15 ||
		math.Abs(most) > 1e-15 {
		t.Errorf("overlaps from %v to %v, mean %v", least, most, mean)
	}
	g.Length[0] = 0
	if x := g.Overlap(0, 1); x == x {
		t.Errorf("overlap with nothing is %v", x)
	}
	if _, _, _, ok := (&Geometry{Members: []engine.Member{0}, Length: []float64{1},
		Distance: [][]float64{{0}}}).Overlaps(); ok {
		t.Error("one member overlaps with another")
	}
}

// TestBarrier: the height is above the straight line between the ends, and not above the lower of them.
func TestBarrier(t *testing.T) {
	line := func(loss ...float64) *Geometry {
		g := &Geometry{}
		for _, x := range loss {
			g.Line = append(g.Line, optim.Scores{Loss: 10 * x, Samples: 10})
		}
		return g
	}
	for _, c := range []struct {
		g          *Geometry
		height, at float64
	}{
		{line(1, 2, 2.5, 2, 2), 1, 0.5},
		{line(1, 0.5, 2), 0, 0},
		{line(1, 2, 3), 0, 0},
		{line(2, 2, 2, 2, 1), 0.75, 0.75},
	} {
		if h, at := c.g.Barrier(); math.Abs(h-c.height) > 1e-12 || at != c.at {
			t.Errorf("%v: a barrier of %v at %v, want %v at %v", c.g.Line, h, at, c.height, c.at)
		}
	}
	if h, _ := line(1, math.NaN(), 2).Barrier(); h == h {
		t.Errorf("a loss that is no number makes a barrier of %v", h)
	}
}
