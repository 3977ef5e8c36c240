package kernel

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// guardedAs returns n numbers that end at a guard page.
func guardedAs[T any](t testing.TB, n int) []T {
	t.Helper()
	var x T
	size := int(unsafe.Sizeof(x))
	words := guarded(t, (n*size+3)/4)
	return unsafe.Slice((*T)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(words)), 4*len(words)-n*size)), n)
}

// drawSums draws sums of all magnitudes up to the magnitude of the largest layer.
func drawSums(r *rand.Rand, dst []int32) []int32 {
	for i := range dst {
		dst[i] = int32(r.NormFloat64() * float64(int(1)<<r.IntN(26)))
	}
	return dst
}

// drawSettling draws a Settling of a random shape.
func drawSettling(r *rand.Rand, rows, cols int) *Settling {
	s := &Settling{Sign: int32(r.IntN(3) - 1), Shift: 1 + r.IntN(13), Rows: rows, Cols: cols, Bias: make([]int32, cols)}
	s.X = drawSums(r, make([]int32, rows*cols))
	if s.Sign != 0 {
		s.Y = drawSums(r, make([]int32, rows*cols))
	}
	for i := range s.Bias {
		s.Bias[i] = int32(r.IntN(509) - 254)
	}
	return s
}

// settled computes an element by its definition, without limits.
func settled(s *Settling, row, col int) int64 {
	x := int64(s.X[row*s.Cols+col])
	if s.Sign != 0 {
		x += int64(s.Sign) * int64(s.Y[row*s.Cols+col])
	}
	return int64(math.Floor(float64(x)/math.Exp2(float64(s.Shift))+0.5)) + int64(s.Bias[col])
}

// TestSettle: values equal int64 sums with rounding in float64, for all widths, and the padding of a row is zero;
// memory outside the slices is not touched.
func TestSettle(t *testing.T) {
	each(t, func(t *testing.T, k *Kernels) {
		r := random(8)
		for cols := 1; cols < 140; cols++ {
			rows, ld := 1+r.IntN(4), (cols+3)/4*4
			s := drawSettling(r, rows, cols)
			for _, p := range []*[]int32{&s.X, &s.Y, &s.Bias} {
				g := guardedAs[int32](t, len(*p))
				copy(g, *p)
				*p = g
			}
			bytes, words := guardedAs[uint8](t, rows*ld), guardedAs[int32](t, rows*cols)
			for i := range bytes {
				bytes[i] = 99
			}
			k.Settle(bytes, s)
			k.SettleWide(words, s, 2047)
			for i := range rows {
				for j := range ld {
					want := int64(0)
					if j < cols {
						want = settled(s, i, j)
						if got := words[i*cols+j]; int64(got) != min(max(want, -2047), 2047) {
							t.Fatalf("%d columns, sign %d: word %d of row %d is %d, want %d", cols, s.Sign, j, i, got, want)
						}
					}
					if got := bytes[i*ld+j]; int64(got) != min(max(want, 0), 255) {
						t.Fatalf("%d columns, sign %d: byte %d of row %d is %d, want %d", cols, s.Sign, j, i, got, want)
					}
				}
			}
		}
	})
}

// TestPowers: they equal float64 to half a unit.
func TestPowers(t *testing.T) {
	for i, p := range powers {
		if want := math.Exp2(32 - float64(i)/16); math.Abs(float64(p)-want) > 0.5 {
			t.Errorf("power %d is %d, want %v", i, p, want)
		}
	}
}

// drawLogits draws numbers in [-2047, 2047], many of them close to each other.
func drawLogits(r *rand.Rand, z []int32) []int32 {
	by := 1 << r.IntN(12)
	for i := range z {
		z[i] = int32(min(max(int(r.NormFloat64()*float64(by))-r.IntN(300), -2047), 2047))
	}
	return z
}

// TestPowerSums: sums equal sums of unlimited integers, each term truncated; rows end anywhere, and at a guard page.
func TestPowerSums(t *testing.T) {
	each(t, func(t *testing.T, k *Kernels) {
		r := random(9)
		for n := 1; n < 150; n++ {
			rows := 1 + r.IntN(4)
			z, most, sums := drawLogits(r, guardedAs[int32](t, rows*n)), guardedAs[int32](t, rows), guardedAs[uint64](t, rows)
			if n%10 == 0 { // the largest possible difference
				z[r.IntN(n)], z[r.IntN(n)] = -2047, 2047
			}
			k.PowerSums(most, sums, z, n)
			for i := range rows {
				row, want := z[i*n:(i+1)*n], new(big.Int)
				top := slices.Max(row)
				for _, x := range row {
					d := uint(top - x)
					p := new(big.Int).SetUint64(powers[d%16])
					want.Add(want, p.Rsh(p, d/16))
				}
				if most[i] != top || want.Cmp(new(big.Int).SetUint64(sums[i])) != 0 {
					t.Fatalf("%d of %v: %d and %d, want %d and %v", n, row, most[i], sums[i], top, want)
				}
			}
		}
	})
}

func BenchmarkSettle(b *testing.B) {
	const rows, cols = 64, 64
	r := random(1)
	s := drawSettling(r, rows, cols)
	s.Sign, s.Y = 1, s.X
	bytes, words := make([]uint8, rows*cols), make([]int32, rows*cols)
	z, most, sums := drawLogits(r, make([]int32, 64*128)), make([]int32, 64), make([]uint64, 64)
	benches(b, "bytes", "G/s", rows*cols, 0, func(k *Kernels) func() { return func() { k.Settle(bytes, s) } })
	benches(b, "words", "G/s", rows*cols, 0, func(k *Kernels) func() { return func() { k.SettleWide(words, s, 2047) } })
	benches(b, "powers", "G/s", 64*128, 0, func(k *Kernels) func() { return func() { k.PowerSums(most, sums, z, 128) } })
}
