package host

import (
	"testing"

	"brood/optim/coupled"
	"brood/runtime/event"
)

// TestScheduledKnobs: a new run applies and records the default schedule of a knob, unless the preset or the user sets
// the knob.
func TestScheduledKnobs(t *testing.T) {
	gamma, _ := coupled.Parle.Knob("gamma")
	set := []event.Setting{{Knob: "gamma", Expr: "7"}}
	for _, c := range []struct {
		o        Options
		expr, by string
	}{
		{Options{}, gamma.Schedule, event.ByDefault},
		{Options{Base: set}, "7", "preset"},
		{Options{Set: set, By: "flag"}, "7", "flag"},
	} {
		var got []event.Edit
		for _, e := range Edits(coupled.Parle, c.o) {
			if e.Knob == "gamma" {
				got = append(got, e)
			}
		}
		if len(got) != 1 || got[0].Expr != c.expr || got[0].By != c.by {
			t.Errorf("%+v: %+v, want gamma = %s by %s", c.o, got, c.expr, c.by)
		}
	}
}
