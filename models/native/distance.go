package native

import (
	"math"

	"brood/models/engine"
)

func (v *Vector) distance(t engine.Distance) error {
	v.split(t.X.Rows, 1, t.X.Cols, func(p *thread, lo, hi int) {
		for r := lo; r < hi; r++ {
			t.RMS[r] = p.rms(row(t.X, engine.Row(r)), flat(t.Centre))
		}
	})
	return nil
}

// rms returns the root of the mean square of x - centre, or of x if centre is nil.
func (p *thread) rms(x, centre []float32) float64 {
	return math.Sqrt(p.distance2(x, centre) / float64(max(1, len(x))))
}

// distance2 returns the squared distance of x and c; c = nil is zero. It sums pieces of tile columns and adds
// neighbouring sums in pairs until one is left; an odd sum is passed on unchanged.
func (p *thread) distance2(x, c []float32) float64 {
	var open [64]float64 // sums that wait for their neighbour, of more pieces first
	n := 0
	for i := 0; i*tile < len(x); i++ {
		hi := min(len(x), (i+1)*tile)
		var near []float32
		if c != nil {
			near = c[i*tile : hi]
		}
		s := p.Squares(x[i*tile:hi], near)
		for j := i; j&1 == 1; j >>= 1 {
			n--
			s += open[n]
		}
		open[n] = s
		n++
	}
	for ; n > 1; n-- {
		open[n-2] += open[n-1]
	}
	return open[0]
}
