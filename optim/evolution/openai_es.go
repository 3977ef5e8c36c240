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

// OpenAIES estimates the gradient of a smoothed objective from the fitness of perturbed candidates.
var OpenAIES = &optim.Algorithm{
	Name:  "openai-es",
	Title: "OpenAI-ES",
	Paper: "Salimans, Ho, Chen, Sidor, Sutskever: Evolution strategies as a scalable alternative to RL (2017); " +
		"distribution after Malik et al., DarwiNN (2020)",
	Doc: `Each member is a candidate theta +- sigma*eps in antithetic pairs: ranks 2k and 2k+1 of the population share
eps_k. Fitness is minus the loss on a mini-batch, by default one that all P candidates of a generation share.

    u = centred ranks in [-0.5, 0.5] over ALL results;  g = 1/(P*sigma) * sum_i u_i eps_i - decay*theta
    theta <- theta + step(g), by Adam (b1 = 0.9, b2 = 0.999) or Nesterov SGD

antithetic off draws P independent eps, as DarwiNN's Algorithm 1, which weights them with the raw fitness; the paper of
the rule has pairs. Candidate i is then theta + sigma*eps_i.

shaping ranks is the equation above. raw uses the fitness itself, which makes g an unbiased estimate of the smoothed
gradient. sign uses +1/2 for the better and -1/2 for the worse of a pair. standard takes the difference between the
first and the second result of a pair, subtracts the mean over all pairs, divides by their standard deviation, and
assigns half of it with opposite signs to the two (as in a reproduction of EGGROLL on MNIST). With n pairs, M
parameters and a linear fitness, the expected cosine of g and the gradient is rho*sqrt(n)/sqrt(M + rho^2*n): rho = 1
raw and standard, 0.977 ranks, 0.798 sign. Equal results share their mean rank (ties); with noise integer the
difference of ranks in a pair is rounded to an integer. divide selects the divisions that are done. A missing
(non-finite) fitness counts as the worst. samples member gives each candidate its own mini-batch (Zhang 2017).

noise selects the distribution of eps. gaussian is normal. integer has exact sums, so that an update has the same bits
on every machine, and multiplies samples of bytes faster. rank r makes eps of each weight matrix A B'/sqrt(r), of
normals R x r and C x r (EGGROLL; Sarkar et al., 2025). This evaluates many times as many candidates per second, each
of which explores r directions of a matrix; biases keep full-rank noise.

distribution selects which workers compute the update. seed: every worker regenerates all noise, and only P fitness
values are sent. chromosome: each worker computes its slice of M over all P, and the slices are gathered; bit-identical
to seed. semi: the population is cut into groups of adjacent pairs, each group shapes its own results, and the partial
sums are added; not exact. auto: before the first round the workers measure the rate F of their noise (elements/s) and
the bandwidth B of their links (bytes/s), and the run sets seed if the P/2 vectors (P without pairs) are fewer than
4F/B, else chromosome. The log records the edit and its reason. The choice remains until auto is set again, for example
after workers joined.
Series: fitness.
Bytes per generation, over N workers: seed 4P(N-1); chromosome 4(P+M)(N-1); semi 8M(N-1) with one group per worker, and
4 for each fitness value that moves to the worker that sums its group, which is the one that hosts the group's first
candidate.

Deviations: the starter code of the source omits the division by sigma; seed noise is a pure function of the run's seed,
generation and pair. The source's N of semi is the knob groups, so that results do not depend on the number of workers.
Reductions: semi with one group is seed, bit for bit; with shaping raw, semi is exact except for rounding.`,
	Needs: optim.Evaluations,
	Knobs: []optim.Knob{
		optim.KnobEta.With(0.005), knobSigma, optim.KnobB.With(256), knobSamples, optim.KnobWD, optim.KnobMu,
		knobOptimiser,
		{
			Name:  "shaping",
			Title: "fitness shaping",
			Doc: "weight of a result: centred rank, fitness, sign of the difference in its pair, " +
				"or that difference standardised",
			Choices: []string{"ranks", "raw", "sign", "standard"},
		},
		knobTies,
		{
			Name:    "antithetic",
			Title:   "antithetic",
			Doc:     "candidates in pairs with opposite noise (on), or each with independent noise (off)",
			Choices: []string{"on", "off"},
		},
		{
			Name:    "divide",
			Title:   "divide by",
			Doc:     "divisor of the weighted sum of noise",
			Choices: []string{"both", "P", "sigma", "none"},
		},
		{
			Name:    "noise",
			Title:   "noise",
			Doc:     "noise added to the parameters: normal, or integer with exact sums",
			Choices: []string{"gaussian", "integer"},
		},
		{
			Name:    "rank",
			Title:   "rank",
			Doc:     "rank of the noise of each weight matrix; 0 is full rank",
			Max:     engine.MaxRank,
			Integer: true,
		},
		{
			Name:  "distribution",
			Title: "distribution",
			Doc: "every worker computes the whole update, each a slice, each group a partial sum, " +
				"or the faster of the first two",
			Choices: []string{"seed", "chromosome", "semi", optim.Auto},
		},
		{
			Name:    "groups",
			Title:   "groups",
			Doc:     "of semi: number of groups that shape their results separately",
			Min:     1,
			Max:     1 << 16,
			Default: 2,
			Integer: true,
			Scale:   optim.Log,
		},
	},
	Series: []optim.Series{optim.SeriesFitness},
	Blocks: func(k optim.Values, l engine.Layout) []optim.Block {
		return append(
			[]optim.Block{optim.Params(optim.BlockX, true, optim.EnterCentre, l), optim.Counter(optim.BlockCursor, true)},
			estimateBlocks(k, l)...)
	},
	Check: func(s optim.Shape) error {
		P, integer, each := len(s.Roster.Members), s.K.Is("noise", "integer"), openaiESPerVector(s.K)
		switch {
		case each == 1 && (s.K.Is("shaping", "sign") || s.K.Is("shaping", "standard")):
			return errors.New(
				"shaping sign and standard compare the two of a pair: set shaping to ranks or raw, or antithetic to on",
			)
		case each == 1 && integer:
			return errors.New("integer noise needs antithetic pairs: set antithetic to on, or noise to gaussian")
		case integer && s.K.I("rank") > 0:
			return errors.New("integer noise has full rank: set rank to 0, or noise to gaussian")
		case integer && (s.K.Is("shaping", "raw") || s.K.Is("shaping", "standard") || s.K.Is("distribution", "semi")):
			return errors.New(
				"integer noise needs integer weights: set shaping to ranks or sign and distribution to seed or chromosome, " +
					"or noise to gaussian",
			)
		case integer && P > openaiESIntegerMembers:
			return fmt.Errorf(
				"the update of integer noise is exact for at most %d members: take fewer, or noise = gaussian",
				openaiESIntegerMembers,
			)
		case P%each == 1:
			return errors.New("antithetic pairs need an even population: give members a multiple of 2")
		case s.K.Is("distribution", "semi") && each == 1 && s.K.I("groups") > P:
			return fmt.Errorf(
				"%d groups need a candidate each, and there are %d members: lower groups or give more members",
				s.K.I("groups"),
				P,
			)
		case s.K.Is("distribution", "semi") && s.K.I("groups") > P/each:
			return fmt.Errorf(
				"%d groups need a pair each, and %d members are %d pairs: lower groups or give more members",
				s.K.I("groups"),
				P,
				P/2,
			)
		case s.K.Is("shaping", "standard") && P/2 < 2*openaiESShapingGroups(s.K):
			return fmt.Errorf(
				"one pair has no deviation: shaping standard takes %d members or more here, or set shaping to ranks, raw or sign",
				4*openaiESShapingGroups(s.K),
			)
		}
		return nil
	},
	Bytes: func(s optim.Shape) map[collective.Op]int64 {
		if s.K.Is("distribution", "semi") {
			leaves, edges := openaiESGroups(s.Roster, s.K.I("groups"), openaiESPerVector(s.K))
			return map[collective.Op]int64{
				"fitness":  s.MoveBytes(edges, 4),
				"gradient": s.AllReduceBytes(leaves, s.Layout.Params),
			}
		}
		return updateBytes(s, 1)
	},
	Program: openaiES{},
}

type openaiES struct{}

func (openaiES) Round(ctx context.Context, e *optim.Env, k optim.Values, round uint64) (optim.Report, error) {
	g := e.Scratch(1, e.Layout.Params)
	rep, err := openaiESEstimate(ctx, e, k, round, g)
	if err != nil {
		return rep, err
	}
	return rep, e.Engine.Do(ctx, openaiESStep(e, k, g, len(e.Roster.Members))...)
}

// openaiESEstimate evaluates the candidates of a round and writes g = sum_i u_i eps_i (1 x params). It is collective.
func openaiESEstimate(
	ctx context.Context,
	e *optim.Env,
	k optim.Values,
	round uint64,
	g engine.Mat,
) (optim.Report, error) {
	key := e.Rand(noise.Candidate, round, 0)
	fit, rep, err := evaluate(ctx, e, k, engine.Candidates{
		Theta:      e.Block(optim.BlockX),
		Noise:      openaiESNoise(k),
		Sigma:      k.F("sigma"),
		Key:        key,
		Antithetic: openaiESPerVector(k) == 2,
	})
	if err != nil {
		return rep, err
	}
	if k.Is("distribution", "semi") {
		return rep, openaiESSemi(ctx, e, k, key, fit, g)
	}
	return rep, openaiESExact(ctx, e, k, key, fit, g)
}

// Estimate implements Estimator.
func (openaiES) Estimate(ctx context.Context, e *optim.Env, k optim.Values, round uint64, g engine.Mat) (int, error) {
	_, err := openaiESEstimate(ctx, e, k, round, g)
	return len(e.Roster.Members) / openaiESPerVector(k), err
}

// openaiESIntegerMembers is the largest population with integer noise. The differences of ranks add up to at most
// P^2/4, and engine.NoiseSum is exact for integer weights that add up to at most 2^24.
const openaiESIntegerMembers = 8192

// openaiESNoise returns the noise that the knobs noise and rank select.
func openaiESNoise(k optim.Values) engine.Noise {
	return engine.Noise{Integer: k.Is("noise", "integer"), Rank: k.I("rank")}
}

// openaiESPerVector returns the number of candidates that share a noise vector: 2 with antithetic pairs, else 1.
func openaiESPerVector(k optim.Values) int {
	if k.Is("antithetic", "off") {
		return 1
	}
	return 2
}

// Noise implements Chooser.
func (openaiES) Noise(k optim.Values) engine.Noise { return openaiESNoise(k) }

// Prefer implements Chooser.
func (openaiES) Prefer(s optim.Shape, r optim.Rates) []optim.Choice {
	return exactDistribution(s, len(s.Roster.Members)/openaiESPerVector(s.K), r)
}

// openaiESExact writes g = sum_i u_i eps_i with utilities over all results. fit has the fitness of hosted members.
func openaiESExact(
	ctx context.Context,
	e *optim.Env,
	k optim.Values,
	key noise.Key,
	fit engine.Host,
	g engine.Mat,
) error {
	all, err := gatherFitness(ctx, e, fit)
	if err != nil {
		return err
	}
	dst := engine.All(g)
	dst.Lo, dst.Hi = workerColumns(e, k)
	if err := e.Engine.Do(ctx, openaiESSum(dst, key, 0, all.F, k)); err != nil {
		return err
	}
	return gatherSlices(ctx, e, k, g)
}

// openaiESSemi is like openaiESExact, but computes the utilities over the results of each group.
func openaiESSemi(
	ctx context.Context,
	e *optim.Env,
	k optim.Values,
	key noise.Key,
	fit engine.Host,
	g engine.Mat,
) error {
	groups, each := k.I("groups"), openaiESPerVector(k)
	leaves, edges := openaiESGroups(e.Roster, groups, each)
	hosted, got := leaves.Hosted(e.Self), engine.NewHost(len(e.Incoming(edges)), 1, engine.F32)
	if err := e.Comm.MoveRecords(ctx, "fitness", edges, fit, got); err != nil {
		return err
	}
	part, tasks, at := e.Scratch(len(hosted), e.Layout.Params), make([]engine.Task, len(hosted)), 0
	for i, group := range hosted {
		lo, hi := engine.Cut(len(e.Roster.Members)/each, int(group), groups)
		results := got.F[at : at+each*(hi-lo)]
		at += len(results)
		tasks[i] = openaiESSum(engine.All(part.Sub(engine.Row(i), 1)), key, lo, results, k)
	}
	if err := e.Engine.Do(ctx, tasks...); err != nil {
		return err
	}
	return e.Comm.AllReduce(ctx, "gradient", leaves, part, g, false)
}

// openaiESGroups cuts a population into groups of candidates, of pairs if each is 2. leaves has one leaf per group,
// owned by the worker that hosts the group's first candidate. edges move every candidate's result there, group by
// group.
func openaiESGroups(r collective.Roster, groups, each int) (leaves collective.Roster, edges []collective.Edge) {
	leaves = collective.Roster{Members: collective.IDs(groups), Owner: make([]int, groups)}
	for i := range groups {
		lo, hi := engine.Cut(len(r.Members)/each, i, groups)
		leaves.Owner[i] = r.Owner[each*lo]
		for _, m := range r.Members[each*lo : each*hi] {
			edges = append(edges, collective.Edge{From: m, To: r.Members[each*lo], Op: "fitness"})
		}
	}
	return leaves, edges
}

// openaiESShapingGroups returns the number of groups of results that are shaped separately.
func openaiESShapingGroups(k optim.Values) int {
	if k.Is("distribution", "semi") {
		return k.I("groups")
	}
	return 1
}

// openaiESSum returns the task that writes the sum of u_i eps_i to dst. fit has the results of consecutive candidates:
// of pairs first, first+1, ..., two results each; without pairs, of candidates first, first+1, ...
func openaiESSum(dst engine.Span, key noise.Key, first int, fit []float32, k optim.Values) engine.NoiseSum {
	s := engine.NoiseSum{Dst: dst, Noise: openaiESNoise(k), Key: key, Antithetic: openaiESPerVector(k) == 2}
	u, whole := openaiESUtilities(k, fit), 1/openaiESUnit(k, len(fit))
	if !s.Antithetic {
		for i := range fit {
			s.IDs = append(s.IDs, engine.Member(first+i))
		}
		s.Weights = u
		return s
	}
	for i := 0; i < len(fit); i += 2 {
		w := u[i] - u[i+1]
		if s.Noise.Integer {
			halves := math.RoundToEven(float64(2 * w * whole)) // tied results can have half ranks
			w = float32(math.RoundToEven(halves / 2))
		}
		s.IDs, s.Weights = append(s.IDs, engine.Member(2*first+i)), append(s.Weights, w)
	}
	return s
}

// openaiESUnit returns the factor by which a sum over P results must be multiplied. Integer noise needs integer
// weights, so that openaiESSum divides them by this unit.
func openaiESUnit(k optim.Values, P int) float32 {
	if k.Is("noise", "integer") && !k.Is("shaping", "sign") {
		return 1 / float32(P-1)
	}
	return 1
}

// openaiESUtilities returns the weight of each result by the knobs shaping and ties.
func openaiESUtilities(k optim.Values, fit []float32) []float32 {
	switch k.Choice("shaping") {
	case "raw":
		return fillMissing(fit)
	case "sign":
		u := make([]float32, 0, len(fit))
		for i := 0; i < len(fit); i += 2 {
			if a, b := fit[i], fit[i+1]; a == b || a != a && b != b {
				u = append(u, 0, 0)
			} else {
				u = append(u, CentredRanks(fit[i:i+2], false)...)
			}
		}
		return u
	case "standard":
		u := fillMissing(fit)
		var sum, squares float64
		for i := 0; i < len(u); i += 2 {
			sum += float64(u[i]) - float64(u[i+1])
		}
		n := float64(len(u) / 2)
		mean := sum / n
		for i := 0; i < len(u); i += 2 {
			d := float64(u[i]) - float64(u[i+1]) - mean
			squares += float64(d * d)
		}
		by := 0.0
		if squares > 0 {
			by = 0.5 / math.Sqrt(squares/n)
		}
		for i := 0; i < len(u); i += 2 {
			d := float64(u[i]) - float64(u[i+1]) - mean
			u[i] = float32(by * d)
			u[i+1] = -u[i]
		}
		return u
	}
	return CentredRanks(fit, sharesTies(k))
}

// fillMissing returns fit with missing (non-finite) results replaced by the worst one; zeros if all are missing.
func fillMissing(fit []float32) []float32 {
	u, worst := make([]float32, len(fit)), float32(math.Inf(1))
	for i := range fit {
		if engine.AllFinite(fit[i : i+1]) {
			worst = min(worst, fit[i])
		}
	}
	for i, f := range fit {
		switch {
		case engine.AllFinite(fit[i : i+1]):
			u[i] = f
		case !math.IsInf(float64(worst), 1): // not all are missing
			u[i] = worst
		}
	}
	return u
}

// openaiESStep returns the tasks that scale g = sum_i u_i eps_i over P results, add the decay, and step along it. They
// overwrite g.
func openaiESStep(e *optim.Env, k optim.Values, g engine.Mat, P int) []engine.Task {
	by := 1 / openaiESUnit(k, P)
	if k.Is("divide", "both") || k.Is("divide", "P") {
		by *= float32(P)
	}
	if k.Is("divide", "both") || k.Is("divide", "sigma") {
		by *= k.F("sigma")
	}
	scale := optim.Update(1, optim.Assign(g, optim.T(-1/by, g), optim.T(k.F("decay"), e.Block(optim.BlockX))))
	return []engine.Task{scale, descendEstimate(e, k, g)}
}

func (openaiES) Centre(ctx context.Context, e *optim.Env, _ optim.Values, dst engine.Mat) error {
	return optim.CopyBlock(ctx, e, optim.BlockX, dst)
}
