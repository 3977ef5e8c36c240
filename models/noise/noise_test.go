package noise

import (
	"hash/fnv"
	"math"
	"testing"
)

// Known-answer vectors of the Random123 distribution.
func TestPhiloxKnownAnswers(t *testing.T) {
	if got := NewSchedule(0, 0).Block([4]uint32{}); got != [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8} {
		t.Errorf("zero key: %x", got)
	}
	got := NewSchedule(0xa4093822, 0x299f31d0).Block([4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344})
	if got != [4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1} {
		t.Errorf("pi key: %x", got)
	}
}

// TestFrozen: if a digest changes, recorded sessions cannot be replayed. Never edit them.
func TestFrozen(t *testing.T) {
	h := fnv.New64a()
	put := func(u uint32) { h.Write([]byte{byte(u), byte(u >> 8), byte(u >> 16), byte(u >> 24)}) }
	sum := func() uint64 { s := h.Sum64(); h.Reset(); return s }

	k := Key{Seed: 7, Purpose: Candidate, Round: 1<<33 + 5, Member: 3, Stream: 2}
	for i := range 1000 {
		put(k.Uint32(i))
	}
	check(t, "words", sum(), goldenWords)
	k.Each(5, 3005, 100, func(_ int, eps []float32) {
		for _, e := range eps {
			put(math.Float32bits(e))
		}
	})
	check(t, "normals", sum(), goldenNormals)
	p := Key{Seed: 7, Purpose: Order, Round: 2, Member: 1}.Permutation(54000)
	for i := range uint64(1000) {
		put(uint32(p.At(i)))
	}
	check(t, "permutation", sum(), goldenPermutation)
}

const (
	goldenWords       = 0xb09da75d7fc6876f
	goldenNormals     = 0x3d4f3df87b4490c0
	goldenPermutation = 0x519c069fa44f4d07
)

func check(t *testing.T, what string, got, want uint64) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %#x, frozen %#x", what, got, want)
	}
}

func TestPermutationIsABijection(t *testing.T) {
	for _, n := range []uint64{1, 2, 3, 5, 16, 17, 255, 1000, 4099} {
		seen := make([]bool, n)
		p := Key{Seed: n, Purpose: Order}.Permutation(n)
		for i := range n {
			j := p.At(i)
			if seen[j] {
				t.Fatalf("n=%d: %d hit twice", n, j)
			}
			seen[j] = true
		}
	}
}

// TestPermutationsDiffer: streams of two members differ; a permutation once depended on the member only in its counter.
func TestPermutationsDiffer(t *testing.T) {
	same := func(a, b Key) (n int) {
		p, q := a.Permutation(1000), b.Permutation(1000)
		for i := range uint64(1000) {
			if p.At(i) == q.At(i) {
				n++
			}
		}
		return
	}
	base := Key{Seed: 1, Purpose: Order}
	for _, k := range []Key{{Seed: 2, Purpose: Order}, {Seed: 1, Purpose: Order, Member: 1},
		{Seed: 1, Purpose: Order, Round: 1}, {Seed: 1, Purpose: Order, Round: 1 << 32}} {
		if n := same(base, k); n > 10 {
			t.Errorf("%+v agrees with %+v in %d of 1000 places", k, base, n)
		}
	}
}

func TestNormalMoments(t *testing.T) {
	const n = 1 << 20
	var s1, s2, s3, s4 float64
	tail := 0
	Key{Seed: 11, Purpose: Candidate}.Each(0, n, n, func(_ int, eps []float32) {
		for _, e := range eps {
			x := float64(e)
			s1, s2, s3, s4 = s1+x, s2+x*x, s3+x*x*x, s4+x*x*x*x
			if math.Abs(x) > 3 {
				tail++
			}
		}
	})
	// Five standard errors of each estimator under N(0,1).
	se := 5 / math.Sqrt(n)
	for _, c := range []struct {
		name           string
		got, want, tol float64
	}{{"mean", s1 / n, 0, se}, {"variance", s2 / n, 1, se * math.Sqrt2}, {"skewness", s3 / n, 0, se * math.Sqrt(15)},
		{"kurtosis", s4 / n, 3, se * math.Sqrt(96)}, {"tail", float64(tail) / n, .0026998, se * .052}} {
		if math.Abs(c.got-c.want) > c.tol {
			t.Errorf("%s %.5f, want %.5f within %.5f", c.name, c.got, c.want, c.tol)
		}
	}
}

// TestEachIsRandomAccess: any window of a matrix's noise equals the same window of the whole.
func TestEachIsRandomAccess(t *testing.T) {
	k := Key{Seed: 3, Purpose: Mutate}
	const n, cols = 40 * 7, 40
	whole := make([]float32, n)
	k.Each(0, n, cols, func(at int, eps []float32) { copy(whole[at:], eps) })
	for lo := 0; lo < n; lo += 13 {
		hi := min(n, lo+57)
		next := lo
		k.Each(lo, hi, cols, func(at int, eps []float32) {
			if at != next {
				t.Fatalf("piece at %d, want %d", at, next)
			}
			for i, e := range eps {
				if whole[at+i] != e {
					t.Fatalf("element %d differs", at+i)
				}
			}
			next += len(eps)
		})
		if next != hi {
			t.Fatalf("window ends at %d, want %d", next, hi)
		}
	}
}
