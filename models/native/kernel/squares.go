package kernel

import "unsafe"

// squareSums is the number of partial sums in Squares.
const squareSums = 16

// nought is a centre of zeros for squareSums columns.
var nought [squareSums]float32

// Squares returns the sum of (x[i]-c[i])^2, or of x[i]^2 if c is nil, in float64, each operation rounded: column i is
// added to sum i mod 16, in order, and the sums are added by halves. The bits of a NaN result are unspecified. c must
// be at least as long as x.
func (k *Kernels) Squares(x, c []float32) float64 {
	n, step := len(x), 1
	if c == nil {
		c, step = nought[:], 0
	} else {
		c = c[:n]
	}
	s := &k.squares
	clear(s[:])
	from := n - n%squareSums
	if k.isa.squares == nil {
		from = 0
	} else if from > 0 {
		v := &k.vec
		v.dst, v.x[0], v.x[1], v.n, v.ld = unsafe.Pointer(s), ptr(x, 0), ptr(c, 0), from/squareSums, 4*squareSums*step
		k.isa.squares(v)
	}
	for i := from; i < n; i++ {
		d := float64(x[i]) - float64(c[i*step])
		s[i%squareSums] += float64(d * d)
	}
	for h := squareSums / 2; h > 0; h /= 2 {
		for i := range h {
			s[i] += s[i+h]
		}
	}
	return s[0]
}
