package conformance

import (
	"context"
	"testing"
	"time"

	"brood/runtime/event"
)

// killing returns a rig that kills up to n workers, one after the other: each after two commits of a plan in which as
// many workers host members as at the start.
func killing(r Rig, n int) Rig {
	killed, commits := 0, 0
	var workers []int
	r.OnRecord = func(rec event.Record) (out []event.Command) {
		switch {
		case rec.Plan != nil:
			workers, commits = rec.Plan.New.Workers(), 0
		case rec.Commit != nil:
			if commits++; commits == 2 && len(workers) == r.Workers && killed < n {
				out = append(out, event.Command{Action: event.Kill, Worker: workers[killed%len(workers)]})
				killed++
			}
		}
		return out
	}
	return r
}

// TestMirror: with mirrors, the loss of a worker repeats no committed round and changes no bit, and a recording of it
// verifies.
func TestMirror(t *testing.T) {
	for _, name := range []string{"parle", "popsgd", "pbt", "openai-es", "localsgd", "pesgd", "ad-psgd"} {
		r := quick(Rig{
			Algorithm: name,
			Members:   6,
			Workers:   3,
			Rounds:    60,
			Seed:      4,
			OnLoss:    "mirror",
			Respawn:   time.Millisecond,
		})
		want := run(t, r).Hash()
		r = killing(r, 3)
		o := run(t, r)
		if o.Hash() != want {
			t.Errorf("%s: another hash after losses: %s, want %s", name, o.Hash(), want)
		}
		recovered, hosts := 0, 0
		for i, rec := range o.Log.Records {
			if p := rec.Plan; p != nil {
				hosts = len(p.New.Workers())
				if len(p.Lost) > 0 || p.From != event.Workers && p.Epoch > 1 {
					t.Errorf("%s: record %d: the plan of epoch %d, from %s, loses members %v", name, i, p.Epoch, p.From, p.Lost)
				}
				if len(p.Mirrored) > 0 {
					recovered++
				}
			}
			mirrored := hosts > 1 && name != "openai-es" // all of its blocks are shared
			if c := rec.Commit; c != nil && (c.Evaluation["mirror"] > 0) != mirrored {
				t.Errorf("%s: round %d on %d workers: %d bytes of mirrors", name, c.To, hosts, c.Evaluation["mirror"])
			}
		}
		if recovered == 0 {
			t.Errorf("%s: no plan recovered members from a mirror", name)
		}
		if err := order(o.Log.Records); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		r.OnRecord = nil
		if _, err := r.Verify(context.Background(), o); err != nil {
			t.Errorf("%s: verify: %v", name, err)
		}
	}
}
