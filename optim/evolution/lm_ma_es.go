package evolution

import (
	"context"
	"errors"
	"math"

	"brood/models/arith"
	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
)

// LMMAES adapts a normal distribution that is stretched along past directions of its mean.
var LMMAES = &optim.Algorithm{
	Name:  "lm-ma-es",
	Title: "LM-MA-ES",
	Paper: "Loshchilov, Glasmachers, Beyer: Large scale black-box optimization by limited-memory matrix adaptation " +
		"(2017), algorithm 1",
	Doc: `Members are candidates drawn from a normal distribution with mean x, step size sigma, and a transformation by V
directions m_j, applied one after the other. The best half is weighted by rank. Each direction is a moving average of
the weighted mean z of the noise, over a time four times as long as the previous direction:

    d_i <- z_i ~ N(0, I);  for j = 1 ... min(t, V):  d_i <- (1 - c_d,j)*d_i + c_d,j*(m_j.d_i)*m_j;  x_i = x + sigma*d_i
    w_k ~ ln(P/2 + 1/2) - ln k for the best mu = floor(P/2), summing to 1;  mu_w = 1/sum w_k^2;  z = sum_k w_k z_k
    x <- x + sigma*sum_k w_k d_k;  p_s <- (1 - c_s)*p_s + sqrt(c_s*(2 - c_s)*mu_w)*z
    m_j <- (1 - c_c,j)*m_j + sqrt(c_c,j*(2 - c_c,j)*mu_w)*z
    sigma <- sigma*exp(c_s/2*(|p_s|^2/M - 1))

after t generations since the directions began, with c_s = 2P/M and c_c,j = P/(4^(j-1)*M), both at most 1, and c_d,j =
rate/(1.5^(j-1)*M), at most 1/2. d is linear in z: it is s*z + sum_j a_j*m_j, where s is the product of the 1 - c_d,j,
and the a_j follow from inner products of z with the m_j and of these with each other. A candidate is therefore noise
and V numbers, and sum_k w_k d_k is the transformation of z. Equal results share the mean of the weights of their ranks
(ties), so that more than P/2 may have weights, and mu_w is that of these weights.

Fitness is minus the loss on a mini-batch, by default one that all candidates of a generation share; a missing
(non-finite) one ranks last. The knob sigma is the initial step size; a later change of it scales the step size.
vectors is V, 0 for the source's 4 + floor(3 ln M). The block axes stores the directions one after the other; it and t
restart if V changes. The centre is x.
Series: fitness; the deviation: the step size; the stretch: length of sum_k w_k d_k relative to z.
Bytes: 4P per generation to each other worker; noise is regenerated from seeds, and each worker measures that of its own
candidates.

Deviations: none in the rule as the source defines it, for P far below M: it does not define rates above 1. The source's
population is 4 + floor(3 ln M).
Reductions: rate 0 is an evolution strategy with one step size for all parameters, adapted along a path.`,
	Needs: optim.Evaluations,
	Knobs: []optim.Knob{
		knobSigma.With(0.01),
		{
			Name:    "vectors",
			Title:   "directions",
			Unit:    "vectors",
			Doc:     "number of directions along which the distribution is stretched; 0 is the source's 4 + floor(3 ln M)",
			Min:     0,
			Max:     256,
			Integer: true,
		},
		{
			Name:    "rate",
			Title:   "rate of the directions",
			Unit:    "of the source's",
			Doc:     "weight of each direction in the candidates, relative to the source's rates",
			Min:     0,
			Max:     100,
			Default: 1,
			Scale:   optim.Log,
		},
		optim.KnobB.With(256), knobSamples, knobTies,
	},
	Series: []optim.Series{
		optim.SeriesFitness,
		{
			Name:  "deviation",
			Title: "deviation",
			Doc:   "the step size: the standard deviation of the search without any direction",
		},
		{
			Name:  "stretch",
			Title: "stretch",
			Doc:   "length of the step of the mean relative to a step without the directions",
		},
	},
	Blocks: func(k optim.Values, l engine.Layout) []optim.Block {
		return []optim.Block{
			optim.Params(optim.BlockX, true, optim.EnterCentre, l),
			optim.Params(optim.BlockPathS, true, optim.EnterZero, l),
			{Name: optim.BlockAxes, Shared: true, Cols: lmMAESVectors(k, l) * l.Params},
			{
				Name:   optim.BlockGram,
				Shared: true,
				Cols:   lmMAESVectors(k, l)*lmMAESVectors(k, l) + 1,
				Type:   engine.U64,
				Record: true,
			},
			{Name: optim.BlockStep, Shared: true, Cols: 1, Enter: optim.EnterOne, Record: true},
			optim.Counter(optim.BlockCycle, true),
			optim.Counter(optim.BlockCursor, true),
		}
	},
	Check: func(s optim.Shape) error {
		switch {
		case len(s.Roster.Members) < 2:
			return errors.New("ranks need candidates to compare: give members at least 2")
		case s.Layout.Params < 2:
			return errors.New("one parameter has one direction: take another algorithm, snes for instance")
		}
		return nil
	},
	Bytes: func(s optim.Shape) map[collective.Op]int64 {
		return map[collective.Op]int64{"fitness": s.AllGatherBytes(4)}
	},
	Program: lmMAES{},
}

type lmMAES struct{}

func (lmMAES) Round(ctx context.Context, e *optim.Env, k optim.Values, round uint64) (optim.Report, error) {
	axes := e.Block(optim.BlockAxes).Fold(lmMAESVectors(k, e.Layout))
	x, step, seen := e.Block(optim.BlockX), e.Record(optim.BlockStep).F, e.Record(optim.BlockGram).U[axes.Rows*axes.Rows:]
	c := lmMAESRates(len(e.Roster.Members), e.Layout.Params, axes.Rows, k.Get("rate"))
	w, err := lmMAESMeasure(ctx, e, c.shape[:min(uint64(axes.Rows), seen[0])], axes)
	if err != nil {
		return optim.Report{}, err
	}
	key, sigma, scale := e.Rand(noise.Candidate, round, 0), k.F("sigma")*step[0], e.Scratch(1, e.Layout.Params)
	var keys []noise.Key
	for _, m := range e.Mine {
		key.Member = uint32(e.Roster.Rank(m))
		keys = append(keys, key)
	}
	_, dots, err := innerProducts(ctx, e, keys, axes, w.squares())
	if err != nil {
		return optim.Report{}, err
	}
	candidates := engine.Candidates{Theta: x, Scale: scale, Axes: axes, Key: key}
	for _, of := range dots {
		for _, a := range w.amounts(of) {
			candidates.Along = append(candidates.Along, float32(float64(sigma)*a))
		}
	}
	if err := e.Engine.Do(ctx, engine.Fill{Dst: engine.All(scale), Value: float32(float64(sigma) * w.scale)}); err != nil {
		return optim.Report{}, err
	}
	all, rep, err := evaluateAll(ctx, e, k, candidates)
	if err != nil {
		return rep, err
	}
	z := e.Scratch(1, e.Layout.Params)
	sum, order := engine.NoiseSum{Dst: engine.All(z), Key: key}, optim.Order(all.F)
	if sharesTies(k) {
		c.share(order, equalIn(all.F))
	}
	for pos, w := range c.weights {
		sum.IDs, sum.Weights = append(sum.IDs, engine.Member(order[pos])), append(sum.Weights, float32(w))
	}
	if err := e.Engine.Do(ctx, sum); err != nil {
		return rep, err
	}
	stretch, err := lmMAESMove(ctx, e, &c, w, z, axes, sigma)
	if err != nil {
		return rep, err
	}
	rms, err := e.RMS(ctx, e.Block(optim.BlockPathS))
	step[0] *= float32(arith.Exp(c.path / 2 * (float64(rms*rms) - 1)))
	seen[0]++
	e.Record(optim.BlockCycle).U[0]++
	rep.Points = append(rep.Points, e.PopulationPoint("deviation", float64(k.F("sigma")*step[0]))...)
	rep.Points = append(rep.Points, e.PopulationPoint("stretch", stretch)...)
	return rep, err
}

// lmMAESVectors returns V, the number of directions.
func lmMAESVectors(k optim.Values, l engine.Layout) int {
	if v := k.I("vectors"); v > 0 {
		return v
	}
	return 4 + int(3*arith.Log(float64(l.Size())))
}

// lmMAESConstants has the constants of the rule for a population, a number of parameters and a number of directions.
type lmMAESConstants struct {
	weights         []float64 // by rank, best first
	effective, path float64   // mu_w and c_s
	learn, shape    []float64 // c_c and c_d of each direction
}

// share gives equal results the mean of the weights of their ranks and updates effective.
func (c *lmMAESConstants) share(order []int, equal func(a, b int) bool) {
	c.weights = shareTiedWeights(c.weights, order, equal)
	c.effective = effectiveSize(c.weights)
}

func lmMAESRates(population, params, vectors int, rate float64) (c lmMAESConstants) {
	P, n, best, sum := float64(population), float64(params), population/2, 0.0
	raw := make([]float64, best)
	for i := range raw {
		raw[i] = arith.Log(float64(P/2)+0.5) - arith.Log(float64(i+1))
		sum += raw[i]
	}
	for _, w := range raw {
		c.weights = append(c.weights, w/sum)
	}
	c.effective, c.path = effectiveSize(c.weights), min(1, 2*P/n)
	four, half := 1.0, 1.0
	for range vectors {
		c.learn, c.shape = append(c.learn, min(1, P/(four*n))), append(c.shape, min(0.5, rate/(half*n)))
		four, half = four*4, half*1.5
	}
	return c
}

// lmMAESTransform is the transformation of noise by the directions.
type lmMAESTransform struct {
	gram  [][]float64 // inner products of directions j and l <= j
	shape []float64   // c_d of the directions that are in use: the first min(t, V)
	scale float64     // s
}

// lmMAESMeasure measures the lengths of the directions and reads their inner products from the record gram, where
// lmMAESMove updates them. In each generation it recomputes the products of one direction in turn, so that no rounding
// error is older than V generations. shape has c_d of the directions in use.
func lmMAESMeasure(ctx context.Context, e *optim.Env, shape []float64, axes engine.Mat) (*lmMAESTransform, error) {
	V, gram := axes.Rows, e.Record(optim.BlockGram).U
	w, size, off := &lmMAESTransform{shape: shape, scale: 1}, make([]float64, V), make([]float64, V)
	recomputed := int(e.Record(optim.BlockCycle).U[0] % uint64(V))
	if err := e.Engine.Do(
		ctx,
		engine.Distance{X: axes, RMS: size},
		engine.Distance{X: axes, Centre: axes.Sub(engine.Row(recomputed), 1), RMS: off},
	); err != nil {
		return nil, err
	}
	err := e.Engine.Wait(ctx)
	for j := range V {
		row := make([]float64, j+1)
		row[j] = squareOf(e, size[j])
		for l := range j {
			if row[l] = math.Float64frombits(gram[j*V+l]); j == recomputed || l == recomputed {
				row[l] = (row[j] + w.gram[l][l] - squareOf(e, off[j+l-recomputed])) / 2
			}
		}
		w.gram = append(w.gram, row)
	}
	for _, c := range shape {
		w.scale *= 1 - c
	}
	return w, err
}

// squares returns the squared lengths of the directions.
func (w *lmMAESTransform) squares() []float64 {
	out := make([]float64, len(w.gram))
	for j := range out {
		out[j] = w.gram[j][j]
	}
	return out
}

// amounts returns a_j, the coefficient of each direction in d. dots has the inner products of the noise with the
// directions.
func (w *lmMAESTransform) amounts(dots []float64) []float64 {
	a, s := make([]float64, len(dots)), 1.0
	for j, c := range w.shape {
		along := float64(s * dots[j]) // m_j.d
		for l := range j {
			along += float64(a[l] * w.gram[j][l])
			a[l] *= 1 - c
		}
		a[j] = c * along
		s *= 1 - c
	}
	return a
}

// lmMAESMove moves the mean, its path and the directions by z (1 x params), and updates the record gram. stretch is the
// length of the transformed z relative to z.
func lmMAESMove(
	ctx context.Context,
	e *optim.Env,
	c *lmMAESConstants,
	w *lmMAESTransform,
	z, axes engine.Mat,
	sigma float32,
) (stretch float64, err error) {
	x, path, V := e.Block(optim.BlockX), e.Block(optim.BlockPathS), axes.Rows
	size, off := make([]float64, 1), make([]float64, V)
	if err := e.Engine.Do(
		ctx,
		engine.Distance{X: z, RMS: size},
		engine.Distance{X: axes, Centre: z, RMS: off},
	); err != nil {
		return 0, err
	}
	if err := e.Engine.Wait(ctx); err != nil {
		return 0, err
	}
	square, dots := squareOf(e, size[0]), off
	for j := range dots {
		dots[j] = (square + w.gram[j][j] - squareOf(e, off[j])) / 2
	}
	keep, take := make([]float32, V), make([]float32, V)
	prog, a := make([]engine.Lin, 2, 2+V), w.amounts(dots)
	prog[0] = optim.Assign(x, optim.T(1, x), optim.T(float32(float64(sigma)*w.scale), z))
	prog[1] = optim.Assign(path, optim.T(float32(1-c.path), path), optim.T(c.pathGain(c.path), z))
	for j, rate := range c.learn {
		m := axes.Sub(engine.Row(j), 1)
		prog[0].Terms = append(prog[0].Terms, optim.T(float32(float64(sigma)*a[j]), m))
		keep[j], take[j] = float32(1-rate), c.pathGain(rate)
		prog = append(prog, optim.Assign(m, optim.T(keep[j], m), optim.T(take[j], z)))
	}
	squareD, gram := float64(w.scale*w.scale*square), e.Record(optim.BlockGram).U // squareD: |d|^2
	for j := range V {
		squareD += float64(2*w.scale*a[j]*dots[j]) + float64(a[j]*a[j]*w.gram[j][j])
		for l := range j {
			squareD += float64(2 * a[j] * a[l] * w.gram[j][l])
			kj, kl, tj, tl := float64(keep[j]), float64(keep[l]), float64(take[j]), float64(take[l])
			product := float64(kj*kl*w.gram[j][l]) + float64(kj*tl*dots[j]) + float64(tj*kl*dots[l]) + float64(tj*tl*square)
			gram[j*V+l] = math.Float64bits(product)
		}
	}
	return math.Sqrt(max(0, squareD) / square), e.Engine.Do(ctx, optim.Update(1, prog...))
}

// pathGain returns the coefficient of z in the update of a path with this rate.
func (c *lmMAESConstants) pathGain(rate float64) float32 {
	return float32(math.Sqrt(rate * (2 - rate) * c.effective))
}

func (lmMAES) Centre(ctx context.Context, e *optim.Env, _ optim.Values, dst engine.Mat) error {
	return optim.CopyBlock(ctx, e, optim.BlockX, dst)
}
