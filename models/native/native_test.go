package native

import (
	"context"
	"errors"
	"testing"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/enginetest"
	"brood/models/longtest"
	"brood/models/native/kernel"
	"brood/models/noise"
)

// odd returns a layout of tensors whose rows are not whole tiles of noise, so that every edge of a piece is tested.
func odd() engine.Layout { return oddly(1501, 37) }

func oddly(rows, cols int) engine.Layout {
	var l engine.Layout
	for i, shape := range [][2]int{{rows, cols}, {1, 301}, {7, 33}, {1, 1}, {5, 32}} {
		n := shape[0] * shape[1]
		l.Tensors = append(l.Tensors, engine.Tensor{
			Name:  string(rune('a' + i)),
			Shape: shape[:],
			Lo:    l.Params,
			Len:   n,
			Cols:  shape[1],
		})
		l.Params += n
	}
	return l
}

// variants runs f for each variant that this machine can run.
func variants(t *testing.T, f func(t *testing.T, variant kernel.Variant)) {
	for _, variant := range kernel.Variants() {
		t.Run(variant.String(), func(t *testing.T) {
			if _, err := kernel.New(variant); err != nil {
				t.Skip(err)
			}
			f(t, variant)
		})
	}
}

// TestVectorContract runs the contract of engines without a model, on a layout with every edge. The best kernel variant
// uses a layout large enough for threads to share a vector.
func TestVectorContract(t *testing.T) {
	variants(t, func(t *testing.T, variant kernel.Variant) {
		l := odd()
		if variant != kernel.Best() && !longtest.On(longtest.Kernels) {
			l = oddly(61, 37)
		}
		vector := func(t *testing.T, threads int) engine.Engine {
			t.Helper()
			v, err := NewVariant(l, threads, variant)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		enginetest.Vector(t, l, vector)
		enginetest.Nudge(t, l, vector)
	})
}

// TestMuonHasTheSameBits: Muon has the same bits with every variant and any number of threads.
func TestMuonHasTheSameBits(t *testing.T) {
	l := oddly(131, 67)
	var want [][32]byte
	variants(t, func(t *testing.T, variant kernel.Variant) {
		for threads := 1; threads <= 3; threads++ {
			v, err := NewVariant(l, threads, variant)
			if err != nil {
				t.Fatal(err)
			}
			x, m, g, hash := ram.New(1, l.Params), ram.New(1, l.Params), ram.New(1, l.Params), make([][32]byte, 1)
			for i := range flat(g) {
				flat(g)[i] = float32(noise.Key{Seed: 2}.Gauss(i))
			}
			step := engine.Muon{
				X:     x,
				M:     m,
				V:     ram.New(1, l.Params),
				G:     g,
				Rows:  engine.Rows(1),
				Eta:   0.02,
				Mu:    0.95,
				WD:    0.1,
				Share: 0.1,
				B1:    0.9,
				B2:    0.99,
				Eps:   1e-8,
				T:     1,
			}
			fixed := step
			fixed.Fixed = true
			if err := v.Do(context.Background(), step, fixed, engine.Digest{X: x, Hash: hash}); err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want = hash
			}
			if hash[0] != want[0] {
				t.Errorf("%d threads: %x, want %x", threads, hash[0], want[0])
			}
		}
	})
}

// TestContract runs the contract of engines: all of it for the best kernel variant. Other variants run the tasks of one
// model, since TestVectorContract covers those without a model and package kernel compares the kernels. The test group
// kernels runs all of it for each.
func TestContract(t *testing.T) {
	variants(t, func(t *testing.T, variant kernel.Variant) {
		run := enginetest.Run
		if variant != kernel.Best() && !longtest.On(longtest.Kernels) {
			run = func(t *testing.T, mk enginetest.Make) { enginetest.Images(t, mk) }
		}
		run(t, func(t *testing.T, m *models.Model, d *data.Set, threads int) engine.Engine {
			t.Helper()
			e, err := NewEngine(m, d, threads, variant)
			if err != nil {
				t.Fatal(err)
			}
			return e
		})
	})
}

func TestUnsupportedTasks(t *testing.T) {
	v, err := New(odd(), 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range []engine.Task{engine.Gradients{}, engine.Evaluate{}, engine.Statistics{}, engine.Candidates{}} {
		var u *engine.UnsupportedError
		if err := v.Do(context.Background(), task); !errors.As(err, &u) {
			t.Errorf("%T: %v", task, err)
		}
	}
}

func TestNewRefusesLayouts(t *testing.T) {
	for name, change := range map[string]func(*engine.Layout){
		"gap":     func(l *engine.Layout) { l.Tensors[1].Lo++ },
		"columns": func(l *engine.Layout) { l.Tensors[0].Cols = 2 },
		"zero":    func(l *engine.Layout) { l.Tensors[0].Cols = 0 },
		"total":   func(l *engine.Layout) { l.Params++ },
		"missing": func(l *engine.Layout) { l.Tensors = l.Tensors[1:] },
	} {
		l := odd()
		change(&l)
		if _, err := New(l, 1); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestCandidateRefuses(t *testing.T) {
	l := odd()
	dst, theta := make([]float32, l.Params), ram.New(1, l.Params)
	v, err := New(l, 1)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		dst  []float32
		task engine.Candidates
	}{
		"room":  {dst[1:], engine.Candidates{Theta: theta}},
		"theta": {dst, engine.Candidates{Theta: ram.New(2, l.Params)}},
		"scale": {dst, engine.Candidates{Theta: theta, Scale: ram.New(1, 3)}},
		"axes":  {dst, engine.Candidates{Theta: theta, Scale: theta, Axes: ram.New(1, 3), IDs: make([]engine.Member, 1), Along: make([]float32, 1)}},
	} {
		if err := v.Candidate(0, c.dst, &c.task, 0); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestNoAllocations: on one thread the tasks of a training step allocate nothing.
func TestNoAllocations(t *testing.T) {
	v, err := New(odd(), 1)
	if err != nil {
		t.Fatal(err)
	}
	x, g := ram.New(2, v.layout.Params), ram.New(2, v.layout.Params)
	tasks := []engine.Task{
		engine.Update{Rows: engine.Rows(2), Prog: []engine.Lin{{Dst: x, Terms: []engine.Term{{C: 1, Src: x}, {C: -1, Src: g}}}}},
		engine.Adam{X: x, M: x, V: g, G: g, Rows: engine.Rows(2), T: 1},
		engine.Muon{X: x, M: x, V: g, G: g, Rows: engine.Rows(2), T: 1},
		engine.NaturalStep{X: x.Sub(0, 1), S: x.Sub(1, 1), G: g.Sub(0, 1), H: g.Sub(1, 1), Hi: g.Cols},
		engine.NoiseSum{Dst: engine.All(x.Sub(0, 1)), Weights: []float32{1}, IDs: []engine.Member{1}, Key: noise.Key{Seed: 1}},
	}
	ctx := context.Background()
	if n := testing.AllocsPerRun(5, func() {
		if err := v.Do(ctx, tasks...); err != nil {
			t.Fatal(err)
		}
	}); n > 10 {
		t.Errorf("%v allocations for five tasks, want a few headers at most", n)
	}
}

// TestElsewhere: an engine that owns its memory and executes tasks late passes the contract, so that tests that use it
// rely only on the contract. Without BROOD_LONG a part of it runs.
func TestElsewhere(t *testing.T) {
	run := enginetest.Run
	if !longtest.On(longtest.Kernels) {
		run = enginetest.Part
	}
	run(t, func(t *testing.T, m *models.Model, d *data.Set, threads int) engine.Engine {
		t.Helper()
		e, err := NewEngine(m, d, threads, kernel.Best())
		if err != nil {
			t.Fatal(err)
		}
		there := enginetest.NewElsewhere(e, 7)
		t.Cleanup(func() {
			for _, f := range there.Faults(true) {
				t.Error(f)
			}
		})
		return there
	})
}
