package optim

import (
	"context"
	"math"
	"slices"

	"brood/models/arith"
	"brood/models/engine"
	"brood/models/noise"
)

// Periods of training alone, between comparisons of the members on the validation split.

var (
	knobPeriod = Knob{Name: "period", Label: "evolution frequency", Title: "epochs between evolutions", Unit: "epochs", Doc: "epochs of local SGD between evolutions, of what a member sees of the data: larger is rarer", Min: 0.001, Max: 1000, Default: 1, Scale: Log}
	knobJudges = Knob{Name: "judges", Title: "judges", Unit: "samples", Doc: "validation samples that fitness is measured on; 0 is all of them", Min: 0, Max: 1 << 30, Default: 0, Integer: true}
	knobVary   = Knob{Name: "vary", Title: "variety", Unit: "factor", Doc: "members draw factors on eta and decay from 1/vary to vary, uniform in the logarithm; 1 is none", Min: 1, Max: 1000, Default: 1, Scale: Log}

	// seriesJudged is fitness as validate measures it.
	seriesJudged = Series{Name: SeriesFitness.Name, Title: SeriesFitness.Title, Unit: SeriesFitness.Unit, Doc: "minus the loss on the judges; higher is better", Kind: PerMember, Validation: true}

	seriesMemberEta = Series{Name: "eta.own", Title: "own learning rate", Doc: "learning rate of the member", Kind: PerMember}
)

// period is the steps between evolutions: whole steps that cover so many passes of what a member sees.
func (s Shape) period() int {
	return max(1, int(math.Ceil(s.K.Get("period")*s.seen()/s.K.Get("batch"))))
}

// periodSlice is how many steps of the period the next round takes.
func (s Shape) periodSlice() int {
	left := s.period() - int(min(s.Phase, uint64(s.period())))
	return max(1, min(left, s.K.I("slice")))
}

// endsPeriod says whether the next round ends with an evolution.
func (s Shape) endsPeriod() bool { return s.Phase+uint64(s.periodSlice()) >= uint64(s.period()) }

// drawFactors are a member's factors on eta and decay, by its key.
func drawFactors(key noise.Key, vary float64) (f [2]float32) {
	key.Stream = 2 // apart from selection and crossover
	for i := range f {
		f[i] = float32(arith.Pow(vary, 2*float64(key.Uniform(i))-1))
	}
	return f
}

// enterFactors is the block hyper, in which members that have just entered have drawn their factors.
func (e *Env) enterFactors(k Values) engine.Host {
	hyper := e.Record(BlockHyper)
	for i, m := range e.Mine {
		if f := hyper.Row(engine.Row(i)); f[0] == 0 {
			first := drawFactors(e.Rand(noise.Select, 0, m), k.Get(knobVary.Name))
			copy(f, first[:])
		}
	}
	return hyper
}

// trainCompared trains on factors of each member's own, and at the end of a period compares: the worst go on from the
// best, with the statistics of these, and explore gives them factors. It is told the fitness of hosted members, who
// goes on from whom, and the fitness of all.
func trainCompared(ctx context.Context, e *Env, k Values, round uint64, hyper engine.Host, explore func(fit engine.Host, l lineage, all engine.Host) error) (Report, error) {
	rep, over, err := trainPeriod(ctx, e, k, true, func(r engine.Row) [2]float32 { return [2]float32(hyper.Row(r)) })
	if err != nil || !over {
		return rep, err
	}
	fit, err := validate(ctx, e, k)
	if err != nil {
		return rep, err
	}
	l, all, err := exploit(ctx, e, k, round, fit)
	if err != nil {
		return rep, err
	}
	if err := l.inherit(ctx, e, "parents.stats", BlockStats); err != nil {
		return rep, err
	}
	if err := explore(fit, l, all); err != nil {
		return rep, err
	}
	e.keepScores(fit, l.children)
	rep.Evaluations, rep.Edges = int64(len(e.Roster.Members)), l.edges
	rep.Points = slices.Concat(rep.Points, e.MemberPoints(SeriesFitness.Name, fit.F), l.points)
	return rep, nil
}

// trainPeriod takes the next steps of the period on all hosted members: the optimiser's, with eta and decay times
// factors of a member's own, which are shown where they are varied. over says that the period is over.
func trainPeriod(ctx context.Context, e *Env, k Values, varied bool, factors func(r engine.Row) [2]float32) (rep Report, over bool, err error) {
	n, shape, phase := len(e.Mine), e.Shape(k), e.Record(BlockPhase).U
	x, loss, eta, steps := e.Block(BlockX), make([]float32, n), make([]float32, n), shape.periodSlice()
	s := e.step(k, x, engine.Rows(n), e.cohortScratch(n), loss)
	decay := s.Decay
	s.Decay = 0 // each has its own
	update := func(e *Env, r engine.Row, g engine.Mat) []engine.Task {
		f, xr, d := factors(r), x.Sub(r, 1), k.descent("eta", "momentum")
		eta[r] = f[0] * d.eta
		d.eta, d.decay = eta[r], f[1]*d.decay
		if decay > 0 {
			return e.follow(d, xr, r, g, Assign(g, T(1, g), T(f[1]*decay, xr)))
		}
		return e.follow(d, xr, r, g)
	}
	if err := advance(ctx, e, s, steps, update); err != nil {
		return rep, false, err
	}
	rep = e.memberSteps(k, int64(len(e.Roster.Members)*steps))
	rep.Points = e.LatePoints("loss", loss)
	if varied {
		rep.Points = append(rep.Points, e.MemberPoints(seriesMemberEta.Name, eta)...)
	}
	if over = shape.endsPeriod(); over {
		phase[0] = 0
	} else {
		phase[0] += uint64(steps)
	}
	return rep, over, nil
}

// validate scores the hosted members on the judges: minus the mean loss of each.
func validate(ctx context.Context, e *Env, k Values) (engine.Host, error) {
	judges := e.Data.Validation()
	if j := k.I("judges"); j > 0 && j < len(judges) {
		judges = judges[:j]
	}
	scores, err := Score(ctx, e.Engine, e.Block(BlockX), engine.Rows(len(e.Mine)), e.Block(BlockStats), judges)
	fit := engine.NewHost(len(e.Mine), 1, engine.F32)
	for i, s := range scores {
		fit.F[i] = float32(-s.Mean())
	}
	return fit, err
}

// statsBytes is the payload of what children inherit of batch-norm statistics.
func (s Shape) statsBytes(b map[Op]int64, each int) map[Op]int64 {
	if s.Layout.Stats > 0 && s.Drawn {
		b["parents.stats"] = s.MoveBytes(every(s.Edges, each), 4*s.Layout.Stats)
	}
	return b
}
