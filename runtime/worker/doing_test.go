package worker_test

import (
	"context"
	"slices"
	"testing"

	"brood/models/engine"
	"brood/optim/catalog"
	"brood/optim/collective"
	"brood/runtime/conformance"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/runtime/worker"
	"brood/transport/local"
)

// TestDoing: a worker reports the members that it has initialised, the round that it executes and the members that
// took their steps of it, and nothing while it waits for orders.
func TestDoing(t *testing.T) {
	toy, err := conformance.NewToy(false)
	if err != nil {
		t.Fatal(err)
	}
	var w *worker.Worker
	var seen []worker.Doing
	first := toy.Init(1)
	w = worker.New(worker.Config{Layout: toy.Layout(), Engine: watched{toy, func() { seen = append(seen, w.Doing()) }},
		Data: toy, Link: (&local.Hub{}).Link(0), Lookup: catalog.Lookup,
		Store: &conformance.Memory{}, Clock: func() int64 { return 7 },
		Init: func(ctx context.Context, m engine.Member, p []float32) error {
			seen = append(seen, w.Doing())
			return first(ctx, m, p)
		}})
	const members = 5
	p := message.Plan{Plan: event.Plan{
		Epoch:     1,
		From:      event.Fresh,
		Algorithm: "pesgd",
		Timeline:  []event.Edit{{Algorithm: "pesgd", Knob: "start", Expr: "own"}},
		New:       collective.Place(collective.IDs(members), []int{0}),
	}}
	ready(t, w, p)
	if want := (worker.Doing{
		Stage:   worker.StageMembers,
		Since:   7,
		Done:    members,
		Of:      members,
		Members: members,
	}); seen[len(seen)-1] != want {
		t.Errorf("once all members are initialised it does %+v, want %+v", seen[len(seen)-1], want)
	}
	seen = nil
	done(t, w, grant(1, 0, 2))
	var rounds []uint64
	most := 0
	for _, d := range seen {
		if d.Stage == worker.StageRound {
			rounds, most = append(rounds, d.Round), max(most, d.Done)
			if d.Of != members || d.Done > members {
				t.Errorf("within a round: %+v", d)
			}
		}
	}
	if rounds = slices.Compact(rounds); !slices.Equal(rounds, []uint64{1, 2}) || most == 0 {
		t.Errorf("rounds %v, at most %d members had stepped", rounds, most)
	}
	if d := w.Doing(); d != (worker.Doing{}) {
		t.Errorf("after the grant it does %+v", d)
	}
}

// watched is a toy with one lane, which calls seen before each list of tasks.
type watched struct {
	*conformance.Toy
	seen func()
}

func (w watched) Do(ctx context.Context, tasks ...engine.Task) error {
	w.seen()
	return w.Toy.Do(ctx, tasks...)
}

func (w watched) Threads() int { return 1 }

func (w watched) ThreadEngines() []engine.Doer { return []engine.Doer{w} }
