package graph

import (
	"context"
	"math"
	"testing"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/noise"
)

// TestGradientsDoNotDependOnAlignment: the bits of a gradient do not depend on the address of its row: the same member
// is row 0 of one matrix and row 1, 2 and 3 of others, at every alignment to 16 bytes that float32 allows.
func TestGradientsDoNotDependOnAlignment(t *testing.T) {
	m, err := models.Load("lenets")
	if err != nil {
		t.Fatal(err)
	}
	d, err := data.Glyphs(64, 16)
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(m, d, 1)
	if err != nil {
		t.Fatal(err)
	}
	P, S := m.Layout.Params, m.Layout.Stats
	var want []float32
	for shift := range 4 {
		place := func(n int) engine.Mat {
			return ram.Of(engine.Host{Rows: 1, Cols: n, F: make([]float32, n+shift)[shift:]})
		}
		x, g, stats := place(P), place(P), place(S)
		if err := m.Init(1, 0, flat(x)); err != nil {
			t.Fatal(err)
		}
		m.Layout.FreshStats(flat(stats))
		task := engine.Gradients{
			X:       x,
			Rows:    engine.Rows(1),
			Batches: [][]int32{d.Train()[:8]},
			Stats:   stats,
			Masks:   []noise.Key{{Seed: 1, Purpose: noise.Dropout}},
			G:       g,
			Loss:    make([]float32, 1),
		}
		if err := e.Do(context.Background(), task); err != nil {
			t.Fatal(err)
		}
		got := append(append([]float32(nil), flat(g)...), flat(stats)...)
		if want == nil {
			want = got
		}
		for i := range want {
			if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
				t.Fatalf("%d bytes off: element %d is %v, aligned %v", 4*shift, i, got[i], want[i])
			}
		}
	}
}
