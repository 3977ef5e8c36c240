package population

import (
	"context"
	"math"
	"slices"

	"brood/models/arith"
	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
)

// Periods of training alone, between comparisons of the members on the validation split.

var (
	knobPeriod = optim.Knob{Name: "period", Label: "evolution frequency", Title: "epochs between evolutions", Unit: "epochs", Doc: "epochs of local SGD between evolutions, of what a member sees of the data: larger is rarer", Min: 0.001, Max: 1000, Default: 1, Scale: optim.Log}
	knobJudges = optim.Knob{Name: "judges", Title: "judges", Unit: "samples", Doc: "validation samples that fitness is measured on; 0 is all of them", Min: 0, Max: 1 << 30, Default: 0, Integer: true}
	knobVary   = optim.Knob{Name: "vary", Title: "variety", Unit: "factor", Doc: "members draw factors on eta and decay from 1/vary to vary, uniform in the logarithm; 1 is none", Min: 1, Max: 1000, Default: 1, Scale: optim.Log}

	// seriesJudged is fitness as validate measures it.
	seriesJudged = optim.Series{Name: optim.SeriesFitness.Name, Title: optim.SeriesFitness.Title, Unit: optim.SeriesFitness.Unit, Doc: "minus the loss on the judges; higher is better", Kind: optim.PerMember, Validation: true}

	seriesMemberEta = optim.Series{Name: "eta.own", Title: "own learning rate", Doc: "learning rate of the member", Kind: optim.PerMember}
)

// period is the steps between evolutions: whole steps that cover so many passes of what a member sees.
func periodSteps(s optim.Shape) int {
	return max(1, int(math.Ceil(s.K.Get("period")*s.SamplesSeen()/s.K.Get("batch"))))
}

// periodSlice is how many steps of the period the next round takes.
func periodSlice(s optim.Shape) int {
	left := periodSteps(s) - int(min(s.Phase, uint64(periodSteps(s))))
	return max(1, min(left, s.K.I("slice")))
}

// endsPeriod says whether the next round ends with an evolution.
func endsPeriod(s optim.Shape) bool { return s.Phase+uint64(periodSlice(s)) >= uint64(periodSteps(s)) }

// drawFactors are a member's factors on eta and decay, by its key.
func drawFactors(key noise.Key, vary float64) (f [2]float32) {
	key.Stream = 2 // apart from selection and crossover
	for i := range f {
		f[i] = float32(arith.Pow(vary, 2*float64(key.Uniform(i))-1))
	}
	return f
}

// enterFactors is the block hyper, in which members that have just entered have drawn their factors.
func enterFactors(e *optim.Env, k optim.Values) engine.Host {
	hyper := e.Record(optim.BlockHyper)
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
func trainCompared(ctx context.Context, e *optim.Env, k optim.Values, round uint64, hyper engine.Host, explore func(fit engine.Host, l lineage, all engine.Host) error) (optim.Report, error) {
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
	if err := l.inherit(ctx, e, "parents.stats", optim.BlockStats); err != nil {
		return rep, err
	}
	if err := explore(fit, l, all); err != nil {
		return rep, err
	}
	keepScores(e, fit, l.children)
	rep.Evaluations, rep.Edges = int64(len(e.Roster.Members)), l.edges
	rep.Points = slices.Concat(rep.Points, e.MemberPoints(optim.SeriesFitness.Name, fit.F), l.points)
	return rep, nil
}

// trainPeriod takes the next steps of the period on all hosted members: the optimiser's, with eta and decay times
// factors of a member's own, which are shown where they are varied. over says that the period is over.
func trainPeriod(ctx context.Context, e *optim.Env, k optim.Values, varied bool, factors func(r engine.Row) [2]float32) (rep optim.Report, over bool, err error) {
	n, shape, phase := len(e.Mine), e.Shape(k), e.Record(optim.BlockPhase).U
	x, loss, eta, steps := e.Block(optim.BlockX), make([]float32, n), make([]float32, n), periodSlice(shape)
	s := e.GradientStep(k, x, engine.Rows(n), e.CohortScratch(n), loss)
	decay := s.Decay
	s.Decay = 0 // each has its own
	update := func(e *optim.Env, r engine.Row, g engine.Mat) []engine.Task {
		f, xr, d := factors(r), x.Sub(r, 1), k.Optimiser("eta", "momentum")
		eta[r] = f[0] * d.Eta
		d.Eta, d.Decay = eta[r], f[1]*d.Decay
		if decay > 0 {
			return e.OptimiserTasks(d, xr, r, g, optim.Assign(g, optim.T(1, g), optim.T(f[1]*decay, xr)))
		}
		return e.OptimiserTasks(d, xr, r, g)
	}
	if err := optim.TakeSteps(ctx, e, s, steps, update); err != nil {
		return rep, false, err
	}
	rep = e.ReportSteps(k, int64(len(e.Roster.Members)*steps))
	rep.Points = e.LatePoints("loss", loss)
	if varied {
		rep.Points = append(rep.Points, e.MemberPoints(seriesMemberEta.Name, eta)...)
	}
	if over = endsPeriod(shape); over {
		phase[0] = 0
	} else {
		phase[0] += uint64(steps)
	}
	return rep, over, nil
}

// validate scores the hosted members on the judges: minus the mean loss of each.
func validate(ctx context.Context, e *optim.Env, k optim.Values) (engine.Host, error) {
	judges := e.Data.Validation()
	if j := k.I("judges"); j > 0 && j < len(judges) {
		judges = judges[:j]
	}
	scores, err := optim.Score(ctx, e.Engine, e.Block(optim.BlockX), engine.Rows(len(e.Mine)), e.Block(optim.BlockStats), judges)
	fit := engine.NewHost(len(e.Mine), 1, engine.F32)
	for i, s := range scores {
		fit.F[i] = float32(-s.Mean())
	}
	return fit, err
}

// statsBytes is the payload of what children inherit of batch-norm statistics.
func statsBytes(s optim.Shape, b map[collective.Op]int64, each int) map[collective.Op]int64 {
	if s.Layout.Stats > 0 && s.Drawn {
		b["parents.stats"] = s.MoveBytes(collective.EveryNth(s.Edges, each), 4*s.Layout.Stats)
	}
	return b
}
