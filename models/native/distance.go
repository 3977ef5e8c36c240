package native

import (
	"math"

	"brood/models/engine"
)

func (v *Vector) distance(t engine.Distance) error {
	const name = "distance"
	if err := fit(name, "x", t.X, t.X.Cols); err != nil {
		return err
	}
	if err := single(name, "centre", t.Centre, t.X.Cols); err != nil {
		return err
	}
	if len(t.RMS) != t.X.Rows {
		return bad(name, "room for %d results, want %d", len(t.RMS), t.X.Rows)
	}
	v.split(t.X.Rows, 1, t.X.Cols, func(_ *lane, lo, hi int) {
		for r := lo; r < hi; r++ {
			t.RMS[r] = math.Sqrt(apart2(t.X.Row(engine.Row(r)), t.Centre.F) / float64(max(1, t.X.Cols)))
		}
	})
	return nil
}

// apart2 is the squared distance of x and c: the sums of pieces of tile columns, added by pairs of neighbours until one is left; a
// sum without a neighbour goes on as it is.
func apart2(x, c []float32) float64 {
	var open [64]float64 // sums that wait for their neighbour, the larger ones first
	n := 0
	for i := 0; i*tile < len(x); i++ {
		hi := min(len(x), (i+1)*tile)
		s := squares(x[i*tile:hi], c[i*tile:hi])
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
	c = c[:len(x)]
	for i, v := range x {
		d := float64(v) - float64(c[i])
		s[i%16] += float64(d * d)
	}
	for h := 8; h > 0; h /= 2 {
		for i := range h {
			s[i] += s[i+h]
		}
	}
	return s[0]
}
