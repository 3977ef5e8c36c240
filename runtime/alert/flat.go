package alert

import (
	"brood/models/engine"
	"brood/runtime/event"
)

// flat counts rounds in which all candidates have one fitness, or do not.
type flat struct {
	equal, apart int // in a row
	since        uint64
	on           bool
}

// next takes the fitness of a round. Results that are missing tell candidates apart, and a round without two results
// says nothing.
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
		if f.equal, f.apart = 0, f.apart+1; f.on && f.apart >= inARow {
			f.on = false
			return end(event.AlertFlat, "fitness differs between candidates again")
		}
		return nil
	case f.equal == 0:
		f.since = p.Round
	}
	if f.equal, f.apart = f.equal+1, 0; f.on || f.equal < inARow {
		return nil
	}
	f.on = true
	return warn(event.AlertFlat, "fitness is equal for all %d candidates since round %d: return differences that float32 can hold, such as the fitness less what all have in common, or search wider (sigma)", n, f.since)
}
