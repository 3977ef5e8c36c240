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

// Timeline is the edits of a run in the order they took effect, ready to give any round its knobs. Edits of other
// algorithms are kept and ignored: knobs are scoped to their algorithm.
type Timeline struct {
	alg     *optim.Algorithm
	entries []entry

	constant *optim.Values // the resolved values while no schedule moves, nil when unknown
	from     uint64        // first round they hold
}

type entry struct {
	edit  event.Edit
	knob  optim.Knob
	sched Schedule
	mine  bool
}

// New resolves edits for one algorithm. Edits that do not parse are an error that names them.
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

// UnknownKnob is the sentence for a knob that an algorithm does not declare.
func UnknownKnob(a *optim.Algorithm, name string) error {
	if name == "optimiser" && a.NoOptimiser != "" {
		return usererr.Errorf("%s has no knob %q: it %s", a.Name, name, a.NoOptimiser)
	}
	names := a.KnobNames()
	return usererr.Errorf("%s has no knob %q%s: it has members and %s", a.Name, name, usererr.Suggest(name, names),
		strings.Join(names, ", "))
}

// Edits lists all edits with what is known of their first rounds.
func (t *Timeline) Edits() []event.Edit {
	out := make([]event.Edit, len(t.entries))
	for i, n := range t.entries {
		out[i] = n.edit
	}
	return out
}

// Reach tells the timeline where the run stands at the start of a round: edits whose first round it is remember it.
func (t *Timeline) Reach(p Position) {
	for i := range t.entries {
		if e := &t.entries[i].edit; e.At == p.Round {
			e.Epochs, e.Steps = p.Epochs, p.Steps
		}
	}
}

// Values are the knobs of the round that starts at p. The map is the caller's to read until the next call.
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
		set[name] = settle(n.knob, n.sched.At(p, Position{e.At, e.Epochs, e.Steps}))
		moving = moving || !n.sched.Constant()
		last = max(last, e.At)
	}
	v := t.alg.Values(set)
	if !moving {
		t.constant, t.from = &v, last
	}
	return v
}

// settle makes a knob's value of a schedule's: whole where it must be, within bounds.
func settle(k optim.Knob, x float64) float64 {
	if k.Integer {
		x = math.Round(x)
	}
	return min(max(x, k.Min), k.Max)
}

// Ruling is the schedule that governs a knob at a round, and the edit it came from; ok is false for a default.
func (t *Timeline) Ruling(knob string, round uint64) (s Schedule, e event.Edit, ok bool) {
	for _, n := range t.entries {
		if n.mine && n.knob.Name == knob && n.edit.At <= round {
			s, e, ok = n.sched, n.edit, true
		}
	}
	return
}

// Breakpoints are the rounds from p on at which the values change shape: where Check is asked again.
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

// Ahead are the values between which a knob moves from p on, for a schedule whose rounds are not known beforehand: in
// epochs or steps, or one that never settles. Empty for the others, whose breakpoints say all.
func (t *Timeline) Ahead(knob string, p Position) (out []float64) {
	s, e, ok := t.Ruling(knob, p.Round)
	if !ok || s.Constant() || s.unit == 'r' && s.form != "exp" {
		return nil
	}
	k, _ := t.alg.Knob(knob)
	for _, x := range s.ahead(p, Position{e.At, e.Epochs, e.Steps}, k) {
		out = append(out, settle(k, x))
	}
	return out
}

// Truncate forgets all but the first n edits.
func (t *Timeline) Truncate(n int) error {
	if n > len(t.entries) {
		return fmt.Errorf("timeline holds %d edits, not %d", len(t.entries), n)
	}
	t.entries, t.constant = t.entries[:n], nil
	return nil
}

// Len is the number of edits.
func (t *Timeline) Len() int { return len(t.entries) }
