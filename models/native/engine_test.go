package native

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/longtest"
	"brood/models/native/kernel"
	"brood/models/noise"
)

// mixed has layers that no 28x28 model of the zoo has: groups, both kinds of shortcuts, a result used three times,
// means, activations other than rectifiers, a factor, and a normalisation of samples.
const mixed = `
name = "mixed"
input = [1, 28, 28]
classes = 10
layer = [
	{kind = "conv", out = 6, kernel = 3, stride = 2, pad = 1}, {kind = "batchnorm"}, {kind = "relu", name = "a"},
	{kind = "conv", out = 6, kernel = 3, pad = 1, groups = 6, bias = false}, {kind = "conv", out = 6, kernel = 1}, {kind = "add", with = "a"}, {kind = "relu"}, {kind = "dropout", rate = 0.2},
	{kind = "conv", out = 9, kernel = 3, stride = 2, pad = 1, groups = 3}, {kind = "batchnorm"}, {kind = "add", with = "a", stride = 2, name = "b"},
	{kind = "conv", out = 9, kernel = 1, name = "p"}, {kind = "conv", out = 9, kernel = 3, pad = 1, from = "b"}, {kind = "add", with = "p"}, {kind = "relu"},
	{kind = "gelu"}, {kind = "layernorm"}, {kind = "conv", out = 5, kernel = 1}, {kind = "silu"},
	{kind = "avgpool", kernel = 3, stride = 2}, {kind = "tanh"}, {kind = "flatten"}, {kind = "layernorm"}, {kind = "leakyrelu"}, {kind = "scale", factor = 0.7}, {kind = "dense", out = 10},
]`

// positions is a model whose loss is at each position of a text.
const positions = `
name = "positions"
input = [19]
classes = 128
layer = [
	{kind = "embedding", vocabulary = 128, out = 12, name = "e"}, {kind = "attention", heads = 2, sequence = true}, {kind = "add", with = "e"},
	{kind = "dense", out = 128, positions = true},
]`

// text returns tales for a model that reads text.
func text(t testing.TB, m *models.Model) *data.Set {
	t.Helper()
	set, err := data.Reading{Context: m.Context()}.Load("tales")
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// zoo calls f for every floating-point model of the zoo that fits glyphs or tales, for mixed and for positions.
func zoo(t *testing.T, f func(t *testing.T, m *models.Model, set *data.Set)) {
	glyphs := small(t)
	for _, name := range models.List() {
		m, err := models.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		set := glyphs
		if m.Vocabulary > 0 {
			set = text(t, m)
		}
		if !m.Int8 && m.Fits(set.Info) == nil {
			t.Run(name, func(t *testing.T) { f(t, m, set) })
		}
	}
	m, err := models.FromSource("mixed", []byte(mixed))
	if err != nil {
		t.Fatal(err)
	}
	t.Run("mixed", func(t *testing.T) { f(t, m, glyphs) })
	if m, err = models.FromSource("positions", []byte(positions)); err != nil {
		t.Fatal(err)
	}
	t.Run("positions", func(t *testing.T) { f(t, m, text(t, m)) })
}

// redundant lists models of the zoo whose layers a smaller one covers.
var redundant = []string{"darwinn-30k", "lenet", "eggroll", "eggroll-gelu", "eggroll-shallow", "softmax", "gpt-small"}

// unlessLong skips a model whose layers other models cover, unless the test group kernels is enabled.
func unlessLong(t *testing.T, m *models.Model) {
	t.Helper()
	if m.Layout.Params > 2e5 || slices.Contains(redundant, m.Name) {
		longtest.Need(t, longtest.Kernels, "smaller models have the same layers")
	}
}

func small(t testing.TB) *data.Set {
	t.Helper()
	set, err := data.Glyphs(200, 40)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// task returns gradients of n members on batches of this many samples.
func task(t testing.TB, m *models.Model, set *data.Set, n, batch int) engine.Gradients {
	t.Helper()
	g := engine.Gradients{X: ram.New(n, m.Layout.Params), Rows: engine.Rows(n), Stats: ram.New(n, m.Layout.Stats),
		Masks: make([]noise.Key, n), G: ram.New(n, m.Layout.Params), Loss: make([]float32, n)}
	for i := range n {
		if err := m.Init(1, engine.Member(i), row(g.X, engine.Row(i))); err != nil {
			t.Fatal(err)
		}
		m.Layout.FreshStats(row(g.Stats, engine.Row(i)))
		g.Masks[i] = noise.Key{Seed: 3, Purpose: noise.Dropout, Member: uint32(i)}
		g.Batches = append(g.Batches, set.Train()[i:i+batch])
	}
	return g
}

// TestTeam: gradients of one or two members on 1, 3 and 7 threads, which share layers, have the same bits. The model
// with the most kinds of layers runs with every kernel variant, with the slow one on few threads.
func TestTeam(t *testing.T) {
	zoo(t, func(t *testing.T, m *models.Model, set *data.Set) {
		if m.Layout.Params > 2e5 {
			t.Skip("the smaller models have the same layers")
		}
		unlessLong(t, m)
		variants := []kernel.Variant{kernel.Best()}
		if m.Name == "mixed" {
			variants = variantsHere()
		}
		for n := 1; n <= 2; n++ {
			want := teamwork(t, m, set, n, 1, kernel.Best())
			for _, variant := range variants {
				threads := []int{1, 3, 7}
				if variant == kernel.Portable {
					threads = []int{n}
				}
				for _, th := range threads {
					if got := teamwork(t, m, set, n, th, variant); got != want {
						t.Errorf("%s, %d members, %d threads: %s, one thread of %s: %s", variant, n, th, got, kernel.Best(), want)
					}
				}
			}
		}
	})
}

// teamwork returns all results of an engine for n members, as text.
func teamwork(t *testing.T, m *models.Model, set *data.Set, n, threads int, variant kernel.Variant) string {
	t.Helper()
	e, err := NewEngine(m, set, threads, variant)
	if err != nil {
		t.Fatal(err)
	}
	g := task(t, m, set, n, 75)
	c := engine.Candidates{
		Theta:      g.X.Sub(0, 1),
		Sigma:      0.1,
		Antithetic: true,
		IDs:        []engine.Member{3},
		Batches:    [][]int32{set.Train()[:140]},
		Fitness:    make([]float32, 1),
	}
	ev := engine.Evaluate{
		X:       g.X,
		Rows:    engine.Rows(1),
		Batches: [][]int32{set.Train()[:90]},
		Loss:    make([]float64, 1),
		Correct: make([]int64, 1),
	}
	st := engine.Statistics{
		X:       g.X,
		Rows:    engine.Rows(1),
		Batches: [][]int32{set.Train()[:65]},
		Stats:   ram.New(1, m.Layout.Stats),
	}
	// the helpers of members run vector tasks in between
	step := engine.Update{Rows: engine.Rows(n),
		Prog: []engine.Lin{{Dst: g.X, Terms: []engine.Term{{C: 1, Src: g.X}, {C: -0.01, Src: g.G}}}}}
	if err := e.Do(context.Background(), g, step, g, c, ev, st); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(hash(flat(g.G)), hash(g.Loss), hash(flat(g.Stats)), hash(c.Fitness), ev.Loss, ev.Correct,
		hash(flat(st.Stats)))
}

// TestThreads: gradients, evaluations and candidates in shuffled order have the same bits on 1, 2 and 5 threads.
func TestThreads(t *testing.T) {
	ctx := context.Background()
	zoo(t, func(t *testing.T, m *models.Model, set *data.Set) {
		unlessLong(t, m)
		const n = 6
		var want [3]string
		for at, threads := range []int{1, 2, 5} {
			e, err := NewEngine(m, set, threads, kernel.Best())
			if err != nil {
				t.Fatal(err)
			}
			g := task(t, m, set, n, 33)
			order := []int{3, 0, 5, 1, 4, 2}
			if at > 0 { // the same work in another order
				h := g
				h.Rows, h.Batches, h.Masks, h.StatRows = nil, nil, nil, nil
				for _, i := range order {
					h.Rows, h.StatRows = append(h.Rows, g.Rows[i]), append(h.StatRows, g.Rows[i])
					h.Batches, h.Masks = append(h.Batches, g.Batches[i]), append(h.Masks, g.Masks[i])
				}
				g = h
			}
			if err := e.Do(ctx, g); err != nil {
				t.Fatal(err)
			}
			back, loss := ram.New(n, g.G.Cols), make([]float32, n)
			for i, r := range g.Rows {
				copy(row(back, r), row(g.G, engine.Row(i)))
				loss[r] = g.Loss[i]
			}
			ev := engine.Evaluate{
				X:       g.X,
				Rows:    engine.Rows(n),
				Batches: make([][]int32, n),
				Stats:   g.Stats,
				Loss:    make([]float64, n),
				Correct: make([]int64, n),
			}
			if m.Layout.Stats == 0 {
				ev.Stats = engine.Mat{}
			}
			for i := range n {
				ev.Batches[i] = set.Train()[:150+i]
			}
			c := engine.Candidates{
				Theta:      g.X.Sub(0, 1),
				Sigma:      0.1,
				Antithetic: true,
				IDs:        []engine.Member{0, 1, 2, 9},
				Batches:    [][]int32{set.Train()[:140]},
				Fitness:    make([]float32, 4),
			}
			if err := e.Do(ctx, ev, c); err != nil {
				t.Fatal(err)
			}
			for i, id := range c.IDs { // each separately
				one := c
				one.IDs, one.Fitness = []engine.Member{id}, make([]float32, 1)
				if err := e.Do(ctx, one); err != nil {
					t.Fatal(err)
				}
				if one.Fitness[0] != c.Fitness[i] {
					t.Errorf("candidate %d alone has fitness %v, among others %v", id, one.Fitness[0], c.Fitness[i])
				}
			}
			got := [3]string{fmt.Sprint(hash(flat(back)), hash(loss), hash(flat(g.Stats))), fmt.Sprint(ev.Loss, ev.Correct),
				fmt.Sprint(hash(c.Fitness))}
			if at == 0 {
				want = got
			}
			if got != want {
				t.Errorf("%d threads: %s, one thread: %s", threads, got, want)
			}
		}
	})
}

func hash(x []float32) (h uint64) {
	for _, v := range x {
		h = (h ^ uint64(math.Float32bits(v))) * 0x100000001b3
	}
	return h
}

// TestStepAllocatesNothing: once the buffers have grown to a batch, a forward and backward pass and an evaluation
// allocate nothing, with plain and with augmented samples.
func TestStepAllocatesNothing(t *testing.T) {
	stepAllocates(t, small(t))
	changed, err := small(t).Augmented(data.Augment{Pad: 4, Flip: true})
	if err != nil {
		t.Fatal(err)
	}
	stepAllocates(t, changed)
}

func stepAllocates(t *testing.T, images *data.Set) {
	zoo(t, func(t *testing.T, m *models.Model, set *data.Set) {
		if m.Vocabulary == 0 {
			set = images
		}
		unlessLong(t, m)
		e, err := NewEngine(m, set, 1, kernel.Best())
		if err != nil {
			t.Fatal(err)
		}
		g := task(t, m, set, 1, 70)
		p := e.passes[0]
		p.mode, p.params, p.grad, p.stats, p.mask = training, row(g.X, 0), row(g.G, 0), row(g.Stats, 0), g.Masks[0]
		step := func() {
			if err := p.load(set, g.Batches[0], g.Masks[0], true); err != nil {
				t.Fatal(err)
			}
			if _, err := p.gradient(); err != nil {
				t.Fatal(err)
			}
			if _, _, err := p.score(); err != nil {
				t.Fatal(err)
			}
		}
		step()
		if n := testing.AllocsPerRun(3, step); n > 0 {
			t.Errorf("%v allocations a step", n)
		}
	})
}

// TestZooHasPlans: every model of the zoo is covered; a chain of layers needs two gradient buffers, a shortcut one
// more.
func TestZooHasPlans(t *testing.T) {
	want := map[string]int{"lenet": 2, "cif-300k": 2, "resnet20": 3, "resnet18": 3, "wrn-28-10": 3, "quadratic": 1}
	for _, name := range models.List() {
		m, err := models.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := compile(m)
		if err != nil {
			t.Fatal(err)
		}
		if n, ok := want[name]; ok && n != len(p.slots) {
			t.Errorf("%s: %d gradients at a time, want %d", name, len(p.slots), n)
		}
	}
}

// TestPoolingIsJoined: max pooling of a normalised activation with windows that tile it is fused into the
// normalisation.
func TestPoolingIsJoined(t *testing.T) {
	for name, want := range map[string][2]int{"lenets": {0, 2}, "lenet-caffe": {2, 0}} {
		m, err := models.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := compile(m)
		if err != nil {
			t.Fatal(err)
		}
		var got [2]int
		for _, o := range p.ops {
			switch o := o.(type) {
			case *pool:
				got[0]++
			case *norm:
				if o.pool != nil {
					got[1]++
				}
			}
		}
		if got != want {
			t.Errorf("%s: %d poolings are separate and %d are fused, want %v", name, got[0], got[1], want)
		}
	}
}

// TestUnsupportedLayer: the error names the layer kind that the plan does not support, so that another engine can be
// chosen.
func TestUnsupportedLayer(t *testing.T) {
	m := &models.Model{Name: "odd", Input: []int{1, 28, 28},
		Layers: []models.Layer{{Kind: models.Flatten, In: []int{1, 28, 28}, Out: []int{784}}, {Kind: "strange"}}}
	_, err := compile(m)
	var u *UncoveredError
	if !errors.As(err, &u) || u.Layer != 2 {
		t.Errorf("%v", err)
	}
}

// TestLargeLosses: large logits do not overflow, and parameters that are not finite give NaN.
func TestLargeLosses(t *testing.T) {
	set := small(t)
	m, err := models.Load("softmax")
	if err != nil {
		t.Fatal(err)
	}
	variants(t, func(t *testing.T, variant kernel.Variant) {
		e, err := NewEngine(m, set, 1, variant)
		if err != nil {
			t.Fatal(err)
		}
		g := task(t, m, set, 1, 8)
		for i := range flat(g.X) {
			flat(g.X)[i] *= 1e6
		}
		if err := e.Do(context.Background(), g); err != nil {
			t.Fatal(err)
		}
		if l := float64(g.Loss[0]); math.IsNaN(l) || math.IsInf(l, 0) || l < 100 {
			t.Errorf("loss %v", l)
		}
		flat(g.X)[0] = float32(math.NaN())
		if err := e.Do(context.Background(), g); err != nil || g.Loss[0] == g.Loss[0] {
			t.Errorf("loss %v, %v of parameters that are not finite", g.Loss[0], err)
		}
	})
}
