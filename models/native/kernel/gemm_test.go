package kernel

import (
	"fmt"
	"math"
	"testing"

	"brood/models/longtest"
)

// product is a Gemm with its operands in padded matrices.
type product struct {
	form                Form
	m, n, k             int
	a, b, c, bias, gate []float32
	lda, ldb, ldc       int
}

func (f Form) String() string { return [...]string{"nn", "nt", "tn"}[f] }

// newProduct draws a product; alloc allocates memory, and strides exceed the columns by pad.
func newProduct(form Form, m, n, k, pad int, alloc func(n int) []float32) *product {
	r := random(int(form), m, n, k)
	p := &product{form: form, m: m, n: n, k: k, lda: k + pad, ldb: n + 2*pad, ldc: n + pad}
	ra, ca, rb, cb := m, k, k, n
	if form == TN {
		ra, ca, p.lda = k, m, m+pad
	}
	if form == NT {
		rb, cb, p.ldb = n, k, k+pad
	}
	mat := func(rows, cols, ld int) []float32 {
		if rows == 0 || cols == 0 {
			return nil
		}
		return fill(r, alloc((rows-1)*ld+cols))
	}
	p.a, p.b = mat(ra, ca, p.lda), mat(rb, cb, p.ldb)
	p.c, p.gate, p.bias = mat(m, n, p.ldc), mat(m, n, p.ldc), mat(1, n, n)
	return p
}

func (p *product) at(i, j, q int) (float64, float64) {
	ai, bi := i*p.lda+q, q*p.ldb+j
	if p.form == TN {
		ai = q*p.lda + i
	}
	if p.form == NT {
		bi = j*p.ldb + q
	}
	return float64(p.a[ai]), float64(p.b[bi])
}

var epilogues = []struct {
	name                  string
	bias, gate, add, relu bool
}{{"store", false, false, false, false}, {"bias", true, false, false, false}, {"bias relu", true, false, false, true},
	{"gate", false, true, false, false},
	{"add", false, false, true, false}, {"all", true, true, true, true}}

// epilogue returns epilogues[e] with the product's operands.
func (p *product) epilogue(e int) *Epilogue {
	ep := &Epilogue{Alpha: -0.5, Add: epilogues[e].add, ReLU: epilogues[e].relu}
	if epilogues[e].bias {
		ep.Bias = p.bias
	}
	if epilogues[e].gate {
		ep.Gate, ep.LDGate = p.gate, p.ldc
	}
	return ep
}

// check compares a product with float64, within an error bound of k roundings; memory between rows must not change.
func (p *product) check(t *testing.T, kn *Kernels, e int) {
	t.Helper()
	c0 := append([]float32(nil), p.c...)
	ep := p.epilogue(e)
	kn.Gemm(p.form, p.m, p.n, p.k, p.a, p.lda, p.b, p.ldb, p.c, p.ldc, ep)
	for x, got := range p.c {
		i, j := x/p.ldc, x%p.ldc
		if j >= p.n {
			if got != c0[x] {
				t.Fatalf("%v %dx%dx%d %s: wrote between the rows at %d,%d", p.form, p.m, p.n, p.k, epilogues[e].name, i, j)
			}
			continue
		}
		s, mag := 0.0, 4.0
		for q := range p.k {
			u, v := p.at(i, j, q)
			s += u * v
			mag += math.Abs(u * v)
		}
		if ep.Bias != nil {
			s += float64(p.bias[j])
		}
		if ep.Gate != nil && !(p.gate[x] > 0) {
			s = 0
		}
		if ep.Add {
			s = float64(c0[x]) - 0.5*s
		}
		if ep.ReLU {
			s = max(0, s)
		}
		if d := math.Abs(s - float64(got)); !(d <= 1.2e-7*math.Sqrt(float64(p.k)+4)*mag) {
			t.Fatalf("%v %dx%dx%d %s at %d,%d: %g, want %g", p.form, p.m, p.n, p.k, epilogues[e].name, i, j, got, s)
		}
	}
	copy(p.c, c0)
}

func heap(n int) []float32 { return make([]float32, n) }

// TestGemmSmall: sizes around every edge of a tile; BROOD_LONG=kernels tests more of them.
func TestGemmSmall(t *testing.T) {
	every := 67
	if longtest.On(longtest.Kernels) {
		every = 5
	}
	each(t, func(t *testing.T, kn *Kernels) {
		for form := range TN + 1 {
			for m := 1; m <= 34; m++ {
				for n := 1; n <= 70; n++ {
					for k := 0; k <= 36; k++ {
						if (m*3+n*5+k)%every == 0 && m*n*k < 20000 || m < 4 && n < 20 && k < 4 {
							newProduct(form, m, n, k, 3, heap).check(t, kn, 0)
						}
					}
				}
			}
		}
	})
}

func TestGemmEpilogues(t *testing.T) {
	each(t, func(t *testing.T, kn *Kernels) {
		for form := range TN + 1 {
			for _, d := range [][3]int{{1, 1, 1}, {14, 32, 5}, {15, 33, 16}, {6, 16, 17}, {7, 15, 3}, {29, 50, 24}, {3, 8, 0},
				{5, 9, 2100}} {
				p := newProduct(form, d[0], d[1], d[2], 2, heap)
				for e := range epilogues {
					p.check(t, kn, e)
				}
			}
		}
	})
}

// TestGemmLarge: long sums, strides of whole pages, and all kinds of packing.
func TestGemmLarge(t *testing.T) {
	each(t, func(t *testing.T, kn *Kernels) {
		for form := range TN + 1 {
			for e, d := range [][4]int{{127, 63, 783, 0}, {33, 31, 1031, 1}, {1, 1000, 2, 0}, {31, 257, 65, 1024},
				{17, 10, 4099, 0}, {17, 300, 1025, 1023}} {
				newProduct(form, d[0], d[1], d[2], d[3], heap).check(t, kn, e)
			}
		}
	})
}

// TestGemmGuardPages: memory outside an operand is not read or written.
func TestGemmGuardPages(t *testing.T) {
	each(t, func(t *testing.T, kn *Kernels) {
		for form := range TN + 1 {
			for _, d := range [][3]int{{1, 1, 1}, {13, 33, 5}, {29, 10, 31}, {16, 47, 64}, {15, 70, 17}, {28, 32, 48},
				{3, 17, 100}, {90, 16, 9}} {
				p := newProduct(form, d[0], d[1], d[2], 0, func(n int) []float32 { return guarded(t, n) })
				for e := range epilogues {
					p.check(t, kn, e)
				}
			}
		}
	})
}

// TestGemmRowsAreIndependent: a row or a column computed separately has the bits of the whole product.
func TestGemmRowsAreIndependent(t *testing.T) {
	each(t, func(t *testing.T, kn *Kernels) {
		for form := range TN + 1 {
			for _, d := range [][4]int{{31, 70, 784, 0}, {16, 300, 1500, 1024}, {57, 10, 128, 1}} {
				p := newProduct(form, d[0], d[1], d[2], d[3], heap)
				ep := &Epilogue{Bias: p.bias, Gate: p.gate, LDGate: p.ldc, Add: true, Alpha: 0.3}
				c0 := append([]float32(nil), p.c...)
				kn.Gemm(form, p.m, p.n, p.k, p.a, p.lda, p.b, p.ldb, p.c, p.ldc, ep)
				sameBits(t, fmt.Sprint(form, d, " rows"), p.c, func() []float32 {
					c := append([]float32(nil), c0...)
					for i := range p.m {
						a, e := p.a[min(i*p.lda, len(p.a)):], *ep
						if form == TN {
							a = p.a[i:]
						}
						e.Gate = p.gate[i*p.ldc:]
						kn.Gemm(form, 1, p.n, p.k, a, p.lda, p.b, p.ldb, c[i*p.ldc:], p.ldc, &e)
					}
					return c
				}())
				sameBits(t, fmt.Sprint(form, d, " columns"), p.c, func() []float32 {
					c := append([]float32(nil), c0...)
					for j := range p.n {
						b, e := p.b[j:], *ep
						if form == NT {
							b = p.b[j*p.ldb:]
						}
						e.Gate, e.Bias = p.gate[j:], p.bias[j:]
						kn.Gemm(form, p.m, 1, p.k, p.a, p.lda, b, p.ldb, c[j:], p.ldc, &e)
					}
					return c
				}())
			}
		}
	})
}

func sameBits(t *testing.T, what string, want, got []float32) {
	t.Helper()
	if len(want) != len(got) {
		t.Fatalf("%s: %d elements, want %d", what, len(got), len(want))
	}
	for i := range want {
		if math.Float32bits(want[i]) != math.Float32bits(got[i]) && (want[i] == want[i] || got[i] == got[i]) {
			t.Fatalf("%s: element %d is %x, want %x", what, i, got[i], want[i])
		}
	}
}

func TestGemmRefusesShortOperands(t *testing.T) {
	each(t, func(t *testing.T, kn *Kernels) {
		for name, f := range map[string]func(a, b, c []float32){
			"a":      func(a, b, c []float32) { kn.Gemm(NN, 4, 5, 6, a[1:], 6, b, 5, c, 5, nil) },
			"b":      func(a, b, c []float32) { kn.Gemm(NN, 4, 5, 6, a, 6, b[1:], 5, c, 5, nil) },
			"c":      func(a, b, c []float32) { kn.Gemm(NN, 4, 5, 6, a, 6, b, 5, c[1:], 5, nil) },
			"bias":   func(a, b, c []float32) { kn.Gemm(NN, 4, 5, 6, a, 6, b, 5, c, 5, &Epilogue{Bias: a[:4]}) },
			"stride": func(a, b, c []float32) { kn.Gemm(NN, 4, 5, 6, a, 5, b, 5, c, 5, nil) },
		} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("short %s passes", name)
					}
				}()
				f(make([]float32, 24), make([]float32, 30), make([]float32, 20))
			}()
		}
	})
}

// TestEdgeIsPackedAlone: if tiles read whole vectors of B, the panel at the edge is packed, and no other for this
// reason.
func TestEdgeIsPackedAlone(t *testing.T) {
	k := &Kernels{isa: isa{
		height: edgeRows,
		width:  edgeCols,
		whole:  true,
		reads:  edgeCols,
		tiles:  make([]func(*tileArgs), 1),
	}, caches: smallest}
	for _, n := range []int{1000, 1008} {
		if r := k.GemmScratch(NN, 1, n, 784, 784, n); k.packsB(NN, 1, n, 784, n) || (r.B > 0) != (n%edgeCols > 0) {
			t.Errorf("%d columns take %+v", n, r)
		}
	}
}
