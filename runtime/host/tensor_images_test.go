package host

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"brood/models/gpu"
	"brood/models/longtest"
	"brood/models/noise"
	"brood/runtime/event"
)

// stripes returns a folder with images of 5 x 5 in two classes: horizontal and vertical stripes.
func stripes(t *testing.T) string {
	t.Helper()
	dir, k := t.TempDir(), noise.Key{Seed: 4, Purpose: noise.Data}
	const n, side = 40, 5
	var x, y []byte
	for i := range n {
		y = append(y, byte(i%2))
		for p := range side * side {
			on := []int{p / side, p % side}[i%2] % 2
			x = append(x, byte(100*on+k.Below(i*side*side+p, 100)))
		}
	}
	for name, of := range map[string]struct {
		shape  string
		values []byte
	}{"x.npy": {fmt.Sprintf("%d, %d, %d", n, side, side), x}, "y.npy": {fmt.Sprintf("%d,", n), y}} {
		header := fmt.Sprintf("{'descr': '|u1', 'fortran_order': False, 'shape': (%s), }", of.shape)
		header += strings.Repeat(" ", 117-len(header)) + "\n"
		text := slices.Concat([]byte("\x93NUMPY\x01\x00"), []byte{byte(len(header)), 0}, []byte(header), of.values)
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestTensorConvolvesInRuns: a model of two convolutions trains in bf16 to about the loss of f32/1, and verifies.
// Tensor cores compute the gradients of the inputs, and not those of the weights.
func TestTensorConvolvesInRuns(t *testing.T) {
	longtest.Need(t, longtest.Devices, "interprets whole runs")
	was := drivers
	t.Cleanup(func() { drivers = was })
	drivers = []gpu.Driver{interpreted{}}
	o := Options{Algorithm: "dp-sgd", Data: stripes(t), Members: 2, Workers: 1, Threads: 1, Seed: 3,
		Limit: event.Limit{Rounds: 4}, By: "test", Probe: 4,
		Model: spec(t, "name = 'tiny'\ninput = [1, 5, 5]\nclasses = 2\nlayer = [{kind = 'conv', out = 3, kernel = 3, "+
			"pad = 1}, {kind = 'relu'}, {kind = 'conv', out = 2, kernel = 2}, {kind = 'flatten'}, {kind = 'dense', out = 2}]"),
		Set: []event.Setting{{Knob: "eta", Expr: "0.1"}, {Knob: "batch", Expr: "8"}}}
	losses := map[string]float64{}
	for _, o.Device = range []string{"cpu", "cuda:0,bf16"} {
		dir := filepath.Join(t.TempDir(), "s")
		hash := train(t, dir, prepare(t, o), nil, func(_ *Run, rec event.Record) {
			if p := rec.Points; p != nil && p.Series == "centre.loss" {
				losses[o.Device] = p.Values[0]
			}
		})
		if v, err := Verify(context.Background(), dir, 1, nil); err != nil || v.Last.Hash != hash {
			t.Errorf("on %s, again: %v, %v", o.Device, v.Last, err)
		}
	}
	if in, of := losses["cuda:0,bf16"], losses["cpu"]; in == of || math.Abs(in-of) > 0.02 {
		t.Errorf("in bf16 the loss is %g, in f32/1 %g", in, of)
	}
	t.Log(losses)
}
