package evolution

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"brood/models/engine/ram"
	"brood/optim"
	"brood/optim/optimtest"
)

// TestSlope: for every algorithm that estimates gradients, both cosines equal those of float64 loops, and the
// parameters do not change.
func TestSlope(t *testing.T) {
	for _, c := range []struct {
		alg    *optim.Algorithm
		turned optimtest.Set
		n      int // independent directions of 32 members
	}{
		{OpenAIES, optimtest.Set{"batch": 8, "optimiser": 1, "decay": 0}, 16},
		{OpenAIES, optimtest.Set{"batch": 8, "antithetic": 1, "optimiser": 1, "decay": 0}, 32},
		{OpenAIES, optimtest.Set{"batch": 8, "noise": 1, "shaping": 2, "optimiser": 1, "decay": 0}, 16},
		{OpenAIES, optimtest.Set{"batch": 8, "distribution": 2, "shaping": 1, "optimiser": 1, "decay": 0}, 16},
		{ARS, optimtest.Set{"batch": 8}, 16}, {GuidedES, optimtest.Set{"batch": 8, "optimiser": 1}, 16},
		{GuidedES, optimtest.Set{"batch": 8, "optimiser": 1, "subspace": 2, "surrogate": 1}, 16},
		{SNES, optimtest.Set{"batch": 8}, 32},
	} {
		t.Run(fmt.Sprint(c.alg.Name, c.turned), func(t *testing.T) {
			ctx, b := context.Background(), optimtest.NewBowl(t, 300, 64)
			p := b.Populate(t, c.alg, 32, c.turned)
			if c.alg == SNES {
				for j := range p.Layout.Params {
					optimtest.Flat(p.Block(optim.BlockS))[j] = 1 + float32(j%3)
				}
			}
			before, estimator := slices.Clone(p.RowOf(optim.BlockX, 0)), p.Algorithm.Program.(Estimator)
			at := p.Record(optim.BlockCursor).U[0]
			g := ram.New(1, p.Layout.Params)
			if n, err := estimator.Estimate(ctx, p.Env, p.Knobs, 7, g); err != nil || n != c.n {
				t.Fatalf("%d directions, %v", n, err)
			}
			p.Record(optim.BlockCursor).U[0] = at
			own := make([]int32, 8)
			p.SharedBatch(own, at)
			train := [][]int32{{1, 2, 3, 4}, {9, 8, 7, 6}, {20, 21, 22, 23}}

			p.Recycle()
			s, err := EstimateSlope(ctx, p.Env, p.Knobs, estimator, 7, train)
			if err != nil {
				t.Fatal(err)
			}
			if want := cosineDown(optimtest.Doubles(optimtest.Flat(g)), b.Gradient(before, own)); math.Abs(s.Batch-want) > 1e-5 {
				t.Errorf("with the batch %v, want %v", s.Batch, want)
			}
			if want := cosineDown(optimtest.Doubles(optimtest.Flat(g)),
				b.Gradient(before, slices.Concat(train...))); math.Abs(s.Train-want) > 1e-5 {
				t.Errorf("with samples of training %v, want %v", s.Train, want)
			}
			if s.Batch < 0.1 || s.Directions != c.n {
				t.Errorf("an estimate of %d directions has the cosine %v", s.Directions, s.Batch)
			}
			if !slices.Equal(p.RowOf(optim.BlockX, 0), before) {
				t.Error("the parameters have moved")
			}

			// A round moves along its estimate, and another round has another estimate.
			other := ram.New(1, p.Layout.Params)
			p.Recycle()
			if _, err := estimator.Estimate(ctx, p.Env, p.Knobs, 8, other); err != nil {
				t.Fatal(err)
			}
			if c := cosineDown(optimtest.Doubles(optimtest.Flat(g)),
				negated(optimtest.Doubles(optimtest.Flat(other)))); c > 0.999 {
				t.Errorf("the estimates of two rounds have the cosine %v", c)
			}
			p.Record(optim.BlockCursor).U[0], p.Next = at, 7
			p.Rounds(1)
			moved := p.RowOf(optim.BlockX, 0)
			for i := range moved {
				moved[i] -= before[i]
			}
			if c := cosineDown(moved, negated(optimtest.Doubles(optimtest.Flat(g)))); c < 1-1e-6 {
				t.Errorf("a round moves along another direction: cosine %v", c)
			}
		})
	}
}

// TestSlopeUndefined: candidates with separate mini-batches have no batch in common, and equal results give no
// direction.
func TestSlopeUndefined(t *testing.T) {
	ctx, b := context.Background(), optimtest.NewBowl(t, 20, 64)
	p := b.Populate(t, OpenAIES, 8, optimtest.Set{"batch": 4, "samples": 1})
	if s, err := EstimateSlope(ctx, p.Env, p.Knobs, openaiES{}, 0, [][]int32{{1, 2}}); err != nil || s.Batch == s.Batch ||
		s.Train != s.Train {
		t.Errorf("batches of their own: %+v, %v", s, err)
	}
	b.A = make([]float64, 20) // constant loss
	p = b.Populate(t, ARS, 8, optimtest.Set{"batch": 4})
	if s, err := EstimateSlope(ctx, p.Env, p.Knobs, ars{}, 0, [][]int32{{1, 2}}); err != nil || s.Batch == s.Batch ||
		s.Train == s.Train {
		t.Errorf("on a plain: %+v, %v", s, err)
	}
}

func negated(g []float64) []float64 {
	out := make([]float64, len(g))
	for i, v := range g {
		out[i] = -v
	}
	return out
}

// cosineDown returns the cosine of g and -h.
func cosineDown(g, h []float64) float64 {
	var gh, gg, hh float64
	for i := range g {
		gh, gg, hh = gh-g[i]*h[i], gg+g[i]*g[i], hh+h[i]*h[i]
	}
	return gh / math.Sqrt(gg*hh)
}
