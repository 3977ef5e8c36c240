package view

import (
	"slices"

	"brood/models/engine"
	"brood/optim/collective"
)

// before is the last bucket up to the one at index i that holds a value.
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

// At is what was measured of a member at a round, or last before it, and in which round: of a bucket of several rounds
// their mean, and the round that was asked for where that is among them. ok is false where there was nothing yet.
// [Whole] is a scalar's, or of all members.
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

// LatestAt is [Series.Latest] as it was at a round: the roster's members that had a value when any had one last, and
// when that was.
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
