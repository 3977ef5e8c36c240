package host

import (
	"path/filepath"
	"testing"

	"brood/runtime/event"
	"brood/runtime/session"
)

// A run of a slowed job has the hash of one that hurries, and each of its rounds takes longer.
func TestSlowedRun(t *testing.T) {
	t.Parallel()
	run := func(slow float64) (hash string, fastest int64) {
		o := Options{Algorithm: "dp-sgd", Model: "mlp-small", Members: 2, Threads: 1, Seed: 1, Evaluate: event.NoTest, Limit: event.Limit{Rounds: 6}}
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
				t.Error("the run was tested, though it shall not be")
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
		t.Errorf("slowed down it ends as %s, else as %s", same, hash)
	}
	for range 10 { // other work may slow down every round of a fast run
		if slow < 5*fast {
			_, again := run(0)
			fast = min(fast, again)
		}
	}
	if slow < 5*fast { // twenty times, but for what a round has beside computing
		t.Errorf("a round takes %d ns at the least, and %d where it is to be 20 times as slow", fast, slow)
	}
}
