package graph

import (
	"context"
	"math"
	"testing"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/native"
	"brood/models/native/kernel"
	"brood/models/noise"
)

// TestEnginesAgree: nets of the zoo that are too large for finite differences give the same loss, gradient and
// statistics with gorgonia and the native kernels, up to rounding.
func TestEnginesAgree(t *testing.T) {
	ctx := context.Background()
	for _, name := range []string{"allcnns", "lenet", "lenet-caffe", "darwinn-10k", "eggroll"} {
		t.Run(name, func(t *testing.T) {
			m, err := models.Load(name)
			if err != nil {
				t.Fatal(err)
			}
			set := pictures(t, m)
			slow, err := New(m, set, 1)
			if err != nil {
				t.Fatal(err)
			}
			fast, err := native.NewEngine(m, set, 1, kernel.Best())
			if err != nil {
				t.Fatal(err)
			}
			x := ram.New(1, m.Layout.Params)
			if err := m.Init(3, 0, flat(x)); err != nil {
				t.Fatal(err)
			}
			var got [2]engine.Gradients
			for i, e := range []interface {
				Do(context.Context, ...engine.Task) error
			}{slow, fast} {
				g := engine.Gradients{X: x, Rows: engine.Rows(1), Batches: [][]int32{set.Train()[:37]},
					Stats: ram.New(1, m.Layout.Stats),
					Masks: []noise.Key{{Seed: 2, Purpose: noise.Dropout, Round: 5}}, G: ram.New(1, m.Layout.Params),
					Loss: make([]float32, 1)}
				m.Layout.FreshStats(flat(g.Stats))
				if err := e.Do(ctx, g); err != nil {
					t.Fatal(err)
				}
				got[i] = g
			}
			close(t, "loss", got[1].Loss, got[0].Loss, 1e-5)
			close(t, "statistics", flat(got[1].Stats), flat(got[0].Stats), 1e-4)
			for _, tn := range m.Layout.Tensors {
				close(t, tn.Name, flat(got[1].G)[tn.Lo:tn.Lo+tn.Len], flat(got[0].G)[tn.Lo:tn.Lo+tn.Len], 1e-2)
			}
		})
	}
}

// close compares the root mean square of the difference with the root mean square of want.
func close(t *testing.T, what string, got, want []float32, tol float64) {
	t.Helper()
	var diff, size float64
	for i, w := range want {
		d := float64(got[i]) - float64(w)
		diff, size = diff+d*d, size+float64(w)*float64(w)
	}
	if !(diff <= tol*tol*size+1e-11) { // the gradient of a bias before batch-norm is only rounding error
		t.Errorf("%s: differs by %.3g of %.3g (root of the sum of squares)", what, math.Sqrt(diff), math.Sqrt(size))
	}
}

// pictures returns random images of the model's shape.
func pictures(t *testing.T, m *models.Model) *data.Set {
	t.Helper()
	const n = 60
	key := noise.Key{Seed: 5, Purpose: noise.Data}
	r := data.Raster{Pixels: make([]byte, n*m.Features), Labels: make([]uint16, n)}
	for i := range r.Pixels {
		r.Pixels[i] = byte(key.Uint32(i))
	}
	for i := range r.Labels {
		r.Labels[i] = uint16(i % m.Classes)
	}
	s, err := data.New(data.Info{Name: "noise", Shape: m.Input, Classes: m.Classes}, r, data.Raster{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
