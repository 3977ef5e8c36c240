package host

import (
	"path/filepath"
	"testing"

	"brood/runtime/event"
	"brood/runtime/session"
)

// TestSlowedRun: a slowed run has the same hash as a run at full speed, and its rounds take longer.
func TestSlowedRun(t *testing.T) {
	t.Parallel()
	run := func(slow float64) (hash string, fastest int64) {
		o := Options{
			Algorithm: "dp-sgd",
			Model:     "mlp-small",
			Members:   2,
			Threads:   1,
			Seed:      1,
			Evaluate:  event.NoTest,
			Limit:     event.Limit{Rounds: 4},
			Set:       []event.Setting{{Knob: "batch", Expr: "512"}}, // so that a round computes more than it waits
		}
		j, err := Prepare(o)
		if err != nil {
			t.Fatal(err)
		}
		j.Slow = NewDebt(slow, false)
		s, err := session.Create(filepath.Join(t.TempDir(), "s"))
		if err != nil {
			t.Fatal(err)
		}
		r, err := Start(j, s, nil, func(rec event.Record) {
			if c := rec.Commit; c != nil {
				hash = c.Hash
				if n := c.Nanos / int64(c.Rounds); fastest == 0 || n < fastest {
					fastest = n
				}
			}
			if rec.Evaluation != nil {
				t.Error("timeRounds ran a test")
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Train(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		return hash, fastest
	}
	hash, fast := run(0)
	same, slow := run(20)
	if hash != same {
		t.Errorf("slowed: %s, at full speed: %s", same, hash)
	}
	for range 10 { // other work may slow down every round of a fast run
		if slow < 5*fast {
			_, again := run(0)
			fast = min(fast, again)
		}
	}
	if slow < 5*fast { // 20 times, except for the part of a round that is not computing
		t.Errorf("a round takes at least %d ns, and %d ns slowed by 20", fast, slow)
	}
}
