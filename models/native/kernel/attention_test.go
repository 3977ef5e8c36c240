package kernel

import (
	"math"
	"slices"
	"testing"
)

// TestCausalSoftmaxAgainstFloat64 compares weights and gradients with the equations in float64, on rows that end at a
// guard page: for all positions, for the last one, and for some.
func TestCausalSoftmaxAgainstFloat64(t *testing.T) {
	each(t, func(t *testing.T, k *Kernels) {
		for _, n := range append(lengths(), 100) {
			for _, rows := range []int{n, 1, (n + 1) / 2} {
				if n == 0 || rows*n > 1<<18 {
					continue
				}
				r := random(n)
				scores, d, w := fill(r, guarded(t, rows*n)), fill(r, guarded(t, rows*n)), guarded(t, rows*n)
				copy(w, scores)
				k.CausalSoftmax(w, rows, n)
				e := guarded(t, rows*n)
				copy(e, d)
				k.CausalSoftmaxBack(e, w, rows, n)
				for i := range rows {
					var sum, inner, size float64
					for u := i * n; u < i*n+n-rows+i+1; u++ {
						sum += math.Exp(float64(scores[u]))
						inner += float64(w[u]) * float64(d[u])
						size += math.Abs(float64(w[u]) * float64(d[u]))
					}
					for u := range n {
						at := i*n + u
						weight, gradient := math.Exp(float64(scores[at]))/sum, float64(w[at])*(float64(d[at])-inner)
						if u > n-rows+i {
							weight, gradient = 0, 0
						}
						if math.Abs(float64(w[at])-weight) > 1e-6 || math.Abs(float64(e[at])-gradient) > 1e-6*(1+size) {
							t.Fatalf("%d rows of %d: weight %d of row %d is %v, want %v; its gradient %v, want %v", rows, n, u, i, w[at],
								weight, e[at], gradient)
						}
					}
				}
			}
		}
	})
}

// TestCausalSoftmaxMasksLaterPositions: a score far above the others gets all weight, and positions that are not seen
// change nothing, even if they are NaN.
func TestCausalSoftmaxMasksLaterPositions(t *testing.T) {
	each(t, func(t *testing.T, k *Kernels) {
		nan := float32(math.NaN())
		x := []float32{3e38, nan, nan, -3e38, 3e38, nan, 1, 1, 1}
		k.CausalSoftmax(x, 3, 3)
		third := x[8]
		if !slices.Equal(x[:6], []float32{1, 0, 0, x[3], 1, 0}) || x[3] > 1e-30 || math.Abs(float64(third)-1./3) > 1e-7 {
			t.Errorf("weights %v", x)
		}
		d := []float32{7, nan, nan, 1, 1, nan, 0, 3, 0}
		k.CausalSoftmaxBack(d, x, 3, 3)
		for i, want := range []float64{0, 0, 0, 0, 0, 0, -1. / 3, 2. / 3, -1. / 3} {
			if !(math.Abs(float64(d[i])-want) < 1e-6) {
				t.Errorf("gradients %v", d)
			}
		}
	})
}
