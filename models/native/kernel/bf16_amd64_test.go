package kernel

import (
	"slices"
	"testing"

	"golang.org/x/sys/cpu"
)

// TestPairsByInstruction: products by VDPBF16PS have the bits of those by floats, on processors of Intel too, which do
// not take them because they are slow.
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
