package kernel

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// TestCachesKeepBits: the sizes of the caches decide how a product is cut and packed, but not its bits.
func TestCachesKeepBits(t *testing.T) {
	each(t, func(t *testing.T, k *Kernels) {
		if k.isa.tiles == nil {
			t.Skip("it has no blocks")
		}
		shapes := [][4]int{{130, 300, 784, 0}, {70, 260, 512, 512}, {90, 256, 1024, 0}, {40, 33, 2*maxK + 3, 1}}
		for _, form := range []Form{NN, NT, TN} {
			for _, s := range shapes {
				p := newProduct(form, s[0], s[1], s[2], s[3], heap)
				for e := range epilogues {
					var want []float32
					for _, c := range []caches{processorCaches(), smallest, {4 << 10, 32 << 10}, {1 << 20, 64 << 20}} {
						k.caches = c
						got := slices.Clone(p.c)
						k.Gemm(form, p.m, p.n, p.k, p.a, p.lda, p.b, p.ldb, got, p.ldc, p.epilogue(e))
						if want == nil {
							want = got
						}
						for i, x := range got {
							if math.Float32bits(x) != math.Float32bits(want[i]) {
								t.Fatalf("%v %v, %s, %+v: element %d is %v, else %v", form, s, epilogues[e].name, c, i, x, want[i])
							}
						}
					}
				}
			}
		}
	})
}

// TestCutsKeepBits: the sizes of the caches decide how a convolution is cut, but not its bits, in any variant.
func TestCutsKeepBits(t *testing.T) {
	for _, s := range []ConvShape{{20, 12, 12, 50, 5, 1, 0}, {17, 11, 9, 30, 3, 1, 1}, {64, 9, 9, 33, 1, 1, 0},
		{24, 9, 9, 19, 3, 2, 1}} {
		c, err := NewConv(s)
		if err != nil {
			t.Fatal(err)
		}
		r := random(3)
		x, dy, w, bias := normals(r, c.Inputs()), normals(r, c.Outputs()), normals(r, c.Weights()), normals(r, s.Out)
		var want [2][]float32 // of the first variant
		each(t, func(t *testing.T, k *Kernels) {
			for _, sizes := range []caches{processorCaches(), smallest, {8 << 10, 64 << 10}, {1 << 20, 64 << 20}} {
				k.caches = sizes
				got := [2][]float32{make([]float32, c.Outputs()), make([]float32, c.Inputs())}
				k.ConvForward(c, got[0], x, w, bias, true)
				k.ConvData(c, got[1], dy, w, x)
				if want[0] == nil {
					want = got
				}
				for i := range got {
					sameBits(t, fmt.Sprintf("%+v, %+v, result %d", s, sizes, i), want[i], got[i])
				}
			}
		})
	}
}

// TestCutsFollowCaches: the samples of a cut fit into the first-level cache, and short cuts are not made.
func TestCutsFollowCaches(t *testing.T) {
	k, err := New(AVX2)
	if err != nil {
		t.Skip(err)
	}
	k.caches = smallest
	for _, c := range []struct{ rows, cols, channels, pixels, tiles, want int }{
		{5, 5, 20, 8, 50, 100}, {3, 3, 96, 8, 96, 72}, {3, 3, 8, 8, 96, 72}, // the last one fits
		{1, 1, 192, 8, 96, 192}, // too few taps
		{5, 5, 20, 8, 6, 500},   // one tile
		{5, 5, 20, 1, 50, 250},  // a channel of 25 samples: ten of them
		{0, 0, 0, 8, 50, 1},     // no taps
	} {
		r := convRun{tab: make([]int32, 2*c.rows*c.cols*c.channels), pixels: c.pixels, rows: c.rows, cols: c.cols}
		if got := k.cut(&convJob{channels: c.tiles, stepB: row}, &r); got != c.want {
			t.Errorf("%+v: a cut of %d taps", c, got)
		}
	}
}

// TestBlocksFollowCaches: a product's cuts fit the caches, whatever their sizes.
func TestBlocksFollowCaches(t *testing.T) {
	k, err := New(AVX2)
	if err != nil {
		t.Skip(err)
	}
	for _, c := range []caches{smallest, {48 << 10, 1 << 20}, {64 << 10, 2 << 20}} {
		k.caches = c
		for _, kk := range []int{1, 128, 784, 1000, 1024, 5000} {
			steps := k.steps(kk, false)
			if panel := 4 * steps * (k.isa.width + k.isa.height); panel > c.l1 || steps < min(kk, 128) {
				t.Errorf("%+v: a cut of %d of %d steps takes %d bytes", c, steps, kk, panel)
			}
			if rows := 4 * steps * k.rowsA(steps); rows > c.l2/2 || rows < c.l2/8 && kk > 128 {
				t.Errorf("%+v: %d rows of %d steps take %d bytes", c, k.rowsA(steps), steps, rows)
			}
		}
	}
	for _, s := range []struct {
		lines, ld int
		want      bool
	}{{128, 784, false}, {128, 256, true}, {128, 1024, true}, {4, 1024, false}, {256, 250, false}} {
		if got := smallest.conflict(s.lines, s.ld); got != s.want {
			t.Errorf("%d lines at a distance of %d elements conflict: %v", s.lines, s.ld, got)
		}
	}
}
