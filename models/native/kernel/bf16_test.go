package kernel

import (
	"fmt"
	"math"
	"testing"
)

// TestBF16: to the nearest of eight significant bits, ties to even; what is too small is zero, and NaN stays one.
func TestBF16(t *testing.T) {
	for x, want := range map[float32]float32{
		1: 1, -1.5: -1.5, 0: 0, 1 + 0x1p-8: 1, 1 + 0x1.8p-7: 1 + 0x1p-6, -(1 + 0x1.1p-8): -(1 + 0x1p-7), 0x1.fffffep127: float32(math.Inf(1)),
		0x1p-55: 0x1p-55, 0x1.fffffep-56: 0, -0x1p-56: 0, float32(math.Inf(-1)): float32(math.Inf(-1)),
	} {
		if got := BF16(x); math.Float32bits(got) != math.Float32bits(want) {
			t.Errorf("%x becomes %x, want %x", x, got, want)
		}
	}
	if got := BF16(math.Float32frombits(1<<31 - 1)); !math.IsNaN(float64(got)) {
		t.Errorf("NaN becomes %v", got)
	}
}

// TestGemmBF16 holds products beside the chain that defines them.
func TestGemmBF16(t *testing.T) {
	each(t, func(t *testing.T, k *Kernels) {
		for _, s := range [][3]int{{1, 1, 1}, {1, 33, 2}, {2, 16, 5}, {14, 31, 64}, {15, 64, 99}, {29, 70, 784}, {3, 5, 2*maxK + 3}, {40, 10, 128}, {5, 4, 0}} {
			m, n, kk := s[0], s[1], s[2]
			r := random(m, n, kk)
			lda, ldb, ldc := kk+2, kk+1, n+3
			a, b, bias := rough(r, m*lda), rough(r, n*ldb), normals(r, n)
			c := guarded(t, (m-1)*ldc+n)
			fillWith(c, 77)
			k.GemmBF16(m, n, kk, a, lda, b, ldb, c, ldc, &Epilogue{Bias: bias})
			for i := range c {
				want := float32(77)
				if j := i % ldc; j < n {
					x, y, sum := a[i/ldc*lda:], b[j*ldb:], float32(0)
					for q := range (kk + 1) / 2 * 2 {
						if at := q ^ 1; at < kk {
							sum = fma(BF16(x[at]), BF16(y[at]), sum)
						}
					}
					want = sum + bias[j]
				}
				if c[i] != want {
					t.Fatalf("%v: element %d is %v, want %v", s, i, c[i], want)
				}
			}
		}
	})
}

func BenchmarkGemmBF16(b *testing.B) {
	for _, s := range [][3]int{{128, 256, 784}, {128, 128, 256}, {128, 10, 128}, {512, 512, 512}} {
		m, n, kk := s[0], s[1], s[2]
		r := random(m, n, kk)
		x, y, c := normals(r, m*kk), normals(r, n*kk), make([]float32, m*n)
		benches(b, fmt.Sprintf("%dx%dx%d", m, n, kk), "GFLOP/s", float64(2*m*n*kk), 0, func(k *Kernels) func() {
			return func() { k.GemmBF16(m, n, kk, x, kk, y, kk, c, n, nil) }
		})
	}
}
