package optim

import (
	"slices"
	"testing"

	"brood/models/engine"
)

// adaptive are the algorithms whose members follow their gradients by an optimiser of one's choice.
func adaptive() []*Algorithm { return []*Algorithm{DPSGD, LocalSGD, PAPA, SGP, ADPSGD, PopSGD} }

// TestOptimisers: steps by Adam and AdamW are those of the equations in float64; weight decay of the first is part of
// the gradient, and that of the second is not.
func TestOptimisers(t *testing.T) {
	const b1, b2 = 0.8, 0.95
	for _, name := range []string{"adam", "adamw"} {
		t.Run(name, func(t *testing.T) {
			turned := set{"optimiser": map[string]float64{"adam": 1, "adamw": 2}[name], "eta": 0.02, "decay": 0.1, "beta1": b1, "beta2": b2, "batch": 4}
			of := func(x, m, v, g []float64, step int) {
				decay := 0.1
				if name == "adam" {
					g = slices.Clone(g)
					for j := range g {
						g[j] += 0.1 * x[j]
					}
					decay = 0
				}
				adam64(x, m, v, g, b1, b2, 0.02, decay, step)
			}

			p := newBowl(t, cols, samples).populate(t, DPSGD, 3, turned)
			x, m := twins(cols, 1)
			_, v := twins(cols, 1)
			at := uint64(0)
			for step := range 6 {
				var gs [][]float64
				for range 3 {
					batch := make([]int32, 4)
					p.SharedBatch(batch, at)
					at += 4
					gs = append(gs, p.bowl.gradient(x[0], batch))
				}
				of(x[0], m[0], v[0], average64(gs), step+1)
			}
			p.rounds(6)
			p.same(BlockX, x[0])
			p.same(BlockM1, m[0])
			p.same(BlockV, v[0])
			if n := p.Record(BlockT).U[0]; n != 6 {
				t.Errorf("the moments have seen %d steps", n)
			}

			turned["h"], turned["warmup"] = 3, 2
			p = newBowl(t, cols, samples).populate(t, LocalSGD, 3, turned)
			x, m = twins(cols, 3)
			_, v = twins(cols, 3)
			next, steps := p.streams(), 0
			for range 2 {
				steps++
				var gs [][]float64
				for a := range x {
					g := p.bowl.gradient(x[a], next(a))
					if name == "adam" { // decay is in the mean that all follow
						for j := range g {
							g[j] += 0.1 * x[a][j]
						}
					}
					gs = append(gs, g)
				}
				for a := range x {
					adam64(x[a], m[a], v[a], average64(gs), b1, b2, 0.02, map[string]float64{"adamw": 0.1}[name], steps)
				}
			}
			for range 2 {
				for s := range 3 {
					for a := range x {
						of(x[a], m[a], v[a], p.bowl.gradient(x[a], next(a)), steps+s+1)
					}
				}
				steps += 3
				mean := average64(x)
				for a := range x {
					copy(x[a], mean)
				}
			}
			p.rounds(4)
			p.same(BlockX, x...)
			p.same(BlockM1, m...)
			p.same(BlockV, v...)
		})
	}
}

// TestOptimiserBlocks: every algorithm that lets one choose keeps momentum by default, as logs of before mean it, and
// moments where it adapts.
func TestOptimiserBlocks(t *testing.T) {
	names := func(a *Algorithm, k Values) (out []string) {
		for _, b := range a.Blocks(k, engine.Layout{Params: 3}) {
			out = append(out, b.Name)
		}
		return out
	}
	for _, a := range adaptive() {
		plain := a.Defaults()
		if !plain.Is("optimiser", "sgd") || !slices.Contains(names(a, plain), BlockM) || slices.Contains(names(a, plain), BlockV) {
			t.Errorf("%s: blocks %v by default", a.Name, names(a, plain))
		}
		for choice := 1.0; choice <= 2; choice++ {
			blocks := names(a, plain.With("optimiser", choice))
			if slices.Contains(blocks, BlockM) || !slices.Contains(blocks, BlockM1) || !slices.Contains(blocks, BlockV) || !slices.Contains(blocks, BlockT) {
				t.Errorf("%s: blocks %v with optimiser %v", a.Name, blocks, choice)
			}
		}
	}
}
