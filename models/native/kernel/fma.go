//go:build !arm64

package kernel

import "math"

// The portable variant's float32 multiply-add, for compilers that do not fuse: the product of two float32 is exact in
// float64; if rounding the sum twice could give a wrong result, the sum is rounded to odd first (Boldo & Melquiond
// 2008). It takes one or two nanoseconds and has the bits of the hardware instruction.

// fma returns x*y + z, rounded once.
func fma(x, y, z float32) float32 {
	p := float64(x) * float64(y)
	s := p + float64(z)
	if unsure(s) {
		s = odd(p, float64(z), s)
	}
	return float32(s)
}

// fmaRow adds a*b to s element by element.
func fmaRow(s []float32, a float32, b []float32) {
	b, x := b[:len(s)], float64(a)
	for q, z := range s {
		p := x * float64(b[q])
		v := p + float64(z)
		if unsure(v) {
			v = odd(p, float64(z), v)
		}
		s[q] = float32(v)
	}
}

// fmaEach adds the products of a and b to s element by element.
func fmaEach(s, a, b []float32) {
	a, b = a[:len(s)], b[:len(s)]
	for q, z := range s {
		p := float64(a[q]) * float64(b[q])
		v := p + float64(z)
		if unsure(v) {
			v = odd(p, float64(z), v)
		}
		s[q] = float32(v)
	}
}

// unsure reports whether s, rounded to float64, may lie half-way between two float32 because of that rounding: for a
// normal float32 its last 29 bits show this; smaller ones except zero always count as unsure.
func unsure(s float64) bool {
	b := math.Float64bits(s)
	return b&(1<<29-1) == 1<<28 || b<<1>>53-1 < 1023-127
}

// odd rounds p + z, whose float64 sum is s, to odd: the last bit is one unless the sum is exact, so that a value
// half-way between two float32 is distinguished from its neighbours. The error of s is computed by Knuth's TwoSum.
func odd(p, z, s float64) float64 {
	t := s - p
	e := (p - (s - t)) + (z - t)
	b := math.Float64bits(s)
	switch {
	case !(e != 0) || b&1 == 1:
	case e > 0 == (s > 0):
		b++
	default:
		b--
	}
	return math.Float64frombits(b)
}
