package optim

import "math"

// Counts are what schedules count in beside rounds, epochs and steps, with the knobs and the population as they are
// when a schedule is told.
type Counts struct {
	Replicas int // that take the steps of a round, each its own: the members, or 1 where all share one model
	Cycle    int // rounds of a cycle
	Batches  int // of an epoch (B in the papers): steps of a replica in one pass over what it sees; 0 without data
}

// Counts are those of a shape; its phase plays no part.
func (a *Algorithm) Counts(s Shape) Counts {
	if a.Blocks == nil { // declared and nothing more, to be shown
		return Counts{}
	}
	c := Counts{Replicas: len(s.Roster.Members), Cycle: 1}
	for _, b := range a.Blocks(s.K, s.Layout) {
		if b.Name == BlockX && b.Shared {
			c.Replicas = 1
		}
	}
	if a.Cycle != nil {
		s.Phase, s.Warm = 0, 0
		c.Cycle = max(1, a.Cycle(s))
	}
	if s.K.Has(KnobB.Name) && s.Data.Train > 0 {
		batch := s.K.I(KnobB.Name)
		if c.Replicas == 1 && a.Needs&Gradients != 0 {
			batch *= len(s.Roster.Members)
		}
		c.Batches = max(1, int(math.Ceil(s.SamplesSeen()/float64(batch))))
	}
	return c
}

// seen is how many samples a replica has in its part of the training set.
func (s Shape) SamplesSeen() float64 {
	if share := s.K.DataShare(); share > 0 {
		return share * float64(s.Data.Train)
	}
	return float64(s.Data.Train) / float64(max(1, len(s.Roster.Members))) // disjoint parts
}

// slices are the rounds of a cycle of so many steps, of which a round takes at most slice.
func (s Shape) RoundsOf(steps int) int {
	each := s.K.I(KnobSlice.Name)
	return (steps + each - 1) / each
}

// CycleOf is the Cycle of an algorithm whose cycle has as many steps as a knob says.
func CycleOf(knob string) func(Shape) int {
	return func(s Shape) int { return s.RoundsOf(s.K.I(knob)) }
}
