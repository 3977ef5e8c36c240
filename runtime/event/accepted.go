package event

import "slices"

// Accepted is a command that asks for knobs, a population or an algorithm, as it was accepted. It is pending until its
// edits or its plan are in the log too.
type Accepted struct {
	N       uint64  `cbor:"0,keyasint"` // counts the accepted commands of a log from 1
	Command Command `cbor:"1,keyasint"`
}

// Pending folds a log into the commands that were accepted and have not come into effect. The zero Pending is that of
// an empty log.
type Pending struct {
	Last     uint64 // number of the newest accepted command
	Commands []Accepted
}

// Take adds the next record. Commands are obeyed in the order of their numbers, so that an edit of a later one says
// that all before it were obeyed or rejected. A command for knobs alone is obeyed knob by knob, any other by a plan.
func (p *Pending) Take(r Record) {
	switch {
	case r.Accepted != nil:
		p.Last = r.Accepted.N
		p.Commands = append(p.Commands, *r.Accepted)
	case r.Edit != nil && r.Edit.Obeys > 0:
		p.Commands = slices.DeleteFunc(slices.Clone(p.Commands), func(a Accepted) bool { return a.N < r.Edit.Obeys })
		if len(p.Commands) == 0 || p.Commands[0].N != r.Edit.Obeys {
			return
		}
		c := &p.Commands[0].Command
		c.Set = slices.DeleteFunc(slices.Clone(c.Set), func(s Setting) bool { return s.Knob == r.Edit.Knob && c.Members == 0 && c.Algorithm == "" })
		if len(c.Set) == 0 && c.Members == 0 && c.Algorithm == "" {
			p.Commands = p.Commands[1:]
		}
	case r.Plan != nil:
		p.Commands = slices.DeleteFunc(slices.Clone(p.Commands), func(a Accepted) bool { return a.N <= r.Plan.Obeyed })
	}
}
