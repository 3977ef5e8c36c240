package worker_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"

	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/runtime/worker"
	"brood/transport/local"
)

// together passes an order to some workers at the same time and returns their replies. The failure of one ends the
// others, which would wait for it.
func together(t *testing.T, workers []*worker.Worker, m message.Order) []message.Report {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := make([]message.Report, len(workers))
	var all sync.WaitGroup
	for i, w := range workers {
		all.Go(func() {
			out[i] = w.Handle(ctx, m)
			if f, failed := out[i].(message.Failed); failed {
				t.Errorf("worker %d: %+v", w.ID(), f)
				cancel()
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return out
}

// mirroring returns three workers that mirror each other's rows, and their plan.
func mirroring(t *testing.T) ([]*worker.Worker, message.Plan) {
	t.Helper()
	hub := &local.Hub{}
	var workers []*worker.Worker
	for id := range 3 {
		workers = append(workers, toyWorker(t, id, hub.Link(id)))
	}
	p := message.Plan{Plan: event.Plan{Epoch: 1, From: event.Fresh, Algorithm: "popsgd",
		New:      collective.Place(collective.IDs(6), []int{0, 1, 2}),
		Timeline: []event.Edit{{Algorithm: "popsgd", Knob: "start", Expr: "own"}}}, Mirror: true}
	together(t, workers, p)
	return workers, p
}

// TestMirrorOfAPast: when a worker is gone, its members' rows of the committed round come from its mirror, although the
// mirror has executed a later grant since.
func TestMirrorOfAPast(t *testing.T) {
	workers, p := mirroring(t)
	want := map[string][32]byte{}
	for _, r := range together(t, workers, grant(1, 0, 2)) {
		maps.Copy(want, r.(message.Done).Digests.Map())
	}
	later := grant(1, 2, 3)
	later.Committed = 0
	together(t, workers, later)

	left := []*worker.Worker{workers[0], workers[2]}
	next := event.Plan{Epoch: 2, Base: 1, At: 2, From: event.Workers, Old: p.New, OldAlg: "popsgd", Algorithm: "popsgd",
		Before: p.Timeline, Timeline: p.Timeline, Mirrored: p.New.Hosted(1),
		New: collective.Place(collective.IDs(6), []int{0, 2})}
	together(t, left, message.Plan{Plan: next, Mirror: true})
	together(t, left, message.Save{Epoch: 2, At: 2}) // puts the plan into effect
	var names []string
	for _, w := range left {
		for name, sum := range w.Digests() {
			if names = append(names, name); want[name] != sum {
				t.Errorf("worker %d: row %s differs from that of round 2", w.ID(), name)
			}
		}
	}
	for _, name := range []string{"x/2", "m/3", "cursor/2"} {
		if !slices.Contains(names, name) {
			t.Errorf("no worker has row %s", name)
		}
	}
}
