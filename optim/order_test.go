package optim

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestOrder: Order equals a stable sort, also for values that are equal, infinite, missing, or zero of either sign.
func TestOrder(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	odd := []float32{nan, 0, float32(math.Copysign(0, -1)), inf, -inf, -nan, 1, -1, math.SmallestNonzeroFloat32,
		-math.SmallestNonzeroFloat32, math.MaxFloat32, -math.MaxFloat32}
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 400 {
		fit := make([]float32, n)
		for i := range fit {
			if fit[i] = float32(r.NormFloat64()); r.IntN(2) == 0 {
				fit[i] = odd[r.IntN(len(odd))]
			}
		}
		want := make([]int, n)
		for i := range want {
			want[i] = i
		}
		slices.SortStableFunc(want, func(a, b int) int { return cmp.Compare(fit[b], fit[a]) }) // NaN is least
		if got := Order(fit); !slices.Equal(got, want) {
			t.Fatalf("%v: %d, want %d", fit, got, want)
		}
	}
}

func BenchmarkOrder(b *testing.B) {
	r, fit := rand.New(rand.NewPCG(1, 2)), make([]float32, 1<<18)
	for i := range fit {
		fit[i] = float32(r.NormFloat64())
	}
	for b.Loop() {
		Order(fit)
	}
}
