package view

import (
	"math"
	"slices"
	"unsafe"

	"brood/models/engine"
	"brood/optim/collective"
	"brood/runtime/event"
)

// Series is the history of one named quantity: of each member that had it, of all members together, and the median over
// members of each round. Every point is kept while there are few; then buckets of 2, 4, 8... rounds keep exact minima,
// maxima, sums and counts.
type Series struct {
	Name    string
	Members []engine.Member // that ever had a value and are still remembered, ascending; empty for a scalar

	level   uint
	end     uint64 // last round that had a point
	every   uint64 // rounds between the last two that had one
	swaps   uint   // of the algorithm, since the last point
	gaps    []Gap
	all     track
	median  track
	tracks  []track // one per entry of Members
	scratch []float64
	small   bool // it has the buckets of one of the machines
}

// Buckets a track may hold: the budget is shared by the members, so that a view of 64 takes no more than one of 16.
const (
	maxBuckets = 4096
	minBuckets = 64
	budget     = 1 << 16
)

func (s *Series) limit() uint64 {
	if s.small {
		return machineLimit(len(s.tracks))
	}
	return limit(len(s.tracks))
}

func limit(members int) uint64 {
	return uint64(min(max(budget/max(1, members), minBuckets), maxBuckets))
}

// Room predicts the bytes that a view holds of a series of so many members after so many rounds: their tracks, of all
// together and the median, each with its buckets and half as many in every further level. encoded is what a snapshot
// has of it.
func Room(members int, rounds float64) (held, encoded int64) {
	tracks, buckets, each := float64(members+2), min(rounds, float64(limit(members))), 9.0
	if rounds > buckets {
		each = 25 // with minimum and maximum
	}
	return int64(tracks * (trackBytes + 2*buckets*float64(unsafe.Sizeof(Bucket{})))), int64(tracks * buckets * each)
}

// trackBytes is a track without its buckets: the slots of its levels among them.
const trackBytes = float64(unsafe.Sizeof(track{})) + 8*float64(unsafe.Sizeof([]Bucket(nil)))

// maxRound is further than any run gets; points beyond it are damage.
const maxRound = 1 << 50

// add takes a record's points.
func (s *Series) add(p *event.Points) {
	if p.Round >= maxRound {
		return
	}
	s.fit(p.Round)
	s.pass(p.Round)
	s.end = max(s.end, p.Round)
	s.scratch = s.scratch[:0]
	n := min(len(p.Members), len(p.Values))
	for i, x := range p.Values[:n] {
		s.all.add(s.level, p.Round, x)
		m := p.Members[i]
		if m == Whole {
			continue
		}
		s.track(m).add(s.level, p.Round, x)
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			s.scratch = append(s.scratch, x)
		}
	}
	if len(s.scratch) > 0 {
		s.median.add(s.level, p.Round, Median(s.scratch))
	}
}

// fit halves the resolution until a point of round r leaves every track within the limit.
func (s *Series) fit(r uint64) {
	if !s.all.some {
		return
	}
	for max(s.all.at, r>>s.level)-min(s.all.origin, r>>s.level) >= s.limit() {
		s.level++
		s.all.halve()
		s.median.halve()
		for i := range s.tracks {
			s.tracks[i].halve()
		}
	}
}

// track is the member's, made when it is new.
func (s *Series) track(m engine.Member) *track {
	i, ok := slices.BinarySearch(s.Members, m)
	switch {
	case ok:
	case i == len(s.Members): // clones end before it
		s.Members, s.tracks = append(s.Members, m), append(s.tracks, track{})
	default:
		s.Members = slices.Insert(slices.Clone(s.Members), i, m)
		s.tracks = slices.Insert(s.tracks, i, track{})
	}
	return &s.tracks[i]
}

// truncate forgets what lies after round r: the run went back there.
func (s *Series) truncate(r uint64) {
	if s.end > r {
		s.end, s.swaps = r, 0
		s.gaps = slices.DeleteFunc(slices.Clone(s.gaps), func(g Gap) bool { return g.To > r })
	}
	s.all.truncate(s.level, r)
	s.median.truncate(s.level, r)
	for i := range s.tracks {
		s.tracks[i].truncate(s.level, r)
	}
}

// forget drops members that left once they outnumber the ones that stay.
func (s *Series) forget(r collective.Roster) {
	if len(s.tracks) <= 2*len(r.Members)+64 {
		return
	}
	var members []engine.Member
	var tracks []track
	for i, m := range s.Members {
		if r.Has(m) {
			members, tracks = append(members, m), append(tracks, s.tracks[i])
		}
	}
	s.Members, s.tracks = members, tracks
}

func (s *Series) clone() Series {
	c := *s
	c.Members, c.gaps = slices.Clip(s.Members), slices.Clip(s.gaps)
	s.gaps = c.gaps
	c.all, c.median, c.scratch = s.all.clone(), s.median.clone(), nil
	c.tracks = make([]track, len(s.tracks))
	for i := range s.tracks {
		c.tracks[i] = s.tracks[i].clone()
	}
	return c
}

// Width is the rounds of one bucket: 1 while every point is kept.
func (s *Series) Width() uint64 { return 1 << s.level }

// Rounds are the first round with a value, in whole buckets, and one past the last.
func (s *Series) Rounds() (lo, hi uint64) {
	if s == nil || !s.all.some {
		return 0, 0
	}
	return s.all.origin << s.level, s.end + 1
}

// Even are the edges of n equal columns of the rounds [lo, hi): n+1 rounds, of which each column has those from its own
// edge to the next: round lo+k is in column k*n/(hi-lo), rounded down, where charts have its tick. Columns of an axis
// that runs unevenly have others.
func Even(lo, hi uint64, n int) []uint64 {
	lo, hi = min(lo, maxRound), min(hi, maxRound)
	out := make([]uint64, n+1)
	by := uint64(max(1, n))
	for i := range out {
		out[i] = lo + ((max(lo, hi)-lo)*uint64(i)+by-1)/by
	}
	return out
}

// Band summarises all members' values in columns of rounds with these edges, which ascend. The slice is the caller's.
func (s *Series) Band(edges []uint64) []Bucket { return s.columns(&s.all, edges) }

// Median summarises the rounds' medians over members the same way.
func (s *Series) Median(edges []uint64) []Bucket { return s.columns(&s.median, edges) }

// Columns summarises one member's values the same way; [Whole] is a scalar's. All are empty for an unknown member.
func (s *Series) Columns(m engine.Member, edges []uint64) []Bucket {
	if m == Whole {
		return s.columns(&s.all, edges)
	}
	if i, ok := slices.BinarySearch(s.Members, m); ok {
		return s.columns(&s.tracks[i], edges)
	}
	return make([]Bucket, len(edges)-1)
}

// columns puts a bucket into the column that its first round (or the first edge, where it began before) falls into.
func (s *Series) columns(t *track, edges []uint64) []Bucket {
	out := make([]Bucket, len(edges)-1)
	w := s.Width()
	l := edges[0] >> s.level
	for c := range out {
		edge := min(edges[c+1], maxRound)
		r := (edge + w - 1) >> s.level
		if l < r && edge > edges[0] {
			out[c] = t.span(l, r)
			l = r
		}
	}
	return out
}

// Last is a member's latest value as measured (it may be NaN); ok is false when there is none. [Whole] is a scalar's.
func (s *Series) Last(m engine.Member) (x float64, ok bool) {
	if s == nil {
		return 0, false
	}
	if m == Whole {
		return s.all.last, s.all.some
	}
	if i, found := slices.BinarySearch(s.Members, m); found {
		return s.tracks[i].last, s.tracks[i].some
	}
	return 0, false
}

// Value is a member's latest value.
type Value struct {
	Member engine.Member
	X      float64
}

// Latest lists the roster's members that have a value, ordered from the highest to the lowest, those that are not
// finite last; equal ones by id.
func (s *Series) Latest(r collective.Roster) (out []Value) {
	for _, m := range r.Members {
		if x, ok := s.Last(m); ok {
			out = append(out, Value{m, x})
		}
	}
	sortValues(out)
	return out
}

func sortValues(out []Value) {
	slices.SortStableFunc(out, func(a, b Value) int {
		fa, fb := a.X-a.X == 0, b.X-b.X == 0
		switch {
		case fa != fb && fa, fa && a.X > b.X:
			return -1
		case fa != fb, fa && a.X < b.X:
			return 1
		}
		return 0
	})
}

// Median of finite values, which it sorts; NaN of none.
func Median(x []float64) float64 {
	n := len(x)
	if n == 0 {
		return math.NaN()
	}
	slices.Sort(x)
	if n%2 == 1 {
		return x[n/2]
	}
	return (x[n/2-1] + x[n/2]) / 2
}
