package view

import (
	"slices"
	"sort"
)

// Gap is rounds in which a series was not measured, though others were: an algorithm without it ran. From is the last
// round before it with a value, To the first one after.
type Gap struct {
	_        struct{} `cbor:",toarray"`
	From, To uint64
}

// maxGaps is how many a series remembers; a line across an older one is drawn as if it had been measured.
const maxGaps = 64

// pass is told of each point: when it is the first since another algorithm has come and gone, nobody measured in
// between.
func (s *Series) pass(r uint64) {
	if r <= s.end {
		return
	}
	switch {
	case s.swaps > 1:
		if s.gaps = append(s.gaps, Gap{From: s.end, To: r}); len(s.gaps) > maxGaps {
			s.gaps = slices.Delete(slices.Clone(s.gaps), 0, maxGaps/4)
		}
	case s.swaps == 0 && s.end > 0:
		s.every = r - s.end
	}
	if s.swaps > 0 { // the interval may be another
		s.every = 0
	}
	s.swaps = 0
}

// Gaps are the series' gaps, in order; the slice belongs to the series.
func (s *Series) Gaps() []Gap {
	if s == nil {
		return nil
	}
	return s.gaps
}

// Unmeasured says which columns of rounds with these edges lie in a gap, and which behind the end of a series that was
// given up.
func (s *Series) Unmeasured(edges []uint64) []bool {
	n := len(edges) - 1
	out := make([]bool, n)
	if s == nil || edges[n] <= edges[0] {
		return out
	}
	// the column that has a round, n behind the last
	column := func(r uint64) int { return sort.Search(n, func(c int) bool { return edges[c+1] > r }) }
	for _, g := range s.gaps {
		for c := column(g.From) + 1; c < min(n, column(g.To)) && g.To > edges[0]; c++ {
			out[c] = true
		}
	}
	for c := column(s.end) + 1; s.swaps > 0 && c < n; c++ {
		out[c] = true
	}
	return out
}

// Fresh says whether the last value of a series is as new as its interval lets expect: a grant tells its points all at
// once. A single value says nothing of an interval.
func (v *View) Fresh(s *Series) bool {
	if s.every == 0 && s.swaps == 0 {
		return true
	}
	slack := 2 * s.every
	if n := len(v.Ledger.Ring); n > 0 {
		slack += 2 * v.Ledger.Ring[n-1].Rounds
	}
	return v.Progress.Rounds <= s.end+slack
}

// Dropped says whether the algorithm that runs does not measure a series, as far as that shows: it has taken over since
// the last value, which is older than the series' interval.
func (v *View) Dropped(s *Series) bool { return s == nil || s.swaps > 0 && !v.Fresh(s) }
