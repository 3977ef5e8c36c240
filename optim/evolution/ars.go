package evolution

import (
	"context"
	"math"
	"slices"

	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
)

// ARS is random search along its best directions, with steps scaled by the standard deviation of their results.
var ARS = &optim.Algorithm{
	Name:  "ars",
	Title: "ARS",
	Paper: "Mania, Guy, Recht: Simple random search of static linear policies is competitive for reinforcement learning " +
		"(2018), Algorithm 2, V1-t",
	Doc: `Members are candidates theta +- sigma*eps in pairs: ranks 2k and 2k+1 of the population share the direction
eps_k, N directions in all. f+ and f- are the fitness of the two:

    S = the b directions of largest max(f+, f-);  d = standard deviation of their 2b results
    theta <- theta + eta/(b*d) * sum_{k in S} (f+_k - f-_k) eps_k

b is top times N, rounded up; top = 1 is V1. If all results are equal, theta does not move. The source's nu is sigma,
its alpha eta. Fitness is minus the loss on a mini-batch, by default one that all candidates of a generation share; a
direction with a missing (non-finite) result ranks last and has no weight. If only some of several equally good
directions fit into S, those with the lowest index are in S. samples member gives each candidate its own mini-batch.

With distribution seed every worker regenerates the noise, so that only 2N fitness values are sent; with chromosome
each worker computes a slice, bit-identical to seed; auto sets the faster of the two, as in openai-es, for b vectors.
The centre is theta.
Series: fitness; the deviation d.
Bytes per generation, over W workers and with P = 2N: seed 4P(W-1); chromosome 4(P + M)(W-1).

Deviations: a mini-batch replaces a rollout. V2 has no counterpart, as data are normalised before a run.
Reductions: with top = 1 it is openai-es with shaping raw and sgd without momentum, except for the length of the step.`,
	Needs: optim.Evaluations,
	Knobs: []optim.Knob{
		optim.KnobEta.With(0.002), knobSigma, optim.KnobB.With(256), knobSamples,
		{
			Name:    "top",
			Title:   "top directions",
			Doc:     "share of the directions, the best ones, that the update uses",
			Min:     0,
			Max:     1,
			Default: 0.5,
		},
		knobDistribution,
	},
	Series: []optim.Series{
		optim.SeriesFitness,
		{
			Name:  "deviation",
			Title: "deviation",
			Doc:   "standard deviation of the results of the directions in the update",
		},
	},
	Blocks: func(_ optim.Values, l engine.Layout) []optim.Block {
		return []optim.Block{optim.Params(optim.BlockX, true, optim.EnterCentre, l), optim.Counter(optim.BlockCursor, true)}
	},
	Check:   evenPopulation,
	Bytes:   func(s optim.Shape) map[collective.Op]int64 { return updateBytes(s, 1) },
	Program: ars{},
}

type ars struct{}

func (ars) Round(ctx context.Context, e *optim.Env, k optim.Values, round uint64) (optim.Report, error) {
	x, g := e.Block(optim.BlockX), e.Scratch(1, e.Layout.Params)
	rep, b, deviation, err := arsEstimate(ctx, e, k, round, g)
	if err != nil {
		return rep, err
	}
	by := float32(k.Get("eta") / (float64(b) * deviation))
	if deviation == 0 {
		by = 0
	}
	rep.Points = append(rep.Points, e.PopulationPoint("deviation", deviation)...)
	return rep, e.Engine.Do(ctx, optim.Update(1, optim.Assign(x, optim.T(1, x), optim.T(by, g))))
}

// arsEstimate evaluates the candidates and writes g = sum_{k in S} (f+_k - f-_k) eps_k (1 x params). b is the number of
// directions in S without missing results, and deviation the standard deviation of their results. It is collective.
func arsEstimate(
	ctx context.Context,
	e *optim.Env,
	k optim.Values,
	round uint64,
	g engine.Mat,
) (rep optim.Report, b int, deviation float64, err error) {
	key := e.Rand(noise.Candidate, round, 0)
	c := engine.Candidates{Theta: e.Block(optim.BlockX), Sigma: k.F("sigma"), Key: key, Antithetic: true}
	all, rep, err := evaluateAll(ctx, e, k, c)
	if err != nil {
		return rep, 0, 0, err
	}
	sum := engine.NoiseSum{Dst: engine.All(g), Key: key, Antithetic: true}
	sum.Dst.Lo, sum.Dst.Hi = workerColumns(e, k)
	best, deviation := arsBest(all.F, k.Get("top"))
	for _, i := range best {
		sum.IDs, sum.Weights = append(sum.IDs, engine.Member(2*i)), append(sum.Weights, all.F[2*i]-all.F[2*i+1])
	}
	if deviation == 0 { // writes zeros; every round must send the same slices
		sum.IDs, sum.Weights = []engine.Member{0}, []float32{0}
	}
	if err := e.Engine.Do(ctx, sum); err != nil {
		return rep, 0, 0, err
	}
	return rep, len(best), deviation, gatherSlices(ctx, e, k, g)
}

// Estimate implements Estimator.
func (ars) Estimate(ctx context.Context, e *optim.Env, k optim.Values, round uint64, g engine.Mat) (int, error) {
	_, _, _, err := arsEstimate(ctx, e, k, round, g)
	return len(e.Roster.Members) / 2, err
}

// arsDirections returns b = ceil(top*directions), at least 1. It subtracts 1e-9 before rounding up, because in binary
// 0.28*25 is slightly more than 7.
func arsDirections(directions int, top float64) int {
	return max(1, int(math.Ceil(float64(top*float64(directions))-1e-9)))
}

// arsBest returns the indices of the best directions, ascending, and the standard deviation of their results. It omits
// directions with a missing result. If none remain, it returns nil and 0.
func arsBest(fit []float32, top float64) (best []int, deviation float64) {
	better := make([]float32, len(fit)/2)
	for i := range better {
		better[i] = max(fit[2*i], fit[2*i+1]) // NaN if either is NaN
	}
	for _, i := range optim.Order(better)[:arsDirections(len(better), top)] {
		if d := float64(fit[2*i]) - float64(fit[2*i+1]); !math.IsNaN(d) && !math.IsInf(d, 0) {
			best = append(best, i)
		}
	}
	slices.Sort(best)
	var sum, squares float64
	for _, i := range best {
		sum += float64(fit[2*i]) + float64(fit[2*i+1])
	}
	mean := sum / float64(2*len(best))
	for _, i := range best {
		for _, f := range fit[2*i : 2*i+2] {
			squares += float64((float64(f) - mean) * (float64(f) - mean))
		}
	}
	if len(best) == 0 {
		return nil, 0
	}
	return best, math.Sqrt(squares / float64(2*len(best)))
}

// Noise implements Chooser.
func (ars) Noise(optim.Values) engine.Noise { return engine.Noise{} }

// Prefer implements Chooser.
func (ars) Prefer(s optim.Shape, r optim.Rates) []optim.Choice {
	return exactDistribution(s, arsDirections(len(s.Roster.Members)/2, s.K.Get("top")), r)
}

func (ars) Centre(ctx context.Context, e *optim.Env, _ optim.Values, dst engine.Mat) error {
	return optim.CopyBlock(ctx, e, optim.BlockX, dst)
}
