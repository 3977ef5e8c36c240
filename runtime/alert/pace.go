package alert

import (
	"cmp"
	"slices"
)

// cost is the time of a commit, in nanoseconds, and its traffic.
type cost struct {
	round float64 // of a round
	each  float64 // of a sample or an evaluation; of a round that has neither
	all   float64 // of the commit
	bytes int64   // sent
	rate  float64 // bytes per second
}

// pace has the costs of the last commits.
type pace struct{ ring []cost }

func (p *pace) add(c cost) {
	if p.ring = append(p.ring, c); len(p.ring) > usualCommits {
		p.ring = slices.Delete(p.ring, 0, 1)
	}
}

// median returns the commit with the median cost of a sample; known is false before leastCommits commits.
func (p *pace) median() (m cost, known bool) {
	if len(p.ring) < leastCommits {
		return cost{}, false
	}
	sorted := slices.Clone(p.ring)
	slices.SortFunc(sorted, func(a, b cost) int { return cmp.Compare(a.each, b.each) })
	return sorted[len(sorted)/2], true
}
