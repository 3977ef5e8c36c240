package coordinator

import (
	"math"
	"testing"

	"brood/runtime/event"
)

// TestPatience: a run has no patience left after the stated number of evaluations in a row without a lower loss, and a
// plan that goes back takes evaluations back.
func TestPatience(t *testing.T) {
	limit := event.Limit{Patience: 2}
	var l Losses
	at := uint64(0)
	test := func(loss float64) event.Record {
		at++
		return event.Record{Evaluation: &event.Evaluation{Round: at, Validation: &event.Scores{Loss: loss}}}
	}
	for i, step := range []struct {
		record  event.Record
		stalled bool
		best    uint64
	}{
		{test(3), false, 1},
		{event.Record{Evaluation: &event.Evaluation{Round: 1}}, false, 1}, // of a log without validation scores
		{test(2), false, 2},
		{test(math.NaN()), false, 2},
		{test(2), true, 2}, // equal is no improvement
		{test(1), false, 5},
		{test(4), false, 5},
		{test(4), true, 5},
		{event.Record{Plan: &event.Plan{At: 4}}, true, 2},
		{event.Record{Plan: &event.Plan{At: 3}}, false, 2},
		{event.Record{Plan: &event.Plan{}}, false, 0},
		{test(math.NaN()), false, 0},
		{test(math.Inf(1)), false, 9},
	} {
		l.Take(step.record)
		if stalled := l.Stalled(limit) != ""; stalled != step.stalled || l.Best() != step.best {
			t.Errorf("step %d: stalled %v, best round %d, want %v and %d", i, stalled, l.Best(), step.stalled, step.best)
		}
		if l.Stalled(event.Limit{}) != "" {
			t.Errorf("step %d: stalled without a limit", i)
		}
	}
}
