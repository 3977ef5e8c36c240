package native

import (
	"brood/models/engine"
	"brood/models/native/kernel"
	"brood/models/noise"
)

// crossover: element o of tensor t takes coin o of stream t, see kernel.Cross; with one coin per tensor, coin 0.
func (v *Vector) crossover(t engine.Crossover) error {
	// Coins come 128 to a block of noise, so the cut is by rows, and within a row by tensor.
	v.split(t.Dst.Rows, 1, v.layout.Params, func(k *thread, lo, hi int) {
		for r := engine.Row(lo); r < engine.Row(hi); r++ {
			v.cross(k.Kernels, row(t.Dst, r), row(t.A, r), row(t.B, r), t.Keys[r], t.PerTensor)
		}
	})
	return nil
}

func (v *Vector) cross(k *kernel.Kernels, dst, a, b []float32, key noise.Key, perTensor bool) {
	s := key.Schedule()
	for i, t := range v.layout.Tensors {
		key.Stream = uint32(i)
		d, a, b := dst[t.Lo:t.Lo+t.Len], a[t.Lo:t.Lo+t.Len], b[t.Lo:t.Lo+t.Len]
		if !perTensor {
			k.Cross(d, a, b, key, s)
			continue
		}
		if s.Block(key.Counter(0))[0]&1 == 1 {
			a = b
		}
		copy(d, a)
	}
}
