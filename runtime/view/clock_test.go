package view_test

import (
	"reflect"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"brood/runtime/axis"
	"brood/runtime/event"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
)

// TestViewHasAClock: a view has the progress of the run on every axis. Encoding keeps it, a clone does not change
// later, and a rollback removes the rounds after it.
func TestViewHasAClock(t *testing.T) {
	v := view.New()
	for _, r := range sourcetest.Run(3, 40) {
		v.Apply(r)
	}
	at := func(v *view.View, a axis.Axis, round float64) float64 { return v.Clock.At(a, axis.Rounds, round) }
	for a, want := range map[axis.Axis]float64{axis.Steps: 25 * 3 * 20, axis.Samples: 3200 * 3 * 20, axis.Epochs: 0.2,
		axis.Seconds: 2, axis.Bytes: 5 * 4 * (35344 + 5904)} {
		if got := at(v, a, 20); got < want*(1-1e-9) || got > want*(1+1e-9) {
			t.Errorf("round 20 is %s %g, want %g", a, got, want)
		}
	}
	text, err := cbor.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var back view.View
	if err := cbor.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back.Clock, v.Clock) {
		t.Errorf("encoded and read again: %v, %v, want %v", err, back.Clock, v.Clock)
	}
	clone := v.Clone()
	p := *v.Plan
	p.Epoch, p.At, p.From, p.Old, p.OldAlg = 2, 20, event.Saved, p.New, p.Algorithm
	v.Apply(event.Record{Plan: &p})
	if end := v.Clock.End()[axis.Rounds]; end != 20 {
		t.Errorf("back at round 20 the clock is at %g", end)
	}
	if end := clone.Clock.End()[axis.Rounds]; end != 40 {
		t.Errorf("a clone is at %g", end)
	}
	if n := len(v.Lean().Clock.Ticks); n > 0 {
		t.Errorf("a lean view has %d ticks", n)
	}
}
