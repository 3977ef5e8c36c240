package view

import (
	"slices"
	"testing"

	"brood/optim"
	"brood/optim/collective"
	"brood/runtime/event"
)

// TestAlertsAreAnswered: an alert is answered only by the record that ends its cause; earlier clones do not change.
func TestAlertsAreAnswered(t *testing.T) {
	ids := collective.IDs(4)
	on := func(cause event.Cause, workers ...int) event.Record {
		return event.Record{Plan: &event.Plan{New: collective.Place(ids, workers), Algorithm: "a", Cause: cause}}
	}
	alert := func(level event.Level, kind event.AlertKind) event.Record {
		return event.Record{Alert: &event.Alert{Level: level, Kind: kind, Text: string(kind)}}
	}
	phase := func(p event.Phase) event.Record { return event.Record{State: &event.State{Phase: p}} }
	lost, nobody := alert("warning", "lost-worker"), alert("error", "lost-worker")
	notFinite, full := alert("error", event.AlertNonFinite), alert("error", "disk")
	for _, c := range []struct {
		name string
		rs   []event.Record
		due  []event.AlertKind // alerts that are not answered
	}{
		{"paused", []event.Record{notFinite, phase(event.Paused)}, []event.AlertKind{event.AlertNonFinite}},
		{"a plan while it is paused", []event.Record{notFinite, phase(event.Paused), on("restore", 1, 2)}, []event.AlertKind{event.AlertNonFinite}},
		{"resumed", []event.Record{notFinite, phase(event.Paused), phase(event.Training)}, nil},
		{"resumed, and again", []event.Record{notFinite, phase(event.Paused), phase(event.Training), notFinite, phase(event.Paused)}, []event.AlertKind{event.AlertNonFinite}},
		{"stopped and resumed", []event.Record{notFinite, phase(event.Paused), phase(event.Stopped), phase(event.Waiting), phase(event.Training)}, nil},
		{"another limit", []event.Record{phase(event.Training), full, phase(event.Training)}, []event.AlertKind{"disk"}},
		{"saved after all", []event.Record{full, notFinite, {Checkpoint: &event.Checkpoint{}}}, []event.AlertKind{event.AlertNonFinite}},
		{"saved before", []event.Record{{Alert: &event.Alert{Level: "error", Kind: "disk", Round: 9}}, {Checkpoint: &event.Checkpoint{Round: 8}}}, []event.AlertKind{"disk"}},
		{"points that are lost", []event.Record{alert("warning", "disk"), {Checkpoint: &event.Checkpoint{}}}, []event.AlertKind{"disk"}},
		{"on the survivor", []event.Record{lost, on("death", 1)}, []event.AlertKind{"lost-worker"}},
		{"resumed with a worker less", []event.Record{lost, on("death", 1), phase(event.Paused), phase(event.Training)}, []event.AlertKind{"lost-worker"}},
		{"replaced", []event.Record{lost, on("death", 1), on("join", 1, 3)}, nil},
		{"replaced at once", []event.Record{lost, on("death", 1, 3)}, nil},
		{"one of two replaced", []event.Record{lost, lost, on("death", 3)}, []event.AlertKind{"lost-worker"}},
		{"a swap replaces nobody", []event.Record{lost, on("death", 1), on("swap", 1)}, []event.AlertKind{"lost-worker"}},
		{"two lost each other, not tried again yet", []event.Record{alert("warning", event.AlertLostLink), phase(event.Training)}, []event.AlertKind{event.AlertLostLink}},
		{"two lost each other, tried again", []event.Record{alert("warning", event.AlertLostLink), on("restore", 1)}, nil},
		{"all lost, one joins", []event.Record{lost, lost, nobody, on("rollback", 7)}, []event.AlertKind{"lost-worker"}},
		{"the last one left", []event.Record{alert("warning", "leave"), on("join", 4)}, nil},
		{"rejected", []event.Record{alert("error", "rejected"), phase(event.Paused), phase(event.Training), on("join", 1, 2, 3)}, []event.AlertKind{"rejected"}},
		{"unknown", []event.Record{alert("warning", "log"), phase(event.Paused), phase(event.Training), on("join", 1, 2, 3)}, []event.AlertKind{"log"}},
	} {
		v := fold(New(), []event.Record{on("start", 1, 2), phase(event.Training)})
		var before []*View
		for _, r := range c.rs {
			before = append(before, v.Clone())
			v.Apply(r)
		}
		var due []event.AlertKind
		for _, e := range v.Lane {
			if e.Kind == "alert" && !e.Answered {
				due = append(due, e.Alert)
			}
			if e.Kind != "alert" && (e.Answered || e.Alert != "") {
				t.Errorf("%s: %+v is no alert", c.name, e)
			}
		}
		if !slices.Equal(due, c.due) {
			t.Errorf("%s: %v are due, want %v", c.name, due, c.due)
		}
		for i, b := range before {
			same(t, c.name, b, fold(New(), slices.Concat([]event.Record{on("start", 1, 2), phase(event.Training)}, c.rs[:i])))
		}
	}
}

// TestSwapVoidsEdits: edits of an algorithm are void when it takes over again: it starts from defaults, and the plan
// has its values.
func TestSwapVoidsEdits(t *testing.T) {
	alg := &optim.Algorithm{
		Name: "x", Knobs: []optim.Knob{{Name: "eta", Max: 10, Default: 1}, {Name: "rho", Max: 10, Default: 2}},
	}
	eta, rho := alg.Knobs[0], alg.Knobs[1]
	set := event.Edit{At: 20, Algorithm: "x", Knob: "rho", Expr: "7", By: "ann"}
	v := fold(New(), []event.Record{
		{Plan: &event.Plan{Algorithm: "x"}},
		{Edit: &event.Edit{Algorithm: "x", Knob: "eta", Expr: "5"}},
		{Edit: &event.Edit{At: 3, Algorithm: "x", Knob: "rho", Expr: "6", By: "ann"}},
		{Commit: &event.Commit{To: 10, Progress: event.Progress{Rounds: 10}}},
		{Plan: &event.Plan{Algorithm: "y", OldAlg: "x", At: 10, Cause: "swap"}},
		{Commit: &event.Commit{To: 20, Progress: event.Progress{Rounds: 20}}},
	})
	if k := v.Resolve(alg); k.Value(eta) != 5 || k.Value(rho) != 6 {
		t.Errorf("while another runs: eta %g, rho %g", k.Value(eta), k.Value(rho))
	}
	away := v.Clone()
	fold(v, []event.Record{
		{Edit: &set}, {Plan: &event.Plan{Algorithm: "x", OldAlg: "y", At: 20, Cause: "swap", Timeline: []event.Edit{set}}},
	})
	if k := v.Resolve(alg); k.Value(eta) != 1 || k.Value(rho) != 7 || len(k.History("rho")) != 1 {
		t.Errorf("taken over again: eta %g, rho %g of %v, want 1 and 7", k.Value(eta), k.Value(rho), k.History("rho"))
	}
	if k := away.Resolve(alg); k.Value(eta) != 5 {
		t.Error("what was applied to the origin changed its clone")
	}
	fold(v, []event.Record{{Edit: &event.Edit{At: 25, Algorithm: "x", Knob: "eta", Expr: "3"}}})
	if e := v.Edits[len(v.Edits)-1]; e.Old != "" {
		t.Errorf("eta 3 replaces %q, want the default", e.Old)
	}
	if e := v.Edits[2]; e.Knob != "rho" || e.Old != "" {
		t.Errorf("%+v of the swap replaces something, want the default", e)
	}
	fold(v, []event.Record{{Plan: &event.Plan{
		Algorithm: "x",
		OldAlg:    "x",
		At:        5,
		From:      event.Saved,
		Cause:     "rollback",
		Timeline:  []event.Edit{{Algorithm: "x", Knob: "eta", Expr: "5"}},
	}}})
	if k := v.Resolve(alg); k.Value(eta) == 1 {
		t.Error("back before the swaps, what was set then is in force again")
	}
}
