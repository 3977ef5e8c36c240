package view

import (
	"slices"
	"testing"

	"brood/models/engine"
	"brood/optim/collective"
	"brood/runtime/event"
)

// TestEffects checks the entry that follows each change of a run whose loss falls by 0.001 a round, and by 0.002 from
// round 401 on.
func TestEffects(t *testing.T) {
	edit := func(first uint64, knob string) event.Record {
		return event.Record{Edit: &event.Edit{At: first - 1, Knob: knob, Expr: "0.05", Algorithm: "a", ID: first, By: "ann"}}
	}
	plan := func(alg string, at uint64, members int) event.Record {
		return event.Record{Plan: &event.Plan{At: at, OldAlg: "a", Algorithm: alg,
			Old: collective.Roster{Members: collective.IDs(2), Owner: make([]int, 2)},
			New: collective.Roster{Members: collective.IDs(members), Owner: make([]int, members)}, Cause: event.CauseResize}}
	}
	for name, c := range map[string]struct {
		changes map[uint64][]event.Record // by the round before which they are recorded
		series  string
		every   uint64 // rounds between points
		end     uint64
		want    []string
	}{
		"edit": {map[uint64][]event.Record{395: {edit(401, "eta")}}, CentreLoss, 1, 500,
			[]string{"eta 0.05 at round 401: centre loss -0.076 (-12 %) in 50 rounds"}},
		"two in a round": {map[uint64][]event.Record{395: {edit(401, "eta"), edit(401, "ell")}}, CentreLoss, 1, 500,
			[]string{"eta 0.05, ell 0.05 at round 401: centre loss -0.076 (-12 %) in 50 rounds"}},
		"another edit follows": {map[uint64][]event.Record{395: {edit(401, "eta")}, 420: {edit(421, "ell")}},
			CentreLoss, 1, 500, []string{"eta 0.05 at round 401: centre loss -0.03 (-5 %) in 20 rounds",
				"ell 0.05 at round 421: centre loss -0.07 (-12 %) in 50 rounds"}},
		"end of the run": {map[uint64][]event.Record{395: {edit(401, "eta")}}, CentreLoss, 1, 410,
			[]string{"eta 0.05 at round 401: centre loss -0.016 (-2.6 %) in 10 rounds"}},
		"swap":               {map[uint64][]event.Record{400: {plan("b", 400, 2)}}, CentreLoss, 1, 500, []string{"a → b at round 401: centre loss -0.076 (-12 %) in 50 rounds"}},
		"resize":             {map[uint64][]event.Record{400: {plan("a", 400, 4)}}, CentreLoss, 1, 500, []string{"members 2 → 4 at round 401: centre loss -0.076 (-12 %) in 50 rounds"}},
		"no centre":          {map[uint64][]event.Record{395: {edit(401, "eta")}}, "loss", 1, 500, []string{"eta 0.05 at round 401: training loss -0.076 (-12 %) in 50 rounds"}},
		"few values":         {map[uint64][]event.Record{395: {edit(401, "eta")}}, CentreLoss, 20, 500, nil},
		"not yet":            {map[uint64][]event.Record{395: {edit(401, "eta")}}, CentreLoss, 1, 0, nil},
		"nothing before":     {map[uint64][]event.Record{1: {edit(2, "eta")}}, CentreLoss, 1, 500, nil},
		"edits of the start": {map[uint64][]event.Record{0: {{Edit: &event.Edit{Knob: "eta", Expr: "0.1", Algorithm: "a"}}}}, CentreLoss, 1, 500, nil},
	} {
		v := New()
		v.Apply(plan("a", 0, 2))
		last := c.end
		if last == 0 {
			last = 440
		}
		for r := uint64(0); r <= last; r++ {
			for _, x := range c.changes[r] {
				v.Apply(x)
			}
			if r == 0 {
				continue
			}
			v.Apply(event.Record{Commit: &event.Commit{To: r, Rounds: 1, Progress: event.Progress{Rounds: r}}})
			x := 1 - 0.001*float64(r)
			if r > 400 {
				x -= 0.001 * float64(r-400)
			}
			if p := (&event.Points{Round: r, Series: c.series, Members: []engine.Member{Whole}, Values: []float64{x}}); r%
				c.every == 0 {
				if c.series == "loss" { // the median of these is x
					p.Members, p.Values = collective.IDs(3), []float64{x - 0.5, x, x + 7}
				}
				v.Apply(event.Record{Points: p})
			}
		}
		if c.end > 0 {
			v.Apply(event.Record{State: &event.State{Phase: event.Finished, Round: c.end}})
		}
		var got []string
		for _, e := range v.Lane {
			if e.Kind == KindEffect {
				got = append(got, e.Text)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: effects are %q, want %q", name, got, c.want)
		}
		n := 0
		for _, k := range v.Marks {
			if k.Effect != nil {
				n++
			}
		}
		if n < len(c.want) {
			t.Errorf("%s: %d marks have an effect", name, n)
		}
	}
}

// TestRollbackBeforeAnEffect checks that a change that a rollback removed has no effect.
func TestRollbackBeforeAnEffect(t *testing.T) {
	v := New()
	v.Apply(event.Record{Plan: &event.Plan{Algorithm: "a"}})
	v.turned(30, "eta 1")
	v.Progress.Rounds = 35
	v.Apply(event.Record{Plan: &event.Plan{Algorithm: "a", OldAlg: "a", At: 20, From: event.Saved}})
	if len(v.Turns) > 0 {
		t.Errorf("after the rollback there are %+v", v.Turns)
	}
}

// TestEffectOfAnObjective checks that an effect in a run that maximises is measured by the fitness of its user, not by
// the loss of the centre, which is minus a fitness.
func TestEffectOfAnObjective(t *testing.T) {
	v := New()
	v.Apply(event.Record{Config: &event.Config{Objective: "python3 walk.py"}})
	v.Apply(event.Record{Plan: &event.Plan{Algorithm: "a"}})
	for r := uint64(1); r <= 100; r++ {
		v.Apply(event.Record{Commit: &event.Commit{To: r, Rounds: 1, Progress: event.Progress{Rounds: r}}})
		for series, sign := range map[string]float64{CentreLoss: -1, Fitness: 1} {
			v.Apply(event.Record{Points: &event.Points{Round: r, Series: series, Members: []engine.Member{Whole},
				Values: []float64{sign * float64(r)}}})
		}
	}
	if e, ok := v.Effect(1, 51, 101); !ok || e.String() != "fitness +50 (+2e+02 %) in 50 rounds" {
		t.Errorf("the effect is %v, %v", e, ok)
	}
}

// TestForkEffect compares a fork after round 400, which sets eta and once more at round 431, with its parent, whose
// loss falls by 0.001 a round; that of the fork falls by 0.003, and by 0.002 after the second edit.
func TestForkEffect(t *testing.T) {
	run := func(config event.Config, first, last uint64, loss func(r uint64) float64, edits ...uint64) *View {
		v := New()
		v.Apply(event.Record{Config: &config})
		v.Apply(event.Record{Plan: &event.Plan{At: config.ParentAt, Algorithm: "a"}})
		for r := first; r <= last; r++ {
			if slices.Contains(edits, r) {
				v.Apply(event.Record{Edit: &event.Edit{At: r - 1, Algorithm: "a", Knob: "eta", Expr: "0.05", By: "ann"}})
			}
			v.Apply(event.Record{Commit: &event.Commit{To: r, Rounds: 1, Progress: event.Progress{Rounds: r}}})
			v.Apply(event.Record{Points: &event.Points{Round: r, Series: CentreLoss, Members: []engine.Member{Whole},
				Values: []float64{loss(r)}}})
		}
		v.Apply(event.Record{State: &event.State{Phase: event.Finished, Round: last}})
		return v
	}
	falling := func(r uint64) float64 { return 1 - 0.001*float64(r) }
	parent := run(event.Config{}, 1, 440, falling)
	fork := run(event.Config{Parent: "p", ParentAt: 400}, 401, 500, func(r uint64) float64 {
		return falling(r) - 0.002*float64(min(r, 431)-400) - 0.001*float64(max(r, 431)-431)
	}, 401, 431)
	e, ok := fork.ForkEffect(parent, 1000)
	if !ok || e.String() != "centre loss -0.061 (-9.9 %) in 30 rounds" {
		t.Errorf("the fork has the effect %v, %v", e, ok)
	}
	if x, ok := parent.Change(e); !ok || x > -0.0299 || x < -0.0301 {
		t.Errorf("the parent changed by %v, %v; want -0.03", x, ok)
	}
	if got := fork.ForkText(); got != "eta 0.05" {
		t.Errorf("the fork began with %q", got)
	}
	if e, ok := fork.ForkEffect(parent, 10); !ok || e.Rounds != 10 {
		t.Errorf("of 10 rounds: %+v, %v", e, ok)
	}
	later := fork.Lane[len(fork.Lane)-2].Effect // of the edit of round 431, before the end of the run
	if later == nil || later.First != 431 || later.From != 401 {
		t.Fatalf("the second edit has the effect %+v, want from round 431 and the start of the fork", later)
	}
	if x, ok := parent.Change(*later); ok {
		t.Errorf("the parent ended at round 440 and changed by %v up to round 480", x)
	}
	if e, ok := fork.ForkEffect(run(event.Config{}, 1, 2, falling), 1000); ok {
		t.Errorf("a parent without values before the fork: %v", e)
	}
}
