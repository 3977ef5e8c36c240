package view

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"pgregory.net/rapid"

	"brood/optim"
	"brood/optim/collective"
	"brood/runtime/event"
)

// recorded returns a run with every kind of record: n commits of a population that grows, edits, a rollback.
func recorded(seed uint64, n int) []event.Record {
	rng := rand.New(rand.NewPCG(seed, 1))
	var out []event.Record
	at := int64(1e18)
	put := func(r event.Record) {
		at += int64(rng.IntN(1e8))
		r.At = at
		out = append(out, r)
	}
	roster := collective.Place(collective.IDs(3), []int{1, 2})
	put(event.Record{Config: &event.Config{Model: "mlp", Data: "glyphs", Limit: event.Limit{Epochs: 4}}})
	put(event.Record{Plan: &event.Plan{
		Epoch:     1,
		From:      event.Fresh,
		New:       roster,
		Algorithm: "parle",
		Timeline:  []event.Edit{{Algorithm: "parle", Knob: "ell", Expr: "10", By: "preset"}},
	}})
	put(event.Record{State: &event.State{Phase: event.Training}})
	var p event.Progress
	for range n {
		step := uint64(1 + rng.IntN(9))
		p.Rounds, p.Steps, p.Samples, p.Epochs = p.Rounds+step, p.Steps+3*step, p.Samples+300*step,
			p.Epochs+0.01*float64(step)
		for r := p.Rounds - step + 1; r <= p.Rounds; r++ {
			vals := make([]float64, len(roster.Members))
			for i := range vals {
				if vals[i] = rng.NormFloat64(); rng.IntN(40) == 0 {
					vals[i] = math.NaN()
				}
			}
			put(event.Record{Points: &event.Points{Round: r, Series: "loss", Members: roster.Members, Values: vals}})
			if ids := roster.Members; len(ids) > 1 {
				met, _ := encounters(rng, ids, len(ids)/2, false)
				met.Round = r
				put(event.Record{Points: met})
			}
			if r%7 == 0 {
				put(event.Record{Points: scalar(CentreLoss, r, rng.Float64())})
			}
		}
		put(event.Record{Commit: &event.Commit{Epoch: 1, To: p.Rounds, Rounds: step, Nanos: 5e7, Progress: p, Overhead: 12,
			Sent:      map[collective.Op]int64{"couple": 800 * int64(step)},
			Predicted: map[collective.Op]int64{"couple": 800 * int64(step)}, Evaluation: map[collective.Op]int64{"centre": 4}}})
		switch rng.IntN(12) {
		case 0:
			put(event.Record{Edit: &event.Edit{At: p.Rounds + 3, Algorithm: "parle", Knob: "ell", Expr: "20", By: "ann"}})
		case 1:
			old := roster
			roster = collective.Place(collective.IDs(1+rng.IntN(8)), []int{1, 2})
			put(event.Record{Plan: &event.Plan{
				Epoch:     2,
				At:        p.Rounds,
				From:      event.Workers,
				Old:       old,
				New:       roster,
				Algorithm: "parle",
				Cause:     "resize",
			}})
		case 2:
			put(event.Record{Evaluation: &event.Evaluation{Round: p.Rounds, TestError: 5 * rng.Float64(),
				TestLoss: rng.Float64()}})
		case 3:
			put(event.Record{Alert: &event.Alert{Round: p.Rounds, Level: "error", Kind: "divergence", Text: "the loss rises"}})
		case 4:
			put(event.Record{Checkpoint: &event.Checkpoint{Round: p.Rounds, Progress: p, Roster: roster}})
		case 5:
			if back := p.Rounds * 3 / 4; back > 0 {
				p.Rounds = back
				put(event.Record{Plan: &event.Plan{
					Epoch:     3,
					At:        back,
					From:      event.Saved,
					Old:       roster,
					New:       roster,
					Algorithm: "parle",
					Cause:     "rollback",
				}})
			}
		case 6:
			put(event.Record{State: &event.State{Round: p.Rounds, Phase: event.Paused, Reason: "by ann"}})
			put(event.Record{State: &event.State{Round: p.Rounds, Phase: event.Training, Limit: &event.Limit{Rounds: 1000}}})
		}
	}
	return out
}

func fold(v *View, rs []event.Record) *View {
	for _, r := range rs {
		v.Apply(r)
	}
	return v
}

// same compares snapshots by their bytes, so that NaN equals NaN.
func same(t interface{ Fatalf(string, ...any) }, what string, a, b *View) {
	x, err := cbor.Marshal(a)
	if err != nil {
		t.Fatalf("%v", err)
	}
	y, _ := cbor.Marshal(b)
	if !reflect.DeepEqual(x, y) {
		t.Fatalf("%s: views differ at position %d / %d (%d and %d bytes)", what, a.Position, b.Position, len(x), len(y))
	}
}

func TestPrefixThenRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rs := recorded(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 60).Draw(t, "commits"))
		cut := rapid.IntRange(0, len(rs)).Draw(t, "cut")
		all := fold(New(), rs)

		prefix := fold(New(), rs[:cut])
		before, _ := cbor.Marshal(prefix)
		branch := fold(prefix.Clone(), rs[cut:])
		same(t, "clone", all, branch)
		after, _ := cbor.Marshal(prefix)
		if !reflect.DeepEqual(before, after) {
			t.Fatalf("what was applied to a clone changed its origin")
		}
		frozen := prefix.Clone()
		same(t, "original", all, fold(prefix, rs[cut:]))
		if still, _ := cbor.Marshal(frozen); !reflect.DeepEqual(before, still) {
			t.Fatalf("what was applied to the origin changed its clone")
		}

		var decoded View
		if err := cbor.Unmarshal(before, &decoded); err != nil {
			t.Fatalf("decode: %v", err)
		}
		same(t, "snapshot and rest", all, fold(&decoded, rs[cut:]))
		if all.Position != uint64(len(rs)) {
			t.Fatalf("position %d after %d records", all.Position, len(rs))
		}
	})
}

func TestFoldKeepsWhatScreensShow(t *testing.T) {
	roster := collective.Place(collective.IDs(2), []int{7})
	v := fold(New(), []event.Record{
		{At: 1e9, Config: &event.Config{Model: "mlp", Limit: event.Limit{Rounds: 100}}},
		{At: 2e9, Plan: &event.Plan{New: roster, Algorithm: "parle"}},
		{At: 2e9, Edit: &event.Edit{Algorithm: "parle", Knob: "ell", Expr: "25", By: "preset"}},
		{At: 3e9, State: &event.State{Phase: event.Training}},
		{At: 5e9, Commit: &event.Commit{To: 10, Rounds: 10, Nanos: 2e9, Progress: event.Progress{Rounds: 10, Epochs: 1, Steps: 20}, Sent: map[collective.Op]int64{"b": 3, "a": 4}, Predicted: map[collective.Op]int64{"b": 3}}},
		{At: 5e9, Edit: &event.Edit{At: 15, Algorithm: "parle", Knob: "ell", Expr: "10", By: "ann"}},
		{At: 7e9, Commit: &event.Commit{To: 20, Rounds: 10, Nanos: 2e9, Progress: event.Progress{Rounds: 20, Epochs: 2, Steps: 40}}},
		{At: 7e9, Evaluation: &event.Evaluation{Round: 20, TestError: 3}},
		{At: 8e9, Evaluation: &event.Evaluation{Round: 20, TestError: 4}},
	})
	if v.Rates.Rounds != 5 || v.Rates.Epochs != 0.5 {
		t.Errorf("rates %+v, want 5 rounds and half an epoch a second", v.Rates)
	}
	if left, ok := v.Left(0); !ok || left.Seconds() != 16 {
		t.Errorf("left %v %v, want 80 rounds at 5 a second", left, ok)
	}
	if v.Elapsed().Seconds() != 5 {
		t.Errorf("elapsed %v, want 5 s in phase training", v.Elapsed())
	}
	fold(v, []event.Record{ // its process was killed, and another goes on after an hour
		{At: 3608e9, State: &event.State{Phase: event.Waiting, Round: 20, Reason: event.Resumed}},
		{At: 3610e9, State: &event.State{Phase: event.Training, Round: 20}},
		{At: 3611e9, Commit: &event.Commit{To: 25, Rounds: 5, Nanos: 1e9, Progress: event.Progress{Rounds: 25, Epochs: 2.5, Steps: 50}}},
	})
	timed := v.Clone()
	timed.Limit = event.Limit{Seconds: 8}
	if left, ok := timed.Left(0); !ok || left.Seconds() != 7 {
		t.Errorf("left %v %v, want 7 of the 8 s that count from the resume", left, ok)
	}
	if v.Elapsed().Seconds() != 6 {
		t.Errorf("elapsed %v after it was killed and resumed, want 6 s in phase training", v.Elapsed())
	}
	if len(v.Marks) != 1 || v.Marks[0] != (Mark{Round: 16, Text: "ell 25→10", Who: "ann"}) {
		t.Errorf("marks %+v: want the operator's edit alone", v.Marks)
	}
	if e := v.Edits[1]; e.Old != "25" || e.Epochs != 1.5 || e.Steps != 30 {
		t.Errorf("edit %+v: want its old value and where the run stood at round 15", e)
	}
	if len(v.Ledger.Ops) != 2 || v.Ledger.Ops[0] != (Bytes{"a", 4, 0}) || v.Ledger.Total() != (Bytes{"", 7, 3}) {
		t.Errorf("ledger %+v", v.Ledger.Ops)
	}
	if v.BestError != 3 || v.Evaluation.TestError != 4 {
		t.Errorf("best %g, last %g", v.BestError, v.Evaluation.TestError)
	}
	if x, _ := v.Find(TestError).Last(Whole); x != 4 {
		t.Errorf("test error's last point is %g", x)
	}
}

func TestRollbackRemovesLaterRounds(t *testing.T) {
	roster := collective.Place(collective.IDs(1), []int{1})
	v := New()
	v.Apply(event.Record{Plan: &event.Plan{New: roster, Algorithm: "a"}})
	for r := uint64(1); r <= 9; r++ {
		v.Apply(event.Record{Points: scalar("s", r, float64(r))})
	}
	v.Apply(event.Record{Commit: &event.Commit{To: 9, Progress: event.Progress{Rounds: 9}}})
	v.Apply(event.Record{Evaluation: &event.Evaluation{Round: 9, TestError: 2}})
	v.Apply(event.Record{Plan: &event.Plan{
		At:        4,
		From:      event.Saved,
		Old:       roster,
		New:       roster,
		Algorithm: "a",
		Cause:     "rollback",
	}})
	if _, hi := v.Find("s").Rounds(); hi != 5 || v.Progress.Rounds != 4 {
		t.Errorf("curve ends at %d and progress is %d after going back to round 4", hi-1, v.Progress.Rounds)
	}
	if v.Evaluation != nil {
		t.Errorf("round 4 shows the test error %g of round %d", v.Evaluation.TestError, v.Evaluation.Round)
	}
}

// TestChoicesSayWhy: an automatic choice is shown with its reason, at the start too.
func TestChoicesSayWhy(t *testing.T) {
	v := fold(New(), []event.Record{
		{Plan: &event.Plan{Algorithm: "x", Cause: "start"}},
		{Edit: &event.Edit{Algorithm: "x", Knob: "distribution", Expr: "seed", By: optim.Auto, Why: "one worker"}},
	})
	if last := v.Lane[len(v.Lane)-1]; last.Kind != "edit" || last.Text != "distribution seed (auto: one worker)" {
		t.Errorf("%+v", last)
	}
}

func TestKnobsFollowEditsAndSchedules(t *testing.T) {
	alg := &optim.Algorithm{
		Name: "x", Knobs: []optim.Knob{{Name: "eta", Max: 10, Default: 1},
			{Name: "n", Min: 1, Max: 9, Default: 2, Integer: true}, {Name: "rule", Choices: []string{"a", "b", "c"}}},
	}
	v := fold(New(), []event.Record{
		{Plan: &event.Plan{Algorithm: "x"}},
		{Edit: &event.Edit{Algorithm: "x", Knob: "eta", Expr: "linear:1..0@20"}},
		{Edit: &event.Edit{Algorithm: "x", Knob: "members", Expr: "4"}},
		{Edit: &event.Edit{Algorithm: "y", Knob: "eta", Expr: "9"}},
		{Edit: &event.Edit{Algorithm: "x", Knob: "rule", Expr: "c"}},
		{Commit: &event.Commit{To: 10, Progress: event.Progress{Rounds: 10, Epochs: 1}}},
		{Edit: &event.Edit{At: 15, Algorithm: "x", Knob: "n", Expr: "piecewise:1e=1,3e=5"}},
	})
	k := v.Resolve(alg)
	eta, n := alg.Knobs[0], alg.Knobs[1]
	if x := k.Value(eta); x != 0.5 {
		t.Errorf("eta %g at round 10, want 0.5", x)
	}
	if x := k.Value(alg.Knobs[2]); x != 2 {
		t.Errorf("rule %g, want 2, its choice c", x)
	}
	if expr, moving := k.Expr("eta"); expr != "linear:1..0@20" || !moving {
		t.Errorf("eta is governed by %q, moving %v", expr, moving)
	}
	if e, ok := k.Pending("n"); !ok || e.At != 15 || k.Value(n) != 2 {
		t.Errorf("n is %g, pending %+v %v", k.Value(n), e, ok)
	}
	if x := k.At(n, 20); x != 3 {
		t.Errorf("n will be %g at epoch 2, want 3", x)
	}
	if c := k.Curve(eta, 0, 20, 3); c[0] != 1 || c[1] != 0.5 || c[2] != 0 {
		t.Errorf("curve %v", c)
	}
}

// TestFounders: lineages follow parents, all of a round at once, and continue from the target round of a rollback.
func TestFounders(t *testing.T) {
	v := New()
	roster := collective.Place(collective.IDs(3), []int{1})
	v.Apply(event.Record{Plan: &event.Plan{Epoch: 1, New: roster, Algorithm: "ga"}})
	parents := func(round uint64, of ...float64) {
		v.Apply(event.Record{Points: &event.Points{Round: round, Series: Parent, Members: roster.Members, Values: of}})
		v.Apply(event.Record{Commit: &event.Commit{Epoch: 1, To: round, Rounds: 1, Progress: event.Progress{Rounds: round}}})
	}
	founders := func(want ...float64) {
		t.Helper()
		for i, m := range roster.Members {
			if x, _ := v.Find(Founder).Last(m); x != want[i] {
				t.Errorf("member %d descends from %v, want %v", m, x, want[i])
			}
		}
	}
	parents(1, 1, 0, 2) // the first two changed places
	founders(1, 0, 2)
	parents(2, 0, 2, 2)
	founders(1, 2, 2)
	parents(3, 1, 1, 1)
	founders(2, 2, 2)
	v.Apply(event.Record{Plan: &event.Plan{
		Epoch:     2,
		At:        2,
		From:      event.Saved,
		Old:       roster,
		New:       roster,
		Algorithm: "ga",
		OldAlg:    "ga",
		Cause:     "rollback",
	}})
	founders(1, 2, 2)
	parents(3, 0, 0, 2)
	founders(1, 1, 2)
	v.Apply(event.Record{Plan: &event.Plan{
		Epoch:     3,
		At:        3,
		From:      event.Workers,
		Old:       collective.Place(collective.IDs(2), []int{1}),
		New:       roster,
		Algorithm: "ga",
		Cause:     "resize",
	}})
	founders(1, 1, 2) // the third is new
	parents(4, 2, 2, 2)
	founders(2, 2, 2)
	v.Apply(event.Record{Plan: &event.Plan{
		Epoch:     4,
		At:        4,
		From:      event.Workers,
		Old:       collective.Place(collective.IDs(1), []int{1}),
		New:       roster,
		Algorithm: "ga",
		Cause:     "resize",
	}})
	founders(2, 1, 2)
	parents(5, 7, 1, math.NaN()) // damage
}

// TestEditsOfCommands: the initial edits of a run are not events, but edits of commands are, whatever the name of their
// author, before the first round too. Logs without command numbers are judged by the name.
func TestEditsOfCommands(t *testing.T) {
	for _, c := range []struct {
		edit  event.Edit
		shown bool
	}{
		{event.Edit{By: "preset"}, false},
		{event.Edit{By: "ann"}, false},
		{event.Edit{At: 9, By: "flag"}, false},
		{event.Edit{At: 9, By: "ann"}, true},
		{event.Edit{By: "ann", Obeys: 1}, true},
		{event.Edit{At: 9, By: "flag", Obeys: 1}, true},
		{event.Edit{At: 9, By: "preset", ID: 4}, true},
		{event.Edit{By: optim.Auto, Why: "one worker"}, true},
	} {
		c.edit.Algorithm, c.edit.Knob, c.edit.Expr = "x", "eta", "0.1"
		v := New()
		v.Apply(event.Record{Edit: &c.edit})
		if len(v.Marks) > 0 != c.shown || len(v.Lane) > 0 != c.shown {
			t.Errorf("%+v: marks %v, lane %v", c.edit, v.Marks, v.Lane)
		}
	}
}

// TestLeftOfSlowingRun checks that the estimate of a run whose rounds become slower follows its last rounds, that a
// round that takes longer than expected does not shorten it, and that a limit in seconds is met by the clock.
func TestLeftOfSlowingRun(t *testing.T) {
	left := func(limit event.Limit, records []event.Record, ahead time.Duration) time.Duration {
		v := fold(New(), append([]event.Record{{At: 1e9, Config: &event.Config{Limit: limit}},
			{At: 1e9, State: &event.State{Phase: event.Training}}}, records...))
		d, ok := v.Left(ahead)
		if !ok {
			t.Fatal("there is no estimate")
		}
		return d.Round(time.Second)
	}
	var records []event.Record
	now, round := int64(1e9), uint64(0)
	train := func(rounds int, each time.Duration) {
		for range rounds {
			now, round = now+int64(each), round+1
			records = append(records, event.Record{At: now, Commit: &event.Commit{To: round, Rounds: 1,
				Nanos: int64(each), Progress: event.Progress{Rounds: round}}})
		}
	}
	train(80, time.Second)
	limit := event.Limit{Rounds: 100}
	if d := left(limit, records, 0); d != 20*time.Second {
		t.Errorf("%v left after rounds of a second, want 20s", d)
	}
	train(3, 10*time.Second) // 17 rounds are left
	if d := left(limit, records, 0); d < 150*time.Second || d > 170*time.Second {
		t.Errorf("%v left after three rounds of ten seconds, want nearly 170s", d)
	}
	last, slow := left(limit, records, 10*time.Second), left(limit, records, time.Hour)
	if slow != last || slow < 140*time.Second {
		t.Errorf("%v left before the end of a round of an hour, want 16 rounds of ten seconds", slow)
	}
	if d := left(event.Limit{Seconds: 200}, records, 30*time.Second); d != 60*time.Second {
		t.Errorf("%v left of 200 s after 110 s and half a minute, want 1m", d)
	}
}
