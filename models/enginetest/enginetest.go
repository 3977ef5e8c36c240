// Package enginetest is the contract that every engine must pass, bit by bit where the contract says bits.
//
//	func TestContract(t *testing.T) { enginetest.Run(t, newEngine) }
//
// Vector is the part that needs no model; Run contains it.
package enginetest

import (
	"math"
	"testing"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/noise"
)

// Make returns an engine for a model and a data set, or fails the test.
type Make func(t *testing.T, m *models.Model, d *data.Set, threads int) engine.Engine

// Run checks an engine.
func Run(t *testing.T, newEngine Make) {
	Images(t, newEngine)
	for _, name := range []string{"mlp-small", "bytes-small"} {
		m, set := load(t, name)
		newEngine.tasks(t, name, m, set)
		if name == "mlp-small" { // large enough for threads to share a vector
			Vector(t, m.Layout, func(t *testing.T, threads int) engine.Engine { return newEngine(t, m, set, threads) })
		}
	}
	t.Run("gradients against float64", newEngine.layers)
	t.Run("gradients of weighted samples against float64", newEngine.weighted)
	t.Run("gradients of the zoo against float64", newEngine.zoo)
	t.Run("random models against float64", newEngine.fuzz)
	t.Run("random models of text against float64", newEngine.fuzzText)
}

// Part runs a part of Run: all tasks, with a model of some thousand parameters that has batch-norm and dropout.
func Part(t *testing.T, newEngine Make) {
	m, set := Images(t, newEngine)
	Vector(t, m.Layout, func(t *testing.T, threads int) engine.Engine { return newEngine(t, m, set, threads) })
}

// Images runs the tasks of Part that need a model, and returns that model with its samples.
func Images(t *testing.T, newEngine Make) (*models.Model, *data.Set) {
	m := Compile(t, "[1,12,12]", "conv out=8 kernel=3", "batchnorm", "relu", "maxpool kernel=2", "dropout rate=0.25",
		"flatten", "dense out=17", "batchnorm", "relu", "dropout rate=0.25", "dense out=3")
	set := ToyOf(t, 3, 144, 1, 12, 12)
	newEngine.tasks(t, "images", m, set)
	return m, set
}

// load returns a model of the zoo and a matching set.
func load(t *testing.T, name string) (*models.Model, *data.Set) {
	t.Helper()
	m, err := models.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	set, err := data.Glyphs(96, 32)
	if m.Vocabulary > 0 {
		set, err = data.Reading{Context: m.Features}.Load("tales")
	}
	if err != nil {
		t.Fatal(err)
	}
	return m, set
}

func (mk Make) tasks(t *testing.T, name string, m *models.Model, set *data.Set) {
	b := &bench{m, set, mk}
	t.Run(name, func(t *testing.T) {
		t.Run("gradients do not see the cohort", b.gradientCohort)
		t.Run("evaluations do not see the cohort", b.evaluateCohort)
		t.Run("tasks run in order", b.order)
		t.Run("candidates", b.candidates)
		t.Run("candidates of other noise", b.candidateKinds)
		t.Run("statistics", b.statistics)
		if m.Vocabulary == 0 {
			t.Run("augmented samples", b.augmented)
		}
		t.Run("memory", b.memory)
		t.Run("errors", b.errors)
		t.Run("cancelled", b.cancelled)
	})
}

type bench struct {
	m    *models.Model
	set  *data.Set
	make Make
}

// rows returns n different initial members.
func (b *bench) rows(t *testing.T, n int) engine.Mat {
	t.Helper()
	x := ram.New(n, b.m.Layout.Params)
	for i := range n {
		if err := b.m.Init(11, engine.Member(i), row(x, engine.Row(i))); err != nil {
			t.Fatal(err)
		}
	}
	return x
}

func (b *bench) stats(t *testing.T, n int) engine.Mat {
	t.Helper()
	s := ram.New(n, b.m.Layout.Stats)
	for i := range n {
		b.m.Layout.FreshStats(row(s, engine.Row(i)))
	}
	return s
}

// batch returns samples [lo, lo+n) of the training set.
func (b *bench) batch(lo, n int) []int32 { return b.set.Train()[lo : lo+n] }

// same fails unless the values have equal bits.
func same(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range got {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

func masks(n int) []noise.Key {
	out := make([]noise.Key, n)
	for i := range out {
		out[i] = noise.Key{Seed: 4, Purpose: noise.Dropout, Round: 9, Member: uint32(i)}
	}
	return out
}
