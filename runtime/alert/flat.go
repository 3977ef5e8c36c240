package alert

import (
	"brood/models/engine"
	"brood/runtime/event"
)

// flat is the state of the rule for equal fitness: how many rounds in a row the candidates had equal and different
// fitness.
type flat struct {
	equal, different int    // rounds in a row
	since            uint64 // the first round with equal fitness
	on               bool   // the warning was raised
}

// next applies the rule to the fitness of a round. A result that is not finite counts as different. A round with fewer
// than two finite results counts as neither.
func (f *flat) next(p *event.Points) []Note {
	first, n, equal := 0.0, 0, true
	for i, x := range p.Values {
		switch {
		case p.Members[i] == engine.None:
			continue
		case x-x != 0:
			equal = false
			continue
		case n == 0:
			first = x
		}
		equal = equal && x == first
		n++
	}
	switch {
	case n < 2:
		return nil
	case !equal:
		if f.equal, f.different = 0, f.different+1; f.on && f.different >= inARow {
			f.on = false
			return end(event.AlertFlat, "fitness differs between candidates again")
		}
		return nil
	case f.equal == 0:
		f.since = p.Round
	}
	if f.equal, f.different = f.equal+1, 0; f.on || f.equal < inARow {
		return nil
	}
	f.on = true
	return warn(event.AlertFlat, "fitness is equal for all %d candidates since round %d: return differences that float32 "+
		"can hold, such as the fitness minus a constant, or increase sigma", n, f.since)
}
