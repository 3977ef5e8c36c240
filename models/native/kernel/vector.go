package kernel

import (
	"math"
	"unsafe"
)

// vecArgs is the argument of the vector kernels; ld is in bytes.
type vecArgs struct {
	dst   unsafe.Pointer
	x     [4]unsafe.Pointer
	n     int
	c     [10]float32
	bits  uint64         // of the last, partial vector
	lanes unsafe.Pointer // the same as words
	rows  int
	ld    int
}

// line is the number of columns that a long statement sums at a time, in the first-level cache: 120 tiles of noise, a
// multiple of the four that are computed at once.
const line = 3840

// Lin computes dst[i] = c[0]*x[0][i] + c[1]*x[1][i] + ..., from the left, each product rounded; without terms dst is
// zero. Each x must be at least as long as dst and may be dst.
func (k *Kernels) Lin(dst []float32, c []float32, x [][]float32) {
	c = c[:len(x)]
	switch len(x) {
	case 0:
		clear(dst)
	case 1:
		k.lin(dst, 1, c[0], x[0], 0, nil, 0, nil)
	case 2:
		k.lin(dst, 2, c[0], x[0], c[1], x[1], 0, nil)
	case 3:
		k.lin(dst, 3, c[0], x[0], c[1], x[1], c[2], x[2])
	default:
		k.long(dst, c, x)
	}
}

// long sums in scratch memory, because dst may be a later term.
func (k *Kernels) long(dst []float32, c []float32, x [][]float32) {
	if k.line == nil {
		k.line = aligned(line)
	}
	for lo := 0; lo < len(dst); lo += line {
		hi := min(len(dst), lo+line)
		s := k.line[:hi-lo]
		k.lin(s, 3, c[0], x[0][lo:hi], c[1], x[1][lo:hi], c[2], x[2][lo:hi])
		for i := 3; i < len(x); i++ {
			k.lin(s, 2, 1, s, c[i], x[i][lo:hi], 0, nil)
		}
		copy(dst[lo:hi], s)
	}
}

// Add computes dst = a + b: one node of a reduction tree. dst may be a or b.
func (k *Kernels) Add(dst, a, b []float32) { k.lin(dst, 2, 1, a, 1, b, 0, nil) }

// Axpy computes y += a*x, the product rounded.
func (k *Kernels) Axpy(y []float32, a float32, x []float32) { k.lin(y, 2, 1, y, a, x, 0, nil) }

// Scale computes x *= a.
func (k *Kernels) Scale(x []float32, a float32) { k.Times(x, a, x) }

// Times computes dst = a*x.
func (k *Kernels) Times(dst []float32, a float32, x []float32) { k.lin(dst, 1, a, x, 0, nil, 0, nil) }

func (k *Kernels) lin(dst []float32, terms int, c0 float32, x0 []float32, c1 float32, x1 []float32, c2 float32,
	x2 []float32) {
	n := len(dst)
	if n == 0 {
		return
	}
	x0 = x0[:n]
	if terms > 1 {
		x1 = x1[:n]
	}
	if terms > 2 {
		x2 = x2[:n]
	}
	if k.isa.lin[terms] == nil {
		lin(dst, terms, c0, x0, c1, x1, c2, x2)
		return
	}
	k.sweep(n)
	v := &k.vec
	v.dst, v.x[0], v.x[1], v.x[2] = ptr(dst, 0), ptr(x0, 0), ptr(x1, 0), ptr(x2, 0)
	v.c[0], v.c[1], v.c[2] = c0, c1, c2
	k.isa.lin[terms](v)
}

// sweep sets the length and the mask of the last, partial vector.
func (k *Kernels) sweep(n int) {
	rest := n % k.isa.vector
	k.vec.n, k.vec.bits, k.vec.lanes = n, bits(rest), lanes(rest)
}

// lin is the portable variant.
func lin(dst []float32, terms int, c0 float32, x0 []float32, c1 float32, x1 []float32, c2 float32, x2 []float32) {
	switch terms {
	case 1:
		for i := range dst {
			dst[i] = c0 * x0[i]
		}
	case 2:
		for i := range dst {
			dst[i] = float32(c0*x0[i]) + float32(c1*x1[i])
		}
	case 3:
		for i := range dst {
			dst[i] = float32(c0*x0[i]) + float32(c1*x1[i]) + float32(c2*x2[i])
		}
	}
}

// AdamStep is the coefficients of one step of Adam: D1 = 1-B1, D2 = 1-B2; C1 and C2 correct the bias of the moments,
// 1/(1-B1^t) and 1/(1-B2^t); WD is the rate times the decoupled weight decay.
type AdamStep struct{ B1, B2, D1, D2, C1, C2, Eta, Eps, WD float32 }

// Adam does one step in place: m = B1*m + D1*g; v = B2*v + D2*g^2; x = x - WD*x - Eta*(C1*m)/(sqrt(C2*v) + Eps), every
// product rounded, from the left. m, v and g are at least as long as x.
func (k *Kernels) Adam(x, m, v, g []float32, s *AdamStep) {
	n := len(x)
	if n == 0 {
		return
	}
	m, v, g = m[:n], v[:n], g[:n]
	if k.isa.adam == nil {
		adam(x, m, v, g, s)
		return
	}
	k.sweep(n)
	a := &k.vec
	a.dst, a.x[0], a.x[1], a.x[2] = ptr(x, 0), ptr(m, 0), ptr(v, 0), ptr(g, 0)
	a.c = [10]float32{s.B1, s.B2, s.D1, s.D2, s.C1, s.C2, s.Eta, s.Eps, s.WD}
	k.isa.adam(a)
}

// adam is the portable variant.
func adam(x, m, v, g []float32, s *AdamStep) {
	for i, gi := range g {
		mi := float32(s.B1*m[i]) + float32(s.D1*gi)
		vi := float32(s.B2*v[i]) + float32(s.D2*float32(gi*gi))
		m[i], v[i] = mi, vi
		step := float32(s.Eta*float32(s.C1*mi)) / (float32(math.Sqrt(float64(float32(s.C2*vi)))) + s.Eps)
		x[i] = x[i] - float32(s.WD*x[i]) - step
	}
}

// NaturalStep computes x = x + eta*(s*g) and s = s*exp(rate*h) in place, every product rounded; x uses the old s. The
// exponential is exp of CrossEntropy, its argument limited to [-86, 86]; NaN stays NaN. s, g and h must be at least as
// long as x.
func (k *Kernels) NaturalStep(x, s, g, h []float32, eta, rate float32) {
	n := len(x)
	if n == 0 {
		return
	}
	s, g, h = s[:n], g[:n], h[:n]
	if k.isa.natural == nil {
		for i, si := range s {
			x[i] += float32(eta * float32(si*g[i]))
			s[i] = si * exp(max(-expLimit, min(expLimit, rate*h[i])))
		}
		return
	}
	k.sweep(n)
	v := &k.vec
	v.dst, v.x[0], v.x[1], v.x[2] = ptr(x, 0), ptr(s, 0), ptr(g, 0), ptr(h, 0)
	v.c[0], v.c[1] = eta, rate
	k.isa.natural(v)
}

// ColSum computes dst[j] = beta*dst[j] + alpha*(src[0][j] + src[1][j] + ...) for the len(dst) columns of a matrix of
// rows rows at stride ld, the rows in order: the gradient of a bias. With beta = 0 dst is not read.
func (k *Kernels) ColSum(dst []float32, beta float32, src []float32, ld, rows int, alpha float32) {
	n := len(dst)
	if n == 0 {
		return
	}
	if beta == 0 {
		clear(dst)
	}
	if rows == 0 {
		k.Scale(dst, beta)
		return
	}
	src = matrix(src, rows, n, ld)
	if k.isa.colSum == nil {
		k.colSum(dst, beta, src, ld, rows, alpha)
		return
	}
	k.sweep(n)
	v := &k.vec
	v.dst, v.x[0], v.ld, v.rows = ptr(dst, 0), ptr(src, 0), 4*ld, rows
	v.c[0], v.c[1] = beta, alpha
	k.isa.colSum(v)
}

// colSum is the portable variant.
func (k *Kernels) colSum(dst []float32, beta float32, src []float32, ld, rows int, alpha float32) {
	if k.line == nil {
		k.line = aligned(line)
	}
	for lo := 0; lo < len(dst); lo += line {
		d := dst[lo:min(len(dst), lo+line)]
		s := k.line[:len(d)]
		clear(s)
		for r := range rows {
			for j, x := range src[r*ld+lo:][:len(s)] {
				s[j] += x
			}
		}
		for j, x := range s {
			d[j] = float32(beta*d[j]) + float32(alpha*x)
		}
	}
}
