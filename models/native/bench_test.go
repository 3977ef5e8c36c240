package native

import (
	"context"
	"fmt"
	"testing"
	"time"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/native/kernel"
	"brood/models/noise"
)

// gradients measures gradients of n members on batches of one size: the mean, and the best step.
func gradients(b *testing.B, m *models.Model, set *data.Set, threads, n, batch int) {
	e, err := NewEngine(m, set, threads, kernel.Best())
	if err != nil {
		b.Fatal(err)
	}
	x, g, stats := ram.New(n, m.Layout.Params), ram.New(n, m.Layout.Params), ram.New(n, m.Layout.Stats)
	t := engine.Gradients{
		X:     x,
		Rows:  engine.Rows(n),
		Stats: stats,
		G:     g,
		Loss:  make([]float32, n),
		Masks: make([]noise.Key, n),
	}
	for i := range n {
		if err := m.Init(1, engine.Member(i), row(x, engine.Row(i))); err != nil {
			b.Fatal(err)
		}
		m.Layout.FreshStats(row(stats, engine.Row(i)))
		t.Batches = append(t.Batches, set.Train()[:batch])
	}
	best := time.Duration(1 << 62)
	for b.Loop() {
		began := time.Now()
		if err := e.Do(context.Background(), t); err != nil {
			b.Fatal(err)
		}
		best = min(best, time.Since(began))
	}
	b.ReportMetric(float64(n*batch*b.N)/b.Elapsed().Seconds(), "samples/s")
	b.ReportMetric(float64(n*batch)/best.Seconds(), "best/s")
}

// BenchmarkTeam measures the gradients of a step for one member on two threads, in samples per second of the mean; run
// it under other load too.
func BenchmarkTeam(b *testing.B) {
	for _, name := range []string{"mlp", "lenet", "resnet20"} {
		m, err := models.Load(name)
		if err != nil {
			b.Fatal(err)
		}
		set, err := data.New(data.Info{Name: "noise", Shape: m.Input, Classes: 10},
			data.Raster{Pixels: make([]byte, 128*m.Features), Labels: make([]uint16, 128)}, data.Raster{}, 0)
		if err != nil {
			b.Fatal(err)
		}
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/threads=%d", name, threads), func(b *testing.B) { gradients(b, m, set, threads, 1, 128) })
		}
	}
}

// BenchmarkUpdate measures the share of Nesterov's step in a step of one member on one thread: the best of each.
func BenchmarkUpdate(b *testing.B) {
	for _, name := range []string{"mlp", "lenet", "allcnn"} {
		m, err := models.Load(name)
		if err != nil {
			b.Fatal(err)
		}
		set, err := data.New(data.Info{Name: "noise", Shape: m.Input, Classes: 10},
			data.Raster{Pixels: make([]byte, 128*m.Features), Labels: make([]uint16, 128)}, data.Raster{}, 0)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			e, err := NewEngine(m, set, 1, kernel.Best())
			if err != nil {
				b.Fatal(err)
			}
			g := task(b, m, set, 1, 128)
			v := ram.New(1, m.Layout.Params)
			step := engine.Update{Rows: engine.Rows(1), Prog: []engine.Lin{
				{Dst: v, Terms: []engine.Term{{C: 0.9, Src: v}, {C: 1, Src: g.G}}},
				{Dst: g.X, Terms: []engine.Term{{C: 1, Src: g.X}, {C: -0.01, Src: g.G}, {C: -0.009, Src: v}}},
			}}
			best := [2]time.Duration{1 << 62, 1 << 62}
			for b.Loop() {
				for i, t := range []engine.Task{g, step} {
					began := time.Now()
					if err := e.Do(context.Background(), t); err != nil {
						b.Fatal(err)
					}
					best[i] = min(best[i], time.Since(began))
				}
			}
			b.ReportMetric(best[1].Seconds()/(best[0]+best[1]).Seconds(), "of-step")
			b.ReportMetric(best[1].Seconds()*1e6, "us")
		})
	}
}

// BenchmarkMap measures statements with a function or a factor, in turn with the same statement without: elements per
// nanosecond, and the share of the plain statement's rate.
func BenchmarkMap(b *testing.B) {
	const cols = 1 << 20
	l := engine.Layout{Params: cols, Tensors: []engine.Tensor{{Name: "w", Len: cols, Cols: cols, Shape: []int{cols}}}}
	x, y := ram.New(1, cols), ram.New(1, cols)
	for i := range flat(x) {
		flat(x)[i] = float32(i%7) - 3
	}
	for name, of := range map[string]engine.Lin{
		"sign": {Map: engine.Sign}, "abs": {Map: engine.Abs}, "square": {Map: engine.Square}, "sqrt": {Map: engine.Sqrt},
		"reciprocal": {Map: engine.Reciprocal}, "clamp": {Map: engine.Clamp}, "factor": {By: x},
	} {
		b.Run(name, func(b *testing.B) {
			v, err := New(l, 1)
			if err != nil {
				b.Fatal(err)
			}
			of.Dst, of.Terms = y, []engine.Term{{C: 0.5, Src: x}}
			plain := engine.Lin{Dst: y, Terms: of.Terms}
			best := [2]time.Duration{1 << 62, 1 << 62}
			for b.Loop() {
				for i, s := range []engine.Lin{plain, of} {
					began := time.Now()
					if err := v.Do(context.Background(), engine.Update{Rows: engine.Rows(1), Prog: []engine.Lin{s}}); err != nil {
						b.Fatal(err)
					}
					best[i] = min(best[i], time.Since(began))
				}
			}
			b.ReportMetric(cols/float64(best[1].Nanoseconds()), "elements/ns")
			b.ReportMetric(float64(best[0])/float64(best[1]), "of_plain")
		})
	}
}

// BenchmarkCrossover measures the crossover of a row of mlp, in turn with a copy of it, the limit set by memory.
func BenchmarkCrossover(b *testing.B) {
	m, err := models.Load("mlp")
	if err != nil {
		b.Fatal(err)
	}
	v, err := New(m.Layout, 1)
	if err != nil {
		b.Fatal(err)
	}
	x := ram.New(3, m.Layout.Params)
	best := [2]time.Duration{1 << 62, 1 << 62}
	for b.Loop() {
		for i, f := range []func(){
			func() { v.cross(v.threads[0].Kernels, row(x, 0), row(x, 1), row(x, 2), noise.Key{}, false) },
			func() { copy(row(x, 0), row(x, 1)) },
		} {
			began := time.Now()
			f()
			best[i] = min(best[i], time.Since(began))
		}
	}
	b.ReportMetric(float64(m.Layout.Params)/best[0].Seconds()/1e9, "G/s")
	b.ReportMetric(best[1].Seconds()/best[0].Seconds(), "of-a-copy")
}

// opener creates an engine with one arithmetic.
type opener func(*models.Model, *data.Set, int, kernel.Variant) (*Engine, error)
