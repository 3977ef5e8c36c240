package kernel

import (
	"math"
	"testing"
)

// naiveSquares computes the sum by its definition, one column after the other.
func naiveSquares(x, c []float32) float64 {
	sums := make([]float64, 16)
	for i, v := range x {
		d := float64(v)
		if c != nil {
			d -= float64(c[i])
		}
		sums[i%16] += float64(d * d)
	}
	for len(sums) > 1 {
		half := len(sums) / 2
		for i := range half {
			sums[i] += sums[i+half]
		}
		sums = sums[:half]
	}
	return sums[0]
}

// tame returns finite numbers of all magnitudes, whose sums are finite.
func tame(n, seed int) []float32 {
	x := wild(n, seed)
	for i, v := range x {
		if math.IsInf(float64(v), 0) {
			x[i] = float32(math.Ldexp(1.5, i%60-30))
		}
	}
	return x
}

// TestSquares: bits equal the bits of the definition, for all lengths and magnitudes, and NaN where that is NaN;
// nothing is read outside the slices.
func TestSquares(t *testing.T) {
	each(t, func(t *testing.T, k *Kernels) {
		for _, n := range lengths() {
			for seed, draw := range []func(n, seed int) []float32{wild, unruly, tame} {
				x, c := guarded(t, n), guarded(t, n)
				copy(x, draw(n, seed))
				copy(c, draw(n, seed+2))
				for _, from := range [][]float32{c, nil} {
					got, want := k.Squares(x, from), naiveSquares(x, from)
					if math.Float64bits(got) != math.Float64bits(want) && !(math.IsNaN(got) && math.IsNaN(want)) {
						t.Fatalf("%d columns, from a row %v: %v, want %v", n, from != nil, got, want)
					}
				}
			}
		}
	})
}

func BenchmarkSquares(b *testing.B) {
	const n = 1 << 16
	x, c := normals(random(1), n), normals(random(2), n)
	benches(b, "length", "G/s", n, 0, func(k *Kernels) func() { return func() { k.Squares(x, nil) } })
	benches(b, "distance", "G/s", n, 0, func(k *Kernels) func() { return func() { k.Squares(x, c) } })
}
