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

// Periods of independent training between comparisons of the members on the validation split.

var (
	knobPeriod = optim.Knob{
		Name:    "period",
		Label:   "evolution frequency",
		Title:   "epochs between evolutions",
		Unit:    "epochs",
		Doc:     "epochs of local SGD between evolutions, counted on the member's share of the data; larger is rarer",
		Min:     0.001,
		Max:     1000,
		Default: 1,
		Scale:   optim.Log,
	}
	knobJudges = optim.Knob{
		Name:    "judges",
		Title:   "judges",
		Unit:    "samples",
		Doc:     "number of validation samples on which fitness is measured; 0 is all",
		Min:     0,
		Max:     1 << 30,
		Default: 0,
		Integer: true,
	}
	knobVary = optim.Knob{
		Name:    "vary",
		Title:   "variety",
		Unit:    "factor",
		Doc:     "members draw factors for eta and decay between 1/vary and vary, uniform in the logarithm; 1 disables this",
		Min:     1,
		Max:     1000,
		Default: 1,
		Scale:   optim.Log,
	}

	// seriesFitness is the fitness that validate returns.
	seriesFitness = optim.Series{
		Name:       optim.SeriesFitness.Name,
		Title:      optim.SeriesFitness.Title,
		Unit:       optim.SeriesFitness.Unit,
		Doc:        "minus the loss on the evaluation subset of the validation split; higher is better",
		Kind:       optim.PerMember,
		Validation: true,
	}

	seriesMemberEta = optim.Series{
		Name:  "eta.own",
		Title: "own learning rate",
		Doc:   "learning rate of the member",
		Kind:  optim.PerMember,
	}
)

// periodSteps returns the number of steps between evolutions: the knob period, in epochs of the member's share of the
// data, rounded up to whole steps.
func periodSteps(s optim.Shape) int {
	return max(1, int(math.Ceil(s.K.Get("period")*s.SamplesSeen()/s.K.Get("batch"))))
}

// periodSlice returns the number of steps in the next round: at most the knob slice, and no more than the period has
// left.
func periodSlice(s optim.Shape) int {
	left := periodSteps(s) - int(min(s.Phase, uint64(periodSteps(s))))
	return max(1, min(left, s.K.I("slice")))
}

// endsPeriod reports whether the next round ends with an evolution.
func endsPeriod(s optim.Shape) bool { return s.Phase+uint64(periodSlice(s)) >= uint64(periodSteps(s)) }

// drawFactors draws a member's factors for eta and decay, uniform in the logarithm between 1/vary and vary.
func drawFactors(key noise.Key, vary float64) (f [2]float32) {
	key.Stream = 2 // selection and crossover use streams 0 and 1
	for i := range f {
		f[i] = float32(arith.Pow(vary, 2*float64(key.Uniform(i))-1))
	}
	return f
}

// initFactors returns the record hyper after drawing the factors of new members, whose rows are zero.
func initFactors(e *optim.Env, k optim.Values) engine.Host {
	hyper := e.Record(optim.BlockHyper)
	for i, m := range e.Mine {
		if f := hyper.Row(engine.Row(i)); f[0] == 0 {
			first := drawFactors(e.Rand(noise.Select, 0, m), k.Get(knobVary.Name))
			copy(f, first[:])
		}
	}
	return hyper
}

// trainAndCompare is a round of PBT and PB2. It trains each hosted member with its factors in hyper. At the end of a
// period it scores all members, replaces the worst by the best including batch-norm statistics and the state of a
// program's optimiser, and calls explore to choose the factors of the replaced members. explore gets the fitness of
// hosted members, the lineage, and the fitness of all members. trainAndCompare is collective.
func trainAndCompare(
	ctx context.Context,
	e *optim.Env,
	k optim.Values,
	round uint64,
	hyper engine.Host,
	explore func(fit engine.Host, l lineage, all engine.Host) error,
) (optim.Report, error) {
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
	if k.ByProgram() {
		if err := l.inheritRecord(ctx, e, "parents.state", optim.BlockState); err != nil {
			return rep, err
		}
	}
	if err := explore(fit, l, all); err != nil {
		return rep, err
	}
	storeScores(e, fit, l.children)
	rep.Evaluations, rep.Edges = int64(len(e.Roster.Members)), l.edges
	rep.Points = slices.Concat(rep.Points, e.MemberPoints(optim.SeriesFitness.Name, fit.F), l.points)
	return rep, nil
}

// trainPeriod runs the next steps of the period on all hosted members. eta and decay of each member are multiplied by
// factors(r), where r is its row. If varied is set, the report includes the members' learning rates. over reports
// whether the period ended.
func trainPeriod(
	ctx context.Context,
	e *optim.Env,
	k optim.Values,
	varied bool,
	factors func(r engine.Row) [2]float32,
) (rep optim.Report, over bool, err error) {
	n, shape, phase := len(e.Mine), e.Shape(k), e.Record(optim.BlockPhase).U
	x, loss, eta, steps := e.Block(optim.BlockX), make([]float32, n), make([]float32, n), periodSlice(shape)
	s := e.GradientStep(k, x, engine.Rows(n), e.CohortScratch(n), loss)
	decay := s.Decay
	s.Decay = 0 // by returns each member's decay
	by := func(r engine.Row) (optim.Optimiser, float32) {
		f, d := factors(r), k.Optimiser("eta", "momentum")
		eta[r] = f[0] * d.Eta
		d.Eta, d.Decay = eta[r], f[1]*d.Decay
		return d, f[1] * decay
	}
	if err := optim.OptimiserSteps(ctx, e, s, steps, by); err != nil {
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

// validate returns the fitness of the hosted members (one column): minus the mean loss on the evaluation subset, the
// first samples of the validation split.
func validate(ctx context.Context, e *optim.Env, k optim.Values) (engine.Host, error) {
	judges := e.Data.Validation()
	if j := k.I("judges"); j > 0 && j < len(judges) {
		judges = judges[:j]
	}
	scores, err := optim.Score(
		ctx,
		e.Engine,
		e.Block(optim.BlockX),
		engine.Rows(len(e.Mine)),
		e.Block(optim.BlockStats),
		judges,
	)
	fit := engine.NewHost(len(e.Mine), 1, engine.F32)
	for i, s := range scores {
		fit.F[i] = float32(-s.Mean())
	}
	return fit, err
}

// inheritedBytes is statsBytes of one edge per child, and the payload of the state of a program's optimiser.
func inheritedBytes(s optim.Shape, b map[collective.Op]int64) map[collective.Op]int64 {
	if s.K.ByProgram() && s.Drawn {
		b["parents.state"] = s.MoveBytes(s.Edges, 8*s.Layout.State)
	}
	return statsBytes(s, b, 1)
}

// statsBytes adds to b the payload of the batch-norm statistics that children inherit, and returns b. each is the
// number of edges per child.
func statsBytes(s optim.Shape, b map[collective.Op]int64, each int) map[collective.Op]int64 {
	if s.Layout.Stats > 0 && s.Drawn {
		b["parents.stats"] = s.MoveBytes(collective.EveryNth(s.Edges, each), 4*s.Layout.Stats)
	}
	return b
}
