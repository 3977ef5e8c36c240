package worker_test

import (
	"maps"
	"slices"
	"testing"

	"brood/runtime/event"
	"brood/runtime/message"
)

// TestHolds: workers that have executed rounds, and received plans, that no coordinator will commit hold the committed
// state all the same: their rows have the digests that they reported, and those of mirrors are equal. They continue
// from it with a plan of the epoch that they had already received.
func TestHolds(t *testing.T) {
	workers, p := mirroring(t)
	want, reported := map[string][32]byte{}, map[int]message.Digests{}
	for _, r := range together(t, workers, grant(1, 0, 2)) {
		d := r.(message.Done)
		reported[d.Worker] = d.Digests
		maps.Copy(want, d.Digests.Map())
	}
	later := grant(1, 2, 3)
	later.Committed = 0
	later.Edits = []event.Edit{{At: 2, Algorithm: "popsgd", Knob: "eta", Expr: "5"}}
	together(t, workers, later)
	for _, w := range workers { // a plan that was not logged
		w.Handle(t.Context(), message.Abort{Epoch: 3})
	}
	at := message.Committed{Epoch: 1, Round: 2}
	for id, w := range workers {
		for _, other := range []message.Committed{{Epoch: 2, Round: 2}, {Epoch: 1, Round: 7}} {
			if h, err := w.Holds(t.Context(), other); h != nil || err != nil {
				t.Errorf("worker %d holds %+v, %v", id, h, err)
			}
		}
		h, err := w.Holds(t.Context(), at)
		if err != nil || h == nil || h.Committed != at || !slices.Equal(h.Digests, reported[id]) {
			t.Fatalf("worker %d holds %+v, %v; it reported %+v", id, h, err, reported[id])
		}
		if len(h.Mirrored) == 0 {
			t.Errorf("worker %d has no mirrored rows", id)
		}
		for _, x := range h.Mirrored {
			if want[x.Row] != x.Sum || slices.ContainsFunc(h.Digests,
				func(own message.Digest) bool { return own.Row == x.Row }) {
				t.Errorf("worker %d mirrors %s otherwise than its owner reported", id, x.Row)
			}
		}
	}
	together(t, workers, message.Plan{Plan: event.Plan{Epoch: 2, Base: 1, At: 2, From: event.Workers, Old: p.New,
		New: p.New, OldAlg: "popsgd", Algorithm: "popsgd", Before: p.Timeline, Timeline: p.Timeline}})
	for _, r := range together(t, workers, grant(2, 2, 3)) {
		if d, ok := r.(message.Done); !ok || d.To != 3 {
			t.Errorf("%+v", r)
		}
	}
}
