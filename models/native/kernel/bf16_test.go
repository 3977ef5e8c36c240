package kernel

import (
	"fmt"
	"math"
	"testing"
)

// TestBF16: rounds to eight significant bits, ties to even; tiny numbers become zero, and NaN stays NaN.
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

// TestGemmBF16 compares products with the chains that define them.
func TestGemmBF16(t *testing.T) {
	each(t, func(t *testing.T, k *Kernels) {
		for _, s := range [][3]int{{1, 1, 1}, {1, 33, 2}, {2, 16, 5}, {14, 31, 64}, {15, 64, 99}, {29, 70, 784},
			{3, 5, 2*maxK + 3}, {40, 10, 128}, {5, 4, 0}, {64, 48, 864}, {97, 17, 33}} {
			for order := range Blocks + 1 {
				m, n, kk := s[0], s[1], s[2]
				r := random(m, n, kk)
				lda, ldb, ldc := kk+2, kk+1, n+3
				a, b, bias := rough(r, m*lda), rough(r, n*ldb), normals(r, n)
				c := guarded(t, (m-1)*ldc+n)
				fillWith(c, 77)
				relu := kk%2 == 1
				k.GemmBF16(order, m, n, kk, a, lda, b, ldb, c, ldc, &Epilogue{Bias: bias, ReLU: relu})
				for i := range c {
					want := float32(77)
					if j := i % ldc; j < n {
						want = naiveBF16(order, a[i/ldc*lda:][:kk], b[j*ldb:][:kk]) + bias[j]
						if relu {
							want = max(0, want)
						}
					}
					if c[i] != want {
						t.Fatalf("%v, order %d: element %d is %v, want %v", s, order, i, c[i], want)
					}
				}
			}
		}
	})
}

// naiveBF16 computes an element of a product in the given order.
func naiveBF16(order Order, x, y []float32) (sum float32) {
	term := func(at int, sum float32) float32 {
		if at >= len(x) {
			return fma(0, 0, sum)
		}
		return fma(BF16(x[at]), BF16(y[at]), sum)
	}
	if order == Pairs {
		for q := range (len(x) + 1) / 2 * 2 {
			sum = term(q^1, sum)
		}
		return sum
	}
	for lo := 0; lo < len(x); lo += 32 {
		even, odd := float32(0), float32(0)
		for q := lo; q < lo+32; q += 2 {
			even, odd = term(q, even), term(q+1, odd)
		}
		sum += even + odd
	}
	return sum
}

func BenchmarkGemmBF16(b *testing.B) {
	for _, s := range [][3]int{{128, 256, 784}, {128, 128, 256}, {128, 10, 128}, {512, 512, 512}} {
		for order, name := range []string{"pairs", "blocks"} {
			m, n, kk := s[0], s[1], s[2]
			r := random(m, n, kk)
			x, y, c := normals(r, m*kk), normals(r, n*kk), make([]float32, m*n)
			benches(b, fmt.Sprintf("%s/%dx%dx%d", name, m, n, kk), "GFLOP/s", float64(2*m*n*kk), 0, func(k *Kernels) func() {
				return func() { k.GemmBF16(Order(order), m, n, kk, x, kk, y, kk, c, n, nil) }
			})
		}
	}
}
