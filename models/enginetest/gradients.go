package enginetest

import (
	"context"
	"math"
	"strings"
	"testing"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/noise"
)

// Toy is a small random set of images of the shape, in three classes.
func Toy(t *testing.T, shape ...int) *data.Set {
	t.Helper()
	n := 24
	key := noise.Key{Seed: 5, Purpose: noise.Data}
	r := data.Raster{Pixels: make([]byte, n*models.Size(shape)), Labels: make([]byte, n)}
	for i := range r.Pixels {
		r.Pixels[i] = byte(key.Uint32(i))
	}
	for i := range r.Labels {
		r.Labels[i] = byte(i % 3)
	}
	info := data.Info{Name: "toy", Shape: shape, Classes: 3, Mean: make([]float32, shape[0]), Std: make([]float32, shape[0])}
	for c := range info.Std {
		info.Mean[c], info.Std[c] = 0.5, 0.3
	}
	s, err := data.New(info, r, data.Raster{}, 0.25)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Compile is a model of three classes from "kind key=value" lines.
func Compile(t *testing.T, input string, layers ...string) *models.Model {
	t.Helper()
	text := "name = 'test'\nclasses = 3\ninput = " + input + "\n"
	for _, l := range layers {
		f := strings.Fields(l)
		text += "[[layer]]\nkind = '" + f[0] + "'\n" + strings.Join(f[1:], "\n") + "\n"
	}
	s, err := models.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	m, err := models.Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Start is initial parameters with some noise, so that batch-norm scales and shifts differ.
func Start(t *testing.T, m *models.Model) engine.Mat {
	t.Helper()
	x := engine.New(1, m.Layout.Params, engine.F32)
	if err := m.Init(3, 0, x.F); err != nil {
		t.Fatal(err)
	}
	key := noise.Key{Seed: 9, Purpose: noise.Mutate}
	for i := range x.F {
		x.F[i] += 0.1 * (key.Uniform(i) - 0.5)
	}
	return x
}

func wide(x []float32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}

// Every layer kind, alone and in the combinations where gorgonia once went wrong.
func (mk Make) layers(t *testing.T) {
	cases := []struct {
		name, input string
		layers      []string
	}{
		{"linear", "[1,2,3]", []string{"flatten", "dense out=3"}},
		{"no bias", "[1,2,3]", []string{"flatten", "dense out=4 bias=false", "relu", "dense out=3"}},
		{"flat input", "[6]", []string{"dense out=5", "relu", "dense out=3"}},
		{"flat norm", "[1,2,3]", []string{"flatten", "dense out=5", "batchnorm", "relu", "dense out=3"}},
		{"norm first", "[1,2,3]", []string{"batchnorm", "flatten", "dense out=3"}},
		{"flat dropout", "[1,2,3]", []string{"flatten", "dense out=7", "dropout rate=0.4", "dense out=3"}},
		{"conv", "[1,6,6]", []string{"conv out=2 kernel=3", "flatten", "dense out=3"}},
		{"conv channels", "[2,6,5]", []string{"conv out=3 kernel=3 stride=2 pad=1", "relu", "conv out=2 kernel=2", "flatten", "dense out=3"}},
		{"conv without bias", "[1,6,6]", []string{"conv out=2 kernel=3 bias=false", "flatten", "dense out=3"}},
		{"conv norm", "[2,5,5]", []string{"conv out=3 kernel=3", "batchnorm", "relu", "flatten", "dense out=3"}},
		{"norm of rows", "[1,3,8]", []string{"conv out=3 kernel=3", "batchnorm", "relu", "flatten", "dense out=3"}},
		{"norm of columns", "[1,8,3]", []string{"conv out=3 kernel=3", "batchnorm", "relu", "flatten", "dense out=3"}},
		{"norm of points", "[1,3,3]", []string{"conv out=3 kernel=3", "batchnorm", "relu", "flatten", "dense out=3"}},
		{"norm of one channel", "[1,6,6]", []string{"conv out=1 kernel=3", "batchnorm", "relu", "flatten", "dense out=3"}},
		{"conv dropout", "[2,5,5]", []string{"conv out=3 kernel=3", "dropout rate=0.3", "flatten", "dense out=3"}},
		{"pool", "[1,8,8]", []string{"conv out=2 kernel=3", "maxpool kernel=2", "flatten", "dense out=3"}},
		{"pool remainder", "[1,9,10]", []string{"conv out=2 kernel=3", "maxpool kernel=3", "flatten", "dense out=3"}},
		{"pool overlap", "[1,9,9]", []string{"conv out=2 kernel=3", "maxpool kernel=3 stride=2", "flatten", "dense out=3"}},
		{"pool first", "[2,6,6]", []string{"maxpool kernel=2", "conv out=3 kernel=2", "flatten", "dense out=3"}},
		{"average", "[1,6,6]", []string{"conv out=4 kernel=3", "relu", "globalavgpool", "dense out=3"}},
		{"average to classes", "[1,6,6]", []string{"conv out=3 kernel=3", "globalavgpool"}},
		{"one by one", "[3,4,4]", []string{"conv out=2 kernel=1", "batchnorm", "maxpool kernel=4", "flatten", "dense out=3"}},
		{"two convs and norms", "[1,12,12]", []string{"conv out=3 kernel=3", "batchnorm", "relu", "maxpool kernel=2", "dropout rate=0.25",
			"conv out=4 kernel=3", "batchnorm", "relu", "maxpool kernel=2", "dropout rate=0.25", "flatten", "dense out=6", "batchnorm", "relu", "dense out=3"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := Compile(t, c.input, c.layers...)
			shape := m.Input
			if len(shape) == 1 {
				shape = []int{1, 2, 3}
			}
			set := Toy(t, shape...)
			mk.compare(t, m, set, 7, 60)
			mk.compare(t, m, set, 2, 60)
			if m.Layout.Stats == 0 {
				mk.compare(t, m, set, 1, 60)
			}
		})
	}
}

func (mk Make) zoo(t *testing.T) {
	set, err := data.Glyphs(40, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"mlp", "lenets", "softmax"} {
		t.Run(name, func(t *testing.T) {
			m, err := models.Load(name)
			if err != nil {
				t.Fatal(err)
			}
			mk.compare(t, m, set, 6, 12)
		})
	}
}

// compare holds loss, sampled gradients, advanced statistics and evaluations of one batch against the reference.
func (mk Make) compare(t *testing.T, m *models.Model, set *data.Set, samples, coordinates int) {
	t.Helper()
	ctx := context.Background()
	e := mk(t, m, set, 1)
	x, g := Start(t, m), engine.New(1, m.Layout.Params, engine.F32)
	before := x.Clone()
	stats := engine.New(1, m.Layout.Stats, engine.F32)
	m.Layout.FreshStats(stats.F)
	key := noise.Key{Seed: 2, Purpose: noise.Dropout, Round: 4}
	ids, rows, loss := set.Train()[:samples], engine.Rows(1), make([]float32, 1)
	task := engine.Gradients{X: x, Rows: rows, Batches: [][]int32{ids}, Stats: stats, Masks: []noise.Key{key}, G: g, Loss: loss}
	if err := e.Do(ctx, task); err != nil {
		t.Fatal(err)
	}
	for i := range x.F {
		if x.F[i] != before.F[i] {
			t.Fatalf("parameter %d was changed from %v to %v", i, before.F[i], x.F[i])
		}
	}
	pixels, labels := make([]float32, samples*m.Features), make([]int32, samples)
	if err := set.Gather(ids, pixels, labels); err != nil {
		t.Fatal(err)
	}
	r := reference{m: m, params: wide(x.F), mask: &key, batch: map[int][2][]float64{}}
	near(t, "loss", float64(loss[0]), r.loss(pixels, labels), 1e-5)
	batch := r.batch
	for i, l := range m.Layers {
		if l.Kind != models.BatchNorm {
			continue
		}
		for c := range l.In[0] {
			near(t, "running mean", float64(stats.F[m.Layout.StatTensors[l.Mean].Lo+c]), 0.1*batch[i][0][c], 1e-5)
			near(t, "running variance", float64(stats.F[m.Layout.StatTensors[l.Var].Lo+c]), 0.9+0.1*batch[i][1][c], 1e-5)
		}
	}
	r.batch = nil
	var scale float64
	for _, v := range g.F {
		scale = max(scale, math.Abs(float64(v)))
	}
	step := max(1, m.Layout.Params/coordinates)
	for _, tn := range m.Layout.Tensors {
		for i := tn.Lo; i < tn.Lo+tn.Len; i += min(step, (tn.Len+3)/4) {
			near(t, tn.Name, float64(g.F[i]), r.slope(i, pixels, labels), 2e-5+1e-4*scale)
		}
	}
	// Evaluation: given statistics, then the batch's own; dropout off in both.
	r.mask, r.stats = nil, nil
	sum, correct := make([]float64, 1), make([]int64, 1)
	if m.Layout.Stats > 0 {
		r.stats = wide(stats.F)
	}
	ev := engine.Evaluate{X: x, Rows: rows, Batches: [][]int32{ids}, Stats: stats, Loss: sum, Correct: correct}
	for _, own := range []bool{false, true} {
		if own {
			ev.Stats, r.stats = engine.Mat{}, nil
		}
		if err := e.Do(ctx, ev); err != nil {
			t.Fatal(err)
		}
		near(t, "evaluated loss", sum[0]/float64(samples), r.loss(pixels, labels), 1e-5)
		var want int64
		for s, z := range r.logits(pixels) {
			best := 0
			for k := range z {
				if z[k] > z[best] {
					best = k
				}
			}
			if best == int(labels[s]) {
				want++
			}
		}
		if correct[0] != want {
			t.Errorf("%d correct, reference %d", correct[0], want)
		}
	}
}

// slope is the central difference of the loss in parameter i.
func (r *reference) slope(i int, pixels []float32, labels []int32) float64 {
	const h = 1e-6
	at := r.params[i]
	r.params[i] = at + h
	up := r.loss(pixels, labels)
	r.params[i] = at - h
	down := r.loss(pixels, labels)
	r.params[i] = at
	return (up - down) / (2 * h)
}

func near(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol*max(1, math.Abs(want))) {
		t.Errorf("%s: %.8g, reference %.8g", what, got, want)
	}
}
