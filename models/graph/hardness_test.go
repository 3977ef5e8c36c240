package graph

import (
	"context"
	"testing"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/longtest"
	"brood/models/noise"
)

// train runs epochs of Nesterov SGD (batch 128, eta 0.03, momentum 0.9) and returns the test error in percent.
func train(t *testing.T, model string, set *data.Set, epochs int) float64 {
	t.Helper()
	ctx := context.Background()
	m, err := models.Load(model)
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(m, set, 2)
	if err != nil {
		t.Fatal(err)
	}
	const batch, eta, mu = 128, 0.03, 0.9
	one := engine.Rows(1)
	x, g, buf, stats := ram.New(1, m.Layout.Params), ram.New(1, m.Layout.Params), ram.New(1, m.Layout.Params),
		ram.New(1, m.Layout.Stats)
	if err := m.Init(1, 0, flat(x)); err != nil {
		t.Fatal(err)
	}
	m.Layout.FreshStats(flat(stats))
	ids, loss := set.Train(), make([]float32, 1)
	w := data.Window{Len: len(ids)}
	b := make([]int32, batch)
	for at := 0; at < epochs*len(ids); at += batch {
		data.Batch(b, ids, noise.Key{Seed: 1, Purpose: noise.Order}, uint64(at), w)
		err := e.Do(ctx, engine.Gradients{
			X:       x,
			Rows:    one,
			Batches: [][]int32{b},
			Stats:   stats,
			Masks:   []noise.Key{{Seed: 1, Purpose: noise.Dropout, Round: uint64(at)}},
			G:       g,
			Loss:    loss,
		},
			engine.Update{Rows: one, Prog: []engine.Lin{
				{Dst: buf, Terms: []engine.Term{{C: mu, Src: buf}, {C: 1, Src: g}}},
				{Dst: x, Terms: []engine.Term{{C: 1, Src: x}, {C: -eta, Src: g}, {C: -eta * mu, Src: buf}}}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	correct := make([]int64, 1)
	if err := e.Do(ctx, engine.Evaluate{
		X:       x,
		Rows:    one,
		Batches: [][]int32{set.Test()},
		Stats:   stats,
		Loss:    make([]float64, 1),
		Correct: correct,
	}); err != nil {
		t.Fatal(err)
	}
	return 100 * (1 - float64(correct[0])/float64(len(set.Test())))
}

// TestGlyphsHardness: the default set is hard enough for a comparison of methods, and learnable in ten epochs.
func TestGlyphsHardness(t *testing.T) {
	longtest.Need(t, longtest.Kernels, "trains for half a minute")
	set, err := data.Load("glyphs")
	if err != nil {
		t.Fatal(err)
	}
	linear, mlp := train(t, "softmax", set, 10), train(t, "mlp", set, 10)
	t.Logf("test error: softmax %.2f%%, mlp %.2f%%", linear, mlp)
	if linear <= 8 || mlp < 1 || mlp > 4 {
		t.Errorf("test error of softmax %.2f%% (want above 8), of mlp %.2f%% (want 1 to 4)", linear, mlp)
	}
}
