package population

import (
	"context"
	"errors"
	"slices"

	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
)

// PESGD alternates periods of local SGD with evolution of the population.
var PESGD = &optim.Algorithm{
	Name:  "pesgd",
	Title: "PESGD",
	Paper: "Shahab, Grot: Population-based evolutionary distributed SGD (2020); back-off, m-elitism, " +
		"annealed mutation and drawn hyper-parameters after Cui et al., ESGD (2018)",
	Doc: `Every member trains by SGD independently for an evolution period. Then all are scored on the validation split
(never the test set), the best elite members stay unchanged, and every other member is replaced by a child of selected
parents:

    x_i <- Nesterov SGD on its own mini-batches, eta_i = eta*f_i, decay_i = decay*f'_i
    child = crossover(parents) + N(0, (mutation/k^anneal)^2)         k-th evolution, from 1

selection: truncation draws parents uniformly from the best share top, tournament takes the best of rivals draws,
roulette draws in proportion to 1/loss, random draws uniformly from all. crossover: uniform and tensor choose between
two parents by a coin flip for each weight or each tensor; mean averages as many parents as the knob parents; none
copies one parent. With vary above 1 every member draws new f and f' for each period, from 1/vary to vary. With backoff
a member that is worse than at the last evolution is first restored to its parameters of that time (block elder, with
fitness in the block fit), with zero optimiser state. With back-off and an elite of one or more, the best fitness never
falls. A round is at most slice steps of the period; the block phase counts steps, cycle counts evolutions. A child's
momentum (its moments, if optimiser is not sgd) starts at zero, as published, and its batch-norm statistics are those
of its first parent. The centre is the best member of the last evolution.
Series: loss; at evolutions fitness and diversity; with vary the members' learning rates.
Bytes per evolution: P fitness values to every worker; the rows of parents to the workers that host their children, each
once. A mutation is a pure function of seed, round and child, so that its seed is not sent.

Each member starts from its own initialisation, as in the source; start same gives all members the same one.

Deviations: the source leaves the operators open; each is a knob.
Reductions: period beyond the run is independent SGDs; crossover none, selection random and mutation 0 with an elite of
m is ESGD's m-elitism with the remaining members drawn at random.`,
	Needs: optim.Gradients | optim.Evaluations,
	Knobs: slices.Concat(
		[]optim.Knob{optim.KnobEta},
		optim.OrProgram(optim.OptimiserKnobs),
		[]optim.Knob{knobPeriod},
		variationKnobs,
		[]optim.Knob{
			optim.Knob{
				Name:    "backoff",
				Title:   "back-off",
				Doc:     "restore a member that is worse after the period than before",
				Choices: []string{"off", "on"},
			}.Choosing("on"),
			knobVary,
			knobJudges,
			optim.KnobStart.Choosing("own"),
			optim.KnobSlice,
		},
		optim.MemberStream,
	),
	Series: []optim.Series{optim.SeriesLoss, seriesFitness, SeriesDiversity, seriesMemberEta, seriesParent},
	Blocks: func(k optim.Values, l engine.Layout) []optim.Block {
		return optim.StepBlocks(k, l, optim.Params(optim.BlockX, false, k.EnterX(), l),
			optim.Counter(optim.BlockCursor, false),
			optim.Stats(false, l),
			optim.Params(optim.BlockElder, false, optim.EnterCentre, l),
			optim.Block{Name: optim.BlockFit, Cols: 2, Record: true},
			optim.Counter(optim.BlockPhase, true),
			optim.Counter(optim.BlockCycle, true))
	},
	Check: func(s optim.Shape) error {
		if s.Data.Validation == 0 {
			return errors.New("fitness needs a validation split: there is none: give --validation above 0")
		}
		return checkElite(s)
	},
	Cycle: func(s optim.Shape) int { return s.RoundsOf(periodSteps(s)) },
	Bytes: func(s optim.Shape) map[collective.Op]int64 {
		if !endsPeriod(s) {
			return nil
		}
		return statsBytes(s, evolveBytes(s), parentsPerChild(s.K))
	},
	Program: pesgd{},
}

type pesgd struct{}

func (pesgd) Round(ctx context.Context, e *optim.Env, k optim.Values, round uint64) (optim.Report, error) {
	cycle := e.Record(optim.BlockCycle).U[0]
	rep, over, err := trainPeriod(ctx, e, k, k.Get("vary") > 1, func(r engine.Row) [2]float32 {
		return drawFactors(e.Rand(noise.Select, cycle, e.Mine[r]), k.Get("vary"))
	})
	if err != nil || !over {
		return rep, err
	}
	fit, err := pesgdEvaluate(ctx, e, k)
	if err != nil {
		return rep, err
	}
	l, err := evolve(ctx, e, k, round, e.Block(optim.BlockElder), fit)
	if err != nil {
		return rep, err
	}
	var restart []engine.Task
	for _, c := range l.children {
		restart = append(restart, e.ResetOptimiser(k, e.Row(c))...)
		e.Record(optim.BlockFit).Row(e.Row(c))[fitState] = 2
	}
	if err := e.Engine.Do(ctx, restart...); err != nil {
		return rep, err
	}
	rep.Evaluations, rep.Edges = int64(len(e.Roster.Members)), l.edges
	rep.Points = slices.Concat(rep.Points, e.MemberPoints(optim.SeriesFitness.Name, fit.F), l.points)
	return rep, l.inherit(ctx, e, "parents.stats", optim.BlockStats)
}

// pesgdEvaluate scores the hosted members. With back-off it restores members that got worse from the block elder; it
// copies all others to elder and their fitness to the record fit. It returns the resulting fitness of the hosted
// members, one column.
func pesgdEvaluate(ctx context.Context, e *optim.Env, k optim.Values) (engine.Host, error) {
	x, elder, fit := e.Block(optim.BlockX), e.Block(optim.BlockElder), e.Record(optim.BlockFit)
	mine, err := validate(ctx, e, k)
	if err != nil {
		return mine, err
	}
	var tasks []engine.Task
	for r := range e.Mine {
		row, f, now := engine.Row(r), fit.Row(engine.Row(r)), mine.F[r]
		worse := now != now || now < f[fitValue]
		from, to := x, elder
		if k.Is("backoff", "on") && f[fitState] == 1 && worse {
			from, to = elder, x
			tasks = append(tasks, e.ResetOptimiser(k, row)...)
		} else {
			f[fitValue], f[fitState] = now, 1
		}
		tasks = append(tasks, engine.Copy{Dst: engine.RowOf(to, row), Src: engine.RowOf(from, row)})
		mine.F[r] = f[fitValue]
	}
	return mine, e.Engine.Do(ctx, tasks...)
}

func (pesgd) Centre(ctx context.Context, e *optim.Env, _ optim.Values, dst engine.Mat) error {
	return broadcastBest(ctx, e, optim.BlockFit, e.Block(optim.BlockElder), dst)
}
