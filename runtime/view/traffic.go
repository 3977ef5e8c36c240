package view

import (
	"iter"

	"brood/models/engine"
	"brood/runtime/event"
)

// Excess is the traffic series of the difference between sent and predicted bytes per round; negative if less was sent.
// It begins with the first commit in which the two differ.
const Excess = "excess"

// sent adds a commit to the traffic series, in bytes per round, summed over workers.
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

// carried adds a value to a traffic series. A series begins with the first value that is not 0.
func (v *View) carried(name string, round uint64, x float64) {
	if find(v.Traffic, name) != nil || x != 0 {
		v.Traffic = carry(v.Traffic, name, round, x)
	}
}

// carry adds a value of the whole population to the named series in all, which it creates if needed.
func carry(all []Series, name string, round uint64, x float64) []Series {
	s := find(all, name)
	if s == nil {
		all = append(all, Series{Name: name})
		s = &all[len(all)-1]
	}
	s.add(&event.Points{Round: round, Members: []engine.Member{Whole}, Values: []float64{x}})
	return all
}

// all iterates over the measured series and those of the traffic.
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

// find returns the series with the name, or nil.
func find(all []Series, name string) *Series {
	for i := range all {
		if all[i].Name == name {
			return &all[i]
		}
	}
	return nil
}
