package noise

import (
	"hash/fnv"
	"math"
	"testing"
)

// goldenIntegers freezes the whole numbers and their addresses. Never edit it.
const goldenIntegers = 0x53c8b7d769431e3c

func TestIntegersAreFrozen(t *testing.T) {
	h := fnv.New64a()
	k := Key{Seed: 7, Purpose: Candidate, Round: 1<<33 + 5, Member: 3, Stream: 2}
	var v [Tile]int8
	for b := range uint32(40) {
		k.Schedule().Integers(&v, k, b)
		for i, x := range v {
			h.Write([]byte{byte(x)})
			if w := k.Words(8*b + uint32(i%16/2))[i%2+i/16*2]; Integer(w) != x {
				t.Fatalf("tile %d, lane %d is %d, its word gives %d", b, i, x, Integer(w))
			}
		}
	}
	check(t, "integers", h.Sum64(), goldenIntegers)
	for w, want := range map[uint32]int8{0: 1, 0x7f7f7f7f: 127, 0x80808080: -127, 0xffffffff: -1, 0x00ffffff: 0} {
		if got := Integer(w); got != want {
			t.Errorf("word %#x gives %d, want %d", w, got, want)
		}
	}
}

// TestIntegerDistribution: the distribution is symmetric, in [-127, 127], and has variance 1 after scaling.
func TestIntegerDistribution(t *testing.T) {
	sums := map[int]float64{3: 1}
	for i := range 4 {
		next := map[int]float64{}
		for s, p := range sums {
			for b := -128; b < 128; b++ {
				x := b
				if i == 3 {
					x |= 1
				}
				next[s+x] += p / 256
			}
		}
		sums = next
	}
	p := map[int]float64{}
	for s, share := range sums {
		p[s>>2] += share
	}
	var variance float64
	for v, share := range p {
		if v < -127 || v > 127 || math.Abs(share-p[-v]) > 1e-12 {
			t.Errorf("%d has probability %g, %d has %g", v, share, -v, p[-v])
		}
		variance += share * float64(v*v)
	}
	if float32(1/math.Sqrt(variance)) != IntegerScale {
		t.Errorf("variance %v, whose scale is %v, not %v", variance, float32(1/math.Sqrt(variance)), IntegerScale)
	}
	// Integer has this distribution: six standard deviations of each frequency in a million words.
	const n = 1 << 20
	count := map[int]float64{}
	for b := range uint32(n / 4) {
		for _, w := range (Key{Seed: 11}).Words(b) {
			count[int(Integer(w))]++
		}
	}
	for v, share := range p {
		if math.Abs(count[v]-n*share) > 6*math.Sqrt(n*share+1) {
			t.Errorf("%d came %v times, want about %.0f", v, count[v], n*share)
		}
	}
}
