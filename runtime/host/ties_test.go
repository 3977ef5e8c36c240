package host_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"brood/models/objective"
	"brood/runtime/event"
	"brood/runtime/host"
)

// byOrder has the first digits of the hash that each algorithm's run on steps had before the knob ties existed.
var byOrder = map[string]string{
	"openai-es": "blake3:29ed862e38d3ec03", "snes": "blake3:7b8ec8f3262fae28", "sep-cma": "blake3:d5944868539d9551",
	"cr-fm-nes": "blake3:98eeea8c80f4a743", "lm-ma-es": "blake3:70c1844808ebbe12", "pgpe": "blake3:4b0fbc24f9038825",
}

// TestTiesAreRecorded: a new run records ties = mean and verifies. A run with ties = order has the hash of a log
// without the knob, as logs from before the knob are. Without equal results both have the same hash.
func TestTiesAreRecorded(t *testing.T) {
	steps := func(x []float32, _ uint64) (float64, error) { return float64(int(4 * x[0])), nil }
	smooth := func(x []float32, _ uint64) (float64, error) { return -float64(x[0]*x[0]) - float64(x[1]), nil }
	for _, algorithm := range []string{"openai-es", "snes", "sep-cma", "cr-fm-nes", "lm-ma-es", "pgpe"} {
		t.Run(algorithm, func(t *testing.T) {
			run := func(f objective.Func, name string, set ...event.Setting) (hash string, plain bool) {
				t.Helper()
				own, dir := &host.Own{Objective: &objective.Objective{Spec: objective.Flat(4), Func: f}},
					filepath.Join(t.TempDir(), name)
				o := host.Options{Algorithm: algorithm, Members: 16, Workers: 2, Seed: 3, Limit: event.Limit{Rounds: 8}, Set: set}
				job, err := host.Prepare(host.Options{
					Algorithm: o.Algorithm,
					Members:   o.Members,
					Seed:      o.Seed,
					Limit:     o.Limit,
					Set:       set,
					Own:       own,
				})
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range job.Edits {
					plain = plain || e.Knob == "ties" && e.Expr == "order"
				}
				if _, hash, err = maximise(context.Background(), own, dir, o); err != nil {
					t.Fatal(err)
				}
				if v, err := own.Verify(context.Background(), dir, 1, nil); err != nil || v.Last.Hash != hash {
					t.Errorf("%s: verify %v, %v", name, v.Last, err)
				}
				return hash, plain
			}
			order := event.Setting{Knob: "ties", Expr: "order"}
			byDefault, _ := run(steps, "default")
			mean, _ := run(steps, "mean", event.Setting{Knob: "ties", Expr: "mean"})
			was, plain := run(steps, "order", order)
			if !plain || byDefault != mean || byDefault == was {
				t.Errorf("default %s, mean %s, by order %s", byDefault, mean, was)
			}
			if want := byOrder[algorithm]; !strings.HasPrefix(was, want) {
				t.Errorf("by order %s, want %s as before the knob", was, want)
			}
			a, _ := run(smooth, "smooth")
			if b, _ := run(smooth, "smooth by order", order); a != b {
				t.Errorf("without equal results ties = mean ends as %s, ties = order as %s", a, b)
			}
		})
	}
}
