package view

import (
	"slices"

	"brood/models/engine"
	"brood/optim/collective"
)

// before returns the last bucket at or before index i that is not empty, and its index.
func (t *track) before(i uint64) (b Bucket, at uint64, ok bool) {
	if !t.some || i < t.origin {
		return b, 0, false
	}
	if i >= t.at && !t.open.Empty() {
		return t.open, t.at, true
	}
	base := t.base()
	for n := min(i+1-t.origin, uint64(len(base))); n > 0; n-- {
		if b := base[n-1]; !b.Empty() {
			return b, t.origin + n - 1, true
		}
	}
	return b, 0, false
}

// At returns the value of a member in a round, or its last value before that, and the round of the value. If the value
// is in a bucket of several rounds, At returns their mean, and the requested round if the bucket contains it. ok is
// false if there is no value yet. The member [Whole] selects the value of a scalar, or the mean of all members. s may
// be nil.
func (s *Series) At(m engine.Member, round uint64) (x float64, at uint64, ok bool) {
	if s == nil {
		return 0, 0, false
	}
	t := &s.all
	if m != Whole {
		i, found := slices.BinarySearch(s.Members, m)
		if !found {
			return 0, 0, false
		}
		t = &s.tracks[i]
	}
	b, i, ok := t.before(round >> s.level)
	if !ok {
		return 0, 0, false
	}
	if at = min((i+1)<<s.level-1, s.end); i == round>>s.level {
		at = round
	}
	return b.Mean(), at, true
}

// LatestAt is [Series.Latest] as of a round. It returns the values of those members of the roster that have one in the
// last round in which any member had one, and that round. s may be nil.
func (s *Series) LatestAt(r collective.Roster, round uint64) (out []Value, at uint64) {
	if s == nil {
		return nil, 0
	}
	_, at, _ = s.At(Whole, round)
	for _, m := range r.Members {
		if x, then, ok := s.At(m, round); ok && then == at {
			out = append(out, Value{m, x})
		}
	}
	sortValues(out)
	return out, at
}
