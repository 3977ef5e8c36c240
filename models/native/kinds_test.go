package native

import (
	"context"
	"fmt"
	"testing"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/native/kernel"
	"brood/models/noise"
)

// noises are the kinds of noise with the hash of a candidate's parameters under each. If one changes, recorded sessions
// cannot be replayed: never edit them.
var noises = []struct {
	noise  engine.Noise
	golden uint64
}{{engine.Noise{}, 0x2c40500346ae0e89}, {engine.Noise{Integer: true}, 0x2476b8ce1e4c9538},
	{engine.Noise{Rank: 1}, 0x4cf9a339134eca2c}, {engine.Noise{Rank: 4}, 0xbc4f1a34a91f22a4}}

// TestNoiseIsFrozen: the noise of every kind has the same bits with every variant.
func TestNoiseIsFrozen(t *testing.T) {
	m, err := models.Load("lenets")
	if err != nil {
		t.Fatal(err)
	}
	for tw := kernel.Portable; tw <= kernel.Best(); tw++ {
		v, err := NewVariant(m.Layout, 1, tw)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range noises {
			task := engine.Candidates{Theta: ram.New(1, m.Layout.Params), Noise: n.noise, Sigma: 1, Antithetic: true,
				IDs: []engine.Member{9}, Key: noise.Key{Seed: 7, Purpose: noise.Candidate, Round: 1<<33 + 5}}
			eps := make([]float32, m.Layout.Params)
			if err := v.Candidate(0, eps, &task, 0); err != nil {
				t.Fatal(err)
			}
			if got := hash(eps); got != n.golden {
				t.Errorf("%s: %+v hashes to %#x, frozen %#x", tw, n.noise, got, n.golden)
			}
		}
	}
}

// TestKindsIndependentOfThreads: fitness under every kind of noise does not depend on the number of threads, on other
// candidates or on splitting the batch; the first layer takes bytes or floats, or is a convolution or an embedding.
func TestKindsIndependentOfThreads(t *testing.T) {
	glyphs := small(t)
	values := make([]float32, 300*784)
	for i := range values {
		values[i] = float32(i%11) / 7
	}
	made := func(shape ...int) *data.Set {
		n := models.Size(shape)
		s, err := data.New(data.Info{Name: fmt.Sprint("floats", shape), Shape: shape, Classes: 10},
			data.Raster{Values: values[:300*n], Labels: make([]uint16, 300)}, data.Raster{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, c := range []struct {
		model string
		set   *data.Set
	}{{"mlp-small", glyphs}, {"mlp-small", made(1, 28, 28)}, {"lenet-caffe", glyphs}, {"whole", made(64)},
		{"bytes-small", nil}} {
		// Vectors without remainder for every operand.
		m, err := models.FromSource("whole", []byte(`
name = "whole"
input = [64]
classes = 10
layer = [{kind = "dense", out = 96}, {kind = "relu"}, {kind = "dense", out = 10}]`))
		if c.model != "whole" {
			m, err = models.Load(c.model)
		}
		if err != nil {
			t.Fatal(err)
		}
		if m.Vocabulary > 0 {
			c.set = text(t, m)
		}
		for _, n := range noises {
			var want []float32
			for _, threads := range []int{1, 3} {
				e, err := NewEngine(m, c.set, threads, kernel.Best())
				if err != nil {
					t.Fatal(err)
				}
				// large enough to show a difference in the last bit
				task := engine.Candidates{Theta: ram.New(1, m.Layout.Params), Noise: n.noise, Sigma: 0.5, Antithetic: true,
					Batches: [][]int32{c.set.Train()[:140]}, Fitness: make([]float32, 42)}
				if err := m.Init(1, 0, flat(task.Theta)); err != nil {
					t.Fatal(err)
				}
				for i := range task.Fitness {
					task.IDs = append(task.IDs, engine.Member(i))
				}
				if c.model == "lenet-caffe" {
					task.IDs, task.Fitness = task.IDs[:5], task.Fitness[:5]
				}
				if err := e.Do(context.Background(), task); err != nil {
					t.Fatal(err)
				}
				if want == nil {
					want = task.Fitness
				}
				if fmt.Sprint(task.Fitness) != fmt.Sprint(want) {
					t.Errorf("%s on %s, %+v, %d threads: %v, on one %v", c.model, c.set.Name, n.noise, threads, task.Fitness, want)
				}
				if task.Fitness[0] == task.Fitness[1] || task.Fitness[0] == task.Fitness[2] {
					t.Errorf("%s, %+v: candidates do not differ: %v", c.model, n.noise, task.Fitness)
				}
				for i := range min(8, len(want)) {
					one := task
					one.IDs, one.Fitness = task.IDs[i:i+1], make([]float32, 1)
					if err := e.Do(context.Background(), one); err != nil || one.Fitness[0] != want[i] {
						t.Errorf("%s, %+v: candidate %d alone has fitness %v, among others %v; %v", c.model, n.noise, i, one.Fitness[0],
							want[i], err)
					}
				}
			}
		}
	}
}
