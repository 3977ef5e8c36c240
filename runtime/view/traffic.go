package view

import (
	"iter"

	"brood/models/engine"
	"brood/runtime/event"
)

// Excess is the series of the traffic that has what was sent beyond what the algorithm's formula says, in bytes a
// round: below 0 where less was sent. It begins with the first commit in which the two differ.
const Excess = "excess"

// sent adds a commit to the traffic, in bytes a round, summed over workers.
func (v *View) sent(c *Commit) {
	if c.Rounds == 0 {
		return
	}
	per := float64(c.Rounds)
	for _, b := range c.Ops {
		v.carried(string(b.Op), c.To, float64(b.Sent)/per)
	}
	v.carried(Excess, c.To, float64(c.Sent-c.Predicted)/per)
}

// carried adds a value; a series begins with the first that is not 0.
func (v *View) carried(name string, round uint64, x float64) {
	if find(v.Traffic, name) != nil || x != 0 {
		v.Traffic = carry(v.Traffic, name, round, x)
	}
}

// carry adds a value of the whole population to the series of a name, which may be the first.
func carry(all []Series, name string, round uint64, x float64) []Series {
	s := find(all, name)
	if s == nil {
		all = append(all, Series{Name: name})
		s = &all[len(all)-1]
	}
	s.add(&event.Points{Round: round, Members: []engine.Member{Whole}, Values: []float64{x}})
	return all
}

// all are the series of what was measured, and those of the traffic.
func (v *View) all() iter.Seq[*Series] {
	return func(yield func(*Series) bool) {
		for _, some := range [][]Series{v.Series, v.Traffic} {
			for i := range some {
				if !yield(&some[i]) {
					return
				}
			}
		}
	}
}

func find(all []Series, name string) *Series {
	for i := range all {
		if all[i].Name == name {
			return &all[i]
		}
	}
	return nil
}
