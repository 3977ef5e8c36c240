package evolution

import (
	"context"
	"errors"
	"math"

	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
)

// GuidedES estimates the gradient from candidates that have more variance in the subspace of surrogate gradients.
var GuidedES = &optim.Algorithm{
	Name:  "guided-es",
	Title: "Guided ES",
	Paper: "Maheswaranathan, Metz, Tucker, Choi, Sohl-Dickstein: Guided evolutionary strategies: " +
		"augmenting random search with surrogate gradients (2019), algorithm 1",
	Doc: `Members are candidates x +- eps in pairs: ranks 2i and 2i+1 of the population share eps_i, P pairs in all. U is
an orthonormal basis, n x k, of the span of the last k surrogate gradients; n is the number of parameters. A share alpha
of the variance is spread over all parameters, the rest over the subspace:

    eps_i = sigma*(sqrt(alpha/n)*z_i + sqrt((1-alpha)/k)*U u_i),  z_i ~ N(0, I_n),  u_i ~ N(0, I_k)
    g = beta/(2*sigma^2*P) * sum_i (f+_i - f-_i)*eps_i
    x <- x + step(g), by Adam (b1 = 0.9, b2 = 0.999) or Nesterov SGD
    U <- an orthonormal basis of the newest surrogate and the previous k-1

f+ and f- are the fitness of the two candidates of a pair, so that g ascends where the source's descends. sigma is about
the length of eps, not the deviation of one parameter as in other algorithms. sgd therefore needs an eta up to n times
that of openai-es; adam is almost independent of beta. The knob surrogate selects the surrogate gradients:

estimates uses the g of earlier generations, so that only evaluations are needed.
gradient uses the gradient on the mini-batch of the generation, before its candidates are drawn. Every worker computes
it separately. Dropout masks are drawn for it, and batch-norm uses the statistics of the mini-batch, as for candidates.

The basis is computed by Gram-Schmidt, the newest surrogate first, each of the others three times. A surrogate has no
column if less than 1e-4 of it is left, or if it is not finite. Until there are k columns, or if surrogates depend on
each other, k in the equations is the number of columns; without columns alpha is 1. The block subspace stores the
columns one after the other; a change of the knob subspace clears them.

Fitness is minus the loss on a mini-batch, by default one that all candidates of a generation share; a missing
(non-finite) one counts as the worst. samples member gives each candidate its own mini-batch and excludes surrogate
gradient. With distribution seed every worker regenerates the noise, so that only 2P fitness values are sent; with
chromosome each worker computes a slice, bit-identical to seed; auto sets the faster of the two, as in openai-es. The
centre is x.
Series: fitness.
Bytes per generation, over W workers: seed 8P(W-1); chromosome 4(2P + n)(W-1).

Deviations: the source's surrogates are correlated with the gradient and biased. The gradient on the mini-batch is,
except for dropout and label smoothing, the exact gradient of the candidates' objective, so that it shows the best case
of guidance; estimates are what evosax uses if it gets no surrogate. The source does not define the case of fewer
columns than k: here the variance of eps stays the same.
Reductions: alpha 1 is openai-es with shaping raw, of sigma/sqrt(n) in place of sigma, and its eta is n/beta times
that one's for sgd.`,
	Needs: optim.Evaluations,
	Knobs: []optim.Knob{
		{
			Name:    "eta",
			Label:   "η",
			Title:   "learning rate",
			Doc:     "step size along the estimate; with adam about the step of each parameter",
			Min:     0,
			Max:     1e9,
			Default: 0.001,
			Scale:   optim.Log,
		},
		optim.KnobMu, knobOptimiser,
		{
			Name:    "sigma",
			Label:   "σ",
			Title:   "length of perturbations",
			Doc:     "root mean square of the length of a perturbation",
			Min:     1e-6,
			Max:     1e5,
			Default: 1,
			Scale:   optim.Log,
		},
		{
			Name:  "alpha",
			Label: "α",
			Title: "share of all directions",
			Doc: "share of the variance outside the subspace; 1 is no guidance; 0 is for surrogate gradient (estimates " +
				"would stay on one line)",
			Min:     0,
			Max:     1,
			Default: 0.5,
		},
		{
			Name:    "subspace",
			Title:   "dimensions of the subspace",
			Unit:    "surrogates",
			Doc:     "number of last surrogates that span the subspace; each takes one row of parameters in memory",
			Min:     1,
			Max:     64,
			Default: 1,
			Integer: true,
			Scale:   optim.Log,
		},
		{
			Name:    "surrogate",
			Title:   "surrogate gradients",
			Doc:     "surrogates: the estimates of earlier generations, or the gradient on the generation's mini-batch",
			Choices: []string{"estimates", "gradient"},
		},
		{
			Name:  "beta",
			Label: "β",
			Title: "scale of the estimate",
			Doc: "factor of the estimate; 2 makes it about as long as the gradient along one surrogate with half of the " +
				"variance",
			Min:     1e-6,
			Max:     1e9,
			Default: 2,
			Scale:   optim.Log,
		},
		optim.KnobB.With(256), knobSamples, knobDistribution,
	},
	Series: []optim.Series{optim.SeriesFitness},
	Blocks: func(k optim.Values, l engine.Layout) []optim.Block {
		b := []optim.Block{
			optim.Params(optim.BlockX, true, optim.EnterCentre, l),
			{Name: optim.BlockSubspace, Shared: true, Cols: k.I("subspace") * l.Params},
			optim.Counter(optim.BlockCursor, true),
		}
		return append(b, estimateBlocks(k, l)...)
	},
	Check: func(s optim.Shape) error {
		switch gradient := s.K.Is("surrogate", "gradient"); {
		case len(s.Roster.Members)%2 == 1:
			return errors.New("antithetic pairs need an even population: give members a multiple of 2")
		case gradient && (s.Layout.Whole || s.Layout.Measured):
			return errors.New(
				"surrogate gradient needs a model with gradients, and an objective or an integer model has none: " +
					"set surrogate to estimates",
			)
		case gradient && s.K.Is("samples", "member"):
			return errors.New(
				"the gradient is of the mini-batch that all candidates see: set samples to shared, or surrogate to estimates",
			)
		}
		return nil
	},
	Bytes:   func(s optim.Shape) map[collective.Op]int64 { return updateBytes(s, 1) },
	Program: guidedES{},
}

type guidedES struct{}

func (guidedES) Round(ctx context.Context, e *optim.Env, k optim.Values, round uint64) (optim.Report, error) {
	g, basis, gradient := e.Scratch(1, e.Layout.Params), guidedESBasis(e, k), k.Is("surrogate", "gradient")
	if gradient {
		if err := guidedESPushGradient(ctx, e, k, basis); err != nil {
			return optim.Report{}, err
		}
	}
	rep, err := guidedESEstimate(ctx, e, k, round, basis, g)
	if err != nil {
		return rep, err
	}
	if gradient {
		rep.Samples += int64(k.I("batch"))
	} else if err := guidedESPush(ctx, e, basis, g); err != nil {
		return rep, err
	}
	return rep, e.Engine.Do(ctx, ascendEstimate(e, k, g)...)
}

// guidedESBasis returns U transposed: subspace x params, one column of U per row. A row is zero if its surrogate has no
// column.
func guidedESBasis(e *optim.Env, k optim.Values) engine.Mat {
	return e.Block(optim.BlockSubspace).Fold(k.I("subspace"))
}

// guidedESPushGradient adds the gradient at x, on the mini-batch that the candidates will use, to a basis as its newest
// surrogate.
func guidedESPushGradient(ctx context.Context, e *optim.Env, k optim.Values, basis engine.Mat) error {
	g, batch, at := e.Scratch(1, e.Layout.Params), make([]int32, k.I("batch")), e.Record(optim.BlockCursor).U[0]
	e.SharedBatch(batch, at)
	task := gradientTo(e, g)
	task.Batches, task.Masks = [][]int32{batch}, []noise.Key{e.SharedBatchKey(at)}
	if err := e.Engine.Do(ctx, task); err != nil {
		return err
	}
	return guidedESPush(ctx, e, basis, g)
}

// guidedESEstimate evaluates candidates with additional variance along the basis and writes the estimate to g
// (1 x params). It is collective.
func guidedESEstimate(
	ctx context.Context,
	e *optim.Env,
	k optim.Values,
	round uint64,
	basis, g engine.Mat,
) (optim.Report, error) {
	scale, key := e.Scratch(1, e.Layout.Params), e.Rand(noise.Candidate, round, 0)
	columns, err := guidedESColumns(ctx, e, basis)
	if err != nil {
		return optim.Report{}, err
	}
	sigma := k.Get("sigma")
	each, along := guidedESDeviations(k.Get("alpha"), e.Layout.Params, columns)
	c := engine.Candidates{Theta: e.Block(optim.BlockX), Scale: scale, Axes: basis, Key: key, Antithetic: true}
	for _, m := range e.Mine {
		of := e.Rand(noise.Direction, round, engine.Member(e.Roster.Rank(m)/2))
		for j := range basis.Rows {
			c.Along = append(c.Along, float32(sigma*along*float64(of.Gauss(j))))
		}
	}
	if err := e.Engine.Do(ctx, engine.Fill{Dst: engine.All(scale), Value: float32(sigma * each)}); err != nil {
		return optim.Report{}, err
	}
	all, rep, err := evaluateAll(ctx, e, k, c)
	if err != nil {
		return rep, err
	}
	results, inside := fillMissing(all.F), make([]float64, basis.Rows)
	sum := engine.NoiseSum{Dst: engine.All(g), Key: key, Antithetic: true}
	sum.Dst.Lo, sum.Dst.Hi = workerColumns(e, k)
	for i := 0; i < len(results); i += 2 {
		w, of := results[i]-results[i+1], e.Rand(noise.Direction, round, engine.Member(i/2))
		sum.IDs, sum.Weights = append(sum.IDs, engine.Member(i)), append(sum.Weights, w)
		for j := range inside {
			inside[j] += float64(float64(w) * float64(of.Gauss(j)))
		}
	}
	if err := e.Engine.Do(ctx, sum); err != nil {
		return rep, err
	}
	if err := gatherSlices(ctx, e, k, g); err != nil {
		return rep, err
	}
	by := k.Get("beta") / (sigma * float64(len(results)))
	estimate := optim.Assign(g, optim.T(float32(by*each), g))
	for j, a := range inside {
		estimate.Terms = append(estimate.Terms, optim.T(float32(by*along*a), basis.Sub(engine.Row(j), 1)))
	}
	return rep, e.Engine.Do(ctx, optim.Update(1, estimate))
}

// guidedESDeviations returns the standard deviation of a perturbation of RMS length 1 in each parameter (each) and
// along each column of the basis (along). columns is the number of columns.
func guidedESDeviations(alpha float64, params, columns int) (each, along float64) {
	if columns == 0 {
		return math.Sqrt(1 / float64(params)), 0
	}
	return math.Sqrt(alpha / float64(params)), math.Sqrt((1 - alpha) / float64(columns))
}

// guidedESColumns returns the number of rows of a basis that are not zero.
func guidedESColumns(ctx context.Context, e *optim.Env, basis engine.Mat) (n int, err error) {
	size := make([]float64, basis.Rows)
	if err := e.Engine.Do(ctx, engine.Distance{X: basis, RMS: size}); err != nil {
		return 0, err
	}
	err = e.Engine.Wait(ctx)
	for _, s := range size {
		if s > 0 {
			n++
		}
	}
	return n, err
}

// guidedESZero is the squared length below which a surrogate counts as zero. guidedESDependent is the squared length
// below which the remainder of a column of length 1, after projection on newer columns, counts as zero. float32 rounds
// a column of length 1 with an error of 6e-8, which is 6e-4 of a remainder of length 1e-4.
const (
	guidedESZero      = 1e-60
	guidedESDependent = 1e-8
)

// guidedESPush adds g to the basis as the newest surrogate and drops the oldest. Older surrogates are represented by
// their columns of the previous basis: newer columns have the same span as newer surrogates.
func guidedESPush(ctx context.Context, e *optim.Env, basis, g engine.Mat) error {
	var tasks []engine.Task
	for j := basis.Rows - 1; j > 0; j-- {
		tasks = append(
			tasks,
			engine.Copy{Dst: engine.All(basis.Sub(engine.Row(j), 1)), Src: engine.All(basis.Sub(engine.Row(j-1), 1))},
		)
	}
	if err := e.Engine.Do(
		ctx,
		append(tasks, engine.Copy{Dst: engine.All(basis.Sub(0, 1)), Src: engine.All(g)})...,
	); err != nil {
		return err
	}
	squares := make([]float64, basis.Rows)
	err := guidedESProject(ctx, e, basis.Sub(0, 1), squares, guidedESZero)
	for j := 2; j <= basis.Rows && err == nil; j++ {
		// The first pass subtracts the projection on newer columns. The second normalises the remainder, which enlarges
		// its rounding errors. The third removes these.
		for range 3 {
			if err = guidedESProject(ctx, e, basis.Sub(0, j), squares, guidedESDependent); err != nil {
				break
			}
		}
	}
	return err
}

// guidedESProject subtracts from the last row its projections on the earlier rows, and divides the result by the length
// that the row had before. If the squared length of the row is below least or not finite, it sets the row to zero.
// squares has the squared lengths of the earlier rows (1 or 0); guidedESProject appends 1 or 0 for the last row in
// place. Inner products follow from distances by the law of cosines, 2 a.b = |a|^2 + |b|^2 - |a - b|^2.
func guidedESProject(ctx context.Context, e *optim.Env, rows engine.Mat, squares []float64, least float64) error {
	n := rows.Rows - 1
	last, size, off := rows.Sub(engine.Row(n), 1), make([]float64, 1), make([]float64, n)
	tasks := []engine.Task{engine.Distance{X: last, RMS: size}}
	if n > 0 {
		tasks = append(tasks, engine.Distance{X: rows.Sub(0, n), Centre: last, RMS: off})
	}
	if err := e.Engine.Do(ctx, tasks...); err != nil {
		return err
	}
	if err := e.Engine.Wait(ctx); err != nil {
		return err
	}
	square := squareOf(e, size[0])
	if !(square >= least) || math.IsInf(square, 1) { // true for NaN
		squares[n] = 0
		return e.Engine.Do(ctx, engine.Fill{Dst: engine.All(last)})
	}
	squares[n] = 1
	by := 1 / math.Sqrt(square)
	project := optim.Assign(last, optim.T(float32(by), last))
	for j := range n {
		dot := (squares[j] + square - squareOf(e, off[j])) / 2
		project.Terms = append(project.Terms, optim.T(float32(-by*dot), rows.Sub(engine.Row(j), 1)))
	}
	return e.Engine.Do(ctx, optim.Update(1, project))
}

// Estimate implements Estimator.
func (guidedES) Estimate(ctx context.Context, e *optim.Env, k optim.Values, round uint64, g engine.Mat) (int, error) {
	basis := guidedESBasis(e, k)
	if k.Is("surrogate", "gradient") { // a round updates the basis, an estimate must not
		kept := basis
		basis = e.Scratch(kept.Rows, kept.Cols)
		if err := e.Engine.Do(ctx, engine.Copy{Dst: engine.All(basis), Src: engine.All(kept)}); err != nil {
			return 0, err
		}
		if err := guidedESPushGradient(ctx, e, k, basis); err != nil {
			return 0, err
		}
	}
	_, err := guidedESEstimate(ctx, e, k, round, basis, g)
	return len(e.Roster.Members) / 2, err
}

// Noise implements Chooser.
func (guidedES) Noise(optim.Values) engine.Noise { return engine.Noise{} }

// Prefer implements Chooser.
func (guidedES) Prefer(s optim.Shape, r optim.Rates) []optim.Choice {
	return exactDistribution(s, len(s.Roster.Members)/2, r)
}

func (guidedES) Centre(ctx context.Context, e *optim.Env, _ optim.Values, dst engine.Mat) error {
	return optim.CopyBlock(ctx, e, optim.BlockX, dst)
}
