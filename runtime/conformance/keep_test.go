package conformance

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"brood/models/engine"
	"brood/runtime/event"
)

// TestAloneWithoutSnapshots: a worker that hosts all members and more than Keep bytes keeps no snapshot. The run has
// the hash of one with snapshots; after a block that is not finite it returns to the checkpoint, and the population
// still moves to a worker that joins.
func TestAloneWithoutSnapshots(t *testing.T) {
	ctx := context.Background()
	base := quick(Rig{Algorithm: "parle", Members: 4, Workers: 1, Rounds: 30, Seed: 7})
	want := run(t, base).Hash()
	r := base
	r.Keep, r.JoinAfter = 1, 6
	o := run(t, r)
	if o.Hash() != want {
		t.Errorf("hash %s, with snapshots %s", o.Hash(), want)
	}
	if _, err := r.Verify(ctx, o); err != nil {
		t.Errorf("verify: %v", err)
	}

	r.JoinAfter = 0
	commits, fired, back := 0, false, event.Plan{}
	var saved atomic.Uint64
	var alert string
	r.Rounds = 1 << 30
	r.Poison = func(m engine.Member, cursor uint64) bool { // one worker, so one goroutine
		if m != 2 || cursor < 800 || saved.Load() == 0 || fired {
			return false
		}
		fired = true
		return true
	}
	r.OnRecord = func(rec event.Record) []event.Command {
		switch {
		case rec.Checkpoint != nil:
			saved.CompareAndSwap(0, rec.Checkpoint.Round)
		case rec.Alert != nil && rec.Alert.Kind == "non-finite":
			alert = rec.Alert.Text
		case rec.Plan != nil && rec.Plan.Cause == "rollback":
			back = *rec.Plan
			return []event.Command{{Action: event.Resume}}
		case rec.Commit != nil:
			if commits++; commits == 3 {
				return []event.Command{{Action: event.Save}}
			}
			if back.Epoch > 0 && rec.Commit.To > 100 {
				back.Epoch = 0
				return []event.Command{{Action: event.Stop}}
			}
		}
		return nil
	}
	o, err := r.Run(ctx)
	if err != nil || o.Exit.Phase != event.Stopped {
		t.Fatalf("%+v, %v", o, err)
	}
	if saved.Load() == 0 || back.At != saved.Load() || back.From != event.Saved ||
		!strings.Contains(alert, "is not finite") {
		t.Errorf("saved round %d, returned to %d from %q: %s", saved.Load(), back.At, back.From, alert)
	}
	r.Poison = nil
	if _, err := r.Verify(ctx, o); err != nil {
		t.Errorf("verify: %v", err)
	}
}
