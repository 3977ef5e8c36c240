package averaging

import (
	"math"
	"slices"
	"testing"

	"brood/models/noise"
	"brood/optim"
	"brood/optim/optimtest"
)

// average64 replaces the elements chosen by key, in each row of x, by their mean, naively in float64.
func average64(x [][]float64, key noise.Key, share float64) {
	for j := range int(math.Round(share * optimtest.Cols)) {
		at := key.Permute(uint64(j), optimtest.Cols)
		mean := optimtest.Average(x)[at]
		for a := range x {
			x[a][at] = mean
		}
	}
}

// TestSPARTA compares with the source, computed naively in float64: local steps, then the same random elements of all
// replicas become their mean.
func TestSPARTA(t *testing.T) {
	for _, c := range []struct {
		n, h         int
		slice, share float64
	}{{3, 1, 32, 0.4}, {2, 4, 2, 0.1}, {5, 3, 32, 0.7}, {1, 1, 32, 0.4}} {
		p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, SPARTA, c.n,
			optimtest.Set{"h": c.h, "slice": c.slice, "share": c.share, "eta": 0.05, "momentum": 0.6, "batch": 4})
		each := (c.h + int(c.slice) - 1) / int(c.slice) // rounds of a cycle
		x, m := optimtest.StartRows(optimtest.Cols, c.n)
		next := p.Streams()
		for cycle := range 5 {
			for a := range x {
				for range c.h {
					optimtest.Nesterov(x[a], m[a], p.Bowl.Gradient(x[a], next(a)), 0.05, 0.6)
				}
			}
			average64(x, noise.Key{Seed: p.Seed, Purpose: noise.Pair, Round: uint64((cycle+1)*each - 1)}, c.share)
		}
		p.Rounds(5 * each)
		p.Same(optim.BlockX, x...)
		p.Same(optim.BlockM, m...)
	}
}

// Share 0 trains replicas independently, share 1 is LocalSGD bit for bit, and any other share averages at least one
// element.
func TestSPARTAReductions(t *testing.T) {
	b := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples)
	k := func(share float64) optimtest.Set { return optimtest.Set{"h": 4, "share": share, "batch": 4} }
	none, least, all := b.Populate(t, SPARTA, 3, k(0)), b.Populate(t, SPARTA, 3, k(0.001)), b.Populate(t, SPARTA, 3, k(1))
	alone := b.Populate(t, LocalSGD, 3, optimtest.Set{"h": 1000, "slice": 4, "batch": 4})
	averaged := b.Populate(t, LocalSGD, 3, optimtest.Set{"h": 4, "batch": 4})
	for _, p := range []*optimtest.Population{none, least, all, alone, averaged} {
		p.Rounds(3)
	}
	if !slices.Equal(optimtest.Flat(none.Block(optim.BlockX)), optimtest.Flat(alone.Block(optim.BlockX))) {
		t.Error("with share 0 replicas do not train alone")
	}
	if !slices.Equal(optimtest.Flat(all.Block(optim.BlockX)), optimtest.Flat(averaged.Block(optim.BlockX))) {
		t.Error("with share 1 replicas are not averaged as in LocalSGD")
	}
	equal := 0
	for j := range optimtest.Cols {
		if least.RowOf(optim.BlockX, 0)[j] == least.RowOf(optim.BlockX, 1)[j] {
			equal++
		}
	}
	if equal != 1 {
		t.Errorf("the least share averages %d elements, want 1", equal)
	}
}

// TestDiLoCoWithSPARTA: with a share, DiLoCo also averages random elements after every inner step, different ones each.
func TestDiLoCoWithSPARTA(t *testing.T) {
	const n, h, cycles = 3, 4, 3
	for _, slice := range []int{32, 2} {
		p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, DiLoCo, n,
			optimtest.Set{"h": h, "slice": slice, "share": 0.4, "eta": 0.5, "eta_in": 0.01, "momentum": 0.8, "batch": 4})
		x, m := optimtest.StartRows(optimtest.Cols, n)
		_, v := optimtest.StartRows(optimtest.Cols, n)
		xbar, mx, next, each := optimtest.StartRow(), make([]float64, optimtest.Cols), p.Streams(), min(h, slice)
		for step := range h * cycles {
			for a := range x {
				optimtest.AdamW(x[a], m[a], v[a], p.Bowl.Gradient(x[a], next(a)), 0.9, 0.999, 0.01, 0, step+1)
			}
			average64(x, noise.Key{
				Seed:    p.Seed,
				Purpose: noise.Pair,
				Round:   uint64(step / each),
				Member:  uint32(step % each),
			}, 0.4)
			if step%h < h-1 {
				continue
			}
			d := optimtest.Average(x)
			for j := range d {
				d[j] = xbar[j] - d[j]
			}
			optimtest.Nesterov(xbar, mx, d, 0.5, 0.8)
			for a := range x {
				copy(x[a], xbar)
			}
		}
		p.Rounds(cycles * h / each)
		p.Same(optim.BlockXBar, xbar)
		p.Same(optim.BlockX, x...)
	}
}
