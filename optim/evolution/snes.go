package evolution

import (
	"context"
	"math"

	"brood/models/arith"
	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
)

// SNES follows the natural gradient of a normal distribution with a standard deviation for each parameter.
var SNES = &optim.Algorithm{
	Name:  "snes",
	Title: "SNES",
	Paper: "Schaul, Glasmachers, Schmidhuber: High dimensions and heavy tails for natural evolution strategies (2011); " +
		"for networks Lenc et al. (2019)",
	Doc: `Members are candidates drawn from a normal distribution, whose mean mu and standard deviations s are both
learned:

    x_i = mu + s.*z_i, z_i ~ N(0, I);  u = utilities by rank over all P results, k = 1 the best:
    u_k = max(0, ln(P/2 + 1) - ln k) / sum_j max(0, ln(P/2 + 1) - ln j) - 1/P
    mu <- mu + eta*s.*sum_i u_i z_i;  s <- s.*exp(eta_s/2 * (3 + ln M)/(5 sqrt(M)) * sum_i u_i (z_i^2 - 1))

Fitness is minus the loss on a mini-batch, by default one that all candidates of a generation share; a missing
(non-finite) one ranks last, and equal ones share the mean of the utilities of their ranks (ties). s is sigma times the
block s, which starts at one: sigma is the initial deviation, and a later change of it scales all deviations. samples
member gives each candidate its own mini-batch. With distribution seed every worker computes mu and s from regenerated
noise; with chromosome each worker computes a slice, bit-identical to seed; auto sets the faster of the two, as in
openai-es, for P vectors. The centre is mu.
Series: fitness; the deviation: the root mean square of s.
Bytes per generation, over N workers: seed 4P(N-1); chromosome 4(P + 2M)(N-1), as both mu and s are sent.

Deviations: none in the rule with eta = 1 and eta_s = 1; the source's population is 4 + 3 ln M. The source counts 4M for
chromosome, as for a rule with one vector.
Reductions: eta_s 0 is a plain evolution strategy with rank utilities.`,
	Needs: optim.Evaluations,
	Knobs: []optim.Knob{
		{
			Name:    "eta",
			Label:   "η",
			Title:   "rate of the mean",
			Doc:     "step size of the natural gradient of the mean",
			Min:     0,
			Max:     100,
			Default: 1,
			Scale:   optim.Log,
		},
		{
			Name:    "eta_s",
			Label:   "η_s",
			Title:   "rate of the deviations",
			Doc:     "step size of the deviations, in units of the source's (3 + ln M)/(5 sqrt M)",
			Min:     0,
			Max:     100,
			Default: 1,
			Scale:   optim.Log,
		},
		knobSigma.With(0.01), optim.KnobB.With(256), knobSamples, knobTies, knobDistribution,
	},
	Series: []optim.Series{optim.SeriesFitness, seriesDeviation},
	Blocks: func(_ optim.Values, l engine.Layout) []optim.Block {
		return []optim.Block{
			optim.Params(optim.BlockX, true, optim.EnterCentre, l),
			optim.Params(optim.BlockS, true, optim.EnterOne, l),
			optim.Counter(optim.BlockCursor, true),
		}
	},
	Check:   rankedPopulation,
	Bytes:   func(s optim.Shape) map[collective.Op]int64 { return updateBytes(s, 2) },
	Program: snes{},
}

type snes struct{}

func (snes) Round(ctx context.Context, e *optim.Env, k optim.Values, round uint64) (optim.Report, error) {
	M := e.Layout.Params
	x, s := e.Block(optim.BlockX), e.Block(optim.BlockS)
	mean, square := e.Scratch(1, M), e.Scratch(1, M)
	rep, sums, err := snesSums(ctx, e, k, round, mean, square)
	if err != nil {
		return rep, err
	}
	lo, hi := workerColumns(e, k)
	step := engine.NaturalStep{X: x, S: s, G: mean, H: square, Lo: lo, Hi: hi, Eta: k.F("eta") * k.F("sigma"),
		Rate: float32(k.Get("eta_s") / 2 * (3 + arith.Log(float64(M))) / (5 * math.Sqrt(float64(M))))}
	if err := e.Engine.Do(ctx, append(sums, step)...); err != nil {
		return rep, err
	}
	if err := gatherSlices(ctx, e, k, x, s); err != nil {
		return rep, err
	}
	rms, err := e.RMS(ctx, s)
	if err != nil {
		return rep, err
	}
	rep.Points = append(rep.Points, e.PopulationPoint("deviation", k.Get("sigma")*rms)...)
	return rep, nil
}

// snesSums evaluates the candidates and returns two tasks that write this worker's columns of mean = sum_i u_i eps_i
// and of square = sum_i u_i (eps_i^2 - 1), both 1 x params.
func snesSums(
	ctx context.Context,
	e *optim.Env,
	k optim.Values,
	round uint64,
	mean, square engine.Mat,
) (optim.Report, []engine.Task, error) {
	key := e.Rand(noise.Candidate, round, 0)
	all, rep, err := evaluateScaled(ctx, e, k, k.F("sigma"), key, false)
	if err != nil {
		return rep, nil, err
	}
	lo, hi := workerColumns(e, k)
	sum := engine.NoiseSum{Weights: snesUtilities(all.F, sharesTies(k)), Key: key, IDs: make([]engine.Member, all.Rows)}
	for i := range sum.IDs {
		sum.IDs[i] = engine.Member(i)
	}
	first, second := sum, sum
	first.Dst = engine.Span{Mat: mean, Rows: 1, Lo: lo, Hi: hi}
	second.Dst = engine.Span{Mat: square, Rows: 1, Lo: lo, Hi: hi}
	second.Square = true
	return rep, []engine.Task{first, second}, nil
}

// Estimate implements Estimator: the natural gradient of the mean, s * sum_i u_i eps_i.
func (snes) Estimate(ctx context.Context, e *optim.Env, k optim.Values, round uint64, g engine.Mat) (int, error) {
	mean := e.Scratch(1, e.Layout.Params)
	_, sums, err := snesSums(ctx, e, k, round, mean, mean)
	if err != nil {
		return 0, err
	}
	if err := e.Engine.Do(ctx, sums[0]); err != nil {
		return 0, err
	}
	if err := gatherSlices(ctx, e, k, mean); err != nil {
		return 0, err
	}
	return len(e.Roster.Members), e.Engine.Do(ctx, engine.Product{Dst: g, A: mean, B: e.Block(optim.BlockS)})
}

// Noise implements Chooser.
func (snes) Noise(optim.Values) engine.Noise { return engine.Noise{} }

// Prefer implements Chooser. Noise and bytes both double with two sums, so that the choice is the same as for one
// vector.
func (snes) Prefer(s optim.Shape, r optim.Rates) []optim.Choice {
	return exactDistribution(s, len(s.Roster.Members), r)
}

// snesUtilities returns the utility of each result by rank; they sum to zero. Missing results rank last. If shared is
// set, equal results have the mean of the utilities of their ranks, which is 0 if all results are equal.
func snesUtilities(fit []float32, shared bool) []float32 {
	P, total := float64(len(fit)), 0.0
	raw := make([]float64, len(fit))
	for pos := range raw {
		raw[pos] = max(0, arith.Log(float64(P/2)+1)-arith.Log(float64(pos+1)))
		total += raw[pos]
	}
	u, order := make([]float32, len(fit)), optim.Order(fit)
	if shared && allEqual(order, equalIn(fit)) {
		return u
	}
	if shared {
		raw = shareTiedWeights(raw, order, equalIn(fit))
	}
	for pos, i := range order {
		u[i] = float32(raw[pos]/total - 1/P)
	}
	return u
}

func (snes) Centre(ctx context.Context, e *optim.Env, _ optim.Values, dst engine.Mat) error {
	return optim.CopyBlock(ctx, e, optim.BlockX, dst)
}
