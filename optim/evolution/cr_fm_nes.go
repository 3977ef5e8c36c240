package evolution

import (
	"context"
	"errors"
	"math"
	"slices"

	"brood/models/arith"
	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
)

// CRFMNES adapts a normal distribution with a standard deviation for each parameter and one principal direction across
// all parameters.
var CRFMNES = &optim.Algorithm{
	Name:  "cr-fm-nes",
	Title: "CR-FM-NES",
	Paper: "Nomura, Ono: Fast moving natural evolution strategy for high-dimensional problems (2022); " +
		"the gradient of its covariance after Akimoto, Auger, Hansen: Comparison-based natural gradient optimization in " +
		"high dimension (2014)",
	Doc: `Members are candidates drawn from a normal distribution with mean m, step size sigma and covariance D(I + vv')D:
deviations D of the parameters, and a principal direction v along which they vary together. Ranks 2k and 2k+1 of the
population share z_k with opposite signs:

    x_i = m + sigma*D.*y_i,  y_i = z_i + (sqrt(1 + |v|^2) - 1)*a_i*u,  a_i = u.z_i,  u = v/|v|,  z_i ~ N(0, I)
    r_k = max(0, ln(P/2 + 1) - ln k), k = 1 the best;  w = r/sum r - 1/P;  mu_w = 1/sum (w + 1/P)^2
    p_s <- (1 - c_s)*p_s + sqrt(c_s*(2 - c_s)*mu_w)*sum w z
    if |p_s| >= E|N(0, I)|, the distribution moves, and w = r_k*exp(alpha*|z_k|)/sum - 1/P
    g = D.*sum w y;  m <- m + sigma*g;  p_c <- (1 - c_c)*p_c + sqrt(c_c*(2 - c_c)*mu_w)*g
    sigma <- sigma*exp(eta_s/2*sum w (|z|^2/M - 1))

v and D follow the natural gradient of all y_i with weights eta_B*w_i, and of p_c/D with weight c_1. With n = |v|^2 and
f = 1 + n, for each y:

    t = (u.y)*y - ((u.y)^2 + f)/2*u;  s = y^2 - n/f*(u.y)*u.*y - 1
    s <- s - beta/f*((2 + n)*u.*t - n*(u.t)*u^2);  q = u^2/h,  h = 2 - (b + 2 beta^2)*u^2
    s <- s/h - b/(1 + b*(u^2.q))*(q.s)*q;  t <- t - beta*((2 + n)*s.*u - (s.u^2)*u)
    v <- v + sum t/|v|;  D <- D + D.*sum s;  D <- D/((prod D)*sqrt(1 + |v|^2))^(1/M)

with beta = min(1, sqrt(n^2 + (2f - sqrt f)/max u^2)/(2 + n)) and b = 2 beta^2 - (1 - beta^2)*n^2/f. With F
the number of results that are not missing, and the knob rate:

    c_s = (mu_w + 2)/(M + mu_w + 5);  c_c = (4 + mu_w/M)/(M + 4 + 2 mu_w/M)
    c_1 = rate*2/((M + 1.3)^2 + mu_w)*(M - 5)/6*F/P;  eta_B = rate*tanh((min(0.02 F, 3 ln M) + 5)/(0.23 M + 25))
    eta_s = 1 if the distribution moves, else 2 tanh((0.025 F + 0.75 M + 10)/(M + 4)) if |p_s| < 0.1*E|N(0, I)|,
    else tanh((0.024 F + 0.7 M + 20)/(M + 12))
    alpha = e*min(1, sqrt(P/M))*sqrt(F/P), where (1 + e^2)*exp(e^2/2)/0.24 = 10 + M

Fitness is minus the loss on a mini-batch, by default one that all candidates of a generation share. Missing
(non-finite) results rank last, the nearest to m first. Equal results share the mean r of their ranks (ties), and both
paths use the mu_w of these. The knob sigma is the initial step size; a later change of it scales the step size. The
block s is D, which starts at one and has the same meaning as in snes. v starts as N(0, I)/sqrt(M). The centre is m.
Series: fitness; the deviation: sigma times the root mean square of D; the elongation: sqrt(1 + |v|^2).
Bytes: 12P per generation to each other worker: the fitness, u.z and |z| of each candidate; noise is regenerated from
seeds.

Deviations: a deviation shrinks by at most half in a generation, where the source's may become negative. c_1 is 0 below
five parameters. As in the authors' newest code, p_c counts in every generation, and the step size may shrink while the
distribution moves. The CPU computes v and D in double precision, so that with a device rows are transferred in each
generation.
Reductions: rate 0 keeps the initial shape of the distribution.`,
	Needs: optim.Evaluations,
	Knobs: []optim.Knob{
		knobSigma.With(0.01),
		{
			Name:    "rate",
			Title:   "rate of the covariance",
			Unit:    "of the source's",
			Doc:     "learning rate of the deviations and the principal direction, relative to the source's rates",
			Min:     0,
			Max:     100,
			Default: 1,
			Scale:   optim.Log,
		},
		optim.KnobB.With(256), knobSamples, knobTies,
	},
	Series: []optim.Series{
		optim.SeriesFitness,
		seriesDeviation,
		{
			Name:  "elongation",
			Title: "elongation",
			Doc:   "factor by which the principal direction widens the search along itself",
		},
	},
	Blocks: func(_ optim.Values, l engine.Layout) []optim.Block {
		return []optim.Block{
			optim.Params(optim.BlockX, true, optim.EnterCentre, l),
			optim.Params(optim.BlockS, true, optim.EnterOne, l),
			optim.Params(optim.BlockAxis, true, optim.EnterZero, l),
			optim.Params(optim.BlockPathS, true, optim.EnterZero, l),
			optim.Params(optim.BlockPathC, true, optim.EnterZero, l),
			{Name: optim.BlockStep, Shared: true, Cols: 1, Enter: optim.EnterOne, Record: true},
			optim.Counter(optim.BlockCursor, true),
		}
	},
	Check: func(s optim.Shape) error {
		switch {
		case len(s.Roster.Members)%2 == 1:
			return errors.New("antithetic pairs need an even population: give members a multiple of 2")
		case s.Layout.Params < 2:
			return errors.New("one parameter has no principal direction: take another algorithm, snes for instance")
		}
		return nil
	},
	Bytes: func(s optim.Shape) map[collective.Op]int64 {
		return map[collective.Op]int64{"fitness": s.AllGatherBytes(12)}
	},
	Program: crFMNES{},
}

type crFMNES struct{}

func (crFMNES) Round(ctx context.Context, e *optim.Env, k optim.Values, round uint64) (optim.Report, error) {
	M := e.Layout.Params
	x, s, v, step := e.Block(optim.BlockX), e.Block(optim.BlockS), e.Block(optim.BlockAxis), e.Record(optim.BlockStep).F
	normV, err := crFMNESPrincipal(ctx, e, round)
	if err != nil {
		return optim.Report{}, err
	}
	key, sigma := e.Rand(noise.Candidate, round, 0), k.F("sigma")*step[0]
	mine, err := crFMNESMeasure(ctx, e, key, normV)
	if err != nil {
		return optim.Report{}, err
	}
	scale, wide, stretch := e.Scratch(1, M), e.Scratch(1, M), math.Sqrt(1+float64(normV*normV))-1
	if err := e.Engine.Do(
		ctx,
		optim.Update(1, optim.Assign(scale, optim.T(sigma, s))),
		engine.Product{Dst: wide, A: s, B: v},
	); err != nil {
		return optim.Report{}, err
	}
	c := engine.Candidates{Theta: x, Scale: scale, Axes: wide, Key: key, Antithetic: true}
	for i := range mine.Rows {
		c.Along = append(c.Along, float32(float64(sigma)*stretch/normV*float64(mine.Row(engine.Row(i))[crFMNESAlong])))
	}
	fit, rep, err := evaluate(ctx, e, k, c)
	if err != nil {
		return rep, err
	}
	for i, f := range fit.F {
		mine.Row(engine.Row(i))[crFMNESFitness] = f
	}
	all := engine.NewHost(len(e.Roster.Members), crFMNESColumns, engine.F32)
	if err := e.Comm.AllGather(ctx, "fitness", mine, all); err != nil {
		return rep, err
	}
	if err := crFMNESUpdate(ctx, e, k, key, all, normV); err != nil {
		return rep, err
	}
	if normV, err = crFMNESNorm(ctx, e, v); err != nil {
		return rep, err
	}
	rms, err := e.RMS(ctx, s)
	rep.Points = append(rep.Points, e.PopulationPoint("deviation", float64(k.F("sigma")*step[0])*rms)...)
	rep.Points = append(rep.Points, e.PopulationPoint("elongation", math.Sqrt(1+float64(normV*normV)))...)
	return rep, err
}

// Columns of the results that workers exchange for each candidate: its fitness, u.z and |z|, where z is the noise of
// its pair.
const (
	crFMNESFitness = iota
	crFMNESAlong
	crFMNESLength
	crFMNESColumns
)

// crFMNESPrincipal returns the length of v. If v is zero, it draws v first.
func crFMNESPrincipal(ctx context.Context, e *optim.Env, round uint64) (float64, error) {
	v := e.Block(optim.BlockAxis)
	normV, err := crFMNESNorm(ctx, e, v)
	if err != nil || normV > 0 {
		return normV, err
	}
	draw := engine.Perturb{
		X:     v,
		Sigma: []float32{float32(1 / math.Sqrt(float64(e.Layout.Params)))},
		Keys:  []noise.Key{e.Rand(noise.Direction, round, 0)},
	}
	if err := e.Engine.Do(ctx, draw); err != nil {
		return 0, err
	}
	return crFMNESNorm(ctx, e, v)
}

// crFMNESMeasure returns the columns u.z and |z| of each hosted candidate, where z is the noise of its pair. normV is
// the length of v. The fitness column is left zero.
func crFMNESMeasure(ctx context.Context, e *optim.Env, key noise.Key, normV float64) (engine.Host, error) {
	var keys []noise.Key
	of := make([]int, len(e.Mine)) // index in keys of each member's pair
	for i, m := range e.Mine {
		key.Member = uint32(e.Roster.Rank(m)) / 2
		if n := len(keys); n == 0 || keys[n-1] != key {
			keys = append(keys, key)
		}
		of[i] = len(keys) - 1
	}
	size, dots, err := innerProducts(ctx, e, keys, e.Block(optim.BlockAxis), []float64{float64(normV * normV)})
	if err != nil {
		return engine.Host{}, err
	}
	out := engine.NewHost(len(e.Mine), crFMNESColumns, engine.F32)
	for i, p := range of {
		row := out.Row(engine.Row(i))
		row[crFMNESAlong], row[crFMNESLength] = float32(dots[p][0]/normV), float32(math.Sqrt(size[p]))
	}
	return out, nil
}

// crFMNESUpdate updates mean, paths, v, D and step size from the results of a generation. all has the columns of every
// candidate, key is the key of the candidates' noise, and normV the length of v.
func crFMNESUpdate(
	ctx context.Context,
	e *optim.Env,
	k optim.Values,
	key noise.Key,
	all engine.Host,
	normV float64,
) error {
	M := e.Layout.Params
	x, s, v, step := e.Block(optim.BlockX), e.Block(optim.BlockS), e.Block(optim.BlockAxis), e.Record(optim.BlockStep).F
	pathS, pathC := e.Block(optim.BlockPathS), e.Block(optim.BlockPathC)
	order, present := crFMNESOrder(all)
	c := crFMNESRates(all.Rows, present, M, k.Get("rate"))
	if sharesTies(k) {
		c.share(order, crFMNESEqual(all))
	}
	w := newCRFMNESWeights(&c, all, order, M, false)
	z, square, mixed := e.Scratch(1, M), e.Scratch(1, M), e.Scratch(1, M)
	if err := e.Engine.Do(
		ctx,
		crFMNESSum(z, key, w.mean, false),
		optim.Update(1,
			optim.Assign(pathS, optim.T(float32(1-c.path), pathS), optim.T(float32(math.Sqrt(c.path*(2-c.path)*c.moved)), z)),
		),
	); err != nil {
		return err
	}
	pathNorm, err := crFMNESNorm(ctx, e, pathS)
	if err != nil {
		return err
	}
	eta := c.converging
	switch {
	case pathNorm >= c.length:
		eta, w = 1, newCRFMNESWeights(&c, all, order, M, true)
		if err := e.Engine.Do(ctx, crFMNESSum(z, key, w.mean, false)); err != nil {
			return err
		}
	case pathNorm >= 0.1*c.length:
		eta = c.standing
	}
	stretch, sigma := math.Sqrt(1+float64(normV*normV))-1, k.F("sigma")*step[0]
	if err := e.Engine.Do(
		ctx,
		crFMNESSum(square, key, w.square, true),
		crFMNESSum(mixed, key, w.mixed, false),
		optim.Update(1, optim.Assign(z, optim.T(1, z), optim.T(float32(stretch/normV*w.sumAlong), v))),
		engine.Product{Dst: z, A: z, B: s},
		optim.Update(1,
			optim.Assign(x, optim.T(1, x), optim.T(sigma, z)),
			optim.Assign(pathC, optim.T(float32(1-c.mean), pathC), optim.T(float32(math.Sqrt(c.mean*(2-c.mean)*c.moved)), z)),
		),
	); err != nil {
		return err
	}
	var rows [5][]float64
	for i, m := range []engine.Mat{v, s, square, mixed, pathC} {
		if rows[i], err = e.Doubles(ctx, m); err != nil {
			return err
		}
	}
	crFMNESShape(rows[0], rows[1], rows[2], rows[3], rows[4], w.sumSquare, c.shape, c.one)
	for i, m := range []engine.Mat{v, s} {
		if err := e.SetDoubles(ctx, m, rows[i]); err != nil {
			return err
		}
	}
	step[0] *= float32(arith.Exp(eta / 2 * w.width))
	return nil
}

// crFMNESOrder returns the candidates, best first, and the number of results that are not missing. Missing results come
// last, those with the shortest noise first.
func crFMNESOrder(all engine.Host) (order []int, present int) {
	fit := make([]float32, all.Rows)
	for i := range fit {
		if fit[i] = all.Row(engine.Row(i))[crFMNESFitness]; fit[i] == fit[i] {
			present++
		}
	}
	order = optim.Order(fit)
	slices.SortStableFunc(order[present:], func(a, b int) int {
		p, q := all.Row(engine.Row(a))[crFMNESLength], all.Row(engine.Row(b))[crFMNESLength]
		switch {
		case p < q:
			return -1
		case p > q:
			return 1
		}
		return 0
	})
	return order, present
}

// crFMNESConstants has the constants of the rule for a population, its results and a number of parameters.
type crFMNESConstants struct {
	ranks                []float64 // r, best first
	effective            float64   // mu_w without ties
	path, mean           float64   // c_s and c_c
	length               float64   // E|N(0, I)|
	alpha                float64   // alpha
	standing, converging float64   // eta_s if |p_s| is below length, and if it is below a tenth of it
	shape, one           float64   // eta_B and c_1
	moved                float64   // mu_w of the weights after sharing ties, by which both paths are scaled
}

// share gives equal results the mean r of their ranks and updates moved.
func (c *crFMNESConstants) share(order []int, equal func(a, b int) bool) {
	c.ranks = shareTiedWeights(c.ranks, order, equal)
	sum := 0.0
	for _, r := range c.ranks {
		sum += r
	}
	squares := 0.0
	for _, r := range c.ranks {
		squares += float64(r / sum * (r / sum))
	}
	c.moved = 1 / squares
}

// crFMNESEqual returns the equality of results for [shareTiedWeights]. Missing results are equal if their noise has the
// same length.
func crFMNESEqual(all engine.Host) func(a, b int) bool {
	return func(a, b int) bool {
		p, q := all.Row(engine.Row(a)), all.Row(engine.Row(b))
		if f, g := p[crFMNESFitness], q[crFMNESFitness]; f == f || g == g {
			return f == g
		}
		return p[crFMNESLength] == q[crFMNESLength]
	}
}

func crFMNESRates(population, present, params int, rate float64) (c crFMNESConstants) {
	P, F, n, sum, squares := float64(population), float64(present), float64(params), 0.0, 0.0
	for i := range population {
		c.ranks = append(c.ranks, max(0, arith.Log(float64(P/2)+1)-arith.Log(float64(i+1))))
		sum += c.ranks[i]
	}
	for _, r := range c.ranks {
		squares += float64(r / sum * (r / sum))
	}
	c.effective = 1 / squares
	c.moved = c.effective
	c.path, c.mean = (c.effective+2)/(n+c.effective+5), (4+c.effective/n)/(n+4+2*c.effective/n)
	c.length = math.Sqrt(n) * (1 - 1/(4*n) + 1/(21*n*n))
	c.alpha = crFMNESAlphaScale(n) * min(1, math.Sqrt(P/n)) * math.Sqrt(F/P)
	c.standing = crFMNESTanh((float64(0.024*F) + float64(0.7*n) + 20) / (n + 12))
	c.converging = 2 * crFMNESTanh((float64(0.025*F)+float64(0.75*n)+10)/(n+4))
	c.shape = rate * crFMNESTanh((min(0.02*F, 3*arith.Log(n))+5)/(float64(0.23*n)+25))
	c.one = rate * 2 / (float64((n+1.3)*(n+1.3)) + c.effective) * max(0, n-5) / 6 * F / P
	return c
}

// crFMNESAlphaScale solves (1 + e^2)*exp(e^2/2)/0.24 = 10 + n for e in [0, 16] by bisection; there is no closed form.
func crFMNESAlphaScale(n float64) float64 {
	lo, hi := 0.0, 16.0
	for range 60 {
		e := (lo + hi) / 2
		if (1+float64(e*e))*arith.Exp(e*e/2)/0.24 < 10+n {
			lo = e
		} else {
			hi = e
		}
	}
	return lo
}

// crFMNESTanh returns the hyperbolic tangent of x >= 0.
func crFMNESTanh(x float64) float64 {
	e := arith.Exp(-2 * x)
	return (1 - e) / (1 + e)
}

// crFMNESWeights has the weights of pairs in sums over noise, and weighted sums over the candidates. a is u.z.
type crFMNESWeights struct {
	mean, square, mixed        []float32 // weights of z, z^2 - 1 and z in sum w z, sum w (z^2 - 1) and sum w a z
	sumAlong, sumSquare, width float64   // sum w a, sum w a^2 and sum w (|z|^2/M - 1)
}

// newCRFMNESWeights computes weights by rank and, if the distribution moves, also by the length of the noise.
func newCRFMNESWeights(c *crFMNESConstants, all engine.Host, order []int, params int, moves bool) (w crFMNESWeights) {
	by, sum, farthest := make([]float64, all.Rows), 0.0, 0.0
	length := func(i int) float64 { return float64(all.Row(engine.Row(i))[crFMNESLength]) }
	for i := range by {
		farthest = max(farthest, length(i))
	}
	for pos, i := range order {
		if by[i] = c.ranks[pos]; moves {
			by[i] *= arith.Exp(c.alpha * (length(i) - farthest))
		}
		sum += by[i]
	}
	for i := 0; i < len(by); i += 2 {
		first, second := by[i]/sum-1/float64(len(by)), by[i+1]/sum-1/float64(len(by))
		a := float64(all.Row(engine.Row(i))[crFMNESAlong])
		both, size := first+second, length(i)
		w.mean = append(w.mean, float32(first-second))
		w.square = append(w.square, float32(both))
		w.mixed = append(w.mixed, float32(both*a))
		w.sumAlong += float64((first - second) * a)
		w.sumSquare += float64(both * a * a)
		w.width += float64(both * (float64(size*size)/float64(params) - 1))
	}
	return w
}

// crFMNESSum returns the task that writes the weighted sum of the noise z of pairs to dst, or of z^2 - 1 if square is
// set.
func crFMNESSum(dst engine.Mat, key noise.Key, weights []float32, square bool) engine.NoiseSum {
	sum := engine.NoiseSum{Dst: engine.All(dst), Key: key, Weights: weights, Antithetic: true, Square: square}
	for i := range weights {
		sum.IDs = append(sum.IDs, engine.Member(2*i))
	}
	return sum
}

// crFMNESMinFactor is the smallest factor by which a deviation is multiplied in a generation, before normalisation.
const crFMNESMinFactor = 0.5

// crFMNESShape moves v and D (d) along the natural gradient. eta is eta_B and one is c_1. The gradient is linear in
// y^2, (u.y)*y and (u.y)^2. Their weighted sums over candidates follow from square = sum w (z^2 - 1), mixed = sum w a z
// and squares = sum w a^2, since the weights sum to zero. path is p_c. crFMNESShape overwrites square, mixed and path.
func crFMNESShape(v, d, square, mixed, path []float64, squares, eta, one float64) {
	n, widest := 0.0, 0.0
	for _, x := range v {
		n += float64(x * x)
		widest = max(widest, x*x)
	}
	normV, f := math.Sqrt(n), 1+n
	root := math.Sqrt(f)
	stretch := root - 1
	beta := min(1, math.Sqrt(float64(n*n)+(2*f-root)*n/widest)/(2+n))
	b := float64(2*beta*beta) - float64((1-float64(beta*beta))*n*n/f)
	inner := 0.0 // u.p_c/D
	for j, x := range v {
		inner += float64(x / normV * path[j] / d[j])
	}
	t, s, q := mixed, square, path // reuses the memory: each element is read before it is written
	half := (float64(eta*f*squares) + float64(one*inner*inner) + float64(one*f)) / 2
	ut := 0.0
	for j, x := range v {
		y, u := path[j]/d[j], x/normV
		mean := float64(eta*root*(mixed[j]+float64(stretch*u*squares))) + float64(one*inner*y)
		wide := square[j] + float64(2*stretch*u*mixed[j]) + float64(stretch*stretch*u*u*squares)
		t[j] = mean - float64(half*u)
		s[j] = float64(eta*wide) + float64(one*(float64(y*y)-1)) - float64(n/f*u*mean)
		ut += float64(u * t[j])
	}
	uq, qs := 0.0, 0.0
	for j := range v {
		x := v[j] / normV
		s[j] -= float64(beta / f * (float64((2+n)*x*t[j]) - float64(n*ut*x*x)))
		h := 2 - float64((b+float64(2*beta*beta))*x*x)
		q[j] = x * x / h
		uq += float64(x * x * q[j])
		qs += float64(q[j] * s[j])
		s[j] /= h
	}
	su := 0.0
	for j := range v {
		x := v[j] / normV
		s[j] -= float64(b / (1 + float64(b*uq)) * qs * q[j])
		su += float64(s[j] * x * x)
	}
	after, det := 0.0, 0.0
	for j := range v {
		x := v[j] / normV
		v[j] += (t[j] - float64(beta*(float64((2+n)*s[j]*x)-float64(su*x)))) / normV
		after += float64(v[j] * v[j])
		d[j] *= max(crFMNESMinFactor, 1+s[j])
		det += arith.Log(d[j])
	}
	by := arith.Exp((det + float64(arith.Log(1+after)/2)) / float64(len(d)))
	for j := range d {
		d[j] /= by
	}
}

// crFMNESNorm returns the Euclidean length of a row.
func crFMNESNorm(ctx context.Context, e *optim.Env, x engine.Mat) (float64, error) {
	rms, err := e.RMS(ctx, x)
	return rms * math.Sqrt(float64(x.Cols)), err
}

func (crFMNES) Centre(ctx context.Context, e *optim.Env, _ optim.Values, dst engine.Mat) error {
	return optim.CopyBlock(ctx, e, optim.BlockX, dst)
}
