//go:build !arm64

package kernel

import "math"

// The portable variant's multiply-add of float32, for compilers that do not fuse: the product of two float32 is exact in
// float64, and where the sum, once rounded, could round the wrong way a second time, it is rounded to odd (Boldo &
// Melquiond 2008). It takes one or two nanoseconds, and has the bits of the machine's own instruction.

// fma is x*y + z, rounded once.
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

// unsure says whether s, which was rounded to float64, may lie half-way between two float32 only since it was rounded:
// its last 29 bits say so of a normal float32; of smaller ones, but for zero, other bits would.
func unsure(s float64) bool {
	b := math.Float64bits(s)
	return b&(1<<29-1) == 1<<28 || b<<1>>53-1 < 1023-127
}

// odd is p + z, which was rounded to s, with a last bit of one unless it is exact: what lies half-way is then seen to
// be above or below it. The error of s is that of Knuth's TwoSum.
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
