package host

import (
	"testing"
	"time"

	"brood/runtime/view"
	"brood/runtime/worker"
)

// TestDoingOfOthers: the view has the earliest stage, and counts workers of later stages as done. It ignores idle
// workers and stages that only later versions know.
func TestDoingOfOthers(t *testing.T) {
	now := time.Unix(100, 0)
	since := func(d time.Duration) int64 { return now.Add(-d).UnixNano() }
	var s measurements
	unknown := worker.Doing{Stage: "warmup", Since: since(time.Hour), Members: 9}
	if d := s.doing(now, []worker.Doing{{}, unknown}); d != nil {
		t.Errorf("idle workers: %+v", d)
	}
	got := s.doing(now, []worker.Doing{
		{},
		{Stage: worker.StageRound, Since: since(9 * time.Second), Round: 1, Done: 1, Of: 4, Members: 4},
		{Stage: worker.StageMembers, Since: since(2 * time.Second), Done: 5, Of: 8, Members: 8},
		unknown,
		{Stage: worker.StageMembers, Since: since(3 * time.Second), Done: 1, Of: 2, Members: 2},
	})
	want := view.Doing{Stage: view.StageMembers, For: 3 * time.Second, Done: 4 + 5 + 1, Of: 4 + 8 + 2, Members: 14}
	if got == nil || *got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
