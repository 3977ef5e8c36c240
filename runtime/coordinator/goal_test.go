package coordinator

import (
	"testing"

	"brood/runtime/event"
)

// TestGoal: a goal is reached by the rounds or epochs of the last commit, or by a metric measured at it. A rollback
// before that commit, or another limit, makes it unreached.
func TestGoal(t *testing.T) {
	limit := event.Limit{Rounds: 20, Target: "test_error=3"}
	commit := func(to uint64) event.Record {
		return event.Record{Commit: &event.Commit{To: to, Progress: event.Progress{Rounds: to}}}
	}
	tested := func(percent float64) event.Record {
		return event.Record{Evaluation: &event.Evaluation{TestError: percent}}
	}
	var g Goal
	for i, step := range []struct {
		record  event.Record
		reached bool
		met     string
	}{
		{event.Record{Config: &event.Config{Limit: limit}}, false, ""},
		{commit(10), false, ""},
		{tested(4), false, ""},
		{tested(3), true, "test_error = 3 reached the target 3"},
		{event.Record{State: &event.State{Limit: &limit}}, true, "test_error = 3 reached the target 3"},
		{commit(15), false, ""},
		{commit(20), true, ""},
		{event.Record{Plan: &event.Plan{At: 20}}, true, ""},
		{event.Record{Plan: &event.Plan{At: 10}}, false, ""},
		{commit(20), true, ""},
		{event.Record{State: &event.State{Limit: &event.Limit{Rounds: 30}}}, false, ""},
	} {
		if g.Take(step.record); g.Reached() != step.reached || g.Met != step.met {
			t.Errorf("after record %d: reached %t, met %q; want %t, %q", i, g.Reached(), g.Met, step.reached,
				step.met)
		}
	}
}
