package enginetest

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/noise"
)

// Toy returns a small random set of images of the shape, in three classes.
func Toy(t *testing.T, shape ...int) *data.Set {
	t.Helper()
	return toy(t, 24, shape...)
}

// toy returns n such samples, a quarter of them for validation.
func toy(t *testing.T, n int, shape ...int) *data.Set { return ToyFor(t, 0, n, shape...) }

// ToyOf returns n samples of this many classes, a quarter of them for validation.
func ToyOf(t *testing.T, classes, n int, shape ...int) *data.Set {
	t.Helper()
	return toyWith(t, classes, 0, false, n, shape)
}

// ToyFor returns n samples, a quarter of them for validation; with outputs above 0 they have this many targets instead
// of classes, including outliers.
func ToyFor(t *testing.T, outputs, n int, shape ...int) *data.Set {
	t.Helper()
	return toyWith(t, 3, outputs, false, n, shape)
}

// ToyLabels returns n multi-label samples, a quarter of them for validation.
func ToyLabels(t *testing.T, classes, n int, shape ...int) *data.Set {
	t.Helper()
	return toyWith(t, classes, classes, true, n, shape)
}

func toyWith(t *testing.T, classes, outputs int, multi bool, n int, shape []int) *data.Set {
	t.Helper()
	key := noise.Key{Seed: 5, Purpose: noise.Data}
	r := data.Raster{Pixels: make([]byte, n*models.Size(shape)), Labels: make([]uint16, n)}
	for i := range r.Pixels {
		r.Pixels[i] = byte(key.Uint32(i))
	}
	for i := range r.Labels {
		r.Labels[i] = uint16(i * 67 % classes)
	}
	info := data.Info{
		Name:    "toy",
		Shape:   shape,
		Classes: classes,
		Mean:    make([]float64, shape[0]),
		Std:     make([]float64, shape[0]),
	}
	for c := range info.Std {
		info.Mean[c], info.Std[c] = 0.5, 0.3
	}
	if multi {
		clear(r.Labels)
		info.Classes, info.Outputs, info.MultiLabel = 0, outputs, true
		for i := range n * outputs {
			r.Targets = append(r.Targets, float32(int(key.Uniform(1<<20+i)*1.7)))
		}
	} else if outputs > 0 {
		clear(r.Labels)
		info.Classes, info.Outputs = 0, outputs
		for i := range n * outputs {
			v := key.Uniform(1<<20+i) - 0.5
			r.Targets = append(r.Targets, 7+40*v*v*v*float32(1+i%outputs))
		}
	}
	s, err := data.New(info, r, data.Raster{}, 0.25)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ToyText returns a short text of three different bytes, without validation, in windows of context bytes.
func ToyText(t *testing.T, context int) *data.Set {
	t.Helper()
	key := noise.Key{Seed: 6, Purpose: noise.Data}
	text := make([]byte, 60+2*context)
	for i := range text {
		text[i] = byte(key.Below(i, 3))
	}
	s, err := data.NewText(data.Info{Name: "toy", Shape: []int{context}, Classes: 3}, text, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Compile returns a model of three classes from "kind key=value" lines; a first line "loss NAME key=value" selects
// another loss.
func Compile(t *testing.T, input string, layers ...string) *models.Model {
	t.Helper()
	text := "name = 'test'\nclasses = 3\ninput = " + input + "\n"
	if loss, ok := strings.CutPrefix(layers[0], "loss "); ok {
		f := strings.Fields(loss)
		text, layers = "name = 'test'\nloss = '"+f[0]+"'\ninput = "+input+"\n"+strings.Join(f[1:], "\n")+"\n", layers[1:]
	}
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

// Start returns initial parameters plus noise, so that batch-norm scales and shifts differ.
func Start(t *testing.T, m *models.Model) engine.Mat {
	t.Helper()
	x := ram.New(1, m.Layout.Params)
	if err := m.Init(3, 0, flat(x)); err != nil {
		t.Fatal(err)
	}
	key := noise.Key{Seed: 9, Purpose: noise.Mutate}
	for i := range flat(x) {
		flat(x)[i] += 0.1 * (key.Uniform(i) - 0.5)
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

// Weighted returns a set of three classes with weights 4, 1 and 1/2 before normalisation.
func Weighted(t *testing.T, shape ...int) *data.Set {
	t.Helper()
	set, err := Toy(t, shape...).Weighted(data.Weights{Of: map[string]float64{"0": 4, "2": 0.5},
		Classes: []string{"0", "2"}})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func (mk Make) weighted(t *testing.T) {
	for _, layers := range [][]string{{"flatten", "dense out=5", "relu", "dense out=3"},
		{"loss cross-entropy classes=3 smoothing=0.2", "flatten", "dense out=3"}, {"conv out=2 kernel=2", "batchnorm", "relu",
			"flatten", "dense out=3"}} {
		// An engine that lacks one of these layers skips only that test.
		t.Run(strings.Join(layers, ", "), func(t *testing.T) {
			m, set := Compile(t, "[2,3,4]", layers...), Weighted(t, 2, 3, 4)
			mk.compare(t, m, set, 7, 1)
			mk.compare(t, m, set, 2, 1)
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
			mk.compare(t, m, set, 6, 1)
		})
	}
}

// compare compares loss, gradients, updated statistics and evaluations of one batch with the reference, within slack
// times the rounding of a short chain of layers. It compares the gradient of each tensor along a random direction of
// plus and minus one, so that every element contributes.
func (mk Make) compare(t *testing.T, m *models.Model, set *data.Set, samples int, slack float64) {
	t.Helper()
	ctx := context.Background()
	e := mk(t, m, set, 1)
	x, g := Start(t, m), ram.New(1, m.Layout.Params)
	before := clone(x)
	stats := ram.New(1, m.Layout.Stats)
	m.Layout.FreshStats(flat(stats))
	key := noise.Key{Seed: 2, Purpose: noise.Dropout, Round: 4}
	ids, rows, loss := set.Train()[:samples], engine.Rows(1), make([]float32, 1)
	task := engine.Gradients{
		X:       x,
		Rows:    rows,
		Batches: [][]int32{ids},
		Stats:   stats,
		Masks:   []noise.Key{key},
		G:       g,
		Loss:    loss,
	}
	if err := try(ctx, e, task); err != nil {
		t.Fatal(err)
	}
	for i := range flat(x) {
		if flat(x)[i] != flat(before)[i] {
			t.Fatalf("parameter %d was changed from %v to %v", i, flat(before)[i], flat(x)[i])
		}
	}
	pixels, labels := make([]float32, samples*m.Features), make([]int32, samples)
	if err := set.Gather(ids, pixels, labels); err != nil {
		t.Fatal(err)
	}
	r := reference{m: m, params: wide(flat(x)), mask: &key, batch: map[int][2][]float64{}, smoothing: m.Smoothing}
	for _, id := range ids {
		r.targets = append(r.targets, wide(set.Targets(id)))
		r.weights = append(r.weights, float64(set.Weight(id)))
	}
	near(t, "loss", float64(loss[0]), r.loss(pixels, labels), 1e-5*slack)
	batch := r.batch
	for i, l := range m.Layers {
		if l.Kind != models.BatchNorm {
			continue
		}
		for c := range l.In[0] {
			near(t, "running mean", float64(flat(stats)[m.Layout.StatTensors[l.Mean].Lo+c]), 0.1*batch[i][0][c], 1e-5*slack)
			near(t, "running variance", float64(flat(stats)[m.Layout.StatTensors[l.Var].Lo+c]), 0.9+0.1*batch[i][1][c],
				1e-5*slack)
		}
	}
	r.batch = nil
	var scale float64
	for _, v := range flat(g) {
		scale = max(scale, math.Abs(float64(v)))
	}
	for i, tn := range m.Layout.Tensors {
		signs, along, slope := noise.Key{Seed: 12, Purpose: noise.Data, Member: uint32(i)}, make([]float64, tn.Len), 0.0
		for j := range along {
			along[j] = 1 - 2*float64(signs.Below(j, 2))
			slope += along[j] * float64(flat(g)[tn.Lo+j])
		}
		near(t, tn.Name, slope, r.slope(tn.Lo, along, pixels, labels), slack*(2e-5+1e-4*scale)*math.Sqrt(float64(tn.Len)))
	}
	// Evaluation with given statistics, then with the batch's own; both without dropout.
	r.mask, r.stats, r.smoothing = nil, nil, 0
	sum, correct, squares := make([]float64, 1), make([]int64, 1), make([]float64, 1)
	if m.Layout.Stats > 0 {
		r.stats = wide(flat(stats))
	}
	ev := engine.Evaluate{
		X:       x,
		Rows:    rows,
		Batches: [][]int32{ids},
		Stats:   stats,
		Loss:    sum,
		Correct: correct,
		Squares: squares,
	}
	for _, own := range []bool{false, true} {
		if own {
			ev.Stats, r.stats = engine.Mat{}, nil
		}
		if err := try(ctx, e, ev); err != nil {
			t.Fatal(err)
		}
		near(t, "evaluated loss", sum[0]/float64(samples), r.loss(pixels, labels), 1e-5*slack)
		near(t, "squared error", squares[0], r.squares(pixels), 1e-5*slack)
		var want int64
		for s, z := range r.logits(pixels) {
			best := 0
			z = z[len(z)-m.Outputs:] // the last position
			for k := range z {
				if z[k] > z[best] {
					best = k
				}
			}
			if m.Loss == models.CrossEntropy && best == int(labels[s]) || m.MultiLabel() && r.misses(s, z) == 0 {
				want++
			}
		}
		if correct[0] != want {
			t.Errorf("%d correct, reference %d", correct[0], want)
		}
	}
}

// slope returns the central difference of the loss along a direction in the parameters from lo on.
func (r *reference) slope(lo int, along []float64, pixels []float32, labels []int32) float64 {
	h, at := 1e-6/math.Sqrt(float64(len(along))), slices.Clone(r.params)
	loss := func(h float64) float64 {
		for i, a := range along {
			r.params[lo+i] = at[lo+i] + h*a
		}
		return r.loss(pixels, labels)
	}
	up, down := loss(h), loss(-h)
	r.params = at
	return (up - down) / (2 * h)
}

func near(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol*max(1, math.Abs(want))) {
		t.Errorf("%s: %.8g, reference %.8g", what, got, want)
	}
}
