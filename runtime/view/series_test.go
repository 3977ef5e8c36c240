package view

import (
	"math"
	"math/rand/v2"
	"sort"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"pgregory.net/rapid"

	"brood/models/engine"
	"brood/optim/collective"
	"brood/runtime/event"
)

type point struct {
	m engine.Member
	r uint64
	x float64
}

// naive groups the points by the rule that Columns documents, one by one.
func naive(ps []point, w, lo, hi uint64, n int) []Bucket {
	out := make([]Bucket, n)
	for _, p := range ps {
		if math.IsNaN(p.x) || p.r/w*w+w <= lo {
			continue
		}
		at := max(p.r/w*w, lo)
		// The first column that ends beyond it.
		if c := sort.Search(n, func(c int) bool { return (at-lo)*uint64(n) < (hi-lo)*uint64(c+1) }); c < n {
			out[c].add(p.x)
		}
	}
	return out
}

func equal(a, b Bucket) bool {
	return a.Count == b.Count && a.Min == b.Min && a.Max == b.Max && math.Abs(a.Sum-b.Sum) <= 1e-9*(1+math.Abs(a.Sum))
}

func TestColumnsEqualReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		members := rapid.SampledFrom([]int{1, 2, 40, 300}).Draw(t, "members")
		r := uint64(rapid.IntRange(0, 5000).Draw(t, "first"))
		stride := rapid.SampledFrom([]int{1, 3, 200}).Draw(t, "stride")
		s := Series{Name: "s"}
		var ps []point
		for range 4000 / members {
			p := &event.Points{Round: r}
			for m := range engine.Member(members) {
				if rng.IntN(8) == 0 {
					continue
				}
				x := rng.NormFloat64()
				if rng.IntN(20) == 0 {
					x = math.NaN()
				}
				p.Members, p.Values = append(p.Members, m), append(p.Values, x)
				ps = append(ps, point{m, r, x})
			}
			s.add(p)
			if r += uint64(rng.IntN(2 * stride)); rng.IntN(400) == 0 && r > 5 {
				r -= 5 // late points
			}
		}
		lo := uint64(rng.Int64N(int64(r)))
		hi := lo + 1 + uint64(rng.Int64N(int64(r-lo+50)))
		n := 1 + rng.IntN(200)
		if rng.IntN(3) == 0 {
			lo, hi = 0, r+1
		}
		m := engine.Member(rng.IntN(members))
		var mine []point
		for _, p := range ps {
			if p.m == m {
				mine = append(mine, p)
			}
		}
		for what, c := range map[string][2][]Bucket{
			"member": {s.Columns(m, Even(lo, hi, n)), naive(mine, s.Width(), lo, hi, n)},
			"band":   {s.Band(Even(lo, hi, n)), naive(ps, s.Width(), lo, hi, n)},
		} {
			for i := range n {
				if !equal(c[0][i], c[1][i]) {
					t.Fatalf("%s of rounds %d..%d, column %d of %d, width %d: got %+v, naively %+v", what, lo, hi, i, n, s.Width(),
						c[0][i], c[1][i])
				}
			}
		}
	})
}

func TestShortSeriesKeepAllPoints(t *testing.T) {
	s := Series{}
	for r := uint64(1); r <= maxBuckets; r++ {
		s.add(scalar("s", r, float64(r)))
	}
	if s.Width() != 1 {
		t.Fatalf("width %d after %d points", s.Width(), maxBuckets)
	}
	for i, b := range s.Columns(Whole, Even(1, maxBuckets+1, maxBuckets)) {
		if b != (Bucket{float64(i + 1), float64(i + 1), float64(i + 1), 1}) {
			t.Fatalf("point %d is %+v", i, b)
		}
	}
	s.add(scalar("s", maxBuckets+1, 0))
	if s.Width() != 2 {
		t.Errorf("width %d after one point more", s.Width())
	}
}

func TestMedianOfMembers(t *testing.T) {
	s := Series{}
	s.add(&event.Points{Round: 1, Members: collective.IDs(4), Values: []float64{9, 1, 3, math.NaN()}})
	s.add(&event.Points{Round: 2, Members: collective.IDs(4), Values: []float64{1, 2, 3, 4}})
	m := s.Median(Even(1, 3, 2))
	if m[0].Mean() != 3 || m[1].Mean() != 2.5 {
		t.Errorf("medians %g and %g, want 3 and 2.5", m[0].Mean(), m[1].Mean())
	}
	order := s.Latest(collective.Place(collective.IDs(4), []int{1}))
	if order[0] != (Value{3, 4}) || order[3] != (Value{0, 1}) {
		t.Errorf("latest values %v are not in descending order", order)
	}
}

// TestJumpsAreCheap: a hostile log may skip any number of rounds: time and memory do not grow with it.
func TestJumpsAreCheap(t *testing.T) {
	s := Series{}
	for _, r := range []uint64{5, 1 << 49, 3, 1 << 40, math.MaxUint64} {
		s.add(scalar("s", r, 1))
	}
	if n := len(s.all.base()); n > maxBuckets {
		t.Errorf("%d buckets", n)
	}
	if b := s.Columns(Whole, Even(0, math.MaxUint64, 1))[0]; b.Count < 4 {
		t.Errorf("%d of 5 points are found", b.Count)
	}
}

func TestSnapshotStaysSmall(t *testing.T) {
	const members, points = 64, 1_000_000
	v := New()
	v.Apply(event.Record{Plan: &event.Plan{New: collective.Place(collective.IDs(members), []int{1}), Algorithm: "a"}})
	for r := range uint64(points / members) {
		x := make([]float64, members)
		for i := range x {
			x[i] = float64(r) + float64(i)
		}
		v.Apply(event.Record{Points: &event.Points{
			Round:   r + 1,
			Series:  "loss",
			Members: collective.IDs(members),
			Values:  x,
		}})
	}
	b, err := cbor.Marshal(v)
	if err != nil || len(b) > 2_500_000 {
		t.Errorf("a snapshot of %d points takes %d bytes, %v", points, len(b), err)
	}
}

func TestDamagedSnapshotsAreRefused(t *testing.T) {
	s := Series{Name: "s"}
	for r := range uint64(100) {
		s.add(&event.Points{Round: r, Members: collective.IDs(2), Values: []float64{1, 2}})
	}
	good, _ := cbor.Marshal(s)
	rng := rand.New(rand.NewPCG(3, 3))
	for range 2000 {
		bad := append([]byte{}, good...)
		bad[rng.IntN(len(bad))] ^= byte(1 + rng.IntN(255))
		var d Series
		if cbor.Unmarshal(bad[:len(bad)-rng.IntN(2)*rng.IntN(len(bad))], &d) == nil {
			d.Band(Even(0, 100, 10)) // what is accepted must not panic
			d.add(&event.Points{Round: 1000, Members: collective.IDs(3), Values: []float64{1, 2, 3}})
		}
	}
}

func BenchmarkClone(b *testing.B) {
	v := New()
	for r := range uint64(15625) {
		v.Apply(event.Record{Points: &event.Points{
			Round:   r + 1,
			Series:  "loss",
			Members: collective.IDs(64),
			Values:  make([]float64, 64),
		}})
	}
	for b.Loop() {
		v.Clone()
	}
}

func BenchmarkApplyPoints(b *testing.B) {
	v, r := New(), uint64(0)
	x := make([]float64, 64)
	for b.Loop() {
		r++
		v.Apply(event.Record{Points: &event.Points{Round: r, Series: "loss", Members: collective.IDs(64), Values: x}})
	}
}

func BenchmarkBandAndMembers(b *testing.B) {
	s := Series{}
	for r := range uint64(15625) {
		s.add(&event.Points{Round: r, Members: collective.IDs(64), Values: make([]float64, 64)})
	}
	for b.Loop() {
		s.Band(Even(0, 15625, 200))
		for m := range engine.Member(64) {
			s.Columns(m, Even(0, 15625, 40))
		}
	}
}

func FuzzSeries(f *testing.F) {
	s := Series{Name: "s"}
	for r := range uint64(20) {
		s.add(&event.Points{Round: r, Members: collective.IDs(2), Values: []float64{1, 2}})
	}
	good, _ := cbor.Marshal(s)
	f.Add(good)
	f.Fuzz(func(_ *testing.T, p []byte) {
		var d Series
		if cbor.Unmarshal(p, &d) == nil {
			d.Band(Even(0, 1000, 10))
			d.add(&event.Points{Round: 5000, Members: collective.IDs(3), Values: []float64{1, 2, 3}})
			d.truncate(7)
			d.clone()
		}
	})
}
