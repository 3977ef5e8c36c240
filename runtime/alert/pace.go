package alert

import (
	"cmp"
	"slices"
)

// seen is what a commit took, in nanoseconds, and what was exchanged.
type seen struct {
	round float64 // of a round
	each  float64 // of a sample or an evaluation; where a round has none of them, of a round
	all   float64 // of the whole commit
	bytes int64
	rate  float64 // bytes a second
}

// pace is the last commits.
type pace struct{ ring []seen }

func (p *pace) add(s seen) {
	if p.ring = append(p.ring, s); len(p.ring) > usualCommits {
		p.ring = slices.Delete(p.ring, 0, 1)
	}
}

// median is the one in the middle by the time of a round; known is false while there are few.
func (p *pace) median() (m seen, known bool) {
	if len(p.ring) < leastCommits {
		return seen{}, false
	}
	sorted := slices.Clone(p.ring)
	slices.SortFunc(sorted, func(a, b seen) int { return cmp.Compare(a.each, b.each) })
	return sorted[len(sorted)/2], true
}
