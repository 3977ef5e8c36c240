package view

import (
	"math"
	"slices"
	"unsafe"

	"brood/models/engine"
	"brood/optim/collective"
	"brood/runtime/event"
)

// Series is the history of one named quantity: per member, over all members, and the median over the members of each
// round. While there are few points it stores each of them; then it stores buckets of 2, 4, 8... rounds with exact
// minima, maxima, sums and counts.
type Series struct {
	Name    string
	Members []engine.Member // members with stored values, ascending; empty for a scalar

	level   uint
	end     uint64 // last round with a point
	every   uint64 // rounds between the last two points; 0 if unknown
	swaps   uint   // number of swaps of the algorithm since the last point
	gaps    []Gap
	all     track
	median  track
	tracks  []track // one per entry of Members
	scratch []float64
	small   bool // it has fewer buckets, as the series of machines
}

// Bounds of the number of buckets per track. The members share the budget, so that a view of 64 members takes no more
// memory than one of 16.
const (
	maxBuckets = 4096
	minBuckets = 64
	budget     = 1 << 16
)

// limit returns the maximum number of buckets per track.
func (s *Series) limit() uint64 {
	if s.small {
		return machineLimit(len(s.tracks))
	}
	return limit(len(s.tracks))
}

func limit(members int) uint64 {
	return uint64(min(max(budget/max(1, members), minBuckets), maxBuckets))
}

// EstimateMemory estimates the bytes of a series with this many members after this many rounds: held in memory, and
// encoded in a snapshot. There is a track per member, one over all members and one for the median. In memory, each
// further level of a track has half as many buckets as the one before.
func EstimateMemory(members int, rounds float64) (held, encoded int64) {
	tracks, buckets, each := float64(members+2), min(rounds, float64(limit(members))), 9.0
	if rounds > buckets {
		each = 25 // bytes with minimum and maximum
	}
	return int64(tracks * (trackBytes + 2*buckets*float64(unsafe.Sizeof(Bucket{})))), int64(tracks * buckets * each)
}

// trackBytes is the size of a track without its buckets, but with the slice headers of its levels.
const trackBytes = float64(unsafe.Sizeof(track{})) + 8*float64(unsafe.Sizeof([]Bucket(nil)))

// maxRound is a bound that no run reaches; points beyond it are invalid and ignored.
const maxRound = 1 << 50

// add adds the points of a record.
func (s *Series) add(p *event.Points) {
	if p.Round >= maxRound {
		return
	}
	s.fit(p.Round)
	s.trackGap(p.Round)
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

// fit halves the resolution until all tracks, with a point of round r, are within the limit.
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

// track returns the track of a member, which it creates if needed.
func (s *Series) track(m engine.Member) *track {
	i, ok := slices.BinarySearch(s.Members, m)
	switch {
	case ok:
	case i == len(s.Members): // appending is safe, since the slices of clones are clipped
		s.Members, s.tracks = append(s.Members, m), append(s.tracks, track{})
	default:
		s.Members = slices.Insert(slices.Clone(s.Members), i, m)
		s.tracks = slices.Insert(s.tracks, i, track{})
	}
	return &s.tracks[i]
}

// truncate removes the points after round r, to which the run rolled back.
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

// forget removes members that are not in the roster once there are more of them than in the roster.
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

// Width returns the number of rounds per bucket; it is 1 as long as every point is stored.
func (s *Series) Width() uint64 { return 1 << s.level }

// Rounds returns the first round with a point, rounded down to a bucket, and one past the last. s may be nil.
func (s *Series) Rounds() (lo, hi uint64) {
	if s == nil || !s.all.some {
		return 0, 0
	}
	return s.all.origin << s.level, s.end + 1
}

// Even returns the n+1 edges of n equal columns of the rounds [lo, hi). Column i has the rounds from edge i to edge
// i+1, exclusive. Round lo+k is in column k*n/(hi-lo), rounded down, where charts place its tick. Other axes than
// rounds may have uneven columns.
func Even(lo, hi uint64, n int) []uint64 {
	lo, hi = min(lo, maxRound), min(hi, maxRound)
	out := make([]uint64, n+1)
	by := uint64(max(1, n))
	for i := range out {
		out[i] = lo + ((max(lo, hi)-lo)*uint64(i)+by-1)/by
	}
	return out
}

// Band summarises the values of all members in columns of rounds between ascending edges. The caller owns the result.
func (s *Series) Band(edges []uint64) []Bucket { return s.columns(&s.all, edges) }

// Median is [Series.Band] for the medians over members of each round.
func (s *Series) Median(edges []uint64) []Bucket { return s.columns(&s.median, edges) }

// Columns is [Series.Band] for one member, or for a scalar with [Whole]. All buckets are empty for an unknown member.
func (s *Series) Columns(m engine.Member, edges []uint64) []Bucket {
	if m == Whole {
		return s.columns(&s.all, edges)
	}
	if i, ok := slices.BinarySearch(s.Members, m); ok {
		return s.columns(&s.tracks[i], edges)
	}
	return make([]Bucket, len(edges)-1)
}

// columns assigns each bucket to the column of its first round, or to the first column if it begins before the first
// edge.
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

// Last returns the latest value of a member, or of a scalar with [Whole], as measured: it may be NaN. ok is false if
// there is none. s may be nil.
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

// Value is a value of a member.
type Value struct {
	Member engine.Member
	X      float64
}

// Latest returns the latest values of the members of the roster that have one, highest first. Values that are not
// finite come last; equal ones are ordered by id.
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

// Median returns the median of finite values; NaN if there are none. It sorts x.
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
