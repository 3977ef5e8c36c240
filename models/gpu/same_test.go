package gpu_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/enginetest"
	"brood/models/gpu"
	"brood/models/longtest"
	"brood/models/native"
	"brood/models/native/kernel"
	"brood/models/noise"
)

// comparison is the native engine and a device engine, with matrices of equal contents in both.
type comparison struct {
	t     *testing.T
	m     *models.Model
	set   *data.Set
	both  [2]engine.Engine
	mats  [2][]engine.Mat
	draws uint32
	kinds []int                            // kinds of candidates that models compares; nil: all
	fault func(format string, args ...any) // reports a difference
}

func newComparison(t *testing.T, m *models.Model, set *data.Set) *comparison {
	t.Helper()
	return comparisonOf(t, m, set, newEngine(t, m, set))
}

func comparisonOf(t *testing.T, m *models.Model, set *data.Set, e *gpu.Engine) *comparison {
	t.Helper()
	n, err := native.NewEngine(m, set, 1, kernel.Best())
	if err != nil {
		t.Fatal(err)
	}
	return &comparison{t: t, m: m, set: set, both: [2]engine.Engine{n, e}, fault: t.Errorf}
}

// mat creates a matrix of normals times scale in both engines and returns its index.
func (w *comparison) mat(rows, cols int, scale float32) int {
	w.draws++
	v := make([]float32, rows*cols)
	noise.Key{Seed: 5, Purpose: noise.Data, Member: w.draws}.Each(0, len(v), max(1, len(v)), func(at int, eps []float32) {
		for i, x := range eps {
			v[at+i] = scale * x
		}
	})
	for k, e := range w.both {
		m, err := e.Alloc(rows, cols)
		if err != nil {
			w.t.Fatal(err)
		}
		if err := e.Write(context.Background(), engine.All(m), engine.AppendFloats(nil, v)); err != nil {
			w.t.Fatal(err)
		}
		w.mats[k] = append(w.mats[k], m)
	}
	return len(w.mats[0]) - 1
}

// same runs the tasks that f makes of each engine's matrices, and expects equal bits in all matrices and in the outputs
// that f returns.
func (w *comparison) same(name string, f func(m []engine.Mat) (tasks []engine.Task, outputs func() any)) {
	w.t.Helper()
	var outputs [2]string
	var bytes [2][][]byte
	for k, e := range w.both {
		tasks, out := f(w.mats[k])
		if err := e.Do(context.Background(), tasks...); err != nil {
			w.t.Fatalf("%s: %v", name, err)
		}
		if err := e.Wait(context.Background()); err != nil {
			w.t.Fatalf("%s: %v", name, err)
		}
		if out != nil {
			outputs[k] = fmt.Sprintf("%x", out())
		}
		for _, m := range w.mats[k] {
			p := make([]byte, m.Bytes())
			if err := e.Read(context.Background(), p, engine.All(m)); err != nil {
				w.t.Fatalf("%s: %v", name, err)
			}
			bytes[k] = append(bytes[k], p)
		}
	}
	if outputs[0] != outputs[1] {
		w.fault("%s: native %s, device %s", name, outputs[0], outputs[1])
	}
	for i := range bytes[0] {
		x, y := make([]float32, len(bytes[0][i])/4), make([]float32, len(bytes[0][i])/4)
		engine.ReadFloats(x, bytes[0][i])
		engine.ReadFloats(y, bytes[1][i])
		for j := range x {
			if math.Float32bits(x[j]) != math.Float32bits(y[j]) && (x[j] == x[j] || y[j] == y[j]) {
				w.fault("%s: element %d of matrix %d is %v, on the device %v", name, j, i, x[j], y[j])
				break
			}
		}
	}
}

// TestVectorsHaveTheSameBits: the tasks that need no model.
func TestVectorsHaveTheSameBits(t *testing.T) {
	newComparison(t, net(t, "[1,12,13]", 3, "flatten", "dense out=33", "relu", "dense out=40", "relu", "dense out=3"),
		enginetest.Toy(t, 1, 12, 13)).vectors()
}

// TestMuonOfLargeMatrices: products that are added to a result are cut where the native engine cuts them, like the
// gradients in TestTextsHaveTheSameBits.
func TestMuonOfLargeMatrices(t *testing.T) {
	longtest.Need(t, longtest.Devices, "multiplies matrices of 1,000 x 1,000")
	w := newComparison(t, net(t, "[1,33,33]", 3, "flatten", "dense out=1030", "relu", "dense out=3"),
		enginetest.Toy(t, 1, 33, 33))
	p := w.m.Layout.Params
	x, m, v, g := w.mat(1, p, 1), w.mat(1, p, 0), w.mat(1, p, 0), w.mat(1, p, 1)
	w.same("muon", func(ms []engine.Mat) ([]engine.Task, func() any) {
		return []engine.Task{engine.Muon{
			X:     ms[x],
			M:     ms[m],
			V:     ms[v],
			G:     ms[g],
			Rows:  engine.Rows(1),
			Eta:   0.02,
			Mu:    0.9,
			Fixed: true,
			Share: 0.1,
			B1:    0.9,
			B2:    0.99,
			Eps:   1e-8,
			T:     1,
		}}, nil
	})
}

// vectors compares the tasks that need no model.
func (w *comparison) vectors() {
	p := w.m.Layout.Params
	a, b, one, s, v := w.mat(5, p, 1), w.mat(5, p, 1e-3), w.mat(1, p, 1), w.mat(1, p, 1e20), w.mat(5, p, 0)
	rows := []engine.Row{4, 0, 2}
	w.same("programme", func(m []engine.Mat) ([]engine.Task, func() any) {
		return []engine.Task{engine.Update{Rows: rows, Prog: []engine.Lin{
			{Dst: m[a], Terms: []engine.Term{{C: 0.3, Src: m[b]}, {C: 0.7, Src: m[one]}, {C: -1.1, Src: m[a]}}},
			{Dst: m[b], Terms: []engine.Term{{C: 0.1, Src: m[a]}, {C: 0.2, Src: m[b]}, {C: 0.3, Src: m[one]}, {C: 0.4, Src: m[b]}, {C: 1.5, Src: m[a]}, {C: 3, Src: m[b]}, {C: 1, Src: m[b]}, {C: 7, Src: m[one]}}},
		}}}, nil
	})
	w.same("functions", func(m []engine.Mat) ([]engine.Task, func() any) {
		prog := []engine.Lin{{Dst: m[v], Terms: []engine.Term{{C: 1, Src: m[s]}}, By: m[a]}}
		for fn := engine.Identity; fn <= engine.Clamp; fn++ {
			prog = append(prog, engine.Lin{Dst: m[v], Terms: []engine.Term{{C: 0.5, Src: m[v]}, {C: 1, Src: m[a]}}, Map: fn},
				engine.Lin{Dst: m[a], Terms: []engine.Term{{C: 1, Src: m[one]}, {C: 0.3, Src: m[a]}}, Map: fn, By: m[a]},
				engine.Lin{Dst: m[b], Terms: []engine.Term{{C: -1, Src: m[b]}, {C: 0.2, Src: m[v]}}, Map: fn, By: m[one]})
		}
		prog = append(prog, engine.Lin{Dst: m[v], Terms: []engine.Term{{C: 0, Src: m[a]}}, Map: engine.Sign}) // of zeros
		return []engine.Task{engine.Update{Rows: rows, Prog: prog}}, nil
	})
	w.same("programme whose rows touch", func(m []engine.Mat) ([]engine.Task, func() any) {
		return []engine.Task{
			engine.Update{Rows: []engine.Row{0, 1, 2}, Prog: []engine.Lin{{Dst: m[a], Terms: []engine.Term{{C: 0.5, Src: m[a]}, {C: 0.25, Src: m[a].Sub(1, 1)}}}}},
			engine.Update{Rows: []engine.Row{0, 1, 1}, Prog: []engine.Lin{{Dst: m[a].Sub(0, 4), Terms: []engine.Term{{C: 0.5, Src: m[a].Sub(1, 4)}, {C: 0.25, Src: m[b]}}}}},
		}, nil
	})
	for _, code := range []engine.Code{engine.Float32, engine.BF16, engine.Int8} {
		w.same(fmt.Sprintf("sum by code %d", code), func(m []engine.Mat) ([]engine.Task, func() any) {
			src := []engine.Span{engine.RowOf(m[a], 1), engine.RowOf(m[b], 2), engine.All(m[one]), engine.RowOf(m[a], 4),
				engine.RowOf(m[b], 0)}
			tree := [][2]int{{0, 1}, {2, 5}, {3, 4}, {6, 7}}
			return []engine.Task{
				engine.Sum{Dst: engine.RowOf(m[b], 3), Src: src, Tree: tree, Code: code, Div: 3},
				engine.Sum{Dst: engine.RowOf(m[a], 4), Src: src, Tree: tree, Code: code},
				engine.Feedback{Dst: m[a], Src: m[a], Lost: m[b], Code: code},
			}, nil
		})
	}
	var many []int // more allocations than a launch can name
	for range 11 {
		many = append(many, w.mat(3, 67, 1))
	}
	w.same("many pieces", func(m []engine.Mat) (tasks []engine.Task, _ func() any) {
		sum := engine.Lin{Dst: m[many[3]], Map: engine.Clamp, By: m[many[9]]}
		var src []engine.Span
		var tree [][2]int
		for i, k := range many {
			sum.Terms = append(sum.Terms, engine.Term{C: float32(i) - 3.3, Src: m[k]})
			src = append(src, engine.RowOf(m[k], engine.Row(i%3)))
			if i > 0 {
				tree = append(tree, [2]int{max(0, len(many)+i-2) * min(1, i-1), i})
			}
		}
		for _, code := range []engine.Code{engine.Float32, engine.BF16, engine.Int8} {
			tasks = append(tasks, engine.Update{Rows: []engine.Row{2, 0, 2},
				Prog: []engine.Lin{sum, {Dst: m[many[0]]}, {Dst: m[many[1]], Terms: []engine.Term{{C: 2, Src: m[many[3]].Sub(0, 1)}}}}},
				engine.Sum{Dst: engine.RowOf(m[many[10]], 1), Src: src, Tree: tree, Code: code, Div: 11})
		}
		return tasks, nil
	})
	w.same("tasks that share a launch", func(m []engine.Mat) ([]engine.Task, func() any) {
		x, y := m[a], m[b]
		half := func(d, s engine.Mat, i, j engine.Row) engine.Task {
			return engine.Update{Rows: engine.Rows(1),
				Prog: []engine.Lin{{Dst: d.Sub(i, 1), Terms: []engine.Term{{C: 0.5, Src: d.Sub(i, 1)}, {C: 0.5, Src: s.Sub(j, 1)}}}}}
		}
		adam := func(r engine.Row, t uint64) engine.Task {
			return engine.Adam{
				X:    x.Sub(r, 1),
				M:    y.Sub(0, 1),
				V:    m[s],
				G:    m[one],
				Rows: engine.Rows(1),
				Eta:  0.1,
				B1:   0.9,
				B2:   0.99,
				Eps:  1,
				T:    t,
			}
		}
		own := func(r engine.Row) engine.Task {
			return engine.Adam{
				X:    x.Sub(r, 1),
				M:    x.Sub(r+1, 1),
				V:    y.Sub(r, 1),
				G:    m[one],
				Rows: engine.Rows(1),
				Eta:  0.1,
				B1:   0.9,
				B2:   0.99,
				Eps:  1,
				T:    3,
			}
		}
		return []engine.Task{half(x, y, 0, 0), half(x, y, 1, 1), half(y, x, 1, 0), half(x, y, 2, 1),
			engine.Copy{Dst: engine.RowOf(y, 4), Src: engine.RowOf(x, 2)},
			engine.Fill{Dst: engine.RowOf(x, 3), Value: 0.75}, half(x, x, 3, 4),
			engine.Copy{Dst: engine.Span{Mat: x, Row: 0, Rows: 2, Hi: p}, Src: engine.Span{Mat: y, Row: 2, Rows: 2, Hi: p}},
			half(x, x, 4, 0), half(x, x, 4, 1),
			engine.Fill{Dst: engine.Span{Mat: x, Row: 1, Rows: 2, Lo: 3, Hi: p - 1}, Value: 2},
			engine.Product{Dst: m[s], A: m[s], B: m[s]}, engine.Product{Dst: m[s], A: m[one], B: m[one]}, adam(0, 1), adam(2, 1),
			adam(2, 1), adam(3, 2),
			engine.Product{Dst: y, A: y, B: y}, own(0), own(2)}, nil
	})
	w.same("steps", func(m []engine.Mat) ([]engine.Task, func() any) {
		square := engine.Product{Dst: m[b], A: m[b], B: m[b]}
		return []engine.Task{square, engine.Adam{
			X:    m[a],
			M:    m[b],
			V:    m[b],
			G:    m[one],
			Rows: rows,
			Eta:  0.01,
			B1:   0.9,
			B2:   0.999,
			Eps:  1e-8,
			WD:   0.1,
			T:    17,
		},
			engine.NaturalStep{X: m[one], S: m[s], G: m[a].Sub(1, 1), H: m[b].Sub(0, 1), Lo: 7, Hi: p - 3, Eta: 0.3, Rate: 2},
			engine.NaturalStep{X: m[a].Sub(2, 1), S: m[one], G: m[a].Sub(1, 1), H: m[s], Hi: p, Eta: 0.3, Rate: 2},
			engine.Product{Dst: m[a], A: m[a], B: m[one]}}, nil
	})
	w.same("muon", func(m []engine.Mat) ([]engine.Task, func() any) {
		step := func(g engine.Mat, t uint64) engine.Muon {
			return engine.Muon{
				X:     m[a],
				M:     m[b],
				V:     m[v],
				G:     g,
				Rows:  rows,
				Eta:   0.02,
				Mu:    0.9,
				Share: 0.1,
				B1:    0.9,
				B2:    0.99,
				Eps:   1e-8,
				WD:    0.1,
				T:     t,
			}
		}
		fixed := step(m[one], 3)
		fixed.Fixed = true
		hidden := step(m[a], 4)
		hidden.Hidden = true
		return []engine.Task{step(m[one], 1), step(m[a], 2), fixed, hidden}, nil
	})
	wide := w.mat(5, 20*1024+7, 1)
	small, hurt := w.mat(4, 5000, 1), w.mat(3, 2049, 1e-38)
	rms, near, far := make([]float64, 4), make([]float64, 3), make([]float64, 5)
	ok, hash := make([]bool, 4), make([][32]byte, 4)
	w.same("looks", func(m []engine.Mat) ([]engine.Task, func() any) {
		return []engine.Task{engine.Distance{X: m[small], Centre: m[small].Sub(2, 1), RMS: rms},
			engine.Distance{X: m[hurt], RMS: near}, engine.Distance{X: m[wide], RMS: far},
			engine.Clip{X: m[small], Longest: 70}, engine.Clip{X: m[hurt], Longest: 1e-38}, engine.Finite{X: m[small], OK: ok},
			engine.Digest{X: m[small], Hash: hash}}, func() any { return []any{rms, near, far, ok, hash} }
	})
	for _, cols := range []int{1, 15, 255, 256, 257, 511, 512, 513, 1024, 1280, 4000} {
		m, hash := w.mat(2, cols, 1), make([][32]byte, 2)
		w.same(fmt.Sprintf("digest of %d columns", cols), func(ms []engine.Mat) ([]engine.Task, func() any) {
			return []engine.Task{engine.Digest{X: ms[m], Hash: hash}}, func() any { return hash }
		})
	}
	key := noise.Key{Seed: 3, Purpose: noise.Candidate, Round: 1<<33 + 7}
	keys := make([]noise.Key, 5)
	for i := range keys {
		keys[i] = key
		keys[i].Member = uint32(i * i)
	}
	few, chosen := w.mat(5, 60, 1), make([]int32, 60)
	for i := range chosen {
		chosen[i] = int32(p - 1 - 7*i)
	}
	w.same("copy columns", func(m []engine.Mat) ([]engine.Task, func() any) {
		return []engine.Task{engine.CopyColumns{Dst: m[few], Src: m[a], From: chosen},
			engine.CopyColumns{Dst: m[b], Src: m[few], To: chosen},
			engine.CopyColumns{Dst: m[a], Src: m[few].Sub(2, 1), To: chosen}}, nil
	})
	w.same("perturb, crossover", func(m []engine.Mat) ([]engine.Task, func() any) {
		return []engine.Task{engine.Perturb{X: m[a], Sigma: []float32{1, 0.1, 1e-3, 3, 0}, Keys: keys},
			engine.Crossover{Dst: m[b], A: m[a], B: m[b], Keys: keys},
			engine.Crossover{Dst: m[a], A: m[a], B: m[b], Keys: keys, PerTensor: true}}, nil
	})
	var ids []engine.Member
	var weights []float32
	for i := range 70 {
		ids, weights = append(ids, engine.Member(3*i%71)), append(weights, float32(i%9-4))
	}
	for _, n := range []engine.Noise{{}, {Integer: true}, {Rank: 1}, {Rank: 7}, {Rank: 64}} {
		for _, span := range [][2]int{{0, p}, {5, p - 7}, {p / 2, p/2 + 1}, {33, 33}} {
			w.same(fmt.Sprintf("noise sum %+v of %v", n, span), func(m []engine.Mat) ([]engine.Task, func() any) {
				return []engine.Task{engine.NoiseSum{
					Dst:        engine.Span{Mat: m[a], Row: 1, Rows: 1, Lo: span[0], Hi: span[1]},
					Noise:      n,
					Weights:    weights,
					Key:        key,
					Antithetic: span[0] > 0,
					IDs:        ids,
				},
					engine.NoiseSum{
						Dst:     engine.Span{Mat: m[b], Row: 1, Rows: 1, Lo: span[0], Hi: span[1]},
						Weights: weights,
						Key:     key,
						Square:  true,
						IDs:     ids,
					}}, nil
			})
		}
	}
}

// net is a model of layers that end in this many classes.
func net(t *testing.T, input string, classes int, layers ...string) *models.Model {
	t.Helper()
	text := fmt.Sprintf("name = 'net'\nclasses = %d\ninput = %s\n", classes, input)
	if loss, ok := strings.CutPrefix(layers[0], "loss "); ok {
		name, outputs, _ := strings.Cut(loss, " ")
		text, layers = fmt.Sprintf("name = 'net'\nloss = '%s'\n%s\ninput = %s\n", name, outputs, input), layers[1:]
	}
	for _, l := range layers {
		f := strings.Fields(l)
		text += "[[layer]]\nkind = '" + f[0] + "'\n" + strings.Join(f[1:], "\n") + "\n"
	}
	m, err := models.FromSource("net", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// nets are the layers before the last product of test models for the kernels.
var nets = [][]string{
	{"flatten"},
	{"flatten", "dense out=70", "relu", "dense out=65 bias=false", "relu"},
	{"flatten", "dense out=64", "relu", "dropout rate=0.3", "dense out=32", "dropout rate=0.5", "relu"},
	{"dropout rate=0.2", "flatten", "relu", "dense out=9", "relu", "relu", "dense out=1"},
	{"conv out=6 kernel=3 pad=1", "relu", "maxpool kernel=2", "conv out=9 kernel=2 bias=false", "batchnorm", "relu", "flatten", "dropout rate=0.1", "dense out=32", "relu"},
	{"batchnorm", "conv out=6 kernel=4 stride=2 pad=2", "relu", "conv out=4 kernel=3 groups=2", "batchnorm", "dropout rate=0.3", "avgpool kernel=1", "relu", "flatten", "dense out=33", "batchnorm"},
	{"maxpool kernel=3 stride=2", "conv out=5 kernel=2", "relu", "maxpool kernel=1", "conv out=7 kernel=1", "relu", "globalavgpool"},
	{"conv out=8 kernel=5 pad=3 stride=3", "batchnorm", "relu", "avgpool kernel=2", "conv out=8 kernel=1 groups=8", "flatten"},
	{"conv out=3 kernel=3 pad=1 name='a'", "relu name='b'", "conv out=3 kernel=3 pad=1 from='a'", "batchnorm",
		"add with='b'", "add with='a'", "relu name='c'",
		"conv out=5 kernel=3 stride=2 pad=1", "batchnorm", "add with='c' stride=2", "relu name='d'", "conv out=5 kernel=1",
		"dropout rate=0.2", "add with='d'", "add with='d'", "globalavgpool"},
	{"flatten name='x'", "dense out=60 name='y'", "add with='x'", "relu name='r'", "dense out=60 from='y'", "add with='r'", "add with='y'"},
	{"constant out=40", "relu"},
	{"conv out=5 kernel=3 pad=1 name='a'", "gelu", "conv out=5 kernel=1", "tanh", "relu", "add with='a'", "layernorm name='b'", "silu", "leakyrelu slope=0.2", "scale factor=-0.7", "add with='b'", "flatten", "dense out=33", "layernorm", "gelu"},
	{"flatten", "layernorm", "dense out=70 name='x'", "layernorm", "dense out=65", "gelu", "dropout rate=0.2", "dense out=70", "add with='x'", "tanh", "dense out=9", "scale factor=0.3", "silu", "relu", "leakyrelu"},
}

// means are layers of models with other losses, by distance to the sample or to its targets, and of a model with more
// than 256 classes.
var means = [][]string{
	{"loss distance", "constant out=60"},
	{"loss distance", "flatten", "dense out=9", "batchnorm", "relu", "dense out=60"},
	{"loss mse outputs=3", "flatten", "dense out=9", "batchnorm", "relu", "dropout rate=0.2", "dense out=3"},
	{"loss huber", "conv out=3 kernel=3", "relu", "flatten", "dense out=1"},
	{"loss bce classes=3", "flatten", "dense out=9", "batchnorm", "relu", "dropout rate=0.2", "dense out=3"},
	{"loss bce classes=37", "conv out=3 kernel=3", "relu", "flatten", "dense out=37"},
	{"loss cross-entropy classes=300", "flatten", "dense out=300"},
}

// meant returns samples for such a model.
func meant(t *testing.T, m *models.Model) *data.Set {
	if m.MultiLabel() {
		return enginetest.ToyLabels(t, m.Outputs, 90, 2, 5, 6)
	}
	if m.Regression() {
		return enginetest.ToyFor(t, m.Outputs, 90, 2, 5, 6)
	}
	return enginetest.ToyOf(t, max(3, m.Classes), 24, 2, 5, 6)
}

// TestModelsHaveTheSameBits: gradients, evaluations and candidates of every kind of noise, on bytes, augmented bytes
// and values.
func TestModelsHaveTheSameBits(t *testing.T) {
	images := thinned(t, 400)
	cut, err := images.Augmented(data.Augment{Pad: 2, Flip: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("weighted", func(t *testing.T) {
		sameModel(t, net(t, "[2,5,6]", 3, "flatten", "dense out=9", "relu", "dense out=3"), enginetest.Weighted(t, 2, 5, 6))
	})
	toy := enginetest.Toy(t, 2, 5, 6)
	t.Run("led by windows", func(t *testing.T) {
		sameModel(t, net(t, "[2,5,6]", 3, "avgpool kernel=2", "flatten", "dense out=9", "relu", "dense out=3"), toy)
	})
	planes, err := toy.Augmented(data.Augment{Pad: 3, Reflect: true, Flip: true, Alternate: true})
	if err != nil {
		t.Fatal(err)
	}
	values := values(t)
	for i, layers := range nets {
		for name, set := range map[string]*data.Set{"bytes": images, "augmented": cut, "toy": toy, "augmented toy": planes,
			"values": values} {
			if i >= 4 && (strings.HasPrefix(name, "augmented") || name == "values") {
				continue // samples are loaded as before, and images of 1 x 5 have no windows
			}
			if i >= 2 && (strings.HasPrefix(name, "augmented") || name == "values") && !longtest.On(longtest.Devices) {
				continue
			}
			if i > 4 && name == "bytes" && !longtest.On(longtest.Devices) {
				continue // convolutions of images larger than a tile were tested above
			}
			if i == 9 && name != "toy" {
				continue // its samples have 60 values
			}
			shape := fmt.Sprint(set.Shape[0], ",", set.Shape[1], ",", set.Shape[2])
			last := []string{fmt.Sprintf("dense out=%d", set.Classes)}
			if i == 2 {
				last = append(last, "relu")
			}
			t.Run(fmt.Sprintf("%d, %s", i, name), func(t *testing.T) {
				sameModel(t, net(t, "["+shape+"]", set.Classes, slices.Concat(layers, last)...), set)
			})
		}
	}
	for i, layers := range means {
		t.Run(fmt.Sprintf("mean %d", i), func(t *testing.T) {
			m := net(t, "[2,5,6]", 0, layers...)
			sameModel(t, m, meant(t, m))
		})
	}
}

// thinned returns glyphs of 14 x 13 pixels: more columns than a tile, and uniform areas, in which maxima tie.
func thinned(t *testing.T, n int) *data.Set {
	t.Helper()
	glyphs, err := data.Glyphs(n, 0)
	if err != nil {
		t.Fatal(err)
	}
	var r data.Raster
	for id := range int32(n) {
		r.Labels = append(r.Labels, uint16(glyphs.Label(id)))
		for i := range 14 * 13 {
			r.Pixels = append(r.Pixels, glyphs.Image(id)[2*(i/13*28+i%13)])
		}
	}
	info := glyphs.Info
	info.Shape = []int{1, 14, 13}
	set, err := data.New(info, r, data.Raster{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// values returns a set of samples of five numbers.
func values(t *testing.T) *data.Set {
	t.Helper()
	var raster data.Raster
	for i := range 90 {
		raster.Labels = append(raster.Labels, uint16(i%4))
		for j := range 5 {
			raster.Values = append(raster.Values, noise.Key{Seed: 6, Purpose: noise.Data}.Gauss(5*i+j))
		}
	}
	set, err := data.New(data.Info{Name: "values", Shape: []int{1, 1, 5}, Classes: 4}, raster,
		data.Raster{Values: raster.Values[:50], Labels: raster.Labels[:10]}, data.DefaultShare)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// TestAbsentTaps: pixels outside an image are left out of a sum, even if weight times zero would be NaN. The second
// convolution sees an image of ones; an infinite weight makes every pixel that it reaches minus infinity, which the
// rectifier makes zero.
func TestAbsentTaps(t *testing.T) {
	m := net(t, "[2,5,6]", 3, "conv out=1 kernel=1", "conv out=1 kernel=3 pad=1", "relu", "flatten", "dense out=3")
	set := enginetest.Toy(t, 2, 5, 6)
	w := newComparison(t, m, set)
	x, loss, right := w.mat(1, m.Layout.Params, 0.1), make([]float64, 1), make([]int64, 1)
	for tap := range 9 {
		w.same(fmt.Sprintf("tap %d", tap), func(ms []engine.Mat) ([]engine.Task, func() any) {
			to := func(tensor, at, n int, v float32) engine.Task {
				lo := m.Layout.Tensors[tensor].Lo + at
				return engine.Fill{Dst: engine.Span{Mat: ms[x], Rows: 1, Lo: lo, Hi: lo + n}, Value: v}
			}
			return []engine.Task{to(0, 0, 2, 0), to(1, 0, 1, 1), to(2, 0, 9, 0.5), to(2, tap, 1, float32(math.Inf(-1))),
					engine.Evaluate{X: ms[x], Rows: engine.Rows(1), Batches: [][]int32{set.Train()[:5]}, Loss: loss, Correct: right}},
				func() any { return []any{loss, right} }
		})
		if math.IsNaN(loss[0]) {
			t.Errorf("tap %d: the loss is no number", tap)
		}
	}
}

// TestExtremeActivations: activations and their gradients of arguments so large that exponentials overflow or vanish.
func TestExtremeActivations(t *testing.T) {
	set := enginetest.Toy(t, 2, 5, 6)
	for _, kind := range []string{"silu", "gelu", "tanh", "leakyrelu", "scale factor=0.1"} {
		m := net(t, "[2,5,6]", 3, "constant out=8", kind, "dense out=3 bias=false")
		w := newComparison(t, m, set)
		x, g, loss := w.mat(1, m.Layout.Params, 1e-39), w.mat(1, m.Layout.Params, 1), make([]float32, 1)
		w.same(kind, func(ms []engine.Mat) (tasks []engine.Task, _ func() any) {
			for i, v := range []float32{-3e38, 3e38, -1e36, 1e36, -100, 100, -86.5, 86.5} {
				lo := m.Layout.Tensors[0].Lo + i
				tasks = append(tasks, engine.Fill{Dst: engine.Span{Mat: ms[x], Rows: 1, Lo: lo, Hi: lo + 1}, Value: v})
			}
			return append(tasks, engine.Gradients{
				X:       ms[x],
				G:       ms[g],
				Rows:    engine.Rows(1),
				Batches: [][]int32{set.Train()[:5]},
				Loss:    loss,
			}), func() any { return loss }
		})
	}
}

func sameModel(t *testing.T, m *models.Model, set *data.Set) { newComparison(t, m, set).models() }

// ways is the number of kinds of candidates that models compares.
const ways = 14

// models compares the tasks that need a model.
func (w *comparison) models() {
	m := w.m
	p, train := m.Layout.Params, w.set.Train()
	x, g, one, scale := w.mat(4, p, 0.2), w.mat(3, p, 1), w.mat(1, p, 0.2), w.mat(1, p, 0.03)
	stats := w.mat(4, m.Layout.Stats, 0.5)
	w.same("squared statistics", func(ms []engine.Mat) ([]engine.Task, func() any) { // variances are not negative
		return []engine.Task{engine.Product{Dst: ms[stats], A: ms[stats], B: ms[stats]}}, nil
	})
	masks := make([]noise.Key, 3)
	for i := range masks {
		masks[i] = noise.Key{Seed: 4, Purpose: noise.Dropout, Round: 9, Member: uint32(i)}
	}
	masks[1].Round, masks[1].Stream = 1<<33+9, 7 // passes of seven samples
	masks[2].Round = 1<<32 - 5                   // its samples' positions span two cipher keys
	n := min(len(train), 300)
	batches := [][]int32{train[:n], train[3:6], train[5:min(n, 42)]}
	loss, sums, right, squares := make([]float32, 3), make([]float64, 3), make([]int64, 3), make([]float64, 3)
	w.same("gradients", func(ms []engine.Mat) ([]engine.Task, func() any) {
		return []engine.Task{engine.Gradients{
			X:        ms[x],
			Rows:     []engine.Row{3, 1, 1},
			Batches:  batches,
			Masks:    masks,
			Stats:    ms[stats],
			StatRows: []engine.Row{2, 0, 3},
			G:        ms[g],
			Loss:     loss,
		}}, func() any { return loss }
	})
	for _, given := range []bool{true, false} {
		w.same(fmt.Sprintf("evaluate, statistics given: %v", given), func(ms []engine.Mat) ([]engine.Task, func() any) {
			task := engine.Evaluate{
				X:       ms[x],
				Rows:    []engine.Row{2, 0, 3},
				Batches: batches,
				Drawn:   masks,
				Loss:    sums,
				Correct: right,
				Squares: squares,
			}
			if given {
				task.Stats = ms[stats]
			}
			return []engine.Task{task}, func() any { return []any{sums, right, squares} }
		})
	}
	w.same("statistics", func(ms []engine.Mat) ([]engine.Task, func() any) {
		return []engine.Task{engine.Statistics{
			X:       ms[x],
			Rows:    []engine.Row{1, 3},
			Batches: batches,
			Stats:   ms[stats].Sub(1, 2),
		}}, nil
	})
	key := noise.Key{Seed: 8, Purpose: noise.Candidate, Round: 3}
	ids := []engine.Member{4, 5, 2, 9, 8, 1}
	for _, anti := range []bool{false, true} {
		fit := make([]float32, len(ids))
		w.same(fmt.Sprintf("candidates along axes, antithetic %v", anti), func(ms []engine.Mat) ([]engine.Task, func() any) {
			return []engine.Task{engine.Candidates{Theta: ms[one], Scale: ms[scale], Axes: ms[x].Sub(1, 2),
				Along: []float32{0.5, -0.1, 0.5, -0.1, 0, 0.2, 0.3, -0.4, 0.3, 0.4, -0.02, 0.01},
				Key:   key, Antithetic: anti, IDs: ids, Batches: batches[:1], Fitness: fit}}, func() any { return fit }
		})
	}
	way := -1
	for _, kind := range []engine.Noise{{}, {Integer: true}, {Rank: 1}, {Rank: 4}, {Rank: 5}} {
		for _, scaled := range []bool{false, true} {
			if scaled && kind.Rank > 0 {
				continue
			}
			for _, b := range [][][]int32{{batches[0][:min(n, 140)]},
				{train[:7], train[:7], train[3:9], train[3:9], train[3:5], train[:7]}} {
				if way++; w.kinds != nil && !slices.Contains(w.kinds, way) {
					continue
				}
				fit := make([]float32, len(ids))
				w.same(fmt.Sprintf("candidates %+v, scaled %v, %d batches", kind, scaled, len(b)),
					func(ms []engine.Mat) ([]engine.Task, func() any) {
						task := engine.Candidates{
							Theta:      ms[one],
							Noise:      kind,
							Sigma:      0.05,
							Key:        key,
							Antithetic: len(b) == 1,
							IDs:        ids,
							Batches:    b,
							Fitness:    fit,
						}
						if scaled {
							task.Scale = ms[scale]
						}
						if len(b) > 1 {
							task.Drawn = append(append([]noise.Key(nil), masks...), masks...)
						}
						return []engine.Task{task}, func() any { return fit }
					})
			}
		}
	}
}
