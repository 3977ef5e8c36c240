package event

import "slices"

// Accepted records the acceptance of a command that changes knobs, the population size or the algorithm. The command is
// pending until the log also contains its edits or its plan.
type Accepted struct {
	N       uint64  `cbor:"0,keyasint"` // number of the accepted command in its log, from 1
	Command Command `cbor:"1,keyasint"`
}

// Pending collects the commands of a log that were accepted but are not yet applied. The zero Pending is that of an
// empty log.
type Pending struct {
	Last     uint64 // number of the newest accepted command
	Commands []Accepted
}

// Take adds the next record of the log. Commands are applied in the order of their numbers, so an edit of one command
// implies that all earlier ones were applied or rejected. A command that only sets knobs is applied by one edit per
// knob, any other by a plan.
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
		c.Set = slices.DeleteFunc(slices.Clone(c.Set), func(s Setting) bool {
			return s.Knob == r.Edit.Knob && c.Members == 0 && c.Algorithm == ""
		})
		if len(c.Set) == 0 && c.Members == 0 && c.Algorithm == "" {
			p.Commands = p.Commands[1:]
		}
	case r.Plan != nil:
		p.Commands = slices.DeleteFunc(slices.Clone(p.Commands), func(a Accepted) bool {
			return a.N <= r.Plan.Obeyed
		})
	}
}
