package native

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
	"brood/models/native/kernel"
	"brood/models/noise"
)

// readsBytes is a whole-number model on text, with layers whose rows are not whole words.
const readsBytes = `
name = "bytes-whole"
input = [5]
classes = 128
arithmetic = "int8"
[[layer]]
kind = "embedding"
vocabulary = 128
out = 3
[[layer]]
kind = "relu"
[[layer]]
kind = "dense"
out = 33
[[layer]]
kind = "relu"
[[layer]]
kind = "dense"
out = 7
bias = false
[[layer]]
kind = "relu"
[[layer]]
kind = "dense"
out = 128
`

// wholeModels calls f with two whole-number models, with samples and parameters of all magnitudes.
func wholeModels(t *testing.T, f func(t *testing.T, m *models.Model, set *data.Set, x []float32)) {
	images, err := models.Load("mlp-int8")
	if err != nil {
		t.Fatal(err)
	}
	bytes, err := models.FromSource("bytes-whole", []byte(readsBytes))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []*models.Model{images, bytes} {
		set := small(t)
		if m.Vocabulary > 0 {
			set = text(t, m)
		}
		x := make([]float32, m.Layout.Params)
		noise.Key{Seed: 5}.Each(0, len(x), len(x), func(at int, eps []float32) {
			for i, e := range eps {
				x[at+i] = 40 * e
			}
		})
		t.Run(m.Name, func(t *testing.T) { f(t, m, set, x) })
	}
}

// read converts parameters to integers.
func read(x []float32) (out []int64) {
	for _, v := range x {
		out = append(out, int64(engine.Whole(v)))
	}
	return out
}

// naive computes the logits of a sample by docs/arithmetic.md, in loops of int64, and its loss in bits in float64.
func naive(m *models.Model, set *data.Set, x []int64, id int32) (z []int64, loss float64) {
	a := make([]int64, 0, m.Features)
	for _, b := range set.Image(id) {
		a = append(a, int64(b))
	}
	weight := func(tensor, i int) int64 { return x[m.Layout.Tensors[tensor].Lo+i] }
	for _, l := range m.Layers {
		switch l.Kind {
		case models.Embedding:
			out, width := []int64(nil), l.Out[0]/l.In[0]
			for _, b := range a {
				for j := range width {
					out = append(out, weight(l.Weight, int(b)*width+j))
				}
			}
			a = out
		case models.ReLU:
			for i, v := range a {
				a[i] = min(max(v, 0), 255)
			}
		case models.Dense:
			out, by := make([]int64, l.Out[0]), math.Exp2(math.Ceil(math.Log2(16*math.Sqrt(float64(len(a))))-0.5-1e-9))
			for j := range out {
				for i, v := range a {
					out[j] += v * weight(l.Weight, j*len(a)+i)
				}
				out[j] = int64(math.Floor(float64(out[j])/by + 0.5))
				if l.Bias >= 0 {
					out[j] += weight(l.Bias, j)
				}
			}
			a = out
		}
	}
	sum := 0.0
	for i := range a {
		a[i] = min(max(a[i], -2047), 2047)
	}
	for _, v := range a {
		sum += math.Exp2(float64(v-a[set.Label(id)]) / 16)
	}
	return a, math.Log2(sum)
}

// TestWholeIsNaive: logits equal the logits of simple loops, and the loss equals the float64 loss up to its unit; every
// variant and any number of threads gives the same bits, and a candidate's fitness equals an evaluation of its
// parameters.
func TestWholeIsNaive(t *testing.T) {
	wholeModels(t, func(t *testing.T, m *models.Model, set *data.Set, x []float32) {
		ids := set.Train()[:150]
		want, right, far, all := 0.0, int64(0), 0, [][]int64(nil)
		for _, id := range ids {
			z, loss := naive(m, set, read(x), id)
			all = append(all, z)
			if want += loss; slices.Index(z, slices.Max(z)) == int(set.Label(id)) {
				right++
			}
			if slices.Max(z) > 30 {
				far++
			}
		}
		if right == 0 && m.Vocabulary == 0 || far == 0 {
			t.Fatalf("%d samples are right and %d have logits that say something: a poor test", right, far)
		}
		var first []float64
		for _, variant := range variantsHere() {
			for _, threads := range []int{1, 3} {
				loss, logits, fitness := wholeResults(t, m, set, variant, threads, x, ids, right)
				if bits := loss / math.Ln2; math.Abs(bits-want) > float64(len(ids))/65536 {
					t.Errorf("%s: a loss of %v bits, want %v", variant, bits, want)
				}
				for s, z := range all {
					for c, v := range z {
						if got := float64(logits[s*m.Classes+c]) / math.Ln2 * 16; math.Abs(got-float64(v)) > 1e-3 {
							t.Fatalf("%s: logit %d of sample %d is %v, want %d", variant, c, ids[s], got, v)
						}
					}
				}
				got := append([]float64{loss}, fitness...)
				if first == nil {
					first = got
				}
				if !slices.Equal(got, first) {
					t.Errorf("%s, %d threads: %v, before %v", variant, threads, got, first)
				}
			}
		}
	})
}

// wholeResults returns the loss, the logits and the fitness of three candidates, with every kind of noise.
func wholeResults(t *testing.T, m *models.Model, set *data.Set, variant kernel.Variant, threads int, x []float32,
	ids []int32, right int64) (float64, []float32, []float64) {
	ctx := context.Background()
	e, err := NewEngine(m, set, threads, variant)
	if err != nil {
		t.Fatal(err)
	}
	theta, err := e.Alloc(1, len(x))
	if err != nil {
		t.Fatal(err)
	}
	copy(row(theta, 0), x)
	of := engine.Evaluate{
		X:       theta,
		Rows:    engine.Rows(1),
		Batches: [][]int32{ids},
		Loss:    make([]float64, 1),
		Correct: make([]int64, 1),
	}
	logits := make([]float32, len(ids)*m.Classes)
	if err := e.Do(ctx, of); err != nil {
		t.Fatal(err)
	}
	if err := e.Logits(ctx, x, nil, ids, logits); err != nil {
		t.Fatal(err)
	}
	if of.Correct[0] != right {
		t.Errorf("%s: %d are right, want %d", variant, of.Correct[0], right)
	}
	all, some := []float64(nil), ids[:20]
	for _, kind := range []engine.Noise{{Integer: true}, {}, {Rank: 2}} {
		c := engine.Candidates{
			Theta:      theta,
			Noise:      kind,
			Sigma:      3,
			Key:        noise.Key{Seed: 9, Purpose: noise.Candidate},
			Antithetic: true,
			IDs:        []engine.Member{3, 0, 1},
			Batches:    [][]int32{some},
			Fitness:    make([]float32, 3),
		}
		if err := e.Do(ctx, c); err != nil {
			t.Fatal(err)
		}
		own, err := e.Alloc(1, len(x))
		if err != nil {
			t.Fatal(err)
		}
		for i, id := range c.IDs {
			if all = append(all, float64(c.Fitness[i])); kind.Integer {
				if bits := -float64(c.Fitness[i]) / math.Ln2; math.Abs(bits-perturbed(t, e, m, set, c, i, some)) > 2./65536 {
					t.Errorf("%s: candidate %d has a loss of %v bits, want %v", variant, id, bits, perturbed(t, e, m, set, c, i, some))
				}
				continue
			}
			if err := e.Candidate(0, row(own, 0), &c, i); err != nil {
				t.Fatal(err)
			}
			at := of
			at.X, at.Batches, at.Loss, at.Correct = own, [][]int32{some}, make([]float64, 1), make([]int64, 1)
			if err := e.Do(ctx, at); err != nil {
				t.Fatal(err)
			}
			if want := float32(-at.Loss[0] / float64(len(some))); c.Fitness[i] != want {
				t.Errorf("%s: candidate %d of noise %+v is worth %v, its parameters %v", variant, id, kind, c.Fitness[i], want)
			}
		}
	}
	return of.Loss[0], logits, all
}

// TestWholeLogs: logarithms are within one unit of float64, and their sum is correct; a sum larger than possible with
// logits works too.
func TestWholeLogs(t *testing.T) {
	all, sum := []uint64(nil), int64(0)
	for n := uint64(1 << 32); n < 1<<49; n += n/9 + 1 {
		got := wholeLogs([]uint64{n})
		if want := 65536 * math.Log2(float64(n)/(1<<32)); float64(got) > want+1e-6 || float64(got) < want-1.01 {
			t.Errorf("the logarithm of %d is %v, want %v", n, got, want)
		}
		all, sum = append(all, n), sum+got
		if total := wholeLogs(all); total != sum {
			t.Errorf("%d logarithms add up to %d, want %d", len(all), total, sum)
		}
	}
}

// TestWholeReads: weights of any magnitude are converted as by engine.Whole.
func TestWholeReads(t *testing.T) {
	src := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 1 << 20, -(1 << 20), 3e9,
		math.MaxFloat32}
	for x := float32(-140); x < 140; x += 0.125 {
		src = append(src, x, math.Nextafter32(x, 200))
	}
	dst := make([]int8, len(src))
	wholes(dst, src)
	for i, x := range src {
		if dst[i] != engine.Whole(x) {
			t.Errorf("%v is read as %d, want %d", x, dst[i], engine.Whole(x))
		}
	}
}

// TestWholeRefuses: unsupported tasks and data give an error.
func TestWholeRefuses(t *testing.T) {
	wholeModels(t, func(t *testing.T, m *models.Model, set *data.Set, _ []float32) {
		e, err := NewEngine(m, set, 1, kernel.Best())
		if err != nil {
			t.Fatal(err)
		}
		err = e.Do(context.Background(), task(t, m, set, 1, 20))
		if err == nil || !strings.Contains(err.Error(), "a model of whole numbers has none") {
			t.Errorf("gradients: %v", err)
		}
	})
	m, err := models.Load("mlp-int8")
	if err != nil {
		t.Fatal(err)
	}
	set := small(t)
	weighted, err := set.Weighted(data.Weights{Balanced: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewEngine(m, weighted, 1, kernel.Best()); err == nil ||
		!strings.Contains(err.Error(), "class weights are not") {
		t.Errorf("class weights: %v", err)
	}
	numbers, err := data.New(data.Info{Name: "numbers", Shape: []int{1, 28, 28}, Classes: 10},
		data.Raster{Values: make([]float32, 20*784), Labels: make([]uint16, 20)}, data.Raster{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewEngine(m, numbers, 1, kernel.Best()); err == nil || !strings.Contains(err.Error(), "are not bytes") {
		t.Errorf("numbers: %v", err)
	}
}

// perturbed returns the mean loss in bits of a candidate under integer noise: Whole(theta) and Whole(s*eps) are added
// or subtracted without clipping.
func perturbed(t *testing.T, e *Engine, m *models.Model, set *data.Set, c engine.Candidates, entry int,
	ids []int32) float64 {
	x, noise := read(flat(c.Theta)), make([]float32, m.Layout.Params)
	c.Theta = ram.New(1, len(x))
	if err := e.Candidate(0, noise, &c, entry); err != nil {
		t.Fatal(err)
	}
	beyond := 0
	for i, n := range read(noise) {
		if x[i] += n; x[i] > 127 || x[i] < -127 {
			beyond++
		}
	}
	if beyond == 0 {
		t.Error("no weight is beyond 127: a poor test")
	}
	sum := 0.0
	for _, s := range ids {
		_, loss := naive(m, set, x, s)
		sum += loss / float64(len(ids))
	}
	return sum
}
