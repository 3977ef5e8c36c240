package gpu_test

import (
	"context"
	"testing"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/enginetest"
	"brood/models/gpu"
	"brood/models/gpu/ptxtest"
	"brood/models/longtest"
)

// TestPTXHasTheSameBits: the PTX given to NVIDIA's driver computes the same bits as the native engine. With
// BROOD_LONG=devices every kernel of it is run.
func TestPTXHasTheSameBits(t *testing.T) {
	toy, long := enginetest.Toy(t, 2, 5, 6), longtest.On(longtest.Devices)
	cut, err := toy.Augmented(data.Augment{Pad: 2, Reflect: true, Flip: true, Alternate: true})
	if err != nil {
		t.Fatal(err)
	}
	unused := map[string]int{}
	cases := []struct {
		name   string
		set    *data.Set
		shape  string
		layers []string
		long   bool
	}{
		{"all layers", toy, "[2,5,6]", tiny[0], true},
		{"pools", toy, "[2,5,6]", tiny[1], false},
		{"activations", toy, "[2,5,6]", tiny[2], false},
		{"distance", toy, "[2,5,6]", tiny[3], false},
		{"regression", enginetest.ToyFor(t, 2, 24, 2, 5, 6), "[2,5,6]", []string{"loss huber outputs=2", "flatten", "dense out=3", "relu", "dense out=2"}, false},
		{"several classes", enginetest.ToyLabels(t, 5, 24, 2, 5, 6), "[2,5,6]", []string{"loss bce classes=5", "flatten", "dense out=3", "relu", "dense out=5"}, false},
		{"weighted", enginetest.Weighted(t, 2, 5, 6), "[2,5,6]", []string{"flatten", "dense out=3"}, false},
		{"more classes than a byte", enginetest.ToyOf(t, 300, 24, 2, 5, 6), "[2,5,6]", []string{"flatten", "dense out=300"}, true},
		{"a pool behind a product", toy, "[2,5,6]", []string{"conv out=2 kernel=1", "avgpool kernel=2", "conv out=3 kernel=1", "globalavgpool", "dense out=3", "relu"}, false},
		{"bytes", enginetest.Toy(t, 1, 5, 6), "[1,5,6]", []string{"flatten", "dense out=5", "relu", "dense out=3"}, false},
		{"drawn", cut, "[2,5,6]", []string{"flatten", "dense out=3"}, false},
		{"values", values(t), "[1,1,5]", []string{"flatten", "dense out=4"}, true},
		{"text", enginetest.ToyText(t, 2), "[2]", []string{"embedding out=2 vocabulary=3", "mingru out=2 sequence=true", "attention", "dense out=3"}, false},
		{"attention", enginetest.ToyText(t, 3), "[3]", tiny[4][1:], true},
		{"recurrence", enginetest.ToyText(t, 3), "[3]", tiny[5][1:], true},
	}
	at := 0
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.long && !long {
				t.Skip("BROOD_LONG=devices runs it too")
			}
			m := net(t, c.shape, c.set.Classes, c.layers...)
			d := ptxtest.New()
			e, err := gpu.New(d, m, c.set)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			w := comparisonOf(t, m, c.set, e)
			if !long { // together the cases run every variant
				w.kinds = []int{2 * at % ways, (2*at + 7) % ways}
				at++
			}
			if c.name == "all layers" {
				w.vectors()
			}
			w.models()
			x := w.mat(2, 3, 1)
			w.same("fill", func(ms []engine.Mat) ([]engine.Task, func() any) {
				return []engine.Task{engine.Fill{Dst: engine.All(ms[x].Sub(1, 1)), Value: 2}}, nil
			})
			for _, name := range d.Unused() {
				unused[name]++
			}
		})
	}
	for name, n := range unused {
		if long && n == len(cases) {
			t.Errorf("kernel %s was not run", name)
		}
	}
}

// TestPTXIsChecked: the engine's launches match the kernels' parameters.
func TestPTXIsChecked(t *testing.T) {
	m, set := small(t)
	d := ptxtest.New()
	e, err := gpu.New(d, m, set)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	x, err := e.Alloc(1, 4)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Do(context.Background(), engine.Fill{Dst: engine.All(x), Value: 1}); err != nil {
		t.Error(err)
	}
	k, err := d.Kernel("fill")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Launch(k, [3]int{1, 1, 1}, 64, uint32(1)); err == nil {
		t.Error("a launch with too few arguments runs")
	}
}

// TestContractOfPTX runs a part of the contract of engines on the interpreter, for machines without OpenCL.
func TestContractOfPTX(t *testing.T) {
	longtest.Need(t, longtest.Devices, "kernels are interpreted")
	enginetest.Part(t, func(t *testing.T, m *models.Model, d *data.Set, _ int) engine.Engine {
		e, err := gpu.New(ptxtest.New(), m, d)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(e.Close)
		return e
	})
}
