package native

import (
	"brood/models/engine"
	"brood/models/noise"
)

// crossover: coin o of tensor t is bit o%32 of word o/32 of stream t; with one coin per tensor it is coin 0. Heads is
// B.
func (v *Vector) crossover(t engine.Crossover) error {
	// Coins come 128 to a block of noise, so the cut is by rows, and within a row by tensor.
	v.split(t.Dst.Rows, 1, v.layout.Params, func(_ *lane, lo, hi int) {
		for r := engine.Row(lo); r < engine.Row(hi); r++ {
			v.cross(row(t.Dst, r), row(t.A, r), row(t.B, r), t.Keys[r], t.PerTensor)
		}
	})
	return nil
}

func (v *Vector) cross(dst, a, b []float32, key noise.Key, perTensor bool) {
	s := key.Schedule()
	for i, t := range v.layout.Tensors {
		key.Stream = uint32(i)
		d, a, b := dst[t.Lo:t.Lo+t.Len], a[t.Lo:t.Lo+t.Len], b[t.Lo:t.Lo+t.Len]
		if perTensor {
			if s.Block(key.Counter(0))[0]&1 == 1 {
				a = b
			}
			copy(d, a)
			continue
		}
		var w [4]uint32
		for o := range d {
			if o%128 == 0 {
				w = s.Block(key.Counter(uint32(o / 128)))
			}
			if w[o/32%4]>>(o%32)&1 == 1 {
				d[o] = b[o]
			} else {
				d[o] = a[o]
			}
		}
	}
}
