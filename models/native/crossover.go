package native

import (
	"math"

	"brood/models/engine"
	"brood/models/noise"
)

// crossover: the coin of element o of tensor t is bit o%32 of word o/32 of stream t; with one coin per tensor it is
// coin 0. Coin 1 selects B.
func (v *Vector) crossover(t engine.Crossover) error {
	// Coins come 128 to a block of noise, so the cut is by rows, and within a row by tensor.
	v.split(t.Dst.Rows, 1, v.layout.Params, func(_ *thread, lo, hi int) {
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
		for o := 0; o < len(d); o += 128 {
			w, hi := s.Block(key.Counter(uint32(o/128))), min(o+128, len(d))
			for j, at := 0, o; at < hi; j, at = j+1, at+32 {
				to := min(at+32, hi)
				pick(d[at:to], a[at:to], b[at:to], w[j])
			}
		}
	}
}

// pick selects elements of b where the coins, from the lowest bit on, are 1, else of a. It has no branches, since coins
// are unpredictable.
func pick(dst, a, b []float32, coins uint32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		x, y := math.Float32bits(a[i]), math.Float32bits(b[i])
		dst[i] = math.Float32frombits(x ^ (x^y)&-(coins&1))
		coins >>= 1
	}
}
