package kernel

import (
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
