package averaging

import (
	"context"
	"slices"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/collective"
)

// PAPA trains replicas independently and periodically moves each a small part of the way to their mean.
var PAPA = &optim.Algorithm{
	Name:  "papa",
	Title: "PAPA",
	Paper: "Jolicoeur-Martineau, Gervais, Fatras, Zhang, Lacoste-Julien: Population parameter averaging (2023), " +
		"algorithm 1",
	Doc: `Replicas train independently, and every h steps each moves a small part of the way to their mean. They thus stay
close enough to be averaged at the end, and different enough for averaging to be useful:

    x^a <- x^a - eta*Nes(m^a, grad f(x^a))      h times
    x^a <- keep*x^a + (1-keep)*mean_a x^a

A round is h steps and a pull to the mean if h is at most slice, else slice steps; the phase block counts the steps.
Momentum stays with the replica. optimiser adam, adamw or muon replaces the step of Nes. The centre is mean_a x, the
averaged model of the source; its batch-norm statistics are recomputed.
Series: loss.
Bytes: an all-reduce of M values every h steps: those of data-parallel SGD divided by h.

Deviations: in the source replicas differ in augmentation and regularisation; here they differ in their mini-batches.
The source lets 1-keep shrink with the learning rate; here a schedule of keep does.
Reductions: keep 0 is LocalSGD; keep 1 is n independent SGDs.`,
	Needs: optim.Gradients,
	Knobs: slices.Concat([]optim.Knob{optim.KnobEta}, optim.OrProgram(optim.OptimiserKnobs),
		[]optim.Knob{optim.KnobH.With(10),
			{
				Name:    "keep",
				Label:   "α",
				Title:   "kept share",
				Doc:     "weight of a replica's own parameters in a pull; the mean has weight 1-keep",
				Min:     0,
				Max:     1,
				Default: 0.99,
			},
			optim.KnobSlice, optim.KnobStart,
		}, optim.MemberStream),
	Series: []optim.Series{optim.SeriesLoss},
	Blocks: func(k optim.Values, l engine.Layout) []optim.Block {
		enter := optim.EnterCentre
		if k.Is("start", "own") {
			enter = optim.EnterDrawn
		}
		return optim.StepBlocks(k, l, optim.Params(optim.BlockX, false, enter, l),
			optim.Counter(optim.BlockCursor, false),
			optim.Counter(optim.BlockPhase, true),
			optim.Stats(false, l))
	},
	Cycle: optim.CycleOf("h"),
	Bytes: func(s optim.Shape) map[collective.Op]int64 {
		if !s.EndsCycle("h") {
			return nil
		}
		return map[collective.Op]int64{"average": s.AllReduceBytes(s.Roster, s.Layout.Params)}
	},
	Program: papa{},
}

type papa struct{}

func (papa) Round(ctx context.Context, e *optim.Env, k optim.Values, _ uint64) (optim.Report, error) {
	rep, ends, err := optim.LocalRound(ctx, e, k)
	if err != nil || !ends {
		return rep, err
	}
	x, mean, keep := e.Block(optim.BlockX), e.Scratch(1, e.Layout.Params), k.F("keep")
	if err := e.Comm.AllReduce(ctx, "average", e.Roster, x, mean, true); err != nil {
		return rep, err
	}
	return rep, e.Engine.Do(ctx, optim.Update(len(e.Mine), optim.Assign(x, optim.T(keep, x), optim.T(1-keep, mean))))
}

func (papa) Centre(ctx context.Context, e *optim.Env, _ optim.Values, dst engine.Mat) error {
	return optim.MeanX(ctx, e, dst)
}
