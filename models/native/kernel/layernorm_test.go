package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// layerCase is a row with the arguments of its kernels.
type layerCase struct {
	r                    Layer
	dy, scale, shift, d0 []float32
}

func newLayerCase(r *rand.Rand, n int, make func(r *rand.Rand, n int) []float32) *layerCase {
	return &layerCase{Layer{make(r, n), float32(r.NormFloat64()), float32(r.NormFloat64())}, make(r, n), make(r, n),
		make(r, n), make(r, n)}
}

// TestLayerNormAgainstFloat64 compares every kernel with the equations in float64, on rows that end at a guard page:
// one of a whole number of lanes and one of any length.
func TestLayerNormAgainstFloat64(t *testing.T) {
	each(t, func(t *testing.T, k *Kernels) {
		for _, n := range append(lengths(), 1000) {
			if n == 0 {
				continue
			}
			c := newLayerCase(random(n), n, func(r *rand.Rand, n int) []float32 { return fill(r, guarded(t, n)) })
			near := func(what string, got float32, want, size float64) {
				t.Helper()
				if !(math.Abs(float64(got)-want) <= 1e-6*(1+size)) {
					t.Fatalf("%s of %d is %v, want %v", what, n, got, want)
				}
			}
			var sum, magnitude, squares, g, gx, gs, gxs float64
			hat := make([]float64, n)
			for i, x := range c.r.X {
				sum += float64(x)
				magnitude += math.Abs(float64(x))
				squares += math.Pow(float64(x)-float64(c.r.Mean), 2)
				hat[i] = (float64(x) - float64(c.r.Mean)) * float64(c.r.Inverse)
				v := float64(c.dy[i]) * float64(c.scale[i])
				g, gx = g+v, gx+v*hat[i]
				gs, gxs = gs+math.Abs(v), gxs+math.Abs(v*hat[i])
			}
			near("the sum", k.LayerSum(&c.r), sum, magnitude)
			near("the sum of squares", k.LayerSquares(&c.r), squares, squares)
			s, p := k.LayerBackSums(&c.r, c.dy, c.scale)
			near("the sum of gradients", s, g, gs)
			near("the sum of products", p, gx, gxs)
			y, dx, d := guarded(t, n), guarded(t, n), guarded(t, n)
			copy(d, c.d0)
			copy(dx, c.dy)
			k.LayerApply(y, &c.r, c.scale, c.shift)
			k.LayerBack(dx, &c.r, dx, c.scale, s, p)
			k.LayerScale(d, &c.r, c.dy)
			for i := range n {
				w := hat[i] * float64(c.scale[i])
				near("a result", y[i], w+float64(c.shift[i]), math.Abs(w))
				v := float64(c.dy[i]) * float64(c.scale[i])
				near("a gradient", dx[i], float64(c.r.Inverse)*(v-float64(s)-hat[i]*float64(p)),
					math.Abs(float64(c.r.Inverse))*(math.Abs(v)+math.Abs(float64(s))+math.Abs(hat[i]*float64(p))))
				near("a gradient of the scale", d[i], float64(c.d0[i])+float64(c.dy[i])*hat[i], math.Abs(float64(c.dy[i])*hat[i]))
			}
		}
	})
}

// drawLayer returns all results of a kernel for a random row.
func drawLayer(f func(k *Kernels, c *layerCase, dst []float32)) func(k *Kernels, r *rand.Rand) []float32 {
	return func(k *Kernels, r *rand.Rand) []float32 {
		c := newLayerCase(r, 1+r.IntN(200), rough)
		dst := slices.Clone(c.d0)
		f(k, c, dst)
		return dst
	}
}

func BenchmarkLayerNorm(b *testing.B) {
	const n = 512
	c, y := newLayerCase(random(1), n, normals), make([]float32, n)
	benches(b, "forward", "G/s", n, 0, func(k *Kernels) func() {
		return func() {
			k.LayerSum(&c.r)
			k.LayerSquares(&c.r)
			k.LayerApply(y, &c.r, c.scale, c.shift)
		}
	})
	benches(b, "back", "G/s", n, 0, func(k *Kernels) func() {
		return func() {
			s, p := k.LayerBackSums(&c.r, c.dy, c.scale)
			k.LayerScale(c.d0, &c.r, c.dy)
			k.LayerBack(y, &c.r, c.dy, c.scale, s, p)
		}
	})
}
