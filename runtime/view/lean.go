package view

import "brood/runtime/axis"

// Lean returns a reduced view for drawing many runs at once. A series with values per member becomes a scalar series of
// their medians. Events, marks, meetings, traffic, machines, speed and the clock are omitted. The size of the result
// does not depend on the population. It shares immutable data with v; the caller must not apply records to it.
func (v *View) Lean() *View {
	c := v.Clone()
	c.Edits, c.Marks, c.Turns, c.Lane, c.Meetings, c.Traffic = nil, nil, nil, nil, nil, nil
	c.Machines, c.Speed, c.Clock = nil, nil, axis.Clock{}
	for i := range c.Series {
		if s := &c.Series[i]; len(s.Members) > 0 {
			s.all, s.median, s.tracks, s.Members = s.median, track{}, nil, nil
		}
	}
	return c
}
