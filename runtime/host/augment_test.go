package host

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"brood/runtime/checkpoint"
	"brood/runtime/event"
)

func augmented(alg string, workers, threads int, rounds uint64) Options {
	o := tiny(rounds)
	o.Algorithm, o.Workers, o.Threads, o.Augment = alg, workers, threads, "pad=3,flip"
	switch alg {
	case "parle":
	case "hybrid-es":
		o.Set = nil
	default:
		o.Set = o.Set[1:]
	}
	return o
}

// The drawn augmentations do not depend on the worker that hosts a member or on the number of threads. Verify draws the
// same ones. A run without augmentation has another hash.
func TestAugmentedBits(t *testing.T) {
	for alg, model := range map[string]string{"parle": "lenets", "openai-es": "mlp-small", "hybrid-es": "softmax",
		"ga": "softmax"} {
		home, want, last := t.TempDir(), "", ""
		rounds := uint64(2)
		for _, c := range []struct{ workers, threads int }{{1, 1}, {2, 4}} {
			o := augmented(alg, c.workers, c.threads, rounds)
			o.Model = model
			last = filepath.Join(home, strings.Repeat("w", c.workers)+strings.Repeat("t", c.threads))
			got := train(t, last, prepare(t, o), nil, nil)
			if want == "" {
				want = got
			}
			if got != want {
				t.Errorf("%s with %d workers and %d threads: %s, want %s", alg, c.workers, c.threads, got, want)
			}
		}
		if v, err := Verify(t.Context(), last, 1, nil); err != nil || v.Rounds != rounds || v.Last.Hash != want {
			t.Errorf("verify %s: %+v, %v", alg, v.Result, err)
		}
		plain := augmented(alg, 1, 1, rounds)
		plain.Model, plain.Augment = model, "none"
		if got := train(t, filepath.Join(home, "plain"), prepare(t, plain), nil, nil); got == want {
			t.Errorf("%s: augmentation changes nothing", alg)
		}
	}
}

// A session with augmented data resumes to the hash of an uninterrupted run, and a fork draws the same augmentations as
// its parent.
func TestAugmentedResumes(t *testing.T) {
	const whole = 120
	ctx, home := context.Background(), t.TempDir()
	want := train(t, filepath.Join(home, "whole"), prepare(t, augmented("parle", 2, 2, whole)), nil, nil)
	dir := filepath.Join(home, "half")
	train(t, dir, prepare(t, augmented("parle", 2, 2, whole)), nil, stopAt(8))
	h, err := read(dir, 0)
	if err != nil || h.last.To == whole || h.config.Augment != "pad=3,flip" {
		t.Fatalf("stopped at %+v of %+v, %v", h.last, h.config, err)
	}
	from, err := Restore(ctx, dir, 0, nil, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := from.Continue(Options{Workers: 3, Threads: 1, Limit: event.Limit{Rounds: whole}}); err != nil {
		t.Fatal(err)
	}
	if got := train(t, dir, from.Job, from, nil); got != want {
		t.Errorf("resumed: %s, uninterrupted %s", got, want)
	}
	branch := filepath.Join(home, "branch")
	if from, err = Restore(ctx, dir, 7, &checkpoint.Files{Dir: branch}, 1, nil); err != nil {
		t.Fatal(err)
	}
	if err := from.Fork("half", Options{Threads: 1, Limit: event.Limit{Rounds: whole}}); err != nil {
		t.Fatal(err)
	}
	if got := train(t, branch, from.Job, from, nil); got != want {
		t.Errorf("a fork without an edit: %s, its parent %s", got, want)
	}
	for d, rounds := range map[string]uint64{dir: whole, branch: whole - 7} {
		if v, err := Verify(ctx, d, 2, nil); err != nil || v.Rounds != rounds || v.Last.Hash != want {
			t.Errorf("verify %s: %+v, %v", d, v.Result, err)
		}
	}
}

func TestAugmentRefused(t *testing.T) {
	table := filepath.Join(t.TempDir(), "table.csv")
	if err := os.WriteFile(table, []byte("a,b,label\n"+strings.Repeat("1,2.5,0\n3,4,1\n", 20)), 0o600); err != nil {
		t.Fatal(err)
	}
	model := filepath.Join(t.TempDir(), "two.toml")
	if err := os.WriteFile(model,
		[]byte("name = \"two\"\ninput = [2]\nclasses = 2\nlayer = [{kind = \"dense\", out = 2}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Options){
		"no images":           func(o *Options) { o.Data, o.Model = table, model },
		"such as pad=4,flip":  func(o *Options) { o.Augment = "rotate" },
		"pad=29 on images of": func(o *Options) { o.Augment = "pad=29" },
		"trains no model":     func(o *Options) { o.Algorithm, o.Model, o.Data, o.Set = "leader", "", "", nil },
	} {
		o := augmented("dp-sgd", 1, 1, 1)
		change(&o)
		if _, err := Prepare(o); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want one sentence with %s", err, want)
		}
	}
}
