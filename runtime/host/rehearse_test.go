package host

import (
	"testing"

	"brood/models/engine/ram"
	"brood/optim"
	"brood/optim/catalog"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/runtime/worker"
	"brood/transport/local"
)

// TestRehearseWidth: what a rehearsal counts with narrow vectors in place of a model's is what the same round allocates
// at the model's width, for each algorithm that takes no gradients. Members are so many that a bound on elements shows.
func TestRehearseWidth(t *testing.T) {
	const members = 200
	for _, a := range catalog.All() {
		if a.Needs != optim.Evaluations {
			continue
		}
		j, err := Prepare(Options{Algorithm: a.Name, Model: "mlp-small", Data: "glyphs", Members: members, Workers: 1, Threads: 1, Limit: event.Limit{Rounds: 2}, By: "test",
			Set: []event.Setting{{Knob: "batch", Expr: "1"}}})
		if err != nil {
			t.Fatal(err)
		}
		scratch := func(c *counter, cfg worker.Config) int64 {
			w := worker.New(cfg)
			defer w.Free()
			plan := event.Plan{Epoch: 1, From: event.Fresh, New: optim.Place(optim.IDs(members), []int{0}), Algorithm: a.Name, Timeline: j.Edits}
			if r, ok := w.Handle(t.Context(), message.Plan{Plan: plan}).(message.Ready); !ok {
				t.Fatalf("%s: %+v", a.Name, r)
			}
			if d, ok := w.Handle(t.Context(), message.Grant{Epoch: 1, To: 1, Onward: true}).(message.Done); !ok {
				t.Fatalf("%s: %+v", a.Name, d)
			}
			return c.scratch
		}
		narrow := j.counter()
		wide := &counter{sizes: ram.Hollow{}, width: float64(j.Net.Layout.Params)}
		cfg := j.rehearsing(wide, (&local.Hub{}).Link(0), 0, 0, 0)
		cfg.Layout = j.Net.Layout
		predicted, real := scratch(narrow, j.rehearsing(narrow, (&local.Hub{}).Link(0), 0, 0, 0)), scratch(wide, cfg)
		if predicted != real {
			t.Errorf("%s: predicted %d bytes, allocated %d", a.Name, predicted, real)
		}
	}
}
