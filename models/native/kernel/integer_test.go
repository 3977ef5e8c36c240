package kernel

import (
	"math"
	"testing"

	"brood/models/noise"
)

// wholeNumbers returns the noise of elements [lo, lo+n), computed word by word from its addresses.
func wholeNumbers(f Field, lo, n int) []int8 {
	out := make([]int8, n)
	for i := range out {
		e := lo + i
		tile, lane := e/f.Cols*((f.Cols+31)/32)+e%f.Cols/32, e%f.Cols%32
		out[i] = noise.Integer(f.Key.Words(uint32(8*tile + lane%16/2))[lane%2+lane/16*2])
	}
	return out
}

func TestIntegersHaveTheFrozenBits(t *testing.T) {
	members, weights := []uint32{3, 0, 1<<32 - 1, 3, 77}, []int32{1, -7, 0, 1 << 23, -8388000}
	each(t, func(t *testing.T, k *Kernels) {
		for _, c := range fields {
			f, want, got := field(c.cols), make([]float32, c.n), guarded(t, c.n)
			for i, v := range wholeNumbers(f, c.lo, c.n) {
				want[i] = float32(v) * 0.3
			}
			k.Integers(got, 0.3, f, c.lo)
			sameBits(t, "integers", want, got)
			for count := range len(members) + 1 {
				sums := make([]int32, c.n)
				for i, m := range members[:count] {
					f.Key.Member = m
					for j, v := range wholeNumbers(f, c.lo, c.n) {
						sums[j] += weights[i] * int32(v)
					}
				}
				for i, s := range sums {
					want[i] = float32(s) * noise.IntegerScale
				}
				k.IntegerSum(got, members[:count], weights[:count], noise.IntegerScale, f, c.lo)
				sameBits(t, "sum", want, got)
			}
		}
		for _, cols := range []int{1, 31, 32, 33, 784} {
			bytesAre(t, cols, func(dst []int8, f Field, rows int) { k.IntegerBytes(dst, f, rows) },
				func(v int8) int8 { return v })
		}
	})
}

// bytesAre compares rows of noise in bytes with a function of its integers.
func bytesAre(t *testing.T, cols int, draw func(dst []int8, f Field, rows int), want func(v int8) int8) {
	t.Helper()
	f, stride := field(cols), ByteStride(cols)
	got := make([]int8, 5*stride+1)
	got[5*stride] = 99
	draw(got, f, 5)
	for r := range 5 {
		for i, v := range wholeNumbers(f, r*cols, cols) {
			if got[r*stride+i] != want(v) {
				t.Fatalf("%d columns: byte %d of row %d is %d, want %d", cols, i, r, got[r*stride+i], want(v))
			}
		}
	}
	if got[5*stride] != 99 {
		t.Fatal("wrote past the end")
	}
}

// TestRoundedBytes: rounded products are rounded to the nearest integers, ties to even, with factors that give ties,
// reach the limits, exceed float32 and are NaN.
func TestRoundedBytes(t *testing.T) {
	inf := float32(math.Inf(1))
	each(t, func(t *testing.T, k *Kernels) {
		for _, outer := range []float32{0, 1, 0.5, 1.5, -0.25, 3, 27.3, 36.9, 1e9, 3e38, inf, -inf, float32(math.NaN())} {
			for _, inner := range []float32{noise.IntegerScale, 1, 3e38} {
				for _, cols := range []int{1, 33, 784} {
					bytesAre(t, cols, func(dst []int8, f Field, rows int) { k.RoundedBytes(dst, outer, inner, f, rows) },
						func(v int8) int8 {
							switch x := math.RoundToEven(float64(outer * float32(inner*float32(v)))); {
							case x != x:
								return 0
							default:
								return int8(min(127, max(-127, x)))
							}
						})
				}
			}
		}
	})
}

// TestGemmBytes: products of bytes are exact, compared with int64, for extreme values too, as floats and as int32.
// Operands end at a guard page.
func TestGemmBytes(t *testing.T) {
	each(t, func(t *testing.T, k *Kernels) {
		for _, s := range [][3]int{{1, 1, 1}, {1, 32, 4}, {2, 33, 5}, {14, 31, 64}, {15, 64, 100}, {29, 70, 784},
			{3, 5, 1025}, {128, 40, 513}, {7, 17, 23}, {2, 3, 1<<16 - 1}} {
			m, n, kk := s[0], s[1], s[2]
			r, words := random(m, n, kk), (kk+3)/4*4
			lda, ldb, ldc := words+4, ByteStride(kk), n+3
			for _, extreme := range []bool{false, true} {
				a, b := guardedAs[uint8](t, (m-1)*lda+words), guardedAs[int8](t, (n-1)*ldb+words)
				for i := range a {
					if i%lda < kk || i%lda >= words {
						a[i] = uint8(r.IntN(256))
					}
					if extreme && i%lda < kk {
						a[i] = 255
					}
				}
				for i := range b {
					b[i] = int8(r.Uint32())
					if extreme {
						b[i] = int8(127 - 255*(i/ldb%2))
					}
				}
				c, bias, sums := guarded(t, (m-1)*ldc+n), normals(random(1), n), guardedAs[int32](t, (m-1)*ldc+n)
				fillWith(c, 77)
				for i := range sums {
					sums[i] = 77
				}
				k.SumBytes(m, n, kk, a, lda, b, ldb, sums, ldc)
				k.GemmBytes(m, n, kk, a, lda, b, ldb, c, ldc, 0.01, bias)
				for i := range c {
					want, exact := float32(77), int64(77)
					if j := i % ldc; j < n {
						sum := int64(0)
						for q := range kk {
							sum += int64(a[i/ldc*lda+q]) * int64(b[j*ldb+q])
						}
						want, exact = float32(0.01*float32(sum))+bias[j], sum
					}
					if int64(sums[i]) != exact {
						t.Fatalf("%v: sum %d is %d, want %d", s, i, sums[i], exact)
					}
					if c[i] != want {
						t.Fatalf("%v: element %d is %v, want %v", s, i, c[i], want)
					}
				}
			}
		}
	})
}

func fillWith(s []float32, x float32) {
	for i := range s {
		s[i] = x
	}
}
