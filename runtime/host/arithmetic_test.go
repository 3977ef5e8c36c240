package host

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"brood/models"
	"brood/models/arith"
	"brood/models/data"
	"brood/models/longtest"
	"brood/models/native/kernel"
	"brood/optim"
	"brood/optim/averaging"
	"brood/optim/catalog"
	"brood/optim/coupled"
	"brood/optim/evolution"
	"brood/optim/population"
	"brood/runtime/event"
)

// mixed has convolutions with few channels, with many channels and with groups, and a dense layer whose matrix-vector
// products fill whole vector registers.
const mixed = `
name = "mixed"
input = [1, 28, 28]
classes = 10
layer = [{kind = "conv", out = 6, kernel = 5, stride = 2}, {kind = "batchnorm"}, {kind = "relu"}, {kind = "maxpool", kernel = 2},
  {kind = "conv", out = 8, kernel = 3, groups = 2}, {kind = "relu"}, {kind = "conv", out = 7, kernel = 3, pad = 1}, {kind = "relu"}, {kind = "dropout", rate = 0.2},
  {kind = "flatten"}, {kind = "dense", out = 64}, {kind = "relu"}, {kind = "dense", out = 10}]`

// briefly maps knobs to values that make rounds short. They apply to algorithms that have the knobs.
var briefly = map[string]string{"batch": "4", "ell": "2", "h": "2", "fragments": "2", "period": "0.01", "slice": "4",
	"judges": "4", "clip": "0.5", "decay": "0.001", "n": "30", "gap": "4"}

// brief returns the options of a short run of an algorithm.
func brief(a *optim.Algorithm, model, set string) Options {
	o := Options{
		Algorithm: a.Name,
		Members:   4,
		Workers:   1,
		Threads:   2,
		Seed:      3,
		Limit:     event.Limit{Rounds: 3},
		By:        "test",
		Evaluate:  1000,
		Probe:     1000,
	}
	if a.Needs.Model() {
		o.Model, o.Data = trains(a, model), set
	}
	for name, value := range briefly {
		if _, ok := a.Knob(name); ok && !(name == "slice" && !a.Needs.Model()) {
			o.Set = append(o.Set, event.Setting{Knob: name, Expr: value})
		}
	}
	return o
}

// trains returns the model, or an int8 model if the algorithm only trains whole numbers.
func trains(a *optim.Algorithm, model string) string {
	if a.Needs&optim.Whole != 0 {
		return "mlp-int8"
	}
	return model
}

// others returns all kernel variants of this machine except the best.
func others() (out []kernel.Variant) {
	for variant := kernel.Portable; variant < kernel.Best(); variant++ {
		out = append(out, variant)
	}
	return out
}

// agree records a run on the best kernel variant and verifies it on other variants.
func agree(t *testing.T, o Options, variants ...kernel.Variant) {
	t.Helper()
	t.Setenv("BROOD_CPU", "")
	dir := filepath.Join(t.TempDir(), "s")
	want := train(t, dir, prepare(t, o), nil, nil)
	for _, variant := range variants {
		t.Setenv("BROOD_CPU", variant.String())
		v, err := Verify(context.Background(), dir, 2, nil)
		if err != nil {
			t.Errorf("recorded on %s, executed on %s: %v", kernel.Best(), variant, err)
		} else if v.Last.Hash != want || v.Rounds != o.Limit.Rounds {
			t.Errorf("recorded on %s: %s; %d rounds on %s: %s", kernel.Best(), want, v.Rounds, variant, v.Last.Hash)
		}
	}
}

// spec writes a list of layers to a file and returns its path.
func spec(t *testing.T, text string) string {
	path := filepath.Join(t.TempDir(), "model.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// kinds lists algorithms that together use every kind of engine task: steps, candidates and their sums, scales,
// directions, crossover, whole numbers, encoded messages.
var kinds = []*optim.Algorithm{averaging.DPSGD, coupled.Parle, averaging.StreamingDiLoCo, averaging.DeMo,
	evolution.OpenAIES, evolution.EGG, evolution.SNES, evolution.CRFMNES, evolution.LMMAES, population.GA,
	population.PESGD}

// TestOneArithmetic: every algorithm of the catalog ends with the same hash on all kernel variants of this machine, and
// a session that was recorded on one verifies on the others. Without BROOD_LONG it covers the algorithms in kinds, each
// on one of the variants.
func TestOneArithmetic(t *testing.T) {
	model := spec(t, mixed)
	more := map[string][][2]string{"openai-es": {{"rank", "1"}, {"noise", "integer"}}, "parle": {{"thermal", "0.01"}},
		"dp-sgd": {{"eta", "cosine:0.1..0.01@3"}}}
	long := longtest.On(longtest.Arithmetic)
	for i, a := range catalog.All() {
		if !a.Needs.Model() || !long && !slices.Contains(kinds, a) {
			continue
		}
		t.Run(a.Name, func(t *testing.T) {
			variants := others()
			if !long && len(variants) > 0 {
				variants = variants[i%len(variants):][:1]
			}
			agree(t, brief(a, model, fewImages), variants...)
			for _, s := range more[a.Name] {
				if !long && s[0] != "noise" {
					continue
				}
				o := brief(a, model, fewImages)
				o.Set = append(o.Set, event.Setting{Knob: s[0], Expr: s[1]})
				agree(t, o, variants...)
			}
		})
	}
	t.Run("recorded on portable", func(t *testing.T) {
		t.Setenv("BROOD_CPU", "portable")
		dir := filepath.Join(t.TempDir(), "s")
		j := prepare(t, brief(coupled.Parle, "mlp-small", fewImages))
		want := train(t, dir, j, nil, nil)
		t.Setenv("BROOD_CPU", "")
		if v, err := Verify(context.Background(), dir, 1, nil); err != nil || v.Last.Hash != want {
			t.Errorf("recorded on portable: %s, executed on %s: %v, %v", want, kernel.Best(), v.Last, err)
		}
		if j.Config.Kernels != "f32/1" {
			t.Errorf("the log names %q", j.Config.Kernels)
		}
	})
}

// TestOneArithmeticOnDevice: for every algorithm of the catalog, a session that was recorded on the processor verifies
// on OpenCL and the reverse, with the same hashes. Without BROOD_LONG it covers two algorithms.
func TestOneArithmeticOnDevice(t *testing.T) {
	counted(t) // compiles once
	long, model := longtest.On(longtest.Arithmetic), spec(t, mixed)
	more := map[string][][2]string{"openai-es": {{"rank", "1"}, {"noise", "integer"}}, "parle": {{"thermal", "0.01"}}}
	for _, a := range catalog.All() {
		few := []*optim.Algorithm{coupled.Parle, evolution.OpenAIES}
		if !a.Needs.Model() || a.Needs&optim.Whole != 0 || !long && !slices.Contains(few, a) {
			continue
		}
		t.Run(a.Name, func(t *testing.T) {
			if across(t, brief(a, model, fewImages)); !long {
				return
			}
			for _, s := range more[a.Name] {
				o := brief(a, model, fewImages)
				o.Set = append(o.Set, event.Setting{Knob: s[0], Expr: s[1]})
				across(t, o)
			}
		})
	}
	if !long {
		return
	}
	t.Run("mlp, dp-sgd", func(t *testing.T) { across(t, brief(averaging.DPSGD, "mlp", fewImages)) })
	for model, a := range map[string]*optim.Algorithm{"bytes-mingru": averaging.DPSGD, "bytes-small": coupled.Parle,
		"bytes-attention": evolution.OpenAIES} {
		t.Run(model+", "+a.Name, func(t *testing.T) { across(t, brief(a, model, "tales")) })
	}
}

// across records a run on each of the two engines and verifies it on the other.
func across(t *testing.T, o Options) {
	t.Helper()
	var hashes []string
	for _, engines := range [][2]string{{"native", "opencl"}, {"opencl", "native"}} {
		dir := filepath.Join(t.TempDir(), "s")
		t.Setenv("BROOD_ENGINE", engines[0])
		want := train(t, dir, prepare(t, o), nil, nil)
		t.Setenv("BROOD_ENGINE", engines[1])
		if m, err := selectedEngine(arith.Name); err != nil || m.name != engines[1] {
			t.Fatalf("engine %v is selected, want %s: %v", m, engines[1], err)
		}
		v, err := Verify(context.Background(), dir, 2, nil)
		if err != nil {
			t.Errorf("recorded on %s, executed on %s: %v", engines[0], engines[1], err)
		} else if v.Last.Hash != want || v.Rounds != o.Limit.Rounds {
			t.Errorf("recorded on %s: %s; %d rounds on %s: %s", engines[0], want, v.Rounds, engines[1], v.Last.Hash)
		}
		hashes = append(hashes, want)
	}
	if hashes[0] != hashes[1] {
		t.Errorf("native %s, opencl %s", hashes[0], hashes[1])
	}
}

// TestOneArithmeticOnMNIST is TestOneArithmetic for models of the zoo, which have larger layers, on the portable
// variant.
func TestOneArithmeticOnMNIST(t *testing.T) {
	longtest.Need(t, longtest.Arithmetic, "executes resnet20 on the portable variant")
	if _, err := data.Load("mnist"); err != nil {
		t.Skip(err)
	}
	source, err := models.Source("resnet20")
	if err != nil {
		t.Fatal(err)
	}
	resnet := strings.Replace(string(source), "input = [3, 32, 32]", "input = [1, 28, 28]", 1)
	for i, model := range []string{"mlp", "lenet", spec(t, resnet)} {
		for _, a := range [][]*optim.Algorithm{{coupled.Parle, evolution.LMMAES}, {averaging.DPSGD, evolution.CRFMNES},
			{averaging.DPSGD}}[i] {
			o := brief(a, model, "mnist")
			o.Evaluate = event.NoTest // of 65,000 images
			t.Run(filepath.Base(model)+"/"+a.Name, func(t *testing.T) { agree(t, o, kernel.Portable) })
		}
	}
}
