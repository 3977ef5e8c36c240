package evolution

import (
	"context"
	"errors"
	"fmt"
	"math"

	"brood/models/arith"
	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
)

// cmaESMost is the highest number of parameters: every worker diagonalises a matrix of their square.
const cmaESMost = 256

// CMAES adapts a normal distribution with a full covariance matrix.
var CMAES = &optim.Algorithm{
	Name:  "cma-es",
	Title: "CMA-ES",
	Paper: "Hansen: The CMA evolution strategy: a tutorial (2016, revised 2023), figure 6; restarts after Auger, " +
		"Hansen: A restart CMA evolution strategy with increasing population size (2005)",
	Doc: `Members are candidates drawn from a normal distribution with mean x, step size sigma and covariance C, which has
the eigenvectors B and the deviations D along them. With M parameters and a population of P:

    x_i = x + sigma*y_i,  y_i = B D z_i,  z_i ~ N(0, I)
    w' = ln((P + 1)/2) - ln k, k = 1 the best
    w_k = w'/sum of the positive w' where w' > 0;  mu_w = 1/sum w_k^2 over these
    w_k = w'*min(1 + c_1/c_mu, 1 + 2 mu_-/(mu_w + 2), (1 - c_1 - c_mu)/(M c_mu))/sum of |w'| where w' < 0 (active)
    y = sum of w_k y_k over the best half;  x <- x + sigma*y
    p_s <- (1 - c_s)*p_s + sqrt(c_s*(2 - c_s)*mu_w)*B D^-1 B' y;  sigma <- sigma*exp(c_s/d_s*(|p_s|/E|N(0, I)| - 1))
    h = 1 if |p_s|/sqrt(1 - (1 - c_s)^(2t)) < (1.4 + 2/(M + 1))*E|N(0, I)| in generation t, else 0
    p_c <- (1 - c_c)*p_c + h*sqrt(c_c*(2 - c_c)*mu_w)*y
    C <- (1 + c_1*(1 - h)*c_c*(2 - c_c) - c_1 - c_mu*sum w)*C + c_1*p_c p_c' + c_mu*sum of v_k y_k y_k'
    v_k = w_k where w_k >= 0, else w_k*M/|z_k|^2
    c_s = (mu_w + 2)/(M + mu_w + 5);  d_s = 1 + c_s + 2 max(0, sqrt((mu_w - 1)/(M + 1)) - 1)
    c_c = (4 + mu_w/M)/(M + 4 + 2 mu_w/M);  c_1 = 2/((M + 1.3)^2 + mu_w)
    c_mu = min(1 - c_1, 2*(1/4 + mu_w + 1/mu_w - 2)/((M + 2)^2 + mu_w))

where mu_- is (sum w')^2/sum w'^2 over the negative w'. B and D are computed every 1/(10 M (c_1 + c_mu)) generations.

Fitness is minus the loss on a mini-batch, by default one that all candidates of a generation share; a missing
(non-finite) one ranks last. Equal results share the mean of the weights of their ranks (ties), and mu_w in the paths is
that of these weights. The knob sigma is the initial step size; a later change of it scales the step size. active off
sets the negative w_k to zero.

restarts is how often the population doubles (IPOP-CMA-ES). A search ends, and another one begins with the initial step
size at a normal point around the start (deviation sigma), when all results of a generation, and the best ones of 10 +
30M/P generations, are within 1e-12; when the deviations of all parameters and p_c are below 1e-12 of the initial step
size; when the condition of C is above 1e14; or after 100 + 50 (M + 3)^2/sqrt(P) generations. A population of 2^r times
the members takes 2^r rounds for a generation. After the last doubling, searches continue with the same population. The
centre is the best candidate of all searches; without restarts it is x.
Series: fitness; the deviation: sigma times the root mean square of D; the axis ratio: largest by smallest D; the
population.
Bytes: 8P per generation to each other worker; noise is regenerated from seeds.

Deviations: the history of results for restarts is in consecutive windows instead of a sliding one, the tests of
stagnation and of axes without effect are left out, and restarts are around the start. D is at least 1e-8 of its
largest element. The CPU computes C, B and D in double precision.
Reductions: with C at the identity it is (mu/mu_w, P) with cumulative step sizes, as sep-cma with rate 0.`,
	Needs: optim.Evaluations,
	Knobs: []optim.Knob{
		knobSigma.With(0.01),
		{
			Name:    "active",
			Title:   "active update",
			Doc:     "negative weights of the worse half in the covariance",
			Choices: []string{"on", "off"},
		},
		{
			Name:    "restarts",
			Title:   "restarts",
			Unit:    "doublings",
			Doc:     "number of times that the population doubles at a restart; 0 never restarts",
			Max:     10,
			Integer: true,
		},
		optim.KnobB.With(256), knobSamples, knobTies,
	},
	Series: []optim.Series{
		optim.SeriesFitness,
		seriesDeviation,
		{
			Name:  "ratio",
			Title: "axis ratio",
			Doc:   "largest standard deviation of the search along a principal axis, relative to the smallest",
		},
		{
			Name:  "population",
			Title: "population",
			Doc:   "candidates of a generation",
		},
	},
	Blocks: func(k optim.Values, l engine.Layout) []optim.Block {
		restarts := min(1, k.I("restarts"))
		return []optim.Block{
			optim.Params(optim.BlockX, true, optim.EnterCentre, l),
			optim.Params(optim.BlockPathS, true, optim.EnterZero, l),
			optim.Params(optim.BlockPathC, true, optim.EnterZero, l),
			{
				Name:   optim.BlockCovariance,
				Shared: true,
				Cols:   cmaESSize(l.Params),
				Type:   engine.U64,
				Record: true,
			},
			{Name: optim.BlockStep, Shared: true, Cols: 1, Enter: optim.EnterOne, Record: true},
			{Name: optim.BlockResults, Cols: 1 << k.I("restarts"), Type: engine.U64, Record: true},
			{Name: optim.BlockStart, Shared: true, Cols: restarts * l.Params, Enter: optim.EnterCentre},
			{Name: optim.BlockBest, Shared: true, Cols: restarts * l.Params, Enter: optim.EnterCentre},
			{Name: optim.BlockRange, Shared: true, Cols: restarts * cmaESRanges, Type: engine.U64, Record: true},
			optim.Counter(optim.BlockPhase, true),
			optim.Counter(optim.BlockCycle, true),
			optim.Counter(optim.BlockCursor, true),
		}
	},
	Check: func(s optim.Shape) error {
		switch {
		case len(s.Roster.Members) < 2:
			return errors.New("ranks need candidates to compare: give members at least 2")
		case s.Layout.Params > cmaESMost:
			return fmt.Errorf("a full covariance of %d parameters takes too long, and the most is %d: take sep-cma, "+
				"cr-fm-nes or lm-ma-es", s.Layout.Params, cmaESMost)
		}
		return nil
	},
	Bytes: func(s optim.Shape) map[collective.Op]int64 {
		doublings, part := cmaESPhase(s.Phase)
		if part+1 < 1<<doublings {
			return nil
		}
		return map[collective.Op]int64{"fitness": s.AllGatherBytes(8 << doublings)}
	},
	Program: cmaES{},
}

// Numbers of the record range, as complements of the bits of float64: a number that does not exist is zero, NaN.
const (
	cmaESLow  = iota // lowest and highest fitness of the best candidates of the generations of a window
	cmaESHigh        //
	cmaESBest        // highest fitness of all searches
	cmaESRanges
)

// cmaESPhase splits the phase: the doublings of the population, and the parts of the generation that are done.
func cmaESPhase(phase uint64) (doublings, part int) { return int(phase >> 32), int(uint32(phase)) }

type cmaES struct{}

func (cmaES) Round(ctx context.Context, e *optim.Env, k optim.Values, round uint64) (optim.Report, error) {
	n, step, phase := e.Layout.Params, e.Record(optim.BlockStep).F, e.Record(optim.BlockPhase).U
	s, sigma := loadCMAES(e), float64(k.F("sigma")*step[0])
	fit, rep, err := s.evaluate(ctx, e, k, e.Rand(noise.Candidate, round, 0), sigma)
	if err != nil {
		return rep, err
	}
	doublings, part := cmaESPhase(phase[0])
	results := e.Record(optim.BlockResults)
	for i, m := range e.Mine {
		results.URow(engine.Row(i))[part] = cmaESResult(e.Roster.Rank(m), fit.F[i])
	}
	if phase[0]++; part+1 < 1<<doublings {
		return rep, nil
	}
	all, err := cmaESGather(ctx, e, doublings)
	if err != nil {
		return rep, err
	}
	g := newCMAESGeneration(e, k, all, round, part, s)
	if restarts := k.I("restarts"); restarts == 0 {
		err = g.update(ctx, e, s, sigma)
	} else if err = g.remember(ctx, e, sigma); err == nil {
		err = g.update(ctx, e, s, sigma)
		var ended bool
		if err == nil {
			ended, err = g.ended(ctx, e, s)
		}
		if ended && err == nil {
			doublings = min(doublings+1, restarts)
			err = cmaESBegin(ctx, e, k.Get("sigma"), round, s)
		}
	}
	if err != nil {
		return rep, err
	}
	phase[0] = uint64(doublings) << 32
	s.store(e)
	narrow, wide, square := s.axes()
	deviation := float64(k.F("sigma")*step[0]) * math.Sqrt(square/float64(n))
	rep.Points = append(rep.Points, e.PopulationPoint("deviation", deviation)...)
	rep.Points = append(rep.Points, e.PopulationPoint("ratio", wide/narrow)...)
	rep.Points = append(rep.Points, e.PopulationPoint("population", float64(len(g.candidates)))...)
	return rep, nil
}

func (cmaES) Centre(ctx context.Context, e *optim.Env, k optim.Values, dst engine.Mat) error {
	if k.I("restarts") > 0 {
		return optim.CopyBlock(ctx, e, optim.BlockBest, dst)
	}
	return optim.CopyBlock(ctx, e, optim.BlockX, dst)
}

// cmaESResult packs a result: a bit that says that it exists, the rank that addresses the noise of its candidate, and
// the bits of the fitness.
func cmaESResult(rank int, fitness float32) uint64 {
	return 1<<63 | uint64(rank)<<32 | uint64(math.Float32bits(fitness))
}

// cmaESGather returns the results of a generation, one row per member and one column per part. Results of members that
// joined during the generation are zero in the parts before.
func cmaESGather(ctx context.Context, e *optim.Env, doublings int) (engine.Host, error) {
	mine := engine.NewHost(len(e.Mine), 1<<doublings, engine.U64)
	all := engine.NewHost(len(e.Roster.Members), 1<<doublings, engine.U64)
	for i := range e.Mine {
		row := e.Record(optim.BlockResults).URow(engine.Row(i))
		copy(mine.URow(engine.Row(i)), row)
		clear(row)
	}
	return all, e.Comm.AllGather(ctx, "fitness", mine, all)
}

// cmaESGeneration has the candidates of a generation, best first, and the constants of its size.
type cmaESGeneration struct {
	candidates []cmaESCandidate
	cmaESConstants
}

type cmaESCandidate struct {
	fitness float32
	z, y    []float64
}

// newCMAESGeneration draws the noise of all candidates again. last is the part that the given round has evaluated; the
// rounds before evaluated the parts before.
func newCMAESGeneration(
	e *optim.Env,
	k optim.Values,
	all engine.Host,
	round uint64,
	last int,
	s *cmaESSearch,
) *cmaESGeneration {
	var drawn []cmaESCandidate
	for part := range all.Cols {
		for m := range all.Rows {
			r := all.URow(engine.Row(m))[part]
			if r == 0 {
				continue
			}
			z := cmaESNoise(e.Rand(noise.Candidate, round-uint64(last-part), engine.Member(r<<1>>33)), s.n)
			drawn = append(drawn, cmaESCandidate{math.Float32frombits(uint32(r)), z, s.along(z)})
		}
	}
	fit := make([]float32, len(drawn))
	for i, c := range drawn {
		fit[i] = c.fitness
	}
	order := optim.Order(fit)
	g := &cmaESGeneration{cmaESConstants: cmaESRates(len(fit), s.n, k.Is("active", "on"))}
	if sharesTies(k) {
		g.share(order, equalIn(fit))
	}
	for _, i := range order {
		g.candidates = append(g.candidates, drawn[i])
	}
	return g
}

// cmaESNoise returns n numbers of the noise of a key.
func cmaESNoise(key noise.Key, n int) []float64 {
	z := make([]float64, 0, n)
	key.Each(0, n, n, func(_ int, eps []float32) {
		for _, v := range eps {
			z = append(z, float64(v))
		}
	})
	return z
}

// update moves the mean, the paths, the step size and the covariance. It counts the generation.
func (g *cmaESGeneration) update(ctx context.Context, e *optim.Env, s *cmaESSearch, sigma float64) error {
	var rows [3][]float64
	for i, name := range [...]string{optim.BlockX, optim.BlockPathS, optim.BlockPathC} {
		row, err := e.Doubles(ctx, e.Block(name))
		if err != nil {
			return err
		}
		rows[i] = row
	}
	x, pathS, pathC := rows[0], rows[1], rows[2]
	y, z := make([]float64, s.n), make([]float64, s.n)
	for rank, w := range g.mean {
		add(y, w, g.candidates[rank].y)
		add(z, w, g.candidates[rank].z)
	}
	add(x, sigma, y)
	gain := math.Sqrt(g.path * (2 - g.path) * g.moved)
	for j := range pathS {
		pathS[j] *= 1 - g.path
	}
	for j := range z {
		add(pathS, gain*z[j], s.basis[j])
	}
	generations := e.Record(optim.BlockCycle).U
	generations[0]++
	longer := math.Sqrt(dot(pathS, pathS)) / g.length
	stalled := 1.0
	for j := range pathC {
		pathC[j] *= 1 - g.slow
	}
	if longer/math.Sqrt(1-arith.Pow(1-g.path, float64(2*generations[0]))) < 1.4+2/float64(s.n+1) {
		stalled = 0
		add(pathC, math.Sqrt(g.slow*(2-g.slow)*g.moved), y)
	}
	keep := 1 + float64(g.one*stalled*g.slow*(2-g.slow)) - g.one
	for _, w := range g.shape {
		keep -= float64(g.rank * w)
	}
	for i, row := range s.covariance {
		for j := range row {
			row[j] *= keep
		}
		add(row, g.one*pathC[i], pathC[:i+1])
		for rank, w := range g.shape {
			c := &g.candidates[rank]
			if w < 0 {
				w *= float64(s.n) / dot(c.z, c.z)
			}
			add(row, g.rank*w*c.y[i], c.y[:i+1])
		}
	}
	if every := uint64(1 / (10 * float64(s.n) * (g.one + g.rank))); generations[0]%max(1, every) == 0 {
		s.decompose()
	}
	e.Record(optim.BlockStep).F[0] *= float32(arith.Exp(g.path / g.damping * (longer - 1)))
	for i, name := range [...]string{optim.BlockX, optim.BlockPathS, optim.BlockPathC} {
		if err := e.SetDoubles(ctx, e.Block(name), rows[i]); err != nil {
			return err
		}
	}
	return nil
}

// remember copies the best candidate if it is better than those of all generations before. Call it before update: the
// candidates were drawn around x with the step size sigma.
func (g *cmaESGeneration) remember(ctx context.Context, e *optim.Env, sigma float64) error {
	ranges, best := e.Record(optim.BlockRange).U, float64(g.candidates[0].fitness)
	if best != best || best <= cmaESNumber(ranges[cmaESBest]) {
		return nil
	}
	ranges[cmaESBest] = ^math.Float64bits(best)
	x, err := e.Doubles(ctx, e.Block(optim.BlockX))
	if err != nil {
		return err
	}
	add(x, sigma, g.candidates[0].y)
	return e.SetDoubles(ctx, e.Block(optim.BlockBest), x)
}

// ended reports whether the search has converged, failed or taken too long, by the criteria of the Doc.
func (g *cmaESGeneration) ended(ctx context.Context, e *optim.Env, s *cmaESSearch) (bool, error) {
	const narrowest, flat, worstCondition = 1e-12, 1e-12, 1e14
	n, P, generations := float64(s.n), float64(len(g.candidates)), e.Record(optim.BlockCycle).U[0]
	ranges, best, worst := e.Record(optim.BlockRange).U, float64(g.candidates[0].fitness), math.NaN()
	for _, c := range g.candidates {
		if c.fitness == c.fitness {
			worst = float64(c.fitness)
		}
	}
	if best == best {
		if !(best >= cmaESNumber(ranges[cmaESLow])) {
			ranges[cmaESLow] = ^math.Float64bits(best)
		}
		if !(best <= cmaESNumber(ranges[cmaESHigh])) {
			ranges[cmaESHigh] = ^math.Float64bits(best)
		}
	}
	if window := uint64(10 + math.Ceil(30*n/P)); generations%window == 0 {
		if cmaESNumber(ranges[cmaESHigh])-cmaESNumber(ranges[cmaESLow]) < flat && best-worst < flat {
			return true, nil
		}
		ranges[cmaESLow], ranges[cmaESHigh] = 0, 0
	}
	pathC, err := e.Doubles(ctx, e.Block(optim.BlockPathC))
	if err != nil {
		return false, err
	}
	wide, step := 0.0, float64(e.Record(optim.BlockStep).F[0])
	for j, row := range s.covariance {
		wide = max(wide, math.Abs(pathC[j]), math.Sqrt(row[j]))
	}
	shortest, longest, _ := s.axes()
	ratio := longest / shortest
	return wide*step < narrowest || ratio*ratio > worstCondition ||
		float64(generations) >= 100+float64(50*(n+3)*(n+3)/math.Sqrt(P)), nil
}

// cmaESNumber returns a number of the record range; NaN if there is none.
func cmaESNumber(u uint64) float64 { return math.Float64frombits(^u) }

// cmaESBegin begins another search, at a random point around the start.
func cmaESBegin(ctx context.Context, e *optim.Env, sigma float64, round uint64, s *cmaESSearch) error {
	x, err := e.Doubles(ctx, e.Block(optim.BlockStart))
	if err != nil {
		return err
	}
	add(x, sigma, cmaESNoise(e.Rand(noise.Direction, round, 0), s.n))
	s.begin()
	ranges := e.Record(optim.BlockRange).U
	ranges[cmaESLow], ranges[cmaESHigh] = 0, 0
	e.Record(optim.BlockStep).F[0], e.Record(optim.BlockCycle).U[0] = 1, 0
	if err := e.Engine.Do(
		ctx,
		engine.Fill{Dst: engine.All(e.Block(optim.BlockPathS))},
		engine.Fill{Dst: engine.All(e.Block(optim.BlockPathC))},
	); err != nil {
		return err
	}
	return e.SetDoubles(ctx, e.Block(optim.BlockX), x)
}

// cmaESConstants has the constants of the rule for a population and a number of parameters.
type cmaESConstants struct {
	mean       []float64 // w_k of the best half, by rank
	shape      []float64 // w_k of all ranks with weights, as the covariance has them
	path, slow float64   // c_s and c_c
	damping    float64   // d_s
	one, rank  float64   // c_1 and c_mu
	length     float64   // E|N(0, I)|
	moved      float64   // mu_w of the weights after sharing ties, by which both paths are scaled
}

// share gives equal results the mean of the weights of their ranks and updates moved.
func (c *cmaESConstants) share(order []int, equal func(a, b int) bool) {
	c.mean = shareTiedWeights(c.mean, order, equal)
	c.shape = shareTiedWeights(c.shape, order, equal)
	c.moved = effectiveSize(c.mean)
}

func cmaESRates(population, params int, active bool) (c cmaESConstants) {
	n, best := float64(params), 0.0
	var raw []float64
	worst, worstSquares := 0.0, 0.0 // sums of |w'| and of its square over the negative ones
	for i := range population {
		w := arith.Log(float64(population+1)/2) - arith.Log(float64(i+1))
		if raw = append(raw, w); w > 0 {
			best += w
		} else {
			worst -= w
			worstSquares += float64(w * w)
		}
	}
	for _, w := range raw[:population/2] {
		c.mean = append(c.mean, w/best)
	}
	mu := effectiveSize(c.mean)
	c.moved = mu
	c.path, c.slow = (mu+2)/(n+mu+5), (4+mu/n)/(n+4+2*mu/n)
	c.damping = 1 + c.path + float64(2*max(0, math.Sqrt((mu-1)/(n+1))-1))
	c.one = 2 / (float64((n+1.3)*(n+1.3)) + mu)
	c.rank = min(1-c.one, 2*(0.25+mu+1/mu-2)/(float64((n+2)*(n+2))+mu))
	c.length = math.Sqrt(n) * (1 - 1/(4*n) + 1/(21*n*n))
	if c.shape = append(c.shape, c.mean...); active {
		least := min(1+c.one/c.rank, 1+2*worst*worst/worstSquares/(mu+2), (1-c.one-c.rank)/(n*c.rank))
		for _, w := range raw[population/2:] {
			c.shape = append(c.shape, w*least/worst)
		}
	}
	return c
}
