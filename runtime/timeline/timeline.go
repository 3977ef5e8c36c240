package timeline

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"brood/models/usererr"
	"brood/optim"
	"brood/runtime/event"
)

// Timeline holds the edits of a run in the order in which they took effect, and computes the knobs of a round from
// them. It stores edits of other algorithms but ignores them.
type Timeline struct {
	alg     *optim.Algorithm
	entries []entry

	constant *optim.Values // values from round from on if no schedule changes them; nil if unknown
	from     uint64
}

type entry struct {
	edit  event.Edit
	knob  optim.Knob
	sched Schedule
	mine  bool // the edit is of the algorithm of the timeline
}

// New returns a timeline of edits for one algorithm. It fails for invalid edits of this algorithm.
func New(alg *optim.Algorithm, edits []event.Edit) (*Timeline, error) {
	t := &Timeline{alg: alg}
	for _, e := range edits {
		if err := t.Add(e); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// Add appends an edit.
func (t *Timeline) Add(e event.Edit) error {
	n := entry{edit: e, mine: e.Algorithm == t.alg.Name}
	if n.mine {
		var ok bool
		var err error
		if n.knob, ok = t.alg.Knob(e.Knob); !ok {
			return UnknownKnob(t.alg, e.Knob)
		}
		if n.sched, err = Parse(n.knob, e.Expr); err != nil {
			return err
		}
	}
	t.entries = append(t.entries, n)
	t.constant = nil
	return nil
}

// UnknownKnob returns the usage error for a knob that an algorithm does not declare.
func UnknownKnob(a *optim.Algorithm, name string) error {
	if name == "optimiser" && a.NoOptimiser != "" {
		return usererr.Errorf("%s has no knob %q: it %s", a.Name, name, a.NoOptimiser)
	}
	names := a.KnobNames()
	return usererr.Errorf("%s has no knob %q%s: it has members and %s", a.Name, name, usererr.Suggest(name, names),
		strings.Join(names, ", "))
}

// Edits returns all edits, with the progress that Reach has set.
func (t *Timeline) Edits() []event.Edit {
	out := make([]event.Edit, len(t.entries))
	for i, n := range t.entries {
		out[i] = n.edit
	}
	return out
}

// Reach sets the progress of the edits that take effect at the round of p.
func (t *Timeline) Reach(p Position) {
	for i := range t.entries {
		if e := &t.entries[i].edit; e.At == p.Round {
			e.Epochs, e.Steps = p.Epochs, p.Steps
		}
	}
}

// Values returns the knobs of the round that starts at p. The caller must not modify them.
func (t *Timeline) Values(p Position) optim.Values {
	if t.constant != nil && p.Round >= t.from {
		return *t.constant
	}
	set, moving, last := map[string]float64{}, false, uint64(0)
	ruling := map[string]*entry{}
	for i := range t.entries {
		n := &t.entries[i]
		if n.mine && n.edit.At <= p.Round {
			ruling[n.knob.Name] = n
		}
		if n.mine && n.edit.At > p.Round {
			moving = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ruling)) {
		n := ruling[name]
		e := n.edit
		set[name] = Settle(n.knob, n.sched.At(p, Position{e.At, e.Epochs, e.Steps}))
		moving = moving || !n.sched.Constant()
		last = max(last, e.At)
	}
	v := t.alg.Values(set)
	if !moving {
		t.constant, t.from = &v, last
	}
	return v
}

// Settle converts the value of a schedule to a value of the knob: rounded if the knob is an integer, within its bounds.
func Settle(k optim.Knob, x float64) float64 {
	if k.Integer {
		x = math.Round(x)
	}
	lo, hi := k.Bounds()
	return min(max(x, lo), hi)
}

// Ruling returns the schedule of a knob in effect at a round, and its edit; ok is false if the knob has its default.
func (t *Timeline) Ruling(knob string, round uint64) (s Schedule, e event.Edit, ok bool) {
	for _, n := range t.entries {
		if n.mine && n.knob.Name == knob && n.edit.At <= round {
			s, e, ok = n.sched, n.edit, true
		}
	}
	return
}

// Breakpoints returns the rounds from from on at which the values must be checked again, ascending.
func (t *Timeline) Breakpoints(from uint64) (out []uint64) {
	for _, n := range t.entries {
		if !n.mine {
			continue
		}
		for _, b := range append(n.sched.Breakpoints(), n.edit.At) {
			if b >= from {
				out = append(out, b)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Ahead returns the values between which a knob stays from p on, for schedules without known breakpoints: in epochs or
// steps, and exp. It returns none for other schedules.
func (t *Timeline) Ahead(knob string, p Position) (out []float64) {
	s, e, ok := t.Ruling(knob, p.Round)
	if !ok || s.Constant() || s.unit == 'r' && s.form != "exp" {
		return nil
	}
	k, _ := t.alg.Knob(knob)
	for _, x := range s.ahead(p, Position{e.At, e.Epochs, e.Steps}, k) {
		out = append(out, Settle(k, x))
	}
	return out
}

// Truncate removes all but the first n edits.
func (t *Timeline) Truncate(n int) error {
	if n > len(t.entries) {
		return fmt.Errorf("timeline holds %d edits, not %d", len(t.entries), n)
	}
	t.entries, t.constant = t.entries[:n], nil
	return nil
}

// Len returns the number of edits.
func (t *Timeline) Len() int { return len(t.entries) }
