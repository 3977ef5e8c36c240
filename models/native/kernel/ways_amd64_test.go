package kernel

import (
	"math"
	"slices"
	"testing"

	"golang.org/x/sys/cpu"

	"brood/models/longtest"
)

// TestPairsByInstruction: products with VDPBF16PS have the bits of those with floats, on Intel CPUs too, which do not
// use the instruction because it is slow there.
func TestPairsByInstruction(t *testing.T) {
	if !available(AVX512) || !cpu.X86.HasAVX512BF16 {
		t.Skip("this CPU has no AVX512_BF16")
	}
	for round := range 40 {
		var want []float32
		for _, by := range []bool{false, true} {
			k, err := New(AVX512)
			if err != nil {
				t.Fatal(err)
			}
			if k.isa.pairs, k.isa.pairsNarrow = nil, nil; by {
				k.isa.pairs, k.isa.pairsNarrow = pairsAVX512(32), pairsAVX512(16)
			}
			r := random(round, 1, 2)
			m, n, kk := 1+r.IntN(70), 1+r.IntN(90), r.IntN(900)
			x, y, c := normals(r, m*kk), normals(r, n*kk), make([]float32, m*n)
			k.GemmBF16(Pairs, m, n, kk, x, kk, y, kk, c, n, nil)
			if by && !slices.Equal(c, want) {
				t.Fatalf("%d x %d x %d: other bits", m, n, kk)
			}
			want = c
		}
	}
}

// TestBytesByWords: products of bytes have the same bits with and without AVX-VNNI, and with floats where AVX-512 has
// no VNNI.
func TestBytesByWords(t *testing.T) {
	if !available(AVX2) {
		t.Skip("this CPU has no AVX2")
	}
	ways := []isa{table(AVX2), avx2()}
	if available(AVX512) {
		ways = append(ways, avx512())
	}
	for round := range 40 {
		var want []int32
		for i, way := range ways {
			k := &Kernels{isa: way, caches: smallest, edge: new(edge)}
			r := random(round, 3, 4)
			m, n, kk, ld, a, b := drawBytes(r)
			c := make([]int32, m*n)
			k.SumBytes(m, n, kk, a, ld, b, ld, c, n)
			if i > 0 && !slices.Equal(c, want) {
				t.Fatalf("%d x %d x %d: other sums by way %d", m, n, kk, i)
			}
			want = c
		}
	}
}

// TestTiles: bfloat16 tiles sum in the order Blocks, on operands of all magnitudes, with sums that lose most of their
// digits or almost none. BROOD_LONG=kernels tests 26 million elements.
func TestTiles(t *testing.T) {
	k, err := New(AMX)
	if err != nil {
		t.Skip(err)
	}
	rounds := 8
	if longtest.On(longtest.Kernels) {
		rounds = 400
	}
	const m, kk = 256, 64
	x, y, c := make([]float32, m*kk), make([]float32, m*kk), make([]float32, m*m)
	for round := range rounds {
		r := random(round, 5, 6)
		spread := []int{2, 8, 20, 54}[round%4]
		for _, s := range [][]float32{x, y} {
			for i := range s {
				s[i] = BF16(float32(math.Ldexp(r.NormFloat64(), spread/4-r.IntN(spread))))
			}
		}
		k.GemmBF16(Blocks, m, m, kk, x, kk, y, kk, c, m, nil)
		for i, got := range c {
			if want := naiveBF16(Blocks, x[i/m*kk:][:kk], y[i%m*kk:][:kk]); got != want {
				t.Fatalf("round %d, element %d: %x, want %x", round, i, got, want)
			}
		}
	}
}
