package kernel

import (
	"math"
	"math/big"
	"testing"
)

// tricky draws three numbers of any bits; many sums cancel, lie half-way or nearly half-way between two float32, or are
// denormal.
func tricky(r interface{ Uint64() uint64 }) (x, y, z float32) {
	w, v := r.Uint64(), r.Uint64()
	x, y, z = math.Float32frombits(uint32(w)), math.Float32frombits(uint32(w>>32)), math.Float32frombits(uint32(v))
	near := func(f float64) float32 { // f, with some last bits changed
		return math.Float32frombits(math.Float32bits(float32(f)) ^ uint32(v>>40&7))
	}
	switch v >> 32 % 7 {
	case 0:
		z = near(-float64(x) * float64(y))
	case 1: // two dozen bits below z only one bit of the product is set
		x = math.Float32frombits(uint32(w)&0xff800000 | 1<<(w>>8&15) | 1<<(w>>12&15))
		z = near(float64(x) * float64(y) * (1 << 24))
	case 2:
		x, z = float32(math.Ldexp(float64(x), -60)), near(math.Ldexp(1, -149+int(v>>48&31)))
		y = near(float64(z) / float64(x) / 2)
	case 3:
		x, y = math.Float32frombits(uint32(w)&0x807fffff|0x1f800000),
			math.Float32frombits(uint32(w>>32)&0x807fffff|0x20000000)
		z = math.Float32frombits(uint32(v) & 0x80ffffff) // both near the smallest normal numbers
	case 4: // nearly half of the smallest number, which the bits of a denormal z do not show
		k := math.Ldexp(float64(1+w>>8&255), -23)
		x, y = float32(math.Ldexp(1+k, -75)), float32(math.Ldexp(1-k, -75))
		z = math.Float32frombits(uint32(v) & 0x807fffff)
	}
	return x, y, z
}

// TestFMA: the portable multiply-add rounds once, compared with exact arithmetic, and has the bits of the hardware
// instruction.
func TestFMA(t *testing.T) {
	const n = 1 << 20
	r, small := random(13), 0
	var x, y, z, got [n]float32
	for i := range n {
		x[i], y[i], z[i] = tricky(r)
		got[i] = fma(x[i], y[i], z[i])
		if s := float64(x[i]) * float64(y[i]); i%8 == 0 && !math.IsNaN(s+float64(z[i])) && !math.IsInf(s+float64(z[i]), 0) {
			e := new(big.Float).SetPrec(600)
			e.Mul(big.NewFloat(float64(x[i])), big.NewFloat(float64(y[i])))
			e.Add(e, big.NewFloat(float64(z[i])))
			want, _ := e.Float32()
			if got[i] != want {
				t.Fatalf("%g*%g + %g is %g, exactly %g", x[i], y[i], z[i], got[i], want)
			}
		}
		if got[i] != 0 && math.Abs(float64(got[i])) < 0x1p-126 {
			small++
		}
	}
	if small < n/100 {
		t.Errorf("only %d of %d results are denormal", small, n)
	}
	row, each := z, z
	for i := range n {
		fmaRow(row[i:i+1], x[i], y[i:i+1])
	}
	fmaEach(each[:], x[:], y[:])
	sameBits(t, "row", got[:], row[:])
	sameBits(t, "each", got[:], each[:])
	for _, tw := range []Variant{AVX2, AVX512} {
		k, err := New(tw)
		if err != nil {
			t.Log(err)
			continue
		}
		one := z // as the product (1 x) (z y)'
		for i := range n {
			a, b := [2]float32{1, x[i]}, [2]float32{z[i], y[i]}
			k.Gemm(NN, 1, 1, 2, a[:], 2, b[:], 1, one[i:i+1], 1, nil)
		}
		sameBits(t, tw.String(), one[:], got[:])
	}
}
