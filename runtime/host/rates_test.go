package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
		j, err := Prepare(Options{
			Algorithm: c.algorithm,
			Model:     c.model,
			Data:      "glyphs",
			Members:   2,
			Set:       c.set,
			Limit:     event.Limit{Rounds: 1},
		})
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

// TestBatchFollowsSamples: a run that ends by epochs lowers the default batch if a step would take more than an epoch,
// and only then.
func TestBatchFollowsSamples(t *testing.T) {
	path := filepath.Join(t.TempDir(), "few.csv")
	text := "x,y,class\n"
	for i := range 120 { // of which 92 train
		text += fmt.Sprintf("%d,%d,%s\n", i*7%31, i*5%17, "ab"[i%2:i%2+1])
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		o    Options
		want string
	}{
		"epochs":       {Options{Data: path, Limit: event.Limit{Epochs: 1}, Members: 4}, "2"},
		"one member":   {Options{Data: path, Members: 1}, "8"},
		"many members": {Options{Data: path, Limit: event.Limit{Epochs: 1}, Members: 64}, "1"},
		"rounds":       {Options{Data: path, Limit: event.Limit{Rounds: 3}, Members: 4}, ""},
		"given":        {Options{Data: path, Limit: event.Limit{Epochs: 1}, Members: 4, Set: []event.Setting{{Knob: "batch", Expr: "16"}}}, "16"},
		"many samples": {Options{Data: "glyphs", Model: "softmax", Limit: event.Limit{Epochs: 1}, Members: 4}, ""},
		"no gradients": {Options{Data: path, Algorithm: "snes", Limit: event.Limit{Epochs: 4}, Members: 4}, ""},
		"full batches": {Options{Data: path, Algorithm: "bgd", Limit: event.Limit{Epochs: 4}, Members: 1}, ""},
	} {
		j, err := Prepare(c.o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := ""
		for _, e := range j.Edits {
			if e.Knob == "batch" {
				got = e.Expr
			}
		}
		noted := strings.Contains(strings.Join(j.Notes, "\n"), "batch = ")
		if got != c.want || noted != (got != "" && name != "given") {
			t.Errorf("%s: batch %q, want %q; notes %q", name, got, c.want, j.Notes)
		}
	}
}
