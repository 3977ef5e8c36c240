package population

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"brood/models/arith"
	"brood/models/engine"
	"brood/optim"
	"brood/optim/collective"
)

// PB2 is population-based training in which a Gaussian-process bandit chooses the hyper-parameters.
var PB2 = &optim.Algorithm{
	Name:  "pb2",
	Title: "Population-based bandits",
	Paper: "Parker-Holder, Nguyen, Roberts: Provably efficient online hyperparameter optimization with population-based " +
		"bandits (2020)",
	Doc: `As in pbt, every member has its own learning rate and weight decay. After each period all members are scored on
the validation split (never the test set), and the worst continue from the best. Only explore differs: a Gaussian
process models how much fitness a period gained as a function of the member's factors, and each replaced member gets
the factors with the highest upper confidence bound:

    x_i <- Nesterov SGD on its own mini-batches, eta_i = eta*f_i, decay_i = decay*f'_i
    exploit, i among the worst q*n:  x_i <- x_j, j uniform among the best q*n
    explore:  u = (ln f/ln vary + 1)/2, (ln f'/ln vary + 1)/2
              y = (gain - mean gain)/deviation of the gains, within +-2
              k(u,s; v,t) = exp(-sum_j (u_j - v_j)^2/(2 l_j^2)) * (1 - forget)^(|s - t|/2)
              f_i, f'_i <- argmax over u of mean(u, now) + sqrt(beta)*deviation(u, now)

With optimiser adam, adamw or muon, its step replaces that of SGD.

A gain is the fitness after a period minus the fitness before it; for a replaced member the latter is that of its
source. s and t count comparisons. Mean and deviation of the gains are taken over the last window observations. Members
that keep their factors, and replaced members that already have new ones, count as pending observations: they lower the
deviation near their factors and leave the mean unchanged, so that no two members get the same factors. The lengths l,
forget and the noise of y maximise the likelihood of the observations over 144 combinations. The argmax is over a grid
of 33 by 33 points in the logarithms. Every worker computes the same result in float64. f and f' stay between 1/vary
and vary, and start uniform in the logarithm: block hyper. If vary was lowered or pbt ran before, factors outside are
moved to the bounds, and observations outside count at the bounds. The block tried stores the observations, the block
from the fitness at the start of the period. y is -2 if the fitness is missing. A period whose initial fitness was not
measured, such as each member's first, is no observation. The work grows with the cube of the number of members, which
is at most 256. A replaced member starts with the optimiser state and the batch-norm statistics that it has in pbt. A
round is at most slice steps of the period; the block phase counts steps, cycle counts comparisons. The centre is the
best member of the last comparison, with the parameters that it has since trained.
Series: loss and the members' learning rates; at comparisons fitness and diversity.
Bytes per comparison: P fitness values and 16P of observations to every worker; 4M for a source on another worker.

Deviations: the source's members compare when each is ready; here all do at once, so that a run is reproducible. The
source finds its lengths and its argmax by gradient ascent; here both are chosen from finite sets, with a length for
each factor. Its beta grows with the logarithm of time; here it is a knob. The authors' code takes
beta = 0.2*ln(0.4*observations), 0.42 to 0.65 for 20 to 64 of them, and adds sqrt(beta) times the variance, not the
deviation, so that it explores less. Limiting y to +-2 is from that code, which also gives the process the fitness
before the period.
Reductions: period beyond the run is independent SGDs of different rates; quantile 0 is random search.`,
	Needs: optim.Gradients | optim.Evaluations,
	Knobs: slices.Concat([]optim.Knob{optim.KnobEta}, optim.OrProgram(optim.OptimiserKnobs), []optim.Knob{
		knobPeriod,
		knobQuantile,
		{
			Name:    "beta",
			Label:   "β",
			Title:   "confidence",
			Doc:     "weight of uncertainty: explore maximises the mean plus sqrt(beta) deviations; 0 maximises the mean",
			Min:     0,
			Max:     1000,
			Default: 2,
			Scale:   optim.Log,
		},
		{
			Name:    "window",
			Title:   "window",
			Unit:    "observations",
			Doc:     "number of newest observations to which explore fits its model",
			Min:     1,
			Max:     pb2Window,
			Default: pb2Window,
			Integer: true,
		},
		knobVary.With(2),
		knobJudges,
		optim.KnobSlice,
	}, optim.MemberStream),
	Series: []optim.Series{optim.SeriesLoss, seriesFitness, SeriesDiversity, seriesMemberEta, seriesParent},
	Blocks: func(k optim.Values, l engine.Layout) []optim.Block {
		return optim.StepBlocks(k, l, optim.Params(optim.BlockX, false, optim.EnterCentre, l),
			optim.Counter(optim.BlockCursor, false),
			optim.Stats(false, l),
			optim.Block{Name: optim.BlockHyper, Cols: 2, Record: true},
			optim.Block{Name: optim.BlockScore, Cols: 2, Record: true},
			optim.Block{Name: optim.BlockFrom, Cols: 2, Record: true},
			optim.Block{
				Name:   optim.BlockTried,
				Shared: true,
				Cols:   pb2Window * pb2Cols,
				Record: true,
			},
			optim.Counter(optim.BlockPhase, true),
			optim.Counter(optim.BlockCycle, true))
	},
	Check: func(s optim.Shape) error {
		if s.Data.Validation == 0 {
			return errors.New("fitness needs a validation split: there is none: give --validation above 0")
		}
		if len(s.Roster.Members) > pb2MaxMembers {
			return fmt.Errorf(
				"every worker factorises a covariance of all members, which grows with the cube of their number: "+
					"give members at most %d, or take pbt",
				pb2MaxMembers,
			)
		}
		return nil
	},
	Cycle: func(s optim.Shape) int { return s.RoundsOf(periodSteps(s)) },
	Bytes: func(s optim.Shape) map[collective.Op]int64 {
		if !endsPeriod(s) {
			return nil
		}
		b := map[collective.Op]int64{"fitness": s.AllGatherBytes(4), "observations": s.AllGatherBytes(16)}
		if s.Drawn {
			b["parents"] = s.MoveBytes(s.Edges, 4*s.Layout.Params)
			return inheritedBytes(s, b)
		}
		n, w := int64(len(s.Roster.Members)), int64(len(s.Roster.Workers()))
		b["parents"] = int64(replaced(s.K, int(n))) * (w - 1) / max(1, w) * 4 * int64(s.Layout.Params)
		return b
	},
	Program: pb2{},
}

type pb2 struct{}

func (pb2) Round(ctx context.Context, e *optim.Env, k optim.Values, round uint64) (optim.Report, error) {
	hyper := initFactors(e, k)
	pb2ClampFactors(hyper, k.Get(knobVary.Name))
	return trainAndCompare(ctx, e, k, round, hyper, func(fit engine.Host, l lineage, all engine.Host) error {
		seen, err := pb2Gather(ctx, e, fit)
		if err != nil {
			return err
		}
		e.Record(optim.BlockCycle).U[0]++
		pb2StoreInitialFitness(e, l, all)
		pb2AppendObservations(e, seen)
		pb2Explore(e, k, l, seen)
		return nil
	})
}

// pb2ClampFactors clamps factors to [1/vary, vary]. They can be outside if vary was lowered or pbt ran before.
func pb2ClampFactors(hyper engine.Host, vary float64) {
	lo, hi := float32(arith.Pow(vary, -1)), float32(arith.Pow(vary, 1)) // rounded as in pb2Explore
	for i, f := range hyper.F {
		hyper.F[i] = max(lo, min(hi, f))
	}
}

// pb2MaxMembers is the largest population. Its comparison takes about 0.1 s on one core.
const pb2MaxMembers = 256

// pb2Window is the number of observations in the block tried, and pb2Cols the number of columns of each: the two
// factors, the number of the comparison, the gain, and its state (pb2Known, pb2Missing, or 0 if there is no
// observation).
const (
	pb2Window = 64
	pb2Cols   = 5

	pb2Known   = 1
	pb2Missing = 2 // the fitness was missing; counts as the worst gain
)

// pb2Gather gathers four columns for every member: its two factors, its gain, and 1 if the gain is known, else 0. It is
// collective.
func pb2Gather(ctx context.Context, e *optim.Env, fit engine.Host) (all engine.Host, err error) {
	mine := engine.NewHost(len(e.Mine), 4, engine.F32)
	all = engine.NewHost(len(e.Roster.Members), 4, engine.F32)
	for i := range e.Mine {
		r := engine.Row(i)
		from, row := e.Record(optim.BlockFrom).Row(r), mine.Row(r)
		copy(row, e.Record(optim.BlockHyper).Row(r))
		row[2], row[3] = fit.F[i]-from[fitValue], from[fitState]
	}
	return all, e.Comm.AllGather(ctx, "observations", mine, all)
}

// pb2StoreInitialFitness writes the fitness at the start of each hosted member's next period to the record from. For a
// replaced member it is the value of its source. all has the fitness of every member.
func pb2StoreInitialFitness(e *optim.Env, l lineage, all engine.Host) {
	source := map[engine.Member]engine.Member{}
	for _, edge := range l.edges {
		source[edge.To] = edge.From
	}
	for i, m := range e.Mine {
		of := m
		if s, ok := source[m]; ok {
			of = s
		}
		row, fitness := e.Record(optim.BlockFrom).Row(engine.Row(i)), all.F[e.Roster.Rank(of)]
		row[fitValue], row[fitState] = 0, 0
		if pb2Finite(float64(fitness)) {
			row[fitValue], row[fitState] = fitness, 1
		}
	}
}

// pb2AppendObservations appends the observations of a comparison to the record tried and drops the oldest ones. seen is
// the result of pb2Gather.
func pb2AppendObservations(e *optim.Env, seen engine.Host) {
	tried, now := e.Record(optim.BlockTried).F, float32(e.Record(optim.BlockCycle).U[0])
	for i := range seen.Rows {
		row := seen.Row(engine.Row(i))
		if row[3] == 0 {
			continue
		}
		copy(tried, tried[pb2Cols:])
		last := tried[len(tried)-pb2Cols:]
		if copy(last, []float32{row[0], row[1], now, row[2], pb2Known}); !pb2Finite(float64(row[2])) {
			last[3], last[4] = 0, pb2Missing
		}
	}
}

// pb2Standardize returns gains standardised to mean 0 and deviation 1 and limited to +-2. A gain that is not finite
// becomes -2; if all gains are equal they become 0.
func pb2Standardize(gains []float64) []float64 {
	n, mean, square, y := 0.0, 0.0, 0.0, make([]float64, len(gains))
	for _, x := range gains {
		if pb2Finite(x) {
			n, mean = n+1, mean+x
		}
	}
	mean /= max(1, n)
	for _, x := range gains {
		if pb2Finite(x) {
			square += float64((x - mean) * (x - mean))
		}
	}
	deviation := math.Sqrt(square / max(1, n))
	for i, x := range gains {
		switch {
		case !pb2Finite(x):
			y[i] = -2
		case deviation > 0:
			y[i] = max(-2, min(2, (x-mean)/deviation))
		}
	}
	return y
}

func pb2Finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// pb2Explore chooses the factors of the replaced members one after the other, each with the highest upper confidence
// bound, and writes the factors of hosted members to the record hyper.
func pb2Explore(e *optim.Env, k optim.Values, l lineage, seen engine.Host) {
	if len(l.edges) == 0 {
		return
	}
	vary, beta, now := k.Get(knobVary.Name), k.Get("beta"), float64(e.Record(optim.BlockCycle).U[0]+1)
	g := fitProcess(pb2Observations(e.Record(optim.BlockTried).F, k.I("window"), vary))
	for i, m := range e.Roster.Members {
		if !slices.ContainsFunc(l.edges, func(edge collective.Edge) bool { return edge.To == m }) {
			g.addPending(pb2Point(seen.Row(engine.Row(i)), vary, now))
		}
	}
	grid := pb2Grid(now)
	for _, edge := range l.edges {
		best := pb2Choose(g, grid, beta)
		g.addPending(best)
		if r := e.Row(edge.To); r >= 0 {
			for j, u := range best.x {
				e.Record(optim.BlockHyper).Row(r)[j] = float32(arith.Pow(vary, float64(2*u)-1))
			}
		}
	}
}

// pb2Choose returns the candidate with the highest upper confidence bound; of several, the first.
func pb2Choose(g *process, grid []pb2Candidate, beta float64) (best point) {
	top := math.Inf(-1)
	for i := range grid {
		c := &grid[i]
		c.v = g.solve(c.point, c.v)
		mean, variance := g.posterior(c.v)
		if bound := mean + float64(math.Sqrt(beta)*math.Sqrt(variance)); bound > top {
			best, top = c.point, bound
		}
	}
	return best
}

// pb2Observations returns the newest observations, at most window: their points and standardised gains. tried is the
// record of that name.
func pb2Observations(tried []float32, window int, vary float64) (at []point, y []float64) {
	var gains []float64
	for row := range slices.Chunk(tried[len(tried)-window*pb2Cols:], pb2Cols) {
		if row[4] == 0 {
			continue
		}
		gain := float64(row[3])
		if row[4] == pb2Missing {
			gain = math.NaN()
		}
		at, gains = append(at, pb2Point(row, vary, float64(row[2]))), append(gains, gain)
	}
	return at, pb2Standardize(gains)
}

// pb2Point maps the logarithms of factors from [1/vary, vary] to [0, 1], and clamps those outside. If vary is 1 the
// coordinates are 0.5.
func pb2Point(factors []float32, vary, t float64) point {
	p := point{t: t}
	for j := range p.x {
		p.x[j] = 0.5
		if vary > 1 {
			p.x[j] = max(0, min(1, (arith.Log(float64(factors[j]))/arith.Log(vary)+1)/2))
		}
	}
	return p
}

// pb2Candidate is a point of the grid with the part of process.solve that is computed so far.
type pb2Candidate struct {
	point
	v []float64 // result of process.solve
}

// pb2Grid returns the candidates at time t: a uniform grid.
func pb2Grid(t float64) (out []pb2Candidate) {
	const side = 33
	for i := range side {
		for j := range side {
			out = append(out, pb2Candidate{point: point{x: [2]float64{float64(i) / (side - 1), float64(j) / (side - 1)}, t: t}})
		}
	}
	return out
}

func (pb2) Centre(ctx context.Context, e *optim.Env, _ optim.Values, dst engine.Mat) error {
	return broadcastBest(ctx, e, optim.BlockScore, e.Block(optim.BlockX), dst)
}
