package checkpoint

import (
	"fmt"
	"slices"
	"testing"

	"brood/runtime/event"
	"brood/runtime/option"
)

// saves gives a retention checkpoints of this size at the rounds.
func saves(k *Retention, bytes int64, rounds ...uint64) {
	for _, r := range rounds {
		files := []event.File{{Path: fmt.Sprint("checkpoints/", r, "/x"), Bytes: bytes}}
		k.Add(event.Record{Checkpoint: &event.Checkpoint{Round: r, Files: files}})
	}
}

// again returns the number of rounds that a fork after a round recomputes.
func (k *Retention) again(at uint64) uint64 {
	from := uint64(0)
	for _, cp := range k.cps {
		if cp.round <= at {
			from = max(from, cp.round)
		}
	}
	return at - from
}

// TestCheckpointsStayNear: within the bounds, a fork after any round recomputes at most the rounds since the newest
// checkpoint or between two checkpoints; the number of checkpoints is small.
func TestCheckpointsStayNear(t *testing.T) {
	const every = 10
	k := Retention{maxCount: 1000, maxBytes: 1 << 40}
	for r := uint64(every); r <= 1000*every; r += every {
		saves(&k, 1, r)
		for at := uint64(1); at <= r; at++ {
			if n := k.again(at); n > max(r-at, every) {
				t.Fatalf("with the newest at %d, a branch after %d executes %d rounds again", r, at, n)
			}
		}
	}
	if n := len(k.cps); n > 20 {
		t.Errorf("of 1000 checkpoints %d stay", n)
	}
}

func TestCheckpointsAreBounded(t *testing.T) {
	rounds := func(k Retention) (out []uint64) {
		for _, cp := range k.cps {
			out = append(out, cp.round)
		}
		return out
	}
	few, small := Retention{maxCount: 5, maxBytes: 1 << 40}, Retention{maxCount: 100, maxBytes: 35}
	none, old := Retention{maxCount: 2, maxBytes: 1 << 40}, Retention{maxCount: 100, maxBytes: 5}
	for r := uint64(10); r <= 10_000; r += 10 {
		for _, k := range []*Retention{&few, &small, &none, &old} {
			saves(k, 10, r)
		}
		if len(few.cps) > 5 || len(small.cps) > 5 || len(none.cps) > 2 || len(old.cps) > 2 {
			t.Fatalf("at %d there are %d, %d, %d and %d", r, len(few.cps), len(small.cps), len(none.cps), len(old.cps))
		}
	}
	for name, k := range map[string]Retention{"2 at most": none, "large ones": old} {
		if got := rounds(k); !slices.Equal(got, []uint64{9990, 10_000}) {
			t.Errorf("%s: %v stay", name, got)
		}
	}
	if got := rounds(few); len(got) != 5 || got[0] > 9500 {
		t.Errorf("of many 5 stay: %v", got)
	}
}

// TestCheckpointsAfterTrouble: a rollback removes later checkpoints, and a full disk keeps the one to resume from.
func TestCheckpointsAfterTrouble(t *testing.T) {
	k := NewRetention(option.Options{})
	for r := uint64(10); r <= 200; r += 10 {
		saves(&k, 1, r)
	}
	k.Add(event.Record{Plan: &event.Plan{At: 185}})
	if n := len(k.cps); n < 3 || k.cps[n-1].round > 185 {
		t.Errorf("after it went back to 185: %+v", k.cps)
	}
	saves(&k, 1, 190, 200, 210)
	k.Add(event.Record{Alert: &event.Alert{Kind: event.AlertDisk}})
	if n := len(k.cps); n != 2 || k.cps[0].round != 200 {
		t.Errorf("on a full disk: %+v", k.cps)
	}
	k.DropMissing(t.TempDir())
	if len(k.cps) > 0 || k.Paths() != nil {
		t.Error("what has no file stays")
	}
	if k = NewRetention(option.Options{More: map[string]string{"checkpoints": "3"}}); k.maxCount != 3 {
		t.Errorf("3 are %d", k.maxCount)
	}
}
