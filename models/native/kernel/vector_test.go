package kernel

import (
	"math"
	"slices"
	"testing"
)

// lengths covers every remainder of a vector and of an unrolled loop.
func lengths() []int {
	var n []int
	for i := range 140 {
		n = append(n, i)
	}
	return append(n, 1000, line-1, line, line+1, 5000)
}

// wild draws numbers of all magnitudes, with zeros, infinities and denormals: the bits must agree there too.
func wild(n int, seed int) []float32 {
	r := random(n, seed)
	s := make([]float32, n)
	for i := range s {
		switch r.IntN(50) {
		case 0:
			s[i] = float32(math.Inf(1 - 2*r.IntN(2)))
		case 1:
			s[i] = math.Float32frombits(uint32(r.IntN(2)) << 31)
		case 2:
			s[i] = math.Float32frombits(uint32(r.IntN(1 << 20)))
		default:
			s[i] = float32(math.Ldexp(r.NormFloat64(), r.IntN(20)-10))
		}
	}
	return s
}

func TestLinHasTheSameBits(t *testing.T) {
	each(t, func(t *testing.T, k *Kernels) {
		c := []float32{0.3, -1.7, 1, 1e-3, 2.5}
		for _, n := range lengths() {
			for terms := 0; terms <= 5; terms++ {
				var x [][]float32
				for i := range terms {
					x = append(x, wild(n, i))
				}
				want := make([]float32, n)
				for j := range want {
					for i := range x {
						p := float32(c[i] * x[i][j])
						if i > 0 {
							p = want[j] + p
						}
						want[j] = p
					}
				}
				got := normals(random(n), n)
				k.Lin(got, c[:terms], x)
				sameBits(t, "lin", want, got)
				if terms > 0 { // in place, with dst as the last term
					d := slices.Clone(x[terms-1])
					x[terms-1] = d
					k.Lin(d, c[:terms], x)
					sameBits(t, "in place", want, d)
				}
			}
		}
	})
}

func TestAddAxpyScale(t *testing.T) {
	each(t, func(t *testing.T, k *Kernels) {
		for _, n := range lengths() {
			a, b := wild(n, 1), wild(n, 2)
			sum, axpy, scaled := make([]float32, n), make([]float32, n), make([]float32, n)
			for i := range a {
				sum[i], axpy[i], scaled[i] = a[i]+b[i], a[i]+float32(-0.7*b[i]), 3*a[i]
			}
			d := make([]float32, n)
			k.Add(d, a, b)
			sameBits(t, "add", sum, d)
			copy(d, a)
			k.Axpy(d, -0.7, b)
			sameBits(t, "axpy", axpy, d)
			copy(d, a)
			k.Scale(d, 3)
			sameBits(t, "scale", scaled, d)
		}
	})
}

func TestAdamHasTheSameBits(t *testing.T) {
	s := &AdamStep{
		B1:  0.9,
		B2:  0.999,
		D1:  1 - float32(0.9),
		D2:  1 - float32(0.999),
		C1:  5.26,
		C2:  500.25,
		Eta: 0.01,
		Eps: 1e-8,
		WD:  0.0003,
	}
	each(t, func(t *testing.T, k *Kernels) {
		for _, n := range lengths() {
			x, m, v, g := wild(n, 1), wild(n, 2), wild(n, 3), wild(n, 4)
			for i := range v {
				v[i] = float32(math.Abs(float64(v[i])))
			}
			x1, m1, v1 := slices.Clone(x), slices.Clone(m), slices.Clone(v)
			adam(x1, m1, v1, g, s)
			k.Adam(x, m, v, g, s)
			sameBits(t, "x", x1, x)
			sameBits(t, "m", m1, m)
			sameBits(t, "v", v1, v)
		}
	})
}

// The portable variant is itself checked against the formula in float64.
func TestAdamFormula(t *testing.T) {
	const eta, b1, b2, eps = 0.01, 0.9, 0.999, 1e-8
	s := &AdamStep{
		B1:  b1,
		B2:  b2,
		D1:  1 - float32(b1),
		D2:  1 - float32(b2),
		C1:  1 / (1 - b1*b1),
		C2:  1 / (1 - b2*b2),
		Eta: eta,
		Eps: eps,
		WD:  eta * 0.1,
	}
	r := random(1)
	for range 1000 {
		x, m, v, g := r.NormFloat64(), r.NormFloat64(), r.Float64(), r.NormFloat64()
		fx, fm, fv := []float32{float32(x)}, []float32{float32(m)}, []float32{float32(v)}
		adam(fx, fm, fv, []float32{float32(g)}, s)
		m, v = b1*m+(1-b1)*g, b2*v+(1-b2)*g*g
		x = x - eta*0.1*x - eta*(m/(1-b1*b1))/(math.Sqrt(v/(1-b2*b2))+eps)
		if math.Abs(x-float64(fx[0])) > 1e-6*(1+math.Abs(x)) {
			t.Fatalf("x %g, want %g", fx[0], x)
		}
	}
}

func TestNaturalStepHasTheSameBits(t *testing.T) {
	p, err := New(Portable)
	if err != nil {
		t.Fatal(err)
	}
	each(t, func(t *testing.T, k *Kernels) {
		for _, n := range lengths() {
			x, s, g, h := unruly(n, 1), wild(n, 2), unruly(n, 3), unruly(n, 4)
			for i := range h {
				if i%5 == 1 {
					h[i] = math.Float32frombits(0x7fc00000 + uint32(i)) // NaN with unusual bits
				}
			}
			x1, s1 := slices.Clone(x), slices.Clone(s)
			p.NaturalStep(x1, s1, g, h, 0.3, -2)
			for i, v := range h {
				if v != v && s1[i] == s1[i] {
					t.Fatalf("s[%d] is %v, want NaN", i, s1[i])
				}
			}
			k.NaturalStep(x, s, g, h, 0.3, -2)
			sameBits(t, "x", x1, x)
			sameBits(t, "s", s1, s)
		}
	})
}

// TestExp tests exp over its whole range: its error, and the error at the limits.
func TestExp(t *testing.T) {
	if one := exp(0); one != 1 {
		t.Errorf("exp(0) is %v", one)
	}
	for x := -expLimit; x <= expLimit; x += 1.0 / 512 {
		want := math.Exp(float64(x))
		if off := math.Abs(float64(exp(x))-want) / want; off > 2e-7+1e-7*math.Abs(float64(x)) {
			t.Fatalf("exp(%v) is %v, off by %.3g", x, exp(x), off)
		}
	}
}

func TestColSumHasTheSameBits(t *testing.T) {
	each(t, func(t *testing.T, k *Kernels) {
		for _, n := range lengths() {
			for _, rows := range []int{0, 1, 2, 7, 128} {
				if n > 200 && rows > 7 {
					continue
				}
				ld := n + 3
				src, dst := normals(random(n, rows), rows*ld+1), normals(random(n), n)
				want := make([]float32, n)
				for j := range want {
					for r := range rows {
						want[j] += src[r*ld+j]
					}
					want[j] = float32(0.5*dst[j]) + float32(-0.1*want[j])
				}
				k.ColSum(dst, 0.5, src, ld, rows, -0.1)
				sameBits(t, "column sums", want, dst)
			}
		}
	})
}

func TestVectorGuardPages(t *testing.T) {
	each(t, func(t *testing.T, k *Kernels) {
		for _, n := range []int{1, 3, 8, 15, 16, 17, 63, 64, 65, 100} {
			a, b, c, d := guarded(t, n), guarded(t, n), guarded(t, n), guarded(t, n)
			k.Lin(a, []float32{1, 2, 3}, [][]float32{b, c, d})
			k.Adam(a, b, c, d, &AdamStep{Eps: 1})
			k.NaturalStep(a, b, c, d, 1, 1)
			k.ColSum(a, 1, b, n, 1, 1)
		}
	})
}

func BenchmarkVector(b *testing.B) {
	const n = 2048 // 8 kB per vector: the tile that an update program processes in the first-level cache
	x, y, z, w := normals(random(1), n), normals(random(2), n), normals(random(3), n), normals(random(4), n)
	s := &AdamStep{B1: 0.9, B2: 0.999, D1: 0.1, D2: 0.001, C1: 1, C2: 1, Eta: 0.01, Eps: 1e-8}
	for i := range z {
		z[i] *= z[i]
	}
	benches(b, "lin2", "G/s", n, 0, func(k *Kernels) func() { return func() { k.lin(w, 2, 1, x, 0.5, y, 0, nil) } })
	benches(b, "lin3", "G/s", n, 0, func(k *Kernels) func() { return func() { k.lin(w, 3, 1, x, 0.5, y, 0.1, z) } })
	benches(b, "adam", "G/s", n, 0, func(k *Kernels) func() { return func() { k.Adam(x, y, z, w, s) } })
	benches(b, "natural", "G/s", n, 0, func(k *Kernels) func() { return func() { k.NaturalStep(x, y, w, z, 0, 1e-9) } })
	benches(b, "colsum-128x16", "G/s", n, 0,
		func(k *Kernels) func() { return func() { k.ColSum(y[:16], 1, x, 16, 128, 1) } })
}
