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

// SepCMA adapts a normal distribution with a diagonal covariance.
var SepCMA = &optim.Algorithm{
	Name:  "sep-cma",
	Title: "sep-CMA-ES",
	Paper: "Ros, Hansen: A simple modification in CMA-ES achieving linear time and space complexity (2008), " +
		"table 1 and section 3",
	Doc: `Members are candidates drawn from a normal distribution with mean m, step size sigma and a standard deviation s
of each parameter. The best half is weighted by rank; two paths accumulate the steps of the mean:

    x_i = m + sigma*s.*z_i, z_i ~ N(0, I);  w_k ~ ln(mu + 1) - ln k for the best mu = P/2, summing to 1
    z = sum_k w_k z_k;  y = s.*z;  m <- m + sigma*y
    p_s <- (1 - c_s)*p_s + sqrt(c_s*(2 - c_s)*mu_w)*z;  p_c <- (1 - c_c)*p_c + h*sqrt(c_c*(2 - c_c)*mu_w)*y
    s^2 <- (1 - c)*s^2 + c/mu_w*p_c^2 + c*(1 - 1/mu_w)*sum_k w_k (s.*z_k)^2
    sigma <- sigma*exp(c_s/d_s*(|p_s|/E|N(0, I)| - 1))

with mu_w = 1/sum w_k^2, c_s = (mu_w + 2)/(M + mu_w + 3), c_c = 4/(M + 4),
d_s = 1 + c_s + 2*max(0, sqrt((mu_w - 1)/(M + 1)) - 1),
h = 0 if |p_s| is longer than (1.4 + 2/(M + 1))*E|N(0, I)|*sqrt(1 - (1 - c_s)^(2g)) after g generations, else 1.
c is the rate of a full covariance, 2/(M + sqrt 2)^2/mu_w + (1 - 1/mu_w)*min(1, (2*mu_w - 1)/((M + 2)^2 + mu_w)),
times (M + 2)/3 and rate, at most 1. Equal results share the mean of the weights of their ranks (ties), so that
more than P/2 may have weights, and both paths use the mu_w of these weights.

Fitness is minus the loss on a mini-batch, by default one that all candidates of a generation share; a missing
(non-finite) one ranks last. The knob sigma is the initial step size; a later change of it scales the step size. The
block s starts at one and has the same meaning as in snes. The centre is m.
Series: fitness; the deviation: sigma times the root mean square of s.
Bytes: 4P per generation to each other worker; noise is regenerated from seeds.

Deviations: none in the rule; the source's population is 4 + 3 ln M. The CPU computes square roots, so that with a
device a row is transferred in each generation.
Reductions: rate 0 keeps s at one: CMA-ES with the identity as covariance, (mu/mu_w, P) with cumulative step sizes.`,
	Needs: optim.Evaluations,
	Knobs: []optim.Knob{
		knobSigma.With(0.01),
		{
			Name:    "rate",
			Title:   "rate of the covariance",
			Unit:    "of the source's",
			Doc:     "learning rate of the deviations, relative to the source's rate",
			Min:     0,
			Max:     100,
			Default: 1,
			Scale:   optim.Log,
		},
		optim.KnobB.With(256), knobSamples, knobTies,
	},
	Series: []optim.Series{optim.SeriesFitness, seriesDeviation},
	Blocks: func(_ optim.Values, l engine.Layout) []optim.Block {
		return []optim.Block{
			optim.Params(optim.BlockX, true, optim.EnterCentre, l),
			optim.Params(optim.BlockS, true, optim.EnterOne, l),
			optim.Params(optim.BlockPathS, true, optim.EnterZero, l),
			optim.Params(optim.BlockPathC, true, optim.EnterZero, l),
			{Name: optim.BlockStep, Shared: true, Cols: 1, Enter: optim.EnterOne, Record: true},
			optim.Counter(optim.BlockCycle, true),
			optim.Counter(optim.BlockCursor, true),
		}
	},
	Check: rankedPopulation,
	Bytes: func(s optim.Shape) map[collective.Op]int64 {
		return map[collective.Op]int64{"fitness": s.AllGatherBytes(4)}
	},
	Program: sepCMA{},
}

type sepCMA struct{}

func (sepCMA) Round(ctx context.Context, e *optim.Env, k optim.Values, round uint64) (optim.Report, error) {
	M := e.Layout.Params
	x, s, step := e.Block(optim.BlockX), e.Block(optim.BlockS), e.Record(optim.BlockStep).F
	pathS, pathC := e.Block(optim.BlockPathS), e.Block(optim.BlockPathC)
	sigma, key := k.F("sigma")*step[0], e.Rand(noise.Candidate, round, 0)
	all, rep, err := evaluateScaled(ctx, e, k, sigma, key, false)
	if err != nil {
		return rep, err
	}
	c := sepCMARates(all.Rows, M, k.Get("rate"))
	order := optim.Order(all.F)
	if sharesTies(k) {
		c.share(order, equalIn(all.F))
	}
	z, y, spread, square := e.Scratch(1, M), e.Scratch(1, M), e.Scratch(1, M), e.Scratch(1, M)
	first := engine.NoiseSum{Dst: engine.All(z), Key: key}
	for pos, w := range c.weights {
		first.IDs, first.Weights = append(first.IDs, engine.Member(order[pos])), append(first.Weights, float32(w))
	}
	second := first
	second.Dst, second.Square = engine.All(spread), true
	if err := e.Engine.Do(
		ctx,
		first,
		second,
		engine.Product{Dst: y, A: s, B: z},
		optim.Update(1,
			optim.Assign(x, optim.T(1, x), optim.T(sigma, y)),
			optim.Assign(pathS, optim.T(float32(1-c.path), pathS), optim.T(float32(math.Sqrt(c.path*(2-c.path)*c.moved)), z)),
		),
	); err != nil {
		return rep, err
	}
	rms, err := e.RMS(ctx, pathS)
	if err != nil {
		return rep, err
	}
	generations := e.Record(optim.BlockCycle).U
	generations[0]++
	longer := rms * math.Sqrt(float64(M)) / c.length // |p_s|/E|N(0, I)|
	move := float32(0)
	if longer/math.Sqrt(1-arith.Pow(1-c.path, float64(2*generations[0]))) < 1.4+2/float64(M+1) {
		move = float32(math.Sqrt(c.mean * (2 - c.mean) * c.moved))
	}
	byPath, byRank := float32(c.cov/c.effective), float32(c.cov*(1-1/c.effective))
	// spread is sum w (z^2 - 1), and the weights sum to one.
	if err := e.Engine.Do(
		ctx,
		optim.Update(1, optim.Assign(pathC, optim.T(float32(1-c.mean), pathC), optim.T(move, y))),
		engine.Product{Dst: square, A: pathC, B: pathC},
		engine.Product{Dst: s, A: s, B: s},
		engine.Product{Dst: spread, A: spread, B: s},
		optim.Update(1,
			optim.Assign(s, optim.T(float32(1-c.cov)+byRank, s), optim.T(byPath, square), optim.T(byRank, spread)),
		),
	); err != nil {
		return rep, err
	}
	if err := sepCMARoot(ctx, e, s); err != nil {
		return rep, err
	}
	step[0] *= float32(arith.Exp(c.path / c.damping * (longer - 1)))
	rms, err = e.RMS(ctx, s)
	rep.Points = append(rep.Points, e.PopulationPoint("deviation", float64(k.F("sigma")*step[0])*rms)...)
	return rep, err
}

// sepCMAConstants has the constants of the rule for a population and a number of parameters.
type sepCMAConstants struct {
	weights    []float64 // by rank, best first
	effective  float64   // mu_w without ties
	path, mean float64   // c_s and c_c
	damping    float64   // d_s
	cov        float64   // c
	length     float64   // E|N(0, I)|
	moved      float64   // mu_w of the weights after sharing ties, by which both paths are scaled
}

// share gives equal results the mean of the weights of their ranks and updates moved.
func (c *sepCMAConstants) share(order []int, equal func(a, b int) bool) {
	c.weights = shareTiedWeights(c.weights, order, equal)
	c.moved = effectiveSize(c.weights)
}

func sepCMARates(population, params int, rate float64) (c sepCMAConstants) {
	n, best, sum := float64(params), population/2, 0.0
	raw := make([]float64, best)
	for i := range raw {
		raw[i] = arith.Log(float64(best+1)) - arith.Log(float64(i+1))
		sum += raw[i]
	}
	for _, w := range raw {
		c.weights = append(c.weights, w/sum)
	}
	c.effective = effectiveSize(c.weights)
	c.moved = c.effective
	c.path, c.mean = (c.effective+2)/(n+c.effective+3), 4/(n+4)
	c.damping = 1 + c.path + float64(2*max(0, math.Sqrt((c.effective-1)/(n+1))-1))
	full := 2/((n+math.Sqrt2)*(n+math.Sqrt2))/c.effective + float64(
		(1-1/c.effective)*min(1, (float64(2*c.effective)-1)/(float64((n+2)*(n+2))+c.effective)),
	)
	c.cov = min(1, full*(n+2)/3*rate)
	c.length = math.Sqrt(n) * (1 - 1/(4*n) + 1/(21*n*n))
	return c
}

// sepCMARoot replaces each element of v (1 row) by its square root.
func sepCMARoot(ctx context.Context, e *optim.Env, v engine.Mat) error {
	row, err := e.Doubles(ctx, v)
	if err != nil {
		return err
	}
	for i, x := range row {
		row[i] = math.Sqrt(x)
	}
	return e.SetDoubles(ctx, v, row)
}

func (sepCMA) Centre(ctx context.Context, e *optim.Env, _ optim.Values, dst engine.Mat) error {
	return optim.CopyBlock(ctx, e, optim.BlockX, dst)
}
