package event

import (
	"slices"
	"testing"
)

// TestPending follows a log: edits apply knobs one by one, a plan applies a resize, and a later edit answers all before
// it.
func TestPending(t *testing.T) {
	var p Pending
	set := func(knobs ...string) (out []Setting) {
		for _, k := range knobs {
			out = append(out, Setting{Knob: k, Expr: "1"})
		}
		return out
	}
	for i, step := range []struct {
		rec  Record
		want []uint64 // numbers of the pending commands
		sets int      // settings of the first
	}{
		{Record{Accepted: &Accepted{1, Command{Set: set("eta", "rho")}}}, []uint64{1}, 2},
		{Record{Edit: &Edit{Knob: "eta"}}, []uint64{1}, 2}, // of a preset: obeys no command
		{Record{Edit: &Edit{Knob: "eta", Obeys: 1}}, []uint64{1}, 1},
		{Record{Accepted: &Accepted{2, Command{Members: 4, Set: set("eta")}}}, []uint64{1, 2}, 1},
		{Record{Edit: &Edit{Knob: "rho", Obeys: 1}}, []uint64{2}, 1},
		{Record{Edit: &Edit{Knob: "eta", Obeys: 2}}, []uint64{2}, 1}, // its plan is not in the log yet
		{Record{Plan: &Plan{}}, []uint64{2}, 1},                      // a way back, which obeys nothing
		{Record{Plan: &Plan{Obeyed: 2}}, nil, 0},
		{Record{Accepted: &Accepted{3, Command{Set: set("eta")}}}, []uint64{3}, 1},
		{Record{Accepted: &Accepted{4, Command{Algorithm: "parle"}}}, []uint64{3, 4}, 1},
		{Record{Accepted: &Accepted{5, Command{Set: set("ell")}}}, []uint64{3, 4, 5}, 1},
		{Record{Plan: &Plan{Obeyed: 4}}, []uint64{5}, 1},
		{Record{Accepted: &Accepted{6, Command{Set: set("ell")}}}, []uint64{5, 6}, 1},
		{Record{Edit: &Edit{Knob: "ell", Obeys: 6}}, nil, 0}, // 5 was rejected on the way
	} {
		p.Take(step.rec)
		var got []uint64
		for _, a := range p.Commands {
			got = append(got, a.N)
		}
		if !slices.Equal(got, step.want) {
			t.Fatalf("record %d: %v are pending, want %v", i, got, step.want)
		}
		if len(got) > 0 && len(p.Commands[0].Command.Set) != step.sets {
			t.Errorf("record %d: %d settings of the first are pending, want %d", i, len(p.Commands[0].Command.Set), step.sets)
		}
	}
	if p.Last != 6 {
		t.Errorf("the newest command is %d, want 6", p.Last)
	}
}
