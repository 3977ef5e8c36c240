package native

import (
	"math"

	"brood/models/engine"
)

func (v *Vector) distance(t engine.Distance) error {
	v.split(t.X.Rows, 1, t.X.Cols, func(_ *lane, lo, hi int) {
		for r := lo; r < hi; r++ {
			t.RMS[r] = rms(row(t.X, engine.Row(r)), flat(t.Centre))
		}
	})
	return nil
}

// rms is the root of the mean square of x - centre, or of x where that is nil.
func rms(x, centre []float32) float64 {
	return math.Sqrt(distance2(x, centre) / float64(max(1, len(x))))
}

// distance2 is the squared distance of x and c, which may be nil for zero: the sums of pieces of tile columns, added by
// pairs of neighbours until one is left; a sum without a neighbour goes on as it is.
func distance2(x, c []float32) float64 {
	var open [64]float64 // sums that wait for their neighbour, the larger ones first
	n := 0
	for i := 0; i*tile < len(x); i++ {
		hi := min(len(x), (i+1)*tile)
		var near []float32
		if c != nil {
			near = c[i*tile : hi]
		}
		s := squares(x[i*tile:hi], near)
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

// squares has sixteen sums: column i goes into sum i%16, in order. They are added by halves.
func squares(x, c []float32) float64 {
	var s [16]float64
	if c == nil {
		for i, v := range x {
			s[i%16] += float64(float64(v) * float64(v))
		}
	} else {
		c = c[:len(x)]
		for i, v := range x {
			d := float64(v) - float64(c[i])
			s[i%16] += float64(d * d)
		}
	}
	for h := 8; h > 0; h /= 2 {
		for i := range h {
			s[i] += s[i+h]
		}
	}
	return s[0]
}
