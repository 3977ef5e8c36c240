package native

import (
	"context"
	"fmt"
	"math"
	goruntime "runtime"
	"slices"
	"testing"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/longtest"
	"brood/models/native/kernel"
)

// heap returns the bytes of all live objects.
func heap() int64 {
	goruntime.GC()
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// works are typical work of an engine: gradients of fewer, as many and more members than threads, batches that are not
// whole blocks, evolution strategies with each kind of noise, and statistics of batches.
var works = []engine.Work{
	{Members: 1, Gradients: 32},
	{Members: 3, Gradients: 75, Rows: 1, Scores: 40},
	{Members: 2, Gradients: 32, Rows: 1, Scores: 190, Own: 120},
	{Members: 2, Gradients: 4, Muon: true},
	{Candidates: 1, Batch: 64},
	{Candidates: 8, Antithetic: true, Batch: 130, Rows: 1, Scores: 64},
	{Candidates: 8, Antithetic: true, Batch: 130, Noise: engine.Noise{Integer: true}},
	{Candidates: 12, Antithetic: true, Batch: 64, Noise: engine.Noise{Rank: 1}},
	{Candidates: 5, Batch: 150, Noise: engine.Noise{Rank: 4}},
	{Candidates: 600, Antithetic: true, Batch: 16, Sums: 300, Noise: engine.Noise{Rank: 1}},
	{Candidates: 6, Batch: 16, Sums: 10000},
	{Sums: 8000, Noise: engine.Noise{Integer: true}},
	{Sums: 6000, Noise: engine.Noise{Rank: 4}},
}

// TestEstimateMemory: the estimate is within a tenth of the heap's growth: for four models with the best kernel
// variant; in the test group kernels for the whole zoo, with thousands of candidates, and for one model with every
// variant.
func TestEstimateMemory(t *testing.T) {
	long := longtest.On(longtest.Kernels)
	names := []string{"mlp-small", "lenets", "bytes-small", "mlp-int8"}
	if long {
		names = models.List()
	}
	for _, name := range names {
		m, err := models.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			if m.Layout.Params > 3.5e5 {
				t.Skip("the smaller models have the same layers")
			}
			channels := 1
			if len(m.Input) == 3 {
				channels = m.Input[0]
			}
			even := slices.Repeat([]float64{0.5}, channels)
			pixels := data.Raster{Pixels: make([]byte, 200*m.Features), Labels: make([]uint16, 200)}
			var set *data.Set
			if m.Vocabulary > 0 {
				set = text(t, m)
			} else if set, err = data.New(data.Info{
				Name:    "gray",
				Shape:   m.Input,
				Classes: max(2, m.Classes),
				Mean:    even,
				Std:     even,
			}, pixels, data.Raster{}, 0); err != nil {
				t.Fatal(err)
			}
			set.Normal()
			variants, works := variantsHere(), works
			best := variants[len(variants)-1:]
			switch {
			case m.Vocabulary > 0: // small enough for fixed memory to matter
				variants = best
			case !long || m.Name == "mlp-gelu" || slices.Contains(redundant, m.Name):
				variants, works = best, works[:8]
			case m.Features > 1024: // slow, without new kinds of layers
				variants, works = best, works[:4]
			case m.Name != "lenets": // tables and buffers do not depend on the variant
				variants = best
			}
			for _, variant := range variants {
				works := works
				if variant == kernel.Portable { // too slow
					works = works[:4]
				}
				for _, w := range works {
					if m.Int8 && w.Gradients > 0 {
						continue
					}
					compareEstimate(t, m, set, variant, w, NewEngine)
					if w.Candidates > 0 && w.Noise.Rank == 0 && (m.Name == "mlp-small" || m.Name == "lenets") {
						compareEstimate(t, m, set, variant, w, NewBF16)
						compareEstimate(t, m, set, variant, w, NewAMX)
					}
				}
			}
		})
	}
}

// TestEstimateOfThreads: threads that all have work hold as much as single ones and share the tables; helpers and idle
// threads hold less.
func TestEstimateOfThreads(t *testing.T) {
	zoo(t, func(t *testing.T, m *models.Model, set *data.Set) {
		var fixed int64
		of := func(threads int, w engine.Work) int64 {
			e, err := NewEngine(m, set, threads, kernel.Best())
			if err != nil {
				t.Fatal(err)
			}
			fixed = e.fixed()
			return e.EstimateMemory(w)
		}
		tables := of(1, engine.Work{}) - fixed
		for _, w := range []engine.Work{{Members: 3, Gradients: 75}, {Candidates: 6, Antithetic: true, Batch: 64},
			{Rows: 1, Scores: 3 * maxPassSamples}, {Rows: 4, Own: 30}} {
			one, three, four := of(1, w)-tables, of(3, w)-tables, of(4, w)-tables
			if three != 3*one {
				t.Errorf("%+v: three threads hold %d, one %d", w, three, one)
			}
			if more := four - three; more <= 0 || more > one {
				t.Errorf("%+v: a fourth thread holds %d, one with work %d", w, more, one)
			}
		}
	})
}

// variantsHere returns the variants that this machine can run.
func variantsHere() (out []kernel.Variant) {
	for tw := kernel.Portable; tw <= kernel.Best(); tw++ {
		if _, err := kernel.New(tw); err == nil {
			out = append(out, tw)
		}
	}
	return out
}

// compareEstimate runs the work on an engine of one thread and compares its memory with the estimate. With more threads
// the memory depends on scheduling.
func compareEstimate(t *testing.T, m *models.Model, set *data.Set, variant kernel.Variant, w engine.Work, open opener) {
	t.Helper()
	ctx, ids := context.Background(), set.Train()
	g := task(t, m, set, max(1, w.Members), max(1, w.Gradients))
	x := g.X.Sub(0, 1)
	many := func(n, batch int) (out [][]int32) {
		for range n {
			out = append(out, ids[:batch])
		}
		return out
	}
	var tasks []engine.Task
	if w.Gradients > 0 {
		tasks = append(tasks, g)
	}
	if w.Muon {
		tasks = append(tasks, engine.Muon{X: g.X, M: g.G, V: g.G, G: g.G, Rows: engine.Rows(2), T: 1})
	}
	if w.Candidates > 0 {
		c := engine.Candidates{
			Noise:      w.Noise,
			Theta:      x,
			Sigma:      0.01,
			Antithetic: w.Antithetic,
			Batches:    many(1, w.Batch),
			Fitness:    make([]float32, w.Candidates),
		}
		for i := range w.Candidates {
			c.IDs = append(c.IDs, engine.Member(i))
		}
		tasks = append(tasks, c)
	}
	if w.Sums > 0 {
		tasks = append(tasks, engine.NoiseSum{
			Dst:     engine.All(g.G.Sub(0, 1)),
			Noise:   w.Noise,
			Weights: make([]float32, w.Sums),
			IDs:     make([]engine.Member, w.Sums),
		})
	}
	e := engine.Evaluate{X: x, Rows: engine.Rows(w.Rows), Loss: make([]float64, w.Rows), Correct: make([]int64, w.Rows)}
	if w.Scores > 0 {
		e.Batches, e.Stats = many(w.Rows, w.Scores), g.Stats
		tasks = append(tasks, e)
	}
	if w.Own > 0 {
		tasks = append(tasks, engine.Statistics{
			X:       x,
			Rows:    engine.Rows(w.Rows),
			Batches: many(1, w.Own),
			Stats:   ram.New(w.Rows, m.Layout.Stats),
		})
		e.Batches, e.Stats = many(w.Rows, w.Own), engine.Mat{}
		tasks = append(tasks, e)
	}
	before := heap()
	eng, err := open(m, set, 1, variant)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // gradients after larger evaluations grow once more
		if err := eng.Do(ctx, tasks...); err != nil {
			t.Fatal(err)
		}
	}
	held, estimate := heap()-before, eng.EstimateMemory(w)
	name := fmt.Sprintf("%s, %s, %+v", eng.Kernels(), variant, w)
	if math.Abs(float64(estimate-held)) > 0.1*float64(held) {
		t.Errorf("%s: estimated %d bytes, holds %d (%.2f)", name, estimate, held, float64(estimate)/float64(held))
	} else if testing.Verbose() {
		t.Logf("%s: %.3f of %d", name, float64(estimate)/float64(held), held)
	}
	goruntime.KeepAlive(tasks)
	goruntime.KeepAlive(eng)
}
