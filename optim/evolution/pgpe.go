package evolution

import (
	"context"
	"math"

	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
)

// PGPE follows the log-likelihood gradient of a normal distribution with a standard deviation for each parameter.
var PGPE = &optim.Algorithm{
	Name:  "pgpe",
	Title: "PGPE",
	Paper: "Sehnke, Osendorfer, Rückstieß, Graves, Peters, Schmidhuber: Parameter-exploring policy gradients (2010), " +
		"symmetric sampling; ClipUp after Toklu, Liskowski, Srivastava: ClipUp: a simple and powerful optimizer for " +
		"distribution-based policy evolution (2020)",
	Doc: `Members are candidates mu +- s.*z in pairs: ranks 2k and 2k+1 of the population share z_k ~ N(0, I), N pairs in
all. The difference between the two results of a pair moves the mean; their mean relative to all results moves the
deviations:

    eps_k = s.*z_k;  u = utilities of the results, r+ and r- of a pair
    g = 1/N * sum_k (r+_k - r-_k)/2 * eps_k;                     mu <- mu + step(g)
    d = 1/N * sum_k ((r+_k + r-_k)/2 - b) * (z_k^2 - 1);         s <- s.*(1 + max(-change, min(change, eta_s*d)))

b is the mean of u. s.*(z^2 - 1) is the source's (eps^2 - s^2)/s. optimiser selects step. clipup uses only the
direction of g and limits the length of the velocity:

    v <- momentum*v + eta*g/|g|;  v <- v*min(1, speed*eta/|v|);  mu <- mu + v

adam has b1 = 0.9 and b2 = 0.999; sgd is Nesterov's with momentum, and with momentum 0 that of the source.

With shaping ranks, u are centred ranks in [-0.5, 0.5] over all results, and equal results share their mean rank
(ties). raw uses the fitness, as the source does. Fitness is minus the loss on a mini-batch, by default one that all
candidates of a generation share; a missing (non-finite) one counts as the worst. samples member gives each candidate
its own mini-batch. s is sigma times the block s, which starts at one and has the same meaning as in snes: a change of
sigma scales all deviations. With distribution seed every worker regenerates the noise, so that only 2N fitness values
are sent; with chromosome each worker computes a slice, bit-identical to seed; auto sets the faster of the two, as in
openai-es. The centre is mu.
Series: fitness; the deviation: the root mean square of s.
Bytes per generation, over W workers and with P = 2N: seed 4P(W-1); chromosome 4(P + 2M)(W-1), as both g and d are sent.

Deviations: the source takes a step after each pair, its b is a moving average over earlier pairs, and it divides by
the largest reward if that is known; here a generation is one step, with b its mean. change is not in the source, but
in later implementations. The CPU limits the deviations, so that with a device their rows are transferred in each
generation.
Reductions: eta_s 0 with sgd and raw is openai-es with raw, whose eta is sigma^2 of this one's.`,
	Needs: optim.Evaluations,
	Knobs: []optim.Knob{
		optim.KnobEta.With(0.1),
		{
			Name:  "optimiser",
			Title: "optimiser",
			Doc: "update rule: clipup uses only the gradient's direction; adam needs an eta of about 0.005; " +
				"sgd uses the length too",
			Choices: []string{"clipup", "adam", "sgd"},
		},
		{
			Name:    "momentum",
			Title:   "momentum",
			Doc:     "of clipup: share of the velocity kept in a step; of sgd: Nesterov momentum",
			Min:     0,
			Max:     0.9999,
			Default: 0.9,
		},
		{
			Name:    "speed",
			Title:   "speed limit",
			Unit:    "of eta",
			Doc:     "of clipup: largest length of a step of the mean, in units of eta",
			Min:     0.01,
			Max:     1000,
			Default: 2,
			Scale:   optim.Log,
		},
		{
			Name:    "eta_s",
			Label:   "η_s",
			Title:   "rate of the deviations",
			Doc:     "step size of the deviations, as a share of each",
			Min:     0,
			Max:     100,
			Default: 0.1,
			Scale:   optim.Log,
		},
		{
			Name:    "change",
			Title:   "largest change",
			Unit:    "share",
			Doc:     "largest relative change of a deviation in a generation",
			Min:     0,
			Max:     0.99,
			Default: 0.2,
		},
		knobSigma, optim.KnobB.With(256), knobSamples,
		{
			Name:    "shaping",
			Title:   "fitness shaping",
			Doc:     "weight of a result: its centred rank, or its fitness",
			Choices: []string{"ranks", "raw"},
		},
		knobTies,
		knobDistribution,
	},
	Series: []optim.Series{optim.SeriesFitness, seriesDeviation},
	Blocks: func(k optim.Values, l engine.Layout) []optim.Block {
		b := []optim.Block{
			optim.Params(optim.BlockX, true, optim.EnterCentre, l),
			optim.Params(optim.BlockS, true, optim.EnterOne, l),
			optim.Counter(optim.BlockCursor, true),
		}
		if k.Is("optimiser", "clipup") {
			return append(b, optim.Params(optim.BlockVelocity, true, optim.EnterZero, l))
		}
		return append(b, estimateBlocks(k, l)...)
	},
	Check:   evenPopulation,
	Bytes:   func(s optim.Shape) map[collective.Op]int64 { return updateBytes(s, 2) },
	Program: pgpe{},
}

type pgpe struct{}

func (pgpe) Round(ctx context.Context, e *optim.Env, k optim.Values, round uint64) (optim.Report, error) {
	s, g, d := e.Block(optim.BlockS), e.Scratch(1, e.Layout.Params), e.Scratch(1, e.Layout.Params)
	rep, err := pgpeSums(ctx, e, k, round, g, d)
	if err != nil {
		return rep, err
	}
	if err := gatherSlices(ctx, e, k, g, d); err != nil {
		return rep, err
	}
	if err := e.Engine.Do(
		ctx,
		engine.Product{Dst: g, A: g, B: s},
		optim.Update(1, optim.Assign(g, optim.T(k.F("sigma"), g))),
	); err != nil {
		return rep, err
	}
	if err := pgpeUpdateMean(ctx, e, k, g); err != nil {
		return rep, err
	}
	if err := pgpeUpdateDeviations(ctx, e, s, d, k.Get("eta_s"), k.Get("change")); err != nil {
		return rep, err
	}
	rms, err := e.RMS(ctx, s)
	rep.Points = append(rep.Points, e.PopulationPoint("deviation", k.Get("sigma")*rms)...)
	return rep, err
}

// pgpeSums evaluates the candidates and writes this worker's columns of g = 1/N sum_k (r+_k - r-_k)/2 z_k and of d,
// both 1 x params. The caller gathers the slices.
func pgpeSums(ctx context.Context, e *optim.Env, k optim.Values, round uint64, g, d engine.Mat) (optim.Report, error) {
	key := e.Rand(noise.Candidate, round, 0)
	all, rep, err := evaluateScaled(ctx, e, k, k.F("sigma"), key, true)
	if err != nil {
		return rep, err
	}
	first := engine.NoiseSum{Key: key, Antithetic: true}
	for i := range all.Rows / 2 {
		first.IDs = append(first.IDs, engine.Member(2*i))
	}
	second := first
	second.Square = true
	first.Weights, second.Weights = pgpeWeights(openaiESUtilities(k, all.F))
	lo, hi := workerColumns(e, k)
	first.Dst, second.Dst = engine.Span{Mat: g, Rows: 1, Lo: lo, Hi: hi}, engine.Span{Mat: d, Rows: 1, Lo: lo, Hi: hi}
	return rep, e.Engine.Do(ctx, first, second)
}

// pgpeWeights returns the weight of each pair in the sums for the mean and for the deviations. u has two utilities per
// pair.
func pgpeWeights(u []float32) (mean, deviations []float32) {
	n, b := float64(len(u)/2), 0.0
	for _, r := range u {
		b += float64(r)
	}
	b /= 2 * n
	for i := 0; i < len(u); i += 2 {
		first, second := float64(u[i]), float64(u[i+1])
		mean = append(mean, float32((first-second)/2/n))
		deviations = append(deviations, float32((float64((first+second)/2)-b)/n))
	}
	return mean, deviations
}

// pgpeUpdateMean moves the mean along g by the knob optimiser. It may overwrite g.
func pgpeUpdateMean(ctx context.Context, e *optim.Env, k optim.Values, g engine.Mat) error {
	x, eta := e.Block(optim.BlockX), k.F("eta")
	if !k.Is("optimiser", "clipup") {
		return e.Engine.Do(ctx, ascendEstimate(e, k, g)...)
	}
	rms, err := e.RMS(ctx, g)
	if err != nil {
		return err
	}
	by := float32(0) // if all results are equal
	if rms > 0 {
		by = float32(k.Get("eta") / (rms * math.Sqrt(float64(e.Layout.Params))))
	}
	v := e.Block(optim.BlockVelocity)
	return e.Engine.Do(
		ctx,
		optim.Update(1, optim.Assign(v, optim.T(k.F("momentum"), v), optim.T(by, g))),
		engine.Clip{X: v, Longest: k.F("speed") * eta},
		optim.Update(1, optim.Assign(x, optim.T(1, x), optim.T(1, v))),
	)
}

// pgpeUpdateDeviations multiplies each deviation in s by 1 + eta*d, limited to [1 - change, 1 + change].
func pgpeUpdateDeviations(ctx context.Context, e *optim.Env, s, d engine.Mat, eta, change float64) error {
	deviations, err := e.Doubles(ctx, s)
	if err != nil {
		return err
	}
	by, err := e.Doubles(ctx, d)
	if err != nil {
		return err
	}
	for i, share := range by {
		deviations[i] *= 1 + max(-change, min(change, float64(eta*share)))
	}
	return e.SetDoubles(ctx, s, deviations)
}

// Estimate implements Estimator. It returns g without its factor sigma.
func (pgpe) Estimate(ctx context.Context, e *optim.Env, k optim.Values, round uint64, g engine.Mat) (int, error) {
	if _, err := pgpeSums(ctx, e, k, round, g, e.Scratch(1, e.Layout.Params)); err != nil {
		return 0, err
	}
	if err := gatherSlices(ctx, e, k, g); err != nil {
		return 0, err
	}
	return len(e.Roster.Members) / 2, e.Engine.Do(ctx, engine.Product{Dst: g, A: g, B: e.Block(optim.BlockS)})
}

// Noise implements Chooser.
func (pgpe) Noise(optim.Values) engine.Noise { return engine.Noise{} }

// Prefer implements Chooser. Noise and bytes both double with two sums, so that the choice is the same as for one
// vector.
func (pgpe) Prefer(s optim.Shape, r optim.Rates) []optim.Choice {
	return exactDistribution(s, len(s.Roster.Members)/2, r)
}

func (pgpe) Centre(ctx context.Context, e *optim.Env, _ optim.Values, dst engine.Mat) error {
	return optim.CopyBlock(ctx, e, optim.BlockX, dst)
}
