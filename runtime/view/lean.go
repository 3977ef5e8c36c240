package view

import "brood/runtime/axis"

// Lean is the view for whoever draws many runs at once: a series with a value for each member is the median of those
// alone, as if it had one value, and events, marks, meetings, traffic, machines, speed and the clock are left out. Its
// size does not depend on the population. Nothing is applied to it; what never changes it shares with v.
func (v *View) Lean() *View {
	c := v.Clone()
	c.Edits, c.Marks, c.Lane, c.Meetings, c.Traffic = nil, nil, nil, nil, nil
	c.Machines, c.Speed, c.Clock = nil, nil, axis.Clock{}
	for i := range c.Series {
		if s := &c.Series[i]; len(s.Members) > 0 {
			s.all, s.median, s.tracks, s.Members = s.median, track{}, nil, nil
		}
	}
	return c
}
