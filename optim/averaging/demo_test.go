package averaging

import (
	"math"
	"slices"
	"testing"

	"brood/optim"
	"brood/optim/optimtest"
)

// cosines64 returns the orthonormal cosine transform of type II of each chunk of v, computed by its definition, or the
// inverse transform if back is set.
func cosines64(v []float64, chunk int, back bool) []float64 {
	out := make([]float64, len(v))
	for lo := 0; lo < len(v); lo += chunk {
		n := min(chunk, len(v)-lo)
		for k := range n {
			scale := math.Sqrt(2 / float64(n))
			if k == 0 {
				scale = math.Sqrt(1 / float64(n))
			}
			for i := range n {
				c := scale * math.Cos(math.Pi*(float64(i)+0.5)*float64(k)/float64(n))
				if back {
					out[lo+i] += c * v[lo+k]
				} else {
					out[lo+k] += c * v[lo+i]
				}
			}
		}
	}
	return out
}

// TestDeMo compares with algorithm 1 of the source, with steps along the signs of the mean and along the mean.
func TestDeMo(t *testing.T) {
	for _, c := range []struct{ step, values string }{{"sign", "float32"}, {"mean", "float32"}, {"mean", "2bit"}} {
		p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, DeMo, 3,
			optimtest.Set{"eta": 0.02, "beta": 0.8, "chunk": 8, "keep": 3, "step": c.step, "values": c.values, "decay": 0.1,
				"batch": 4})
		x, _ := optimtest.StartRows(optimtest.Cols, 1)
		_, ms := optimtest.StartRows(optimtest.Cols, 3)
		next := p.Streams()
		for range 8 {
			var sent [][]float64
			for a := range ms {
				g := p.Bowl.Gradient(x[0], next(a))
				for j := range g {
					ms[a][j] = 0.8*ms[a][j] + g[j]
				}
				decoded := sparse64(p.Layout, cosines64(ms[a], 8, false), 8, 3, c.values == "float32")
				for j, q := range cosines64(decoded, 8, true) {
					ms[a][j] -= q
				}
				sent = append(sent, decoded)
			}
			for j, d := range cosines64(optimtest.Average(sent), 8, true) {
				if c.step == "sign" {
					d = math.Copysign(1, d)
				}
				x[0][j] = (1-0.02*0.1)*x[0][j] - 0.02*d
			}
		}
		p.Rounds(8)
		p.Same(optim.BlockX, x...)
		p.Same(optim.BlockM, ms...)
	}
}

// With all cosines sent no momentum remains, so for every beta DeMo equals SGD on the mean of the members' gradients.
func TestDeMoOfAllIsDataParallel(t *testing.T) {
	b := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples)
	all := b.Populate(t, DeMo, 3,
		optimtest.Set{"eta": 0.05, "beta": 0.9, "chunk": 8, "keep": 8, "step": "mean", "batch": 4})
	parallel := b.Populate(t, LocalSGD, 3, optimtest.Set{"warmup": 1e9, "eta": 0.05, "momentum": 0, "batch": 4})
	all.Rounds(10)
	parallel.Rounds(10)
	if far := optimtest.Distance(all.CentreOf(), parallel.CentreOf()); far > 1e-5 {
		t.Errorf("the centres are %g apart", far)
	}
	few := b.Populate(t, DeMo, 3,
		optimtest.Set{"eta": 0.05, "beta": 0.9, "chunk": 8, "keep": 7, "step": "mean", "batch": 4})
	few.Rounds(10)
	if far := optimtest.Distance(few.CentreOf(), parallel.CentreOf()); far < 1e-4 {
		t.Errorf("with one cosine of eight missing the centre is %g from SGD's: the test sees nothing", far)
	}
}

// The transform and its inverse invert each other, for chunks of any length.
func TestCosines(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7, 64, 100} {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(optimtest.Start(i))
		}
		code, was, bases := newSparseCode(cut(n), 64, 1, true), optimtest.Doubles(v), map[int][]float64{}
		code.dct(v, false, bases)
		if far := optimtest.Distance(optimtest.Doubles(v), cosines64(was, 64, false)); far > 1e-6 {
			t.Errorf("%d values: cosines are %g from their definition", n, far)
		}
		code.dct(v, true, bases)
		if far := optimtest.Distance(optimtest.Doubles(v), was); far > 1e-6 {
			t.Errorf("%d values: the inverse differs by %g", n, far)
		}
	}
}

// The inverse transform sums the frequencies that are not zero in ascending order, to the last bit.
func TestCosinesBackInOrder(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 7, 63, 64, 130} {
		for _, of := range []int{1, 3} { // every frequency, and every third
			v := make([]float32, n)
			for i := range v {
				if i%of == 0 {
					v[i] = float32(optimtest.Start(i))
				}
			}
			code, want := newSparseCode(cut(n), 64, 1, true), make([]float32, 0, n)
			for _, p := range code.chunks {
				basis := dctBasis(p.n)
				out := make([]float64, p.n)
				for k, a := range v[p.lo : p.lo+p.n] {
					for i := range out {
						if a != 0 {
							out[i] += float64(float64(a) * basis[k*p.n+i])
						}
					}
				}
				for _, x := range out {
					want = append(want, float32(x))
				}
			}
			if code.dct(v, true, map[int][]float64{}); !slices.Equal(v, want) {
				t.Errorf("%d values, of which every %d. is not zero: the inverse has other bits", n, of)
			}
		}
	}
}
