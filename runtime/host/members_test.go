package host

import (
	"fmt"
	goruntime "runtime"
	"testing"

	"brood/models/longtest"
	"brood/optim/collective"
	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/transport/local"
)

// held returns the bytes on the heap after two rounds of a job whose members are all on one worker.
func held(t *testing.T, j *Job, onward bool) int64 {
	t.Helper()
	w, err := j.Worker(0, (&local.Hub{}).Link(0), nil, nil, 1, false)
	if err != nil {
		t.Fatal(err)
	}
	roster := collective.Place(collective.IDs(j.Members), []int{0})
	if r, ok := w.Handle(t.Context(), message.Plan{Plan: event.Plan{
		Epoch:     1,
		From:      event.Fresh,
		New:       roster,
		Algorithm: j.Alg.Name,
		Timeline:  j.Edits,
	}}).(message.Ready); !ok {
		t.Fatalf("%+v", r)
	}
	for at := range uint64(2) {
		if d, ok := w.Handle(t.Context(), message.Grant{
			Epoch:     1,
			From:      at,
			To:        at + 1,
			Committed: at,
			Onward:    onward,
		}).(message.Done); !ok {
			t.Fatalf("%+v", d)
		}
	}
	var m goruntime.MemStats
	goruntime.GC()
	goruntime.GC() // also what pools had retained
	goruntime.ReadMemStats(&m)
	goruntime.KeepAlive(w)
	return int64(m.HeapAlloc)
}

// TestMemoryPerMember compares the predicted memory of one more member with the heap: blocks and scratch without a
// snapshot, and the blocks once more with one. A member of Parle takes four rows of parameters, a data-parallel one a
// gradient.
func TestMemoryPerMember(t *testing.T) {
	longtest.Need(t, longtest.Studies, "measures 160 members of four models")
	for _, c := range []struct {
		algorithm string
		rows      float64 // per member, in rows of parameters
		snapshot  float64
	}{{"parle", 4, 3}, {"dp-sgd", 1, 0}} {
		job := func(members int) *Job {
			return prepare(t, Options{Algorithm: c.algorithm, Model: "mlp-small", Data: fewImages, Members: members, Workers: 1,
				Threads: 1, Limit: event.Limit{Rounds: 2}, By: "test",
				Set: []event.Setting{{Knob: "batch", Expr: "8"}}})
		}
		few, many := job(20), job(60)
		const more = 40
		row := float64(4 * few.Net.Layout.Params)
		a, err := few.dryRun()
		if err != nil {
			t.Fatal(err)
		}
		b, err := many.dryRun()
		if err != nil {
			t.Fatal(err)
		}
		near := func(what string, got, want float64) {
			t.Helper()
			if d := got - want; d > 0.06*max(want, row) || d < -0.06*max(want, row) {
				t.Errorf("%s, %s: %.0f bytes per member, want %.0f", c.algorithm, what, got, want)
			}
		}
		predicted := float64(b.blocks+b.scratch-a.blocks-a.scratch) / more
		near("predicted", predicted, c.rows*row)
		real := float64(held(t, many, true)-held(t, few, true)) / more
		near("on the heap", real, predicted)
		kept := float64(held(t, many, false)-held(t, few, false)) / more
		goruntime.KeepAlive([]*Job{few, many}) // whose data must not be freed
		near("with a snapshot", kept, predicted+c.snapshot*row)
		t.Logf("%s: predicted %.0f, on the heap %.0f, with snapshots %.0f bytes per member; a row has %.0f", c.algorithm,
			predicted, real, kept, row)
	}
}

// TestMemoryPerParameter compares the predicted memory of more parameters with the heap, for algorithms whose programs
// compute on rows themselves: blocks, scratch, their rows in double precision, and the engine's memory. The prediction
// includes a row for a probe, which these rounds do not have.
func TestMemoryPerParameter(t *testing.T) {
	longtest.Need(t, longtest.Studies, "measures twelve runs")
	for _, algorithm := range []string{"cr-fm-nes", "lm-ma-es", "sep-cma", "pgpe", "guided-es", "snes"} {
		job := func(model string) *Job {
			return prepare(t, Options{Algorithm: algorithm, Model: model, Data: fewImages, Members: 4, Workers: 1, Threads: 1,
				Limit: event.Limit{Rounds: 2}, By: "test",
				Set: []event.Setting{{Knob: "batch", Expr: "2"}}})
		}
		expected := func(j *Job) int64 {
			r, err := j.dryRun()
			if err != nil {
				t.Fatal(err)
			}
			single, err := j.engine("", 1)
			if err != nil {
				t.Fatal(err)
			}
			all := r.blocks + r.scratch + r.host
			for _, w := range r.works {
				all += single.EstimateMemory(w)
			}
			return all
		}
		small, large := job("mlp-small"), job("mlp")
		predicted, more := expected(small), expected(large)
		real, larger := held(t, small, true), held(t, large, true)
		goruntime.KeepAlive([]*Job{small, large}) // whose data must not be freed
		per := func(n int64) float64 {
			return float64(n) / float64(4*(large.Net.Layout.Params-small.Net.Layout.Params))
		}
		if want, got := per(more-predicted), per(larger-real); got < want-1.5 || got > want+0.1 {
			t.Errorf("%s: %.2f rows on the heap, predicted %.2f", algorithm, got, want)
		} else {
			t.Logf("%s: %.2f rows on the heap, predicted %.2f", algorithm, got, want)
		}
	}
}

// TestLargeAlone: the estimate counts the blocks of a single worker that hosts more than coordinator.KeepBytes once,
// and those of several workers four times.
func TestLargeAlone(t *testing.T) {
	with := func(workers int) *Job {
		return prepare(t, Options{
			Algorithm: "parle",
			Model:     "mlp",
			Data:      fewImages,
			Members:   100,
			Workers:   workers,
			Threads:   1,
			Limit:     event.Limit{Seconds: 1},
			By:        "test",
		})
	}
	j, two := with(1), with(2)
	r, err := j.dryRun()
	if err != nil || r.blocks <= coordinator.KeepBytes {
		t.Fatalf("%d bytes of blocks, %v", r.blocks, err)
	}
	if d := two.live(r, memory{}).host - j.live(r, memory{}).host; d != 3*r.blocks {
		t.Errorf("two workers are expected to need %d bytes more than one, want %d", d, 3*r.blocks)
	}
}

// BenchmarkMembers runs a cycle of five steps of Parle on `mlp`, each member on a hundredth of the data, on one worker
// that keeps no snapshot.
func BenchmarkMembers(b *testing.B) {
	for _, members := range []int{8, 1000} {
		b.Run(fmt.Sprint("n=", members), func(b *testing.B) {
			j, err := Prepare(Options{Algorithm: "parle", Model: "mlp", Data: "glyphs", Members: members, Workers: 1,
				Limit: event.Limit{Rounds: 1}, By: "test",
				Set: []event.Setting{{Knob: "batch", Expr: "128"}, {Knob: "split", Expr: "0.01"}, {Knob: "ell", Expr: "5"}}})
			if err != nil {
				b.Fatal(err)
			}
			w, err := j.Worker(0, (&local.Hub{}).Link(0), nil, nil, j.Threads, false)
			if err != nil {
				b.Fatal(err)
			}
			roster := collective.Place(collective.IDs(members), []int{0})
			w.Handle(b.Context(), message.Plan{Plan: event.Plan{
				Epoch:     1,
				From:      event.Fresh,
				New:       roster,
				Algorithm: "parle",
				Timeline:  j.Edits,
			}})
			at, each := uint64(0), uint64(max(1, 200/members))
			round := func() uint64 {
				d, ok := w.Handle(b.Context(), message.Grant{
					Epoch:     1,
					From:      at,
					To:        at + each,
					Committed: at,
					Onward:    true,
				}).(message.Done)
				if !ok {
					b.Fatalf("rounds %d to %d failed", at, at+each)
				}
				at += each
				return d.Progress.Samples
			}
			before := round() // warms up
			b.ResetTimer()
			var done uint64
			for range b.N {
				done = round()
			}
			b.ReportMetric(float64(done-before)/b.Elapsed().Seconds(), "samples/s")
		})
	}
}
