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

// PBT trains networks in parallel. The worst continue from the best with perturbed hyper-parameters.
var PBT = &optim.Algorithm{
	Name:  "pbt",
	Title: "Population-based training",
	Paper: "Jaderberg, Dalibard, Osindero et al.: Population based training of neural networks (2017), " +
		"truncation selection",
	Doc: `Every member trains by SGD with its own learning rate and weight decay. After each period all members are scored
on the validation split (never the test set), and each of the worst continues from one of the best:

    x_i <- Nesterov SGD on its own mini-batches, eta_i = eta*f_i, decay_i = decay*f'_i
    exploit, i among the worst q*n:  x_i, f_i, f'_i <- x_j, f_j, f'_j, j uniform among the best q*n
    explore:                         f_i <- up*f_i or down*f_i, f'_i likewise, a coin flip each

With optimiser adam, adamw or muon, its step replaces that of SGD.

q*n is rounded down, but is at least 1 with two or more members. f and f' start between 1/vary and vary, uniform in the
logarithm, and are stored in the block hyper; a change of eta or decay scales the rates of all members. A replaced
member starts with zero optimiser state, or the source's state of a program's optimiser, and the batch-norm statistics
of its source. A round is at most slice steps of
the period; the block phase counts steps. The centre is the best member of the last comparison, with the parameters
that it has since trained.
Series: loss and the members' learning rates; at comparisons fitness and diversity.
Bytes per comparison: P fitness values to every worker; for a source on another worker 4M, and 8 for its factors.

Deviations: the source's members compare when each is ready; here all do at once, so that a run is reproducible. The
source's quantile is 0.2.
Reductions: period beyond the run is independent SGDs of different rates.`,
	Needs: optim.Gradients | optim.Evaluations,
	Knobs: slices.Concat([]optim.Knob{optim.KnobEta}, optim.OrProgram(optim.OptimiserKnobs), []optim.Knob{
		knobPeriod,
		knobQuantile,
		{
			Name:    "up",
			Title:   "factor up",
			Doc:     "factor by which explore multiplies if its coin shows heads",
			Min:     1,
			Max:     100,
			Default: 1.2,
			Scale:   optim.Log,
		},
		{
			Name:    "down",
			Title:   "factor down",
			Doc:     "factor by which explore multiplies if its coin shows tails",
			Min:     0.01,
			Max:     1,
			Default: 0.8,
			Scale:   optim.Log,
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
			optim.Counter(optim.BlockPhase, true))
	},
	Check: func(s optim.Shape) error {
		if s.Data.Validation == 0 {
			return errors.New("fitness needs a validation split: there is none: give --validation above 0")
		}
		return nil
	},
	Cycle: func(s optim.Shape) int { return s.RoundsOf(periodSteps(s)) },
	Bytes: func(s optim.Shape) map[collective.Op]int64 {
		if !endsPeriod(s) {
			return nil
		}
		b := map[collective.Op]int64{"fitness": s.AllGatherBytes(4)}
		if s.Drawn {
			b["parents"], b["parents.hyper"] = s.MoveBytes(s.Edges, 4*s.Layout.Params), s.MoveBytes(s.Edges, 8)
			return inheritedBytes(s, b)
		}
		n, w := int64(len(s.Roster.Members)), int64(len(s.Roster.Workers()))
		moved := int64(replaced(s.K, int(n))) * (w - 1) / max(1, w)
		b["parents"], b["parents.hyper"] = moved*4*int64(s.Layout.Params), moved*8
		return b
	},
	Program: pbt{},
}

type pbt struct{}

func (pbt) Round(ctx context.Context, e *optim.Env, k optim.Values, round uint64) (optim.Report, error) {
	hyper := initFactors(e, k)
	return trainAndCompare(ctx, e, k, round, hyper, func(_ engine.Host, l lineage, _ engine.Host) error {
		if err := l.inheritRecord(ctx, e, "parents.hyper", optim.BlockHyper); err != nil {
			return err
		}
		for _, c := range l.children {
			key := e.Rand(noise.Mutate, round, c)
			for i, f := range hyper.Row(e.Row(c)) {
				hyper.Row(e.Row(c))[i] = f * []float32{k.F("up"), k.F("down")}[key.Below(i, 2)]
			}
		}
		return nil
	})
}

func (pbt) Centre(ctx context.Context, e *optim.Env, _ optim.Values, dst engine.Mat) error {
	return broadcastBest(ctx, e, optim.BlockScore, e.Block(optim.BlockX), dst)
}
