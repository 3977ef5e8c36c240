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

// PB2 is population-based training whose hyper-parameters are chosen by a bandit and not by chance.
var PB2 = &optim.Algorithm{
	Name:  "pb2",
	Title: "Population-based bandits",
	Paper: "Parker-Holder, Nguyen, Roberts: Provably efficient online hyperparameter optimization with population-based bandits (2020)",
	Doc: `As pbt, members train with a learning rate and a weight decay of their own and are compared on the validation split (never
the test set) after each period, and the worst go on from the best. What differs is explore: a Gaussian process learns from
all members how much a period gained with its factors, and those who were replaced get the factors that promise most:

    x_i <- Nesterov SGD on its own mini-batches, eta_i = eta*f_i, decay_i = decay*f'_i
    exploit, i among the worst q*n:  x_i <- x_j, j uniform among the best q*n
    explore:  u = (ln f/ln vary + 1)/2, (ln f'/ln vary + 1)/2;  y = (gain - mean gain)/deviation of the gains, within +-2
              k(u,s; v,t) = exp(-sum_j (u_j - v_j)^2/(2 l_j^2)) * (1 - forget)^(|s - t|/2)
              f_i, f'_i <- argmax over u of mean(u, now) + sqrt(beta)*deviation(u, now)

optimiser adam, adamw or muon takes its step in place of SGD's.

A gain is the fitness after a period less that before it, which of a member that was replaced is its source's; s and t count
comparisons. Mean and deviation of the gains are those of the last window observations. Members whose factors stay, and those
that were given theirs before, count as measurements to come: they lower the deviation around them and leave the mean, so that
no two members are sent to one place. The lengths l, forget and the noise of y are those of 144 combinations under which the
observations are likeliest, the argmax is over 33 by 33 places in the logarithms, and every worker computes all of it alike,
in float64. f and f' stay between 1/vary and vary, and begin uniform in the logarithm: block hyper. Where vary is lowered, or
pbt ran before, those outside move to the bounds, and what was observed outside counts there. Observations are the block
tried, what a period began with the block from. Where the fitness is missing y is -2. A period whose beginning nobody
measured is no observation: each member's first. The work grows with the cube of the members, of which there are 256 at most.
A member that was replaced starts at rest, with the batch-norm statistics of its source. A round is at most slice steps of
the period; the block phase counts them, cycle the comparisons. The centre is the best at the last comparison, as it has
trained on.
Series: loss and the members' learning rates; at comparisons fitness and diversity.
Bytes a comparison: P fitness values and 16P of observations to everybody; for a source on another worker 4M.

Deviations: the source's members compare when each is ready; here all do at once, so that a run can be repeated. It climbs to its
lengths and to its argmax by gradients; here both are chosen among finitely many, with a length for each factor. Its beta grows
with the logarithm of time; here it is a knob. That y is within +-2 is of the authors' code, which also gives the process the
fitness before.
Reductions: period beyond the run is independent SGDs of different rates; quantile 0 is random search.`,
	Needs: optim.Gradients | optim.Evaluations,
	Knobs: slices.Concat([]optim.Knob{optim.KnobEta}, optim.OptimiserKnobs, []optim.Knob{knobPeriod, knobQuantile,
		{Name: "beta", Label: "β", Title: "confidence", Doc: "what is not known counts for: explore maximises the mean plus sqrt(beta) deviations; 0 goes where the mean is highest", Min: 0, Max: 1000, Default: 2, Scale: optim.Log},
		{Name: "window", Title: "window", Unit: "observations", Doc: "the newest observations that explore learns from", Min: 1, Max: pb2Window, Default: pb2Window, Integer: true},
		knobVary.With(2), knobJudges, optim.KnobSlice}, optim.MemberStream),
	Series: []optim.Series{optim.SeriesLoss, seriesJudged, SeriesDiversity, seriesMemberEta, seriesParent},
	Blocks: func(k optim.Values, l engine.Layout) []optim.Block {
		return slices.Concat([]optim.Block{optim.Params(optim.BlockX, false, optim.EnterCentre, l)}, optim.Moments(k, false, l), []optim.Block{optim.Counter(optim.BlockCursor, false), optim.Stats(false, l),
			{Name: optim.BlockHyper, Cols: 2, Record: true}, {Name: optim.BlockScore, Cols: 2, Record: true}, {Name: optim.BlockFrom, Cols: 2, Record: true},
			{Name: optim.BlockTried, Shared: true, Cols: pb2Window * pb2Cols, Record: true}, optim.Counter(optim.BlockPhase, true), optim.Counter(optim.BlockCycle, true)})
	},
	Check: func(s optim.Shape) error {
		if s.Data.Validation == 0 {
			return errors.New("fitness needs a validation split: there is none: give --validation above 0")
		}
		if len(s.Roster.Members) > pb2Most {
			return fmt.Errorf("every worker factorises a covariance of all members, which grows with the cube of their number: give members at most %d, or take pbt", pb2Most)
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
			return statsBytes(s, b, 1)
		}
		n, w := int64(len(s.Roster.Members)), int64(len(s.Roster.Workers()))
		b["parents"] = int64(replaced(s.K, int(n))) * (w - 1) / max(1, w) * 4 * int64(s.Layout.Params)
		return b
	},
	Program: pb2{},
}

type pb2 struct{}

func (pb2) Round(ctx context.Context, e *optim.Env, k optim.Values, round uint64) (optim.Report, error) {
	hyper := enterFactors(e, k)
	pb2Bound(hyper, k.Get(knobVary.Name))
	return trainCompared(ctx, e, k, round, hyper, func(fit engine.Host, l lineage, all engine.Host) error {
		seen, err := pb2Gather(ctx, e, fit)
		if err != nil {
			return err
		}
		e.Record(optim.BlockCycle).U[0]++
		pb2Begin(e, l, all)
		pb2Remember(e, seen)
		pb2Explore(e, k, l, seen)
		return nil
	})
}

// pb2Bound moves factors that lie outside to the bounds, as they do where vary was lowered or pbt ran before.
func pb2Bound(hyper engine.Host, vary float64) {
	lo, hi := float32(arith.Pow(vary, -1)), float32(arith.Pow(vary, 1)) // as explore has them
	for i, f := range hyper.F {
		hyper.F[i] = max(lo, min(hi, f))
	}
}

// pb2Most is the largest population: what one comparison of it takes is about a tenth of a second on one core.
const pb2Most = 256

// pb2Window is how many observations are kept, and pb2Cols what each is: both factors, the number of the comparison,
// the gain, and what is known of it, 0 where there is no observation.
const (
	pb2Window = 64
	pb2Cols   = 5

	pb2Known   = 1
	pb2Missing = 2 // the fitness was missing: as bad as can be
)

// pb2Gather tells everybody each member's factors, its gain, and whether that is known.
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

// pb2Begin keeps the fitness that each hosted member's next period begins with.
func pb2Begin(e *optim.Env, l lineage, all engine.Host) {
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

// pb2Remember appends the observations of a comparison to those before, of which the oldest go.
func pb2Remember(e *optim.Env, seen engine.Host) {
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

// pb2Standard is gains with mean 0 and deviation 1, limited to +-2; -2 of those that are missing.
func pb2Standard(gains []float64) []float64 {
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

// pb2Explore gives those that were replaced the factors that promise most, one after the other.
func pb2Explore(e *optim.Env, k optim.Values, l lineage, seen engine.Host) {
	if len(l.edges) == 0 {
		return
	}
	vary, beta, now := k.Get(knobVary.Name), k.Get("beta"), float64(e.Record(optim.BlockCycle).U[0]+1)
	g := fitted(pb2Observations(e.Record(optim.BlockTried).F, k.I("window"), vary))
	for i, m := range e.Roster.Members {
		if !slices.ContainsFunc(l.edges, func(edge collective.Edge) bool { return edge.To == m }) {
			g.expect(pb2Place(seen.Row(engine.Row(i)), vary, now))
		}
	}
	lattice := pb2Lattice(now)
	for _, edge := range l.edges {
		best := pb2Choose(g, lattice, beta)
		g.expect(best)
		if r := e.Row(edge.To); r >= 0 {
			for j, u := range best.x {
				e.Record(optim.BlockHyper).Row(r)[j] = float32(arith.Pow(vary, float64(2*u)-1))
			}
		}
	}
}

// pb2Choose is the place of the highest upper confidence bound, the first of several.
func pb2Choose(g *process, lattice []pb2Candidate, beta float64) (best place) {
	top := math.Inf(-1)
	for i := range lattice {
		c := &lattice[i]
		c.v = g.reduce(c.place, c.v)
		mean, variance := g.moments(c.v)
		if promise := mean + float64(math.Sqrt(beta)*math.Sqrt(variance)); promise > top {
			best, top = c.place, promise
		}
	}
	return best
}

// pb2Observations are the newest of those that are kept: places, and gains in deviations.
func pb2Observations(tried []float32, window int, vary float64) (at []place, y []float64) {
	var gains []float64
	for row := range slices.Chunk(tried[len(tried)-window*pb2Cols:], pb2Cols) {
		if row[4] == 0 {
			continue
		}
		gain := float64(row[3])
		if row[4] == pb2Missing {
			gain = math.NaN()
		}
		at, gains = append(at, pb2Place(row, vary, float64(row[2]))), append(gains, gain)
	}
	return at, pb2Standard(gains)
}

// pb2Place is where factors lie between 1/vary and vary, by their logarithms; at the nearer end where they lie outside.
func pb2Place(factors []float32, vary, t float64) place {
	p := place{t: t}
	for j := range p.x {
		p.x[j] = 0.5
		if vary > 1 {
			p.x[j] = max(0, min(1, (arith.Log(float64(factors[j]))/arith.Log(vary)+1)/2))
		}
	}
	return p
}

// pb2Candidate is a place that may be chosen, and what process.reduce has made of it so far.
type pb2Candidate struct {
	place
	v []float64
}

// pb2Lattice is the candidates, evenly in both directions.
func pb2Lattice(t float64) (out []pb2Candidate) {
	const side = 33
	for i := range side {
		for j := range side {
			out = append(out, pb2Candidate{place: place{x: [2]float64{float64(i) / (side - 1), float64(j) / (side - 1)}, t: t}})
		}
	}
	return out
}

func (pb2) Centre(ctx context.Context, e *optim.Env, _ optim.Values, dst engine.Mat) error {
	return castBest(ctx, e, optim.BlockScore, e.Block(optim.BlockX), dst)
}
