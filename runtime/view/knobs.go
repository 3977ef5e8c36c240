package view

import (
	"math"

	"brood/models/engine"
	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/timeline"
)

// MembersKnob is the name of the pseudo-knob for the population size. It is edited like a knob, but applied by a plan.
const MembersKnob = "members"

// Knobs resolves the knobs of the current algorithm from the edits of a view.
type Knobs struct {
	Algorithm *optim.Algorithm

	now    timeline.Position
	epochs float64 // epochs per round so far, to extrapolate later rounds
	steps  float64 // steps per round so far
	line   *timeline.Timeline
	edits  map[string][]Edit // by knob, in the order of the log
	counts optim.Counts      // units of schedules; zero before there is a population
}

// Resolve returns the knobs of alg, which must be the algorithm of the plan. It ignores void edits and edits that are
// invalid, for example because a newer coordinator made them. Later changes of the view do not affect the result.
func (v *View) Resolve(alg *optim.Algorithm) *Knobs {
	p := v.Progress
	k := &Knobs{
		Algorithm: alg,
		now:       timeline.Position{Round: p.Rounds, Epochs: p.Epochs, Steps: p.Steps},
		edits:     map[string][]Edit{},
	}
	if p.Rounds > 0 {
		k.epochs, k.steps = p.Epochs/float64(p.Rounds), float64(p.Steps)/float64(p.Rounds)
	}
	k.line, _ = timeline.New(alg, nil)
	for _, e := range v.Edits {
		if e.Algorithm == alg.Name && !e.Void && k.line.Add(e.Edit) == nil {
			k.edits[e.Knob] = append(k.edits[e.Knob], e)
		}
	}
	if r, c := v.Members(), v.Config; c != nil && len(r.Members) > 0 {
		k.counts = alg.Counts(optim.Shape{
			Roster: r,
			Layout: engine.Layout{Params: c.Params, Stats: c.Stats},
			K:      k.line.Values(k.now),
			Data:   optim.DataSize{Train: c.Train, Validation: c.Valid},
		})
	}
	return k
}

// Expecting returns a copy for a run that has not started, with the expected final progress p. It sets the epochs and
// steps per round, with which schedules in these units are extrapolated.
func (k *Knobs) Expecting(p event.Progress) *Knobs {
	out := *k
	if p.Rounds > 0 {
		out.epochs, out.steps = p.Epochs/float64(p.Rounds), float64(p.Steps)/float64(p.Rounds)
	}
	return &out
}

// Counts returns the units of schedules. They are zero before there is a population, and for an algorithm that is only
// declared.
func (k *Knobs) Counts() optim.Counts { return k.counts }

// Value returns the value of a knob in the next round.
func (k *Knobs) Value(knob optim.Knob) float64 { return k.At(knob, k.now.Round) }

// At returns the value of a knob in the round that follows the given number of completed rounds. For schedules in
// epochs or steps it assumes that later rounds have as many of them as the previous ones on average.
func (k *Knobs) At(knob optim.Knob, round uint64) float64 {
	s, e, ok := k.line.Ruling(knob.Name, round)
	if !ok {
		return knob.Default
	}
	began := timeline.Position{Round: e.At, Epochs: e.Epochs, Steps: e.Steps}
	return timeline.Settle(knob, s.At(k.position(round), began))
}

// position extrapolates the progress at a round.
func (k *Knobs) position(round uint64) timeline.Position {
	d := float64(round) - float64(k.now.Round)
	return timeline.Position{
		Round:  round,
		Epochs: max(0, k.now.Epochs+d*k.epochs),
		Steps:  uint64(max(0, float64(k.now.Steps)+d*k.steps)),
	}
}

// Expr returns the expression of a knob in the next round; "" for its default. moving reports whether it is a schedule.
func (k *Knobs) Expr(knob string) (expr string, moving bool) {
	s, _, ok := k.line.Ruling(knob, k.now.Round)
	if !ok {
		return "", false
	}
	return s.String(), !s.Constant()
}

// Schedule returns the schedule that a knob follows in the next round, for readers: as it was typed. ok is false for a
// knob that has a constant, or the last value of a schedule.
func (k *Knobs) Schedule(knob string) (text string, ok bool) {
	s, e, ok := k.line.Ruling(knob, k.now.Round)
	if !ok || s.Ended(k.now) {
		return "", false
	}
	return timeline.Text(e), true
}

// With returns the knobs as if an edit took effect now, for a preview. It returns k itself if the expression is invalid
// for the knob.
func (k *Knobs) With(knob, expr string) *Knobs {
	out, p := *k, k.now
	e, err := k.edit(knob, expr)
	if err != nil {
		return k
	}
	e = timeline.Begin(e, p.Round)
	e.Epochs, e.Steps = p.Epochs, p.Steps
	line, err := timeline.New(k.Algorithm, append(k.line.Edits(), e))
	if err != nil {
		return k
	}
	out.line = line
	return &out
}

// Accept returns the error with which the run would reject an expression now; nil if it would accept it.
func (k *Knobs) Accept(knob optim.Knob, expr string) error {
	e, err := k.edit(knob.Name, expr)
	if err != nil {
		return err
	}
	return timeline.Accept(knob, e.Expr, k.now)
}

// edit returns an edit that a command would make now, in the form and units of the log as far as that is possible.
func (k *Knobs) edit(knob, expr string) (event.Edit, error) {
	e, err := k.line.Scale(event.Edit{Algorithm: k.Algorithm.Name, Knob: knob, Expr: expr}, k.now)
	if err != nil {
		return e, err
	}
	of, _ := k.Algorithm.Knob(knob)
	if out, err := timeline.Counted(of, e.Expr, k.counts); err == nil {
		e.Expr = out
	}
	return e, nil
}

// Ends returns the round from which on the schedule of a knob is constant; 0 if unknown.
func (k *Knobs) Ends(knob string) (last uint64) {
	if s, _, ok := k.line.Ruling(knob, k.now.Round); ok {
		for _, b := range s.Breakpoints() {
			last = max(last, b)
		}
	}
	return last
}

// Pending returns the next edit of a knob that is not yet in effect.
func (k *Knobs) Pending(knob string) (e event.Edit, ok bool) {
	for _, x := range k.edits[knob] {
		if x.At > k.now.Round {
			return x.Edit, true
		}
	}
	return e, false
}

// History returns the edits of a knob, oldest first. The caller must not modify them.
func (k *Knobs) History(knob string) []Edit { return k.edits[knob] }

// Curve returns the values of a knob at n evenly spaced rounds from lo to hi, inclusive.
func (k *Knobs) Curve(knob optim.Knob, lo, hi uint64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = k.At(knob, lo+uint64(math.Round(float64(hi-lo)*float64(i)/float64(max(1, n-1)))))
	}
	return out
}
