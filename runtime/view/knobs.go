package view

import (
	"math"

	"brood/models/engine"
	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/timeline"
)

// MembersKnob is the pseudo-knob of the population size: it is edited like a knob and answered with a plan.
const MembersKnob = "members"

// Knobs are the knobs of the algorithm that runs, resolved against the edits that a view holds.
type Knobs struct {
	Algorithm *optim.Algorithm

	now    timeline.Position
	epochs float64 // that a round gets on, for what lies ahead
	steps  float64
	line   *timeline.Timeline
	edits  map[string][]Edit // by knob, in the order of the log
	counts optim.Counts      // what schedules are told in; zero before there is a population
}

// Resolve reads the edits of alg, which must be the algorithm of the plan. Edits that it does not understand (a newer
// coordinator's) are left out, and those that a swap made void. The result does not change when the view does.
func (v *View) Resolve(alg *optim.Algorithm) *Knobs {
	p := v.Progress
	k := &Knobs{Algorithm: alg, now: timeline.Position{Round: p.Rounds, Epochs: p.Epochs, Steps: p.Steps}, edits: map[string][]Edit{}}
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
		k.counts = alg.Counts(optim.Shape{Roster: r, Layout: engine.Layout{Params: c.Params, Stats: c.Stats}, K: k.line.Values(k.now),
			Data: optim.DataSize{Train: c.Train, Validation: c.Valid}})
	}
	return k
}

// Expecting are the knobs of a run that has done nothing and is expected to get to p: schedules in epochs or steps move
// with its rounds.
func (k *Knobs) Expecting(p event.Progress) *Knobs {
	out := *k
	if p.Rounds > 0 {
		out.epochs, out.steps = p.Epochs/float64(p.Rounds), float64(p.Steps)/float64(p.Rounds)
	}
	return &out
}

// Counts are what schedules count in; zero before there is a population, and of an algorithm that is only declared.
func (k *Knobs) Counts() optim.Counts { return k.counts }

// Value is a knob's value in the next round.
func (k *Knobs) Value(knob optim.Knob) float64 { return k.At(knob, k.now.Round) }

// At is a knob's value in the round that starts when `round` rounds are done. For schedules in epochs or steps, rounds
// to come are assumed to get as far as those done.
func (k *Knobs) At(knob optim.Knob, round uint64) float64 {
	s, e, ok := k.line.Ruling(knob.Name, round)
	if !ok {
		return knob.Default
	}
	x := s.At(k.position(round), timeline.Position{Round: e.At, Epochs: e.Epochs, Steps: e.Steps})
	if knob.Integer {
		x = math.Round(x)
	}
	return min(max(x, knob.Min), knob.Max)
}

func (k *Knobs) position(round uint64) timeline.Position {
	d := float64(round) - float64(k.now.Round)
	return timeline.Position{Round: round, Epochs: max(0, k.now.Epochs+d*k.epochs), Steps: uint64(max(0, float64(k.now.Steps)+d*k.steps))}
}

// Expr is what governs a knob in the next round as it was typed, "" for its default; moving says that it is a schedule.
func (k *Knobs) Expr(knob string) (expr string, moving bool) {
	s, _, ok := k.line.Ruling(knob, k.now.Round)
	if !ok {
		return "", false
	}
	return s.String(), !s.Constant()
}

// With are the knobs as they would be if an expression took effect now: what it would draw before it is sent. One that
// is no expression of the knob changes nothing.
func (k *Knobs) With(knob, expr string) *Knobs {
	out, p := *k, k.now
	e := event.Edit{At: p.Round, Algorithm: k.Algorithm.Name, Knob: knob, Expr: timeline.Absolute(k.counted(knob, expr), p.Round), Epochs: p.Epochs, Steps: p.Steps}
	line, err := timeline.New(k.Algorithm, append(k.line.Edits(), e))
	if err != nil {
		return k
	}
	out.line = line
	return &out
}

// Accept says why an expression cannot be asked for now, as the run would.
func (k *Knobs) Accept(knob optim.Knob, expr string) error {
	return timeline.Accept(knob, k.counted(knob.Name, expr), k.now)
}

// counted is an expression in the units of a log, as far as they are known; as it is where it is none.
func (k *Knobs) counted(knob, expr string) string {
	of, _ := k.Algorithm.Knob(knob)
	out, err := timeline.Counted(of, expr, k.counts)
	if err != nil {
		return expr
	}
	return out
}

// Ends is the round from which the schedule of a knob keeps its last value, where that is known.
func (k *Knobs) Ends(knob string) (last uint64) {
	if s, _, ok := k.line.Ruling(knob, k.now.Round); ok {
		for _, b := range s.Breakpoints() {
			last = max(last, b)
		}
	}
	return last
}

// Pending is the next edit that is accepted and not yet in effect.
func (k *Knobs) Pending(knob string) (e event.Edit, ok bool) {
	for _, x := range k.edits[knob] {
		if x.At > k.now.Round {
			return x.Edit, true
		}
	}
	return e, false
}

// History lists a knob's edits, oldest first; the slice belongs to k.
func (k *Knobs) History(knob string) []Edit { return k.edits[knob] }

// Curve samples a knob at n rounds from lo to hi.
func (k *Knobs) Curve(knob optim.Knob, lo, hi uint64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = k.At(knob, lo+uint64(math.Round(float64(hi-lo)*float64(i)/float64(max(1, n-1)))))
	}
	return out
}
