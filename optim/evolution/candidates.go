package evolution

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
)

// Candidates of a shared model: functions that all evolution strategies use.

// seriesDeviation is the width of a search with a standard deviation for each parameter.
var seriesDeviation = optim.Series{
	Name:  "deviation",
	Title: "deviation",
	Doc:   "root mean square of the standard deviations of the search",
}

var (
	knobOptimiser = optim.Knob{
		Name:    "optimiser",
		Title:   "optimiser",
		Doc:     "update rule for the estimated gradient",
		Choices: []string{"adam", "sgd"},
	}
	knobSigma = optim.Knob{
		Name:    "sigma",
		Label:   "σ",
		Title:   "standard deviation",
		Doc:     "standard deviation of the perturbations",
		Min:     1e-6,
		Max:     10,
		Default: 0.02,
		Scale:   optim.Log,
	}
	knobSamples = optim.Knob{
		Name:    "samples",
		Title:   "mini-batch",
		Doc:     "all candidates of a generation share one mini-batch, or each has its own",
		Choices: []string{"shared", "member"},
	}
	knobDistribution = optim.Knob{
		Name:    "distribution",
		Title:   "distribution",
		Doc:     "every worker computes the whole update, each a slice, or the faster of the two",
		Choices: []string{"seed", "chromosome", optim.Auto},
	}
)

// estimateBlocks returns the blocks that descendEstimate needs.
func estimateBlocks(k optim.Values, l engine.Layout) []optim.Block {
	if k.Is("optimiser", "adam") {
		return []optim.Block{
			optim.Params(optim.BlockM1, true, optim.EnterZero, l),
			optim.Params(optim.BlockV, true, optim.EnterZero, l),
			optim.Counter(optim.BlockT, true),
		}
	}
	return []optim.Block{optim.Params(optim.BlockM, true, optim.EnterZero, l)}
}

// descendEstimate returns a descent step of the shared model along the gradient g by the knob optimiser. With adam it
// advances the step counter.
func descendEstimate(e *optim.Env, k optim.Values, g engine.Mat) engine.Task {
	x, one, eta := e.Block(optim.BlockX), engine.Rows(1), k.F("eta")
	if k.Is("optimiser", "adam") {
		t := e.Record(optim.BlockT).U
		t[0]++
		return engine.Adam{
			X:    x,
			M:    e.Block(optim.BlockM1),
			V:    e.Block(optim.BlockV),
			G:    g,
			Rows: one,
			Eta:  eta,
			B1:   0.9,
			B2:   0.999,
			Eps:  optim.AdamEpsilon,
			T:    t[0],
		}
	}
	return optim.Update(1, optim.Nesterov(x, e.Block(optim.BlockM), g, eta, k.F("momentum"))...)
}

// ascendEstimate returns an ascent step along g. It negates g, because optimisers descend.
func ascendEstimate(e *optim.Env, k optim.Values, g engine.Mat) []engine.Task {
	return []engine.Task{
		optim.Update(1, optim.Assign(g, optim.T(-1, g))),
		descendEstimate(e, k, g),
	}
}

// SeedsWin reports whether distribution seed is faster than chromosome for an update of M parameters over N workers.
// rate is the measured rate of weighted noise (elements/s of one worker), bandwidth the measured rate of sending
// (bytes/s of one worker). Regenerating all P noise vectors takes P*M/rate; a slice of each and an exchange take
// P*M/(N*rate) + 4M(N-1)/(N*bandwidth). Seeds are therefore faster, for any M and N, if P < 4*rate/bandwidth.
// Antithetic pairs share a vector.
func SeedsWin(vectors int, rate, bandwidth float64) bool {
	return float64(vectors)*bandwidth < 4*rate
}

// evaluateScaled is evaluateAll of the candidates x + sigma*s*eps, where s is the block of deviations.
func evaluateScaled(
	ctx context.Context,
	e *optim.Env,
	k optim.Values,
	sigma float32,
	key noise.Key,
	antithetic bool,
) (all engine.Host, rep optim.Report, err error) {
	scale := e.Scratch(1, e.Layout.Params)
	err = e.Engine.Do(ctx, optim.Update(1, optim.Assign(scale, optim.T(sigma, e.Block(optim.BlockS)))))
	if err != nil {
		return all, rep, err
	}
	c := engine.Candidates{Theta: e.Block(optim.BlockX), Scale: scale, Key: key, Antithetic: antithetic}
	return evaluateAll(ctx, e, k, c)
}

// evaluateAll is evaluate, followed by an exchange: all has the fitness of every candidate by rank.
func evaluateAll(
	ctx context.Context,
	e *optim.Env,
	k optim.Values,
	c engine.Candidates,
) (all engine.Host, rep optim.Report, err error) {
	fit, rep, err := evaluate(ctx, e, k, c)
	if err == nil {
		all, err = gatherFitness(ctx, e, fit)
	}
	return all, rep, err
}

// gatherFitness returns the fitness of every candidate by rank. fit has one entry for each hosted member.
func gatherFitness(ctx context.Context, e *optim.Env, fit engine.Host) (engine.Host, error) {
	all := engine.NewHost(len(e.Roster.Members), 1, engine.F32)
	return all, e.Comm.AllGather(ctx, "fitness", fit, all)
}

// evenPopulation is the Check of algorithms whose candidates are antithetic pairs alone.
func evenPopulation(s optim.Shape) error {
	if len(s.Roster.Members)%2 == 1 {
		return errors.New("antithetic pairs need an even population: give members a multiple of 2")
	}
	return nil
}

// rankedPopulation is the Check of algorithms that compare candidates by rank.
func rankedPopulation(s optim.Shape) error {
	if len(s.Roster.Members) < 2 {
		return errors.New("ranks need candidates to compare: give members at least 2")
	}
	return nil
}

// evaluate measures the hosted candidates that c describes; it sets c's ids, samples and results, and advances the
// cursor. The ids are ranks, so that gaps in the population's ids do not matter. fit has one row per hosted member, and
// rep the samples, evaluations and fitness of the generation.
func evaluate(
	ctx context.Context,
	e *optim.Env,
	k optim.Values,
	c engine.Candidates,
) (fit engine.Host, rep optim.Report, err error) {
	P, b, at := len(e.Roster.Members), k.I("batch"), e.Record(optim.BlockCursor).U
	ids, batches := make([]engine.Member, len(e.Mine)), make([][]int32, 1, len(e.Mine))
	places := []noise.Key{e.SharedBatchKey(at[0])}
	for i, m := range e.Mine {
		ids[i] = engine.Member(e.Roster.Rank(m))
	}
	drawn := b
	if k.Is("samples", "shared") {
		batches[0] = make([]int32, b)
		e.SharedBatch(batches[0], at[0])
	} else {
		drawn, batches, places = P*b, batches[:0], nil
		for _, rank := range ids {
			own, pos := make([]int32, b), at[0]+uint64(int(rank)*b)
			e.SharedBatch(own, pos)
			batches, places = append(batches, own), append(places, e.SharedBatchKey(pos))
		}
	}
	at[0] += uint64(drawn)
	fit = engine.NewHost(len(ids), 1, engine.F32)
	c.IDs, c.Batches, c.Drawn, c.Fitness, c.Metrics = ids, batches, places, fit.F, e.MetricBuffer(len(ids))
	c.Evaluated = e.Stepped
	if err := e.Engine.Do(ctx, c); err != nil {
		return fit, rep, err
	}
	if err := e.Engine.Wait(ctx); err != nil {
		return fit, rep, err
	}
	return fit, optim.Report{
		Samples:     int64(P * b),
		Evaluations: int64(P),
		Pass:        optim.Pass{Done: int64(drawn), Of: int64(len(e.Data.Train()))},
		Points:      append(e.MemberPoints(optim.SeriesFitness.Name, fit.F), e.MetricPoints(c.Metrics, 1)...),
	}, nil
}

// innerProducts measures the noise z of each key. size has |z|^2 by key, and dots has z.a by key and row a of axes.
// squares are the squared lengths of these rows. It computes products from distances by the law of cosines,
// 2 z.a = |z|^2 + |a|^2 - |z - a|^2. The results do not depend on the cohort size, bit for bit.
func innerProducts(
	ctx context.Context,
	e *optim.Env,
	keys []noise.Key,
	axes engine.Mat,
	squares []float64,
) (size []float64, dots [][]float64, err error) {
	z, off := e.Scratch(min(len(keys), optim.CohortSize), e.Layout.Params), make([][]float64, axes.Rows)
	size = make([]float64, len(keys))
	for j := range off {
		off[j] = make([]float64, len(keys))
	}
	for lo, hi := range optim.Cohorts(len(keys), optim.CohortSize) {
		rows := z.Sub(0, hi-lo)
		tasks := []engine.Task{
			engine.Fill{Dst: engine.All(rows)},
			engine.Perturb{X: rows, Sigma: slices.Repeat([]float32{1}, hi-lo), Keys: keys[lo:hi]},
			engine.Distance{X: rows, RMS: size[lo:hi]},
		}
		for j := range off {
			tasks = append(tasks, engine.Distance{X: rows, Centre: axes.Sub(engine.Row(j), 1), RMS: off[j][lo:hi]})
		}
		if err := e.Engine.Do(ctx, tasks...); err != nil {
			return nil, nil, err
		}
	}
	if err := e.Engine.Wait(ctx); err != nil {
		return nil, nil, err
	}
	for i := range keys {
		size[i] = squareOf(e, size[i])
		of := make([]float64, axes.Rows)
		for j := range of {
			of[j] = (size[i] + squares[j] - squareOf(e, off[j][i])) / 2
		}
		dots = append(dots, of)
	}
	return size, dots, nil
}

// squareOf returns the squared length of a row of parameters from its root mean square.
func squareOf(e *optim.Env, rms float64) float64 {
	return float64(float64(e.Layout.Params) * float64(rms*rms))
}

// workerColumns returns the columns of a shared row that this worker computes: its slice if distribution is chromosome,
// else all.
func workerColumns(e *optim.Env, k optim.Values) (lo, hi int) {
	if k.Is("distribution", "chromosome") {
		return e.Comm.Slice(e.Layout.Params)
	}
	return 0, e.Layout.Params
}

// gatherSlices gathers the slices of rows if distribution is chromosome, else it does nothing. It is collective.
func gatherSlices(ctx context.Context, e *optim.Env, k optim.Values, rows ...engine.Mat) error {
	if !k.Is("distribution", "chromosome") {
		return nil
	}
	for _, row := range rows {
		if err := e.Comm.GatherSlices(ctx, "slices", row); err != nil {
			return err
		}
	}
	return nil
}

// updateBytes returns the payload in bytes of an exact update of the given number of shared rows, by operation.
func updateBytes(s optim.Shape, rows int64) map[collective.Op]int64 {
	b := map[collective.Op]int64{"fitness": s.AllGatherBytes(4)}
	if s.K.Is("distribution", "chromosome") {
		b["slices"] = rows * s.GatherSlicesBytes(s.Layout.Params)
	}
	return b
}

// exactDistribution chooses between distribution seed and chromosome for an update with this number of noise vectors.
// It chooses seed with one worker or if no rates were measured.
func exactDistribution(s optim.Shape, vectors int, r optim.Rates) []optim.Choice {
	c := optim.Choice{Knob: "distribution", Expr: "seed"}
	switch limit := 4 * r.Noise / r.Bytes; {
	case len(s.Roster.Workers()) < 2:
		c.Why = "one worker"
	case r.Noise <= 0 || r.Bytes <= 0:
		c.Why = "no rates were measured"
	case SeedsWin(vectors, r.Noise, r.Bytes):
		c.Why = fmt.Sprintf(
			"%d vectors < 4F/B = %.4g, F = %.3g elements/s, B = %.3g bytes/s",
			vectors,
			limit,
			r.Noise,
			r.Bytes,
		)
	default:
		c.Expr = "chromosome"
		c.Why = fmt.Sprintf(
			"%d vectors >= 4F/B = %.4g, F = %.3g elements/s, B = %.3g bytes/s",
			vectors,
			limit,
			r.Noise,
			r.Bytes,
		)
	}
	return []optim.Choice{c}
}
