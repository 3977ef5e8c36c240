package evaluate

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"brood/runtime/event"
	"brood/runtime/host"
)

// TestLastGoodIsKept: a run that diverges long after its last good checkpoint still has its files, restores it without
// the edit that caused the divergence, and ends. The log verifies, and a resume starts at the last of the repeated
// rounds.
func TestLastGoodIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	ctx := context.Background()
	o := tiny(1 << 30)
	o.Algorithm, o.Probe, o.OnTrouble, o.Set = "dp-sgd", 1, "back", []event.Setting{{Knob: "batch", Expr: "8"}}
	// A linear model does not diverge so fast, and one with ReLU may end where the gradient is 0.
	o.Model = spec(t, "name = 'deep'\ninput = [1, 28, 28]\nclasses = 10\nlayer = [{kind = 'flatten'}, {kind = 'dense', "+
		"out = 16}, {kind = 'dense', out = 16}, {kind = 'dense', out = 10}]")
	var good, end uint64
	var saved []uint64 // rounds of all checkpoints
	var back *event.Plan
	saves, ruined := 0, false
	ask := func(r *host.Run, c event.Command) {
		go func() {
			if _, err := r.Command(ctx, c); err != nil {
				t.Errorf("%+v: %v", c, err)
			}
		}()
	}
	train(t, dir, prepare(t, o), nil, func(r *host.Run, rec event.Record) {
		if rec.Commit != nil {
			time.Sleep(time.Millisecond) // leaves time for a command before many more rounds are granted
		}
		switch {
		case rec.Commit != nil && back == nil && rec.Commit.To >= 4 && !ruined && saves == 0:
			saves++
			ask(r, event.Command{Action: event.Save})
		case rec.Checkpoint != nil && back == nil && !ruined:
			ruined, good = true, rec.Checkpoint.Round
			saved = append(saved, good)
			ask(r, event.Command{Set: []event.Setting{{Knob: "eta", Expr: "0.2"}}})
		case rec.Checkpoint != nil && back == nil:
			saved = append(saved, rec.Checkpoint.Round)
			if saves++; saves < 5 {
				ask(r, event.Command{Action: event.Save})
			}
		case rec.Edit != nil && rec.Edit.Expr == "0.2":
			ask(r, event.Command{Action: event.Save})
		case rec.Plan != nil && rec.Plan.Cause == "rollback" && back == nil:
			back = rec.Plan
			end = back.At + 20
			ask(r, event.Command{Limit: &event.Limit{Rounds: end}})
		}
	})
	if back == nil || back.At < good || !slices.Contains(saved, back.At) {
		t.Fatalf("good at %d, saved at %d, back to %+v", good, saved, back)
	}
	t.Logf("good at %d, saved at %d, back to %d", good, saved, back.At)
	if _, err := host.Verify(ctx, dir, 1, nil); err != nil {
		t.Fatal(err)
	}
	from, err := host.Restore(ctx, dir, 0, nil, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if from.Checkpoint.Round != end {
		t.Errorf("the resume starts after round %d, want %d", from.Checkpoint.Round, end)
	}
	checkAverages(t, dir, 0, end) // of the repeated rounds, not of those that diverged
}
