package host

import (
	"path/filepath"
	"strings"
	"testing"

	"brood/models/data"
	"brood/optim/population"
	"brood/runtime/event"
	"brood/runtime/option"
)

// TestValidationSplit: a run holds out the configured share or number of validation samples, and its log, verify and a
// fork use the same split. Without validation samples, algorithms and targets that need them are rejected.
func TestValidationSplit(t *testing.T) {
	set, err := data.Load(fewImages)
	if err != nil {
		t.Fatal(err)
	}
	n := len(set.Train()) + len(set.Validation())
	home, hashes := t.TempDir(), map[string]bool{}
	for text, want := range map[string]int{"": len(set.Validation()), "0": 0, "100": 100, "0.25": n / 4} {
		o := tiny(4)
		if err := option.Validation.Set(&o, text); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(home, "v"+text)
		hash := runOrder(t, Order{Dir: dir, Options: o}, nil)
		hashes[hash] = true
		h, err := read(dir, 0)
		if err != nil {
			t.Fatal(err)
		}
		if h.config.Valid != want || h.config.Train != n-want {
			t.Errorf("--validation %q: %d for validation and %d to train on, want %d of %d", text, h.config.Valid,
				h.config.Train, want, n)
		}
		if v, err := Verify(t.Context(), dir, 1, nil); err != nil || v.Last.Hash != hash {
			t.Errorf("--validation %q: %+v, %v", text, v.Result, err)
		}
		if got := runOrder(t, Order{Dir: dir + "-branch", From: dir, At: 2, Options: Options{By: "fork"}}, nil); got != hash {
			t.Errorf("--validation %q: a fork has another hash", text)
		}
	}
	if len(hashes) != 4 {
		t.Error("different splits give the same hash")
	}
	for _, c := range []struct {
		change func(*Options)
		want   string
	}{
		{func(o *Options) { o.Algorithm, o.Set = population.PESGD.Name, nil }, "give --validation above 0"},
		{func(o *Options) { o.Algorithm, o.Set = population.PBT.Name, nil }, "give --validation above 0"},
		{func(o *Options) { o.Limit = event.Limit{Target: "fitness=-0.1"} }, "there are none: give --validation above 0"},
		{func(o *Options) { o.Limit = event.Limit{Target: "loss=0.1"} }, "there are none: give --validation above 0"},
		{func(o *Options) { o.More["validation"] = "1000000" }, "leaves none"},
		{func(o *Options) { o.More["validation"] = "1.5" }, "give a share below 1, or a whole number"},
		{func(o *Options) { o.More["validation"] = "-1" }, "give a share below 1, or a whole number"},
		{func(o *Options) { o.More["rebuild"] = "0" }, "give a number of samples, 1 or more, or all"},
		{func(o *Options) { o.More["rebuild"] = "most" }, "give a number of samples, 1 or more, or all"},
	} {
		o := tiny(4)
		o.More = map[string]string{"validation": "0"}
		c.change(&o)
		if _, err := Prepare(o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", o.More, err, c.want)
		}
	}
}

// TestRebuild: the number of samples that rebuild the centre's statistics changes its test loss and no bit of training.
func TestRebuild(t *testing.T) {
	home, hash, losses := t.TempDir(), "", map[float64]bool{}
	model := spec(t, "name = 'normed'\ninput = [1, 28, 28]\nclasses = 10\nlayer = [{kind = 'flatten'}, "+
		"{kind = 'batchnorm'}, {kind = 'dense', out = 10}]")
	for _, text := range []string{"", "128", "all", "2048"} {
		o := tiny(4)
		o.Model, o.Data = model, "glyphs" // of more than 2048 samples
		o.More = map[string]string{}
		if text != "" {
			o.More["rebuild"] = text
		}
		var loss float64
		got := runOrder(t, Order{Dir: filepath.Join(home, "r"+text), Options: o}, func(_ *Run, rec event.Record) {
			if rec.Evaluation != nil {
				loss = rec.Evaluation.TestLoss
			}
		})
		if hash == "" {
			hash = got
		}
		if got != hash {
			t.Errorf("--rebuild %s changes the hash", text)
		}
		losses[loss] = true
	}
	if len(losses) != 3 || losses[0] {
		t.Errorf("losses %v, want three: of 2048, which is the default, of 128 and of all", losses)
	}
}
