package host

import (
	"testing"

	"brood/runtime/event"
)

// TestModelRate: a run starts with the learning rate of its model, unless the user sets another rate or another
// optimiser, or the algorithm uses no gradients.
func TestModelRate(t *testing.T) {
	set := func(knob, expr string) []event.Setting { return []event.Setting{{Knob: knob, Expr: expr}} }
	for _, c := range []struct {
		model, algorithm string
		set              []event.Setting
		want             map[string]string // of the edits by the model
	}{
		{"lenet-caffe", "dp-sgd", nil, map[string]string{"eta": "0.01"}},
		{"lenet-caffe", "parle", nil, map[string]string{"eta": "0.01", "eta_in": "0.01"}},
		{"lenet-caffe", "dp-sgd", set("eta", "0.05"), nil},
		{"lenet-caffe", "dp-sgd", set("optimiser", "adam"), nil},
		{"lenet-caffe", "easgd", nil, nil}, // its default differs from that of eta
		{"lenet-caffe", "openai-es", nil, nil},
		{"lenet", "dp-sgd", nil, nil},
	} {
		j, err := Prepare(Options{Algorithm: c.algorithm, Model: c.model, Data: "glyphs", Members: 2, Set: c.set, Limit: event.Limit{Rounds: 1}})
		if err != nil {
			t.Errorf("%s on %s: %v", c.algorithm, c.model, err)
			continue
		}
		got := 0
		for _, e := range j.Edits {
			if e.By == event.ByModel {
				if got++; c.want[e.Knob] != e.Expr {
					t.Errorf("%s on %s: %s = %s by the model", c.algorithm, c.model, e.Knob, e.Expr)
				}
			}
		}
		if got != len(c.want) {
			t.Errorf("%s on %s, %v: %d edits by the model, want %d", c.algorithm, c.model, c.set, got, len(c.want))
		}
	}
}
