package view

import (
	"slices"
	"sort"
)

// Gap is a range of rounds in which a series was not measured, since an algorithm without this series ran. From is the
// last round with a value before the gap, To the first one after it.
type Gap struct {
	_        struct{} `cbor:",toarray"`
	From, To uint64
}

// maxGaps is the maximum number of gaps that a series stores. A line across an older gap is drawn as if it had values.
const maxGaps = 64

// trackGap updates the gaps and the interval of the series before a point of round r is added. If the algorithm was
// swapped more than once since the last point, the rounds between are a gap.
func (s *Series) trackGap(r uint64) {
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
	if s.swaps > 0 { // the interval may have changed
		s.every = 0
	}
	s.swaps = 0
}

// Gaps returns the gaps of the series in order. The caller must not modify them. s may be nil.
func (s *Series) Gaps() []Gap {
	if s == nil {
		return nil
	}
	return s.gaps
}

// Unmeasured reports for each column of rounds between two edges whether it is in a gap, or after the last value of a
// series that the current algorithm does not measure.
func (s *Series) Unmeasured(edges []uint64) []bool {
	n := len(edges) - 1
	out := make([]bool, n)
	if s == nil || edges[n] <= edges[0] {
		return out
	}
	// column returns the column that contains a round; n after the last one
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

// Fresh reports whether the last value of a series is as recent as its interval suggests. It allows for two grants,
// since the points of a grant arrive together. A series with a single value has no interval and is fresh.
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

// Dropped reports whether the current algorithm apparently does not measure a series: the algorithm was swapped after
// the last value, which is older than the interval of the series suggests. s may be nil.
func (v *View) Dropped(s *Series) bool { return s == nil || s.swaps > 0 && !v.Fresh(s) }
