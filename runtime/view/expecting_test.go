package view_test

import (
	"testing"

	"brood/runtime/event"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
)

// TestKnobsExpecting: before a run begins, schedules in epochs and steps use its expected rate.
func TestKnobsExpecting(t *testing.T) {
	v := view.New()
	for knob, expr := range map[string]string{"eta": "step:0.1,2e=0.02", "gamma": "linear:100..10@600s"} {
		v.Edits = append(v.Edits, view.Edit{Edit: event.Edit{Algorithm: "sample", Knob: knob, Expr: expr}})
	}
	k := v.Resolve(sourcetest.Algorithm())
	e := k.Expecting(event.Progress{Rounds: 60, Epochs: 3, Steps: 1200})
	eta, _ := k.Algorithm.Knob("eta")
	gamma, _ := k.Algorithm.Knob("gamma")
	for _, c := range []struct {
		round uint64
		eta   float64
		gamma float64
	}{{0, 0.1, 100}, {15, 0.1, 55}, {39, 0.1, 10}, {40, 0.02, 10}, {60, 0.02, 10}} {
		if x, y := e.At(eta, c.round), e.At(gamma, c.round); x != c.eta || y != c.gamma {
			t.Errorf("round %d: eta %g, gamma %g, want %g and %g", c.round, x, y, c.eta, c.gamma)
		}
	}
	if k.At(eta, 60) != 0.1 {
		t.Error("what is expected of a run changes its knobs")
	}
}
