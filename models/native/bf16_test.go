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

// TestBF16Candidates: fitness has the same bits with every variant, any number of threads and any other candidates, and
// equals the definition in float64, unlike the fitness in float32.
func TestBF16Candidates(t *testing.T) {
	m, err := models.Load("mlp-small")
	if err != nil {
		t.Fatal(err)
	}
	set := small(t)
	task := func(ids ...engine.Member) engine.Candidates {
		c := engine.Candidates{Key: noise.Key{Seed: 3}, Theta: ram.New(1, m.Layout.Params), Sigma: 0.05, Antithetic: true,
			IDs: ids, Batches: [][]int32{set.Train()[:150]}, Fitness: make([]float32, len(ids))}
		if err := m.Init(1, 0, flat(c.Theta)); err != nil {
			t.Fatal(err)
		}
		return c
	}
	all := task(0, 1, 2, 3, 4, 5, 6)
	plain, err := NewEngine(m, set, 2, kernel.Best())
	if err == nil {
		err = plain.Do(context.Background(), all)
	}
	if err != nil {
		t.Fatal(err)
	}
	without := slices.Clone(all.Fitness)
	for name, open := range map[string]opener{"bf16": NewBF16, "amx": NewAMX} {
		t.Run(name, func(t *testing.T) { holdBF16(t, open, m, set, plain, task, all, without) })
	}
}

// holdBF16 runs TestBF16Candidates for one summation order.
func holdBF16(t *testing.T, open opener, m *models.Model, set *data.Set, plain *Engine,
	task func(...engine.Member) engine.Candidates, all engine.Candidates, without []float32) {
	var want []float32
	variants(t, func(t *testing.T, variant kernel.Variant) {
		for threads := 1; threads <= 3; threads++ {
			if variant == kernel.Portable && threads != 2 {
				continue // too slow
			}
			e, err := open(m, set, threads, variant)
			if err != nil {
				t.Fatal(err)
			}
			one := task(5)
			if err := e.Do(context.Background(), all, one); err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want = slices.Clone(all.Fitness)
			}
			if !slices.Equal(all.Fitness, want) || one.Fitness[0] != want[5] {
				t.Errorf("%d threads: %v and alone %v, want %v", threads, all.Fitness, one.Fitness, want)
			}
		}
	})
	off, other, n := 0.0, 0.0, 3
	for i := range n {
		exact := naiveBF16(plain, &all, i)
		off, other = off+math.Abs(float64(want[i])-exact), other+math.Abs(float64(without[i])-exact)
	}
	if off/float64(n) > 1e-6 || other < 10*off {
		t.Errorf("the error of the fitness is %.2g, and %.2g with float32", off/float64(n), other/float64(n))
	}
}

// TestAMXConvolves: the fitness of a model whose second convolution uses blocks has the same bits with every variant
// and any number of threads, and differs from float32.
func TestAMXConvolves(t *testing.T) {
	m, err := models.Load("lenet-caffe")
	if err != nil {
		t.Fatal(err)
	}
	set := small(t)
	task := engine.Candidates{Key: noise.Key{Seed: 3}, Theta: ram.New(1, m.Layout.Params), Sigma: 0.05, Antithetic: true,
		IDs:     []engine.Member{0, 1, 2},
		Batches: [][]int32{set.Train()[:70]}, Fitness: make([]float32, 3)}
	if err := m.Init(1, 0, flat(task.Theta)); err != nil {
		t.Fatal(err)
	}
	run := func(e *Engine, err error) []float32 {
		if err == nil {
			err = e.Do(context.Background(), task)
		}
		if err != nil {
			t.Fatal(err)
		}
		return slices.Clone(task.Fitness)
	}
	plain := run(NewEngine(m, set, 2, kernel.Best()))
	want := run(NewAMX(m, set, 1, kernel.Best()))
	for i, f := range want {
		if d := math.Abs(float64(f - plain[i])); d == 0 || d > 0.02 {
			t.Errorf("candidate %d: %v, in float32 %v", i, f, plain[i])
		}
	}
	variants(t, func(t *testing.T, variant kernel.Variant) {
		if variant == kernel.Portable {
			t.Skip("slow: its convolutions are compared in package kernel")
		}
		for threads := 1; threads <= 4; threads += 3 {
			if got := run(NewAMX(m, set, threads, variant)); !slices.Equal(got, want) {
				t.Errorf("%d threads: %v, want %v", threads, got, want)
			}
		}
	})
}

// naiveBF16 computes a candidate's fitness with rounded operands and float64 sums: in the first layer separate products
// with theta and with the noise, in others products with theta plus noise.
func naiveBF16(e *Engine, t *engine.Candidates, i int) float64 {
	m, p := e.plan.model, e.passes[0]
	key, _ := engine.Signed(t.Key, t.Antithetic, t.IDs[i])
	eps, theta, step := make([]float32, m.Layout.Params), flat(t.Theta), e.step(t, t.IDs[i])
	p.thread.draw(t.Noise, e.layout, eps, 0, key)
	perturbed := make([]float32, len(theta))
	for j := range theta {
		perturbed[j] = theta[j] + step*eps[j]
	}
	affine := func(params []float32, o *dense, x []float32) []float64 {
		w, out := tensor(params, m, o.wide), make([]float64, o.nOut)
		for q := range x {
			x[q] = kernel.BF16(x[q])
		}
		for j := range out {
			for q := range x {
				out[j] += float64(x[q]) * float64(kernel.BF16(w[j*o.nIn+q]))
			}
			out[j] += float64(tensor(params, m, o.bias)[j])
		}
		return out
	}
	loss := 0.0
	for _, id := range t.Batches[0] {
		if err := p.load(e.set, []int32{id}, noise.Key{}, false); err != nil {
			panic(err)
		}
		x := slices.Clone(p.act[e.plan.ops[0].(*dense).in][:e.plan.ops[0].(*dense).nIn])
		var z []float64
		for at, op := range e.plan.ops {
			o, is := op.(*dense)
			if is {
				if z = affine(perturbed, o, x); at == 0 {
					z = affine(theta, o, x)
					for j, turn := range affine(eps, o, x) {
						z[j] += float64(step) * turn
					}
				}
				x = make([]float32, len(z))
			}
			for j := range z { // all other ops are ReLUs
				x[j] = float32(z[j])
				if !is || o.rectify {
					x[j] = max(0, x[j])
				}
			}
		}
		sum := 0.0
		for _, v := range z {
			sum += math.Exp(v)
		}
		loss += math.Log(sum) - z[p.labels[0]]
	}
	return -loss / float64(len(t.Batches[0]))
}

// TestBF16Refuses: models without a product to round are refused.
func TestBF16Refuses(t *testing.T) {
	for name, want := range map[string]string{"mlp-int8": "in whole numbers",
		"": "no dense layer, so bf16 changes nothing"} {
		m, err := models.Load(name)
		if name == "" {
			m, err = models.FromSource("pooled",
				[]byte("name = \"pooled\"\ninput = [1, 28, 28]\nclasses = 10\n[[layer]]\nkind = \"conv\"\nout = 10\nkernel = 3\n"+
					"[[layer]]\nkind = \"globalavgpool\"\n"))
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := NewBF16(m, small(t), 1, kernel.Best()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
		if name != "" {
			continue
		}
		want = "no dense layer and no convolution of 8 input channels or more, so amx changes nothing"
		if _, err := NewAMX(m, small(t), 1, kernel.Best()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
