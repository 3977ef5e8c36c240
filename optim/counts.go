package optim

import "math"

// Counts are the variables of schedules besides rounds, epochs and steps, for the knobs and the population at the time
// that the schedule is set.
type Counts struct {
	Replicas int // models that take separate steps: the members, or 1 if all share one model
	Cycle    int // rounds per cycle
	Tensors  int // parameter tensors of the model
	Batches  int // per epoch (B in the papers): steps of a replica in one pass over its samples; 0 without data
}

// Counts returns the counts for a shape, ignoring its phase.
func (a *Algorithm) Counts(s Shape) Counts {
	if a.Blocks == nil { // a bare declaration, for display
		return Counts{}
	}
	c := Counts{Replicas: len(s.Roster.Members), Cycle: 1, Tensors: max(1, len(s.Layout.Tensors))}
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

// SamplesSeen returns the number of training samples in the part of the data that a replica sees.
func (s Shape) SamplesSeen() float64 {
	if share := s.K.DataShare(); share > 0 {
		return share * float64(s.Data.Train)
	}
	return float64(s.Data.Train) / float64(max(1, len(s.Roster.Members))) // disjoint parts
}

// RoundsOf returns the rounds of a cycle of the given steps, at most slice (a knob) per round.
func (s Shape) RoundsOf(steps int) int {
	each := s.K.I(KnobSlice.Name)
	return (steps + each - 1) / each
}

// CycleOf returns an Algorithm.Cycle for cycles whose number of steps is the value of a knob.
func CycleOf(knob string) func(Shape) int {
	return func(s Shape) int { return s.RoundsOf(s.K.I(knob)) }
}
