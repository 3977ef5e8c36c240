//go:build unix

package program

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/enginetest"
	"brood/models/native"
	"brood/models/native/kernel"
	"brood/models/noise"
)

// TestTorchGPT: the model gpt-small and its PyTorch form, served by brood.py, have the same losses over twenty steps of
// SGD from the same parameters on the same windows of a text, up to rounding, and end with the same parameters.
func TestTorchGPT(t *testing.T) {
	python := enginetest.Python("torch")
	if python == "" {
		t.Skip("no python3 here has the package torch (Debian: python3-torch)")
	}
	m, err := models.Load("gpt-small")
	if err != nil {
		t.Fatal(err)
	}
	set, err := data.Reading{Context: m.Context(), Apart: true}.Load("tales")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "tales.txt")
	if err := os.WriteFile(file, set.Head(set.Len()+m.Context()), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := Open(t.Context(), []string{python, "testdata/gpt_small.py", file}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	theirs, err := p.Engine(1)
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	ours, err := native.NewEngine(m, set, 1, kernel.Best())
	if err != nil {
		t.Fatal(err)
	}
	x := make([]float32, m.Layout.Params)
	if err := m.Init(1, 0, x); err != nil {
		t.Fatal(err)
	}
	const steps, samples = 20, 8
	want, trained := descent(t, theirs, x, steps, samples)
	got, parameters := descent(t, ours, x, steps, samples)
	for i, loss := range got {
		t.Logf("step %d: PyTorch's loss is %v, ours differs by %.1g", i+1, want[i], loss-want[i])
		if math.Abs(float64(loss-want[i])) > 1e-5*float64(want[i]) {
			t.Errorf("step %d: PyTorch's loss is %v, ours %v", i+1, want[i], loss)
		}
	}
	if !(got[steps-1] < 0.8*got[0]) {
		t.Errorf("the loss goes from %v to %v", got[0], got[steps-1])
	}
	for i, v := range parameters {
		if math.Abs(float64(v-trained[i])) > 1e-4 {
			t.Fatalf("parameter %d is %v, with PyTorch %v", i, v, trained[i])
		}
	}
}

// descent takes steps of SGD from x on fixed batches, and returns their losses and the last parameters.
func descent(t *testing.T, e engine.Engine, x []float32, steps, samples int) (losses, last []float32) {
	t.Helper()
	var mats [2]engine.Mat
	for i := range mats {
		m, err := e.Alloc(1, len(x))
		if err != nil {
			t.Fatal(err)
		}
		mats[i] = m
	}
	if err := e.Write(t.Context(), engine.All(mats[0]), engine.AppendFloats(nil, x)); err != nil {
		t.Fatal(err)
	}
	key := noise.Key{Seed: 7, Purpose: noise.Order}
	for step := range steps {
		batch := make([]int32, samples)
		for i := range batch {
			batch[i] = int32(key.Below(step*samples+i, 100000))
		}
		loss := make([]float32, 1)
		err := e.Do(t.Context(),
			engine.Gradients{X: mats[0], Rows: engine.Rows(1), Batches: [][]int32{batch}, G: mats[1], Loss: loss},
			engine.Update{Rows: engine.Rows(1), Prog: []engine.Lin{
				{Dst: mats[0], Terms: []engine.Term{{C: 1, Src: mats[0]}, {C: -0.1, Src: mats[1]}}},
			}})
		if err == nil {
			err = e.Wait(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		losses = append(losses, loss[0])
	}
	bytes := make([]byte, 4*len(x))
	if err := e.Read(t.Context(), bytes, engine.All(mats[0])); err != nil {
		t.Fatal(err)
	}
	last = make([]float32, len(x))
	engine.ReadFloats(last, bytes)
	return losses, last
}
