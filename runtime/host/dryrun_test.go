package host

import (
	"context"
	"maps"
	"math"
	"strings"
	"sync"
	"testing"

	"brood/models/engine/ram"
	"brood/models/longtest"
	"brood/optim"
	"brood/optim/averaging"
	"brood/optim/catalog"
	"brood/optim/collective"
	"brood/optim/evolution"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/runtime/worker"
	"brood/transport/local"
)

// TestDryRunWidth: a dry run, whose vectors are narrower than those of the model, predicts the memory and the traffic
// of the same rounds at the model's width. It covers every algorithm that has vectors: with many members on one worker,
// so that limits in elements apply, with a model that has statistics, and on several workers that share vectors. Memory
// may differ by a thousandth, since shares of a vector are scaled; the traffic is exact. Without BROOD_LONG=conformance
// each algorithm takes one of the three cases.
func TestDryRunWidth(t *testing.T) {
	for i, c := range []struct {
		model            string
		members, workers int
	}{{"mlp-small", 200, 1}, {"lenets", 6, 3}, {"mlp-small", 8, 4}} {
		for n, a := range catalog.All() {
			c := c
			if a.Needs == 0 || a.Needs&optim.Evaluations == 0 && c.members > 100 ||
				!longtest.On(longtest.Conformance) && n%3 != i {
				continue
			}
			if a == evolution.CMAES { // its models are too small for a dry run with narrower vectors
				continue
			}
			if a.Needs&optim.Whole != 0 {
				c.model = "mlp-int8"
			}
			j := prepare(t, Options{Algorithm: a.Name, Model: c.model, Data: fewImages, Members: c.members, Workers: c.workers,
				Threads: 1, Limit: event.Limit{Rounds: 6}, By: "test",
				Set: []event.Setting{{Knob: "batch", Expr: "2"}}})
			wide := func(id int, link collective.Link) (*counter, worker.Config) {
				p, s := j.Net.Layout.Params, j.Net.Layout.Stats
				n := &counter{sizes: ram.Meta{}, width: float64(p), params: int64(p), stats: int64(s)}
				cfg := j.dryRunWorker(n, link, id, excerpt{probe: 3, evaluate: 2})
				cfg.Layout, cfg.Direct, cfg.Lookup = j.Net.Layout, j.Config.Direct, j.lookup
				return n, cfg
			}
			narrow := func(id int, link collective.Link) (*counter, worker.Config) {
				n := j.counter()
				return n, j.dryRunWorker(n, link, id, excerpt{probe: 3, evaluate: 2})
			}
			real, sent, _ := rounds(t, j, wide)
			scratch, _, predicted := rounds(t, j, narrow)
			limit := 1e-3
			if a == averaging.SPARTA { // of a narrow vector it averages a single value
				limit = 5e-3
			}
			if far := math.Abs(float64(scratch-real)) / float64(real); far > limit ||
				c.workers == 1 && a != averaging.StreamingDiLoCo && far > 0 {
				t.Errorf("%s, %d of %s on %d: predicted %d bytes, allocated %d", a.Name, c.members, c.model, c.workers,
					scratch, real)
			}
			if none := func(_ collective.Op, b int64) bool { return b == 0 }; a.Bytes != nil {
				maps.DeleteFunc(sent, none)
				maps.DeleteFunc(predicted, none)
				if !maps.Equal(sent, predicted) {
					t.Errorf("%s, %d of %s on %d: predicted %v bytes, sent %v", a.Name, c.members, c.model, c.workers, predicted, sent)
				}
			}
		}
	}
}

// rounds executes six rounds of a job on the given counters. It returns the allocated bytes, the sent bytes and the
// predicted bytes.
func rounds(t *testing.T, j *Job, made func(int, collective.Link) (*counter, worker.Config)) (scratch int64, sent,
	predicted collective.Ledger) {
	t.Helper()
	hub, counters, workers, ids := &local.Hub{}, make([]*counter, j.Workers), make([]*worker.Worker, j.Workers),
		make([]int, j.Workers)
	for i := range ids {
		c, cfg := made(i, hub.Link(i))
		ids[i], counters[i], workers[i] = i, c, worker.New(cfg)
		defer workers[i].Free()
	}
	together := func(m message.Order) []message.Report {
		replies := make([]message.Report, len(workers))
		var wg sync.WaitGroup
		for i, w := range workers {
			wg.Go(func() { replies[i] = w.Handle(t.Context(), m) })
		}
		wg.Wait()
		return replies
	}
	together(message.Plan{Plan: event.Plan{
		Epoch:     1,
		From:      event.Fresh,
		New:       collective.Place(collective.IDs(j.Members), ids),
		Algorithm: j.Alg.Name,
		Timeline:  j.Edits,
	}})
	for _, c := range counters {
		scratch -= c.scratch // blocks
	}
	sent, predicted = collective.Ledger{}, collective.Ledger{}
	for n := range uint64(6) {
		for _, r := range together(message.Grant{Epoch: 1, From: n, To: n + 1, Committed: n, Onward: true}) {
			d, ok := r.(message.Done)
			if !ok {
				t.Fatalf("%s: %+v", j.Alg.Name, r)
			}
			sent.Add(d.Sent)
			predicted.Add(d.Predicted)
		}
	}
	for _, c := range counters {
		scratch += c.scratch
	}
	return scratch, sent, predicted
}

// TestDryRunDeadlock: a dry run of an algorithm that leaves out an exchange on one worker names the workers.
func TestDryRunDeadlock(t *testing.T) {
	j := prepare(t, Options{Algorithm: averaging.DPSGD.Name, Model: "mlp-small", Data: fewImages, Members: 4, Workers: 2,
		Threads: 1, By: "test"})
	whole := averaging.DPSGD.Program
	averaging.DPSGD.Program = absent{whole}
	defer func() { averaging.DPSGD.Program = whole }()
	_, err := j.count(excerpt{rounds: 1})
	if err == nil || !strings.Contains(err.Error(), "worker 1 waits for a frame that worker 0 never sends") {
		t.Error(err)
	}
}

// absent is a program that worker 0 does not take part in.
type absent struct{ optim.Program }

func (p absent) Round(ctx context.Context, e *optim.Env, k optim.Values, round uint64) (optim.Report, error) {
	if e.Self == 0 {
		return optim.Report{}, nil
	}
	return p.Program.Round(ctx, e, k, round)
}
