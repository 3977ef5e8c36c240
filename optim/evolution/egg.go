package evolution

import (
	"context"
	"errors"
	"fmt"
	"math"

	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
)

// EGG trains an integer model by steps of one.
var EGG = &optim.Algorithm{
	Name:  "egg",
	Title: "EGG",
	Paper: "Sarkar et al.: Evolution strategies at the hyperscale (EGGROLL, 2025), the recurrent language model in " +
		"whole numbers (EGG)",
	Doc: `Every weight is an integer in [-127, 127], and all intermediate values up to the loss are integers within their
own bounds. Ranks 2k and 2k+1 of the population share eps_k, noise of deviation 1 that is scaled by sigma and rounded:

    candidate = theta +- Whole(sigma*eps_k), without a bound;  w_k = sign of first minus second fitness of the pair
    g = sum_k w_k eps_k;  theta_j <- theta_j + sign(g_j) where |g_j| > threshold*sqrt(n), n = pairs with w_k != 0

By chance alone g_j has the deviation sqrt(n), so that threshold is the z value of a test on each weight: with 2 about
5 in a hundred weights without a signal pass, with 3 about 3 in a thousand. A small threshold makes long steps; a large
one acts as a small learning rate. A pair with equal or missing results has w_k = 0.

The sum is exact in integers, so that no bit depends on the machine, the workers or the order. Deviations from the
source: noise has full rank here, rank 1 in the source; sigma and threshold are numbers instead of shifts and tables. In
the source's code each pair has its own text; here all candidates share one mini-batch, or with samples=member each has
its own. There the threshold rises from z = 0 to 1.86 as its learning rate falls from 1 to 1/16; here it is constant
unless it has a schedule, such as threshold=linear:0..1.86@2000.
distribution is as in openai-es: seed and chromosome are bit-identical.
Series: fitness; moved, the share of the weights that a generation moves.
Bytes per generation, over N workers: seed 4P(N-1); chromosome 4(P+M)(N-1).`,
	Needs: optim.Evaluations | optim.Whole,
	Knobs: []optim.Knob{
		optim.KnobB.With(256), knobSamples,
		{
			Name:    "sigma",
			Label:   "σ",
			Title:   "standard deviation",
			Doc:     "standard deviation of the perturbations, in steps of a weight",
			Min:     0.25,
			Max:     64,
			Default: 4,
			Scale:   optim.Log,
		},
		{
			Name:    "threshold",
			Title:   "threshold",
			Doc:     "a weight steps by one if its sum exceeds this number of standard deviations of chance",
			Max:     10,
			Default: 1,
		},
		knobDistribution,
	},
	Series: []optim.Series{
		optim.SeriesFitness,
		{
			Name:  "moved",
			Title: "moved",
			Doc:   "share of the weights whose sum is beyond the threshold; those at 127 or -127 stay there",
		},
	},
	Blocks: func(_ optim.Values, l engine.Layout) []optim.Block {
		return []optim.Block{optim.Params(optim.BlockX, true, optim.EnterCentre, l), optim.Counter(optim.BlockCursor, true)}
	},
	Check: func(s optim.Shape) error {
		switch P := len(s.Roster.Members); {
		case P%2 == 1:
			return errors.New("antithetic pairs need an even population: give members a multiple of 2")
		case P > eggMembers:
			return fmt.Errorf("sums of signs are exact for at most %d members: take fewer", eggMembers)
		}
		return nil
	},
	Bytes:   func(s optim.Shape) map[collective.Op]int64 { return updateBytes(s, 1) },
	Program: egg{},
}

type egg struct{}

func (egg) Round(ctx context.Context, e *optim.Env, k optim.Values, round uint64) (optim.Report, error) {
	g, moved := e.Scratch(1, e.Layout.Params), make([]float32, 1)
	pairs, rep, err := eggEstimate(ctx, e, k, round, g)
	if err != nil {
		return rep, err
	}
	if e.Lead() {
		rep.Points = append(rep.Points, optim.Point{Member: engine.None, Series: "moved", Late: &moved[0]})
	}
	limit := float32(k.Get("threshold") * math.Sqrt(float64(pairs)))
	return rep, e.Engine.Do(ctx, engine.Nudge{X: e.Block(optim.BlockX), G: g, Limit: limit, Moved: moved})
}

// eggMembers is the largest population for which float32 represents every sum of its pairs' noise, in [-127, 127],
// exactly.
const eggMembers = 2 * (1 << 24 / 127)

// eggEstimate evaluates the candidates and writes g = sum_k w_k eps_k (1 x params). pairs is the number of pairs with
// w_k != 0. It is collective.
func eggEstimate(
	ctx context.Context,
	e *optim.Env,
	k optim.Values,
	round uint64,
	g engine.Mat,
) (pairs int, rep optim.Report, err error) {
	key := e.Rand(noise.Candidate, round, 0)
	all, rep, err := evaluateAll(ctx, e, k, engine.Candidates{
		Theta:      e.Block(optim.BlockX),
		Noise:      eggNoise,
		Sigma:      k.F("sigma"),
		Key:        key,
		Antithetic: true,
	})
	if err != nil {
		return 0, rep, err
	}
	sum := engine.NoiseSum{Dst: engine.All(g), Noise: eggNoise, Key: key, Antithetic: true}
	sum.Dst.Lo, sum.Dst.Hi = workerColumns(e, k)
	for i := 0; i < all.Rows; i += 2 {
		if w := eggSign(all.F[i], all.F[i+1]); w != 0 {
			sum.IDs, sum.Weights = append(sum.IDs, engine.Member(i)), append(sum.Weights, w)
		}
	}
	if err := e.Engine.Do(ctx, sum); err != nil {
		return 0, rep, err
	}
	return len(sum.IDs), rep, gatherSlices(ctx, e, k, g)
}

// eggNoise is the noise of the candidates.
var eggNoise = engine.Noise{Integer: true}

// eggSign returns 1 if a is better, -1 if b is better, and 0 if they are equal or one is NaN.
func eggSign(a, b float32) float32 {
	switch {
	case a > b:
		return 1
	case a < b:
		return -1
	}
	return 0
}

// Noise implements Chooser.
func (egg) Noise(optim.Values) engine.Noise { return eggNoise }

// Prefer implements Chooser.
func (egg) Prefer(s optim.Shape, r optim.Rates) []optim.Choice {
	return exactDistribution(s, len(s.Roster.Members)/2, r)
}

func (egg) Centre(ctx context.Context, e *optim.Env, _ optim.Values, dst engine.Mat) error {
	return optim.CopyBlock(ctx, e, optim.BlockX, dst)
}
