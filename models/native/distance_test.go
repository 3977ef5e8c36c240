package native

import (
	"testing"

	"brood/models/native/kernel"
)

// TestDistanceIsATree: a sum of squares of any length has the order specified in docs/arithmetic.md.
func TestDistanceIsATree(t *testing.T) {
	portable, err := kernel.New(kernel.Portable)
	if err != nil {
		t.Fatal(err)
	}
	for _, variant := range kernel.Variants() {
		k, err := kernel.New(variant)
		if err != nil {
			continue
		}
		for _, n := range []int{0, 1, 15, 16, 33, tile, tile + 1, 3*tile - 7, 7 * tile, 12*tile + 5} {
			x, c := make([]float32, n), make([]float32, n)
			for i := range x {
				x[i], c[i] = float32(i%97)/7, float32(i%89)/13
			}
			var level []float64
			for lo := 0; lo < n; lo += tile {
				level = append(level, portable.Squares(x[lo:min(n, lo+tile)], c[lo:]))
			}
			for len(level) > 1 {
				var next []float64
				for i := 0; i < len(level); i += 2 {
					next = append(next, level[i])
					if i+1 < len(level) {
						next[len(next)-1] += level[i+1]
					}
				}
				level = next
			}
			want := 0.0
			if n > 0 {
				want = level[0]
			}
			if got := (&thread{Kernels: k}).distance2(x, c); got != want {
				t.Errorf("%s, %d columns: %v, want %v", variant, n, got, want)
			}
		}
	}
}
