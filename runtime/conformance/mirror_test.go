package conformance

import (
	"context"
	"testing"
	"time"

	"brood/runtime/event"
)

// killing returns a rig that kills workers after some of its commits: each kills lists positions among the workers that
// host members at that time.
func killing(r Rig, kills map[int][]int) Rig {
	commits := 0
	var workers []int
	r.OnRecord = func(rec event.Record) (out []event.Command) {
		switch {
		case rec.Plan != nil:
			workers = rec.Plan.New.Workers()
		case rec.Commit != nil:
			commits++
			for _, k := range kills[commits] {
				out = append(out, event.Command{Action: event.Kill, Worker: workers[k%len(workers)]})
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
		r := quick(Rig{Algorithm: name, Members: 6, Workers: 3, Rounds: 30, Seed: 4, OnLoss: "mirror", Respawn: time.Millisecond})
		want := run(t, r).Hash()
		r = killing(r, map[int][]int{3: {0}, 9: {1}, 15: {2}})
		o := run(t, r)
		if o.Hash() != want {
			t.Errorf("%s: another hash after three losses: %s, want %s", name, o.Hash(), want)
		}
		recovered := 0
		for i, rec := range o.Log.Records {
			switch p := rec.Plan; {
			case p == nil:
			case len(p.Lost) > 0 || p.From != event.Workers && p.Epoch > 1:
				t.Errorf("%s: record %d: the plan of epoch %d, from %s, loses members %v", name, i, p.Epoch, p.From, p.Lost)
			case len(p.Mirrored) > 0:
				recovered++
			}
			if c := rec.Commit; c != nil && (c.Evaluation["mirror"] > 0) != (name != "openai-es") { // all of its blocks are shared
				t.Errorf("%s: round %d: %d bytes of mirrors", name, c.To, c.Evaluation["mirror"])
			}
		}
		if recovered < 2 {
			t.Errorf("%s: %d plans recovered members from their mirrors", name, recovered)
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
