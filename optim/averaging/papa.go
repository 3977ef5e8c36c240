package averaging

import (
	"context"
	"slices"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/collective"
)

// PAPA trains replicas apart and pulls each a little towards their mean now and then.
var PAPA = &optim.Algorithm{
	Name:  "papa",
	Title: "PAPA",
	Paper: "Jolicoeur-Martineau, Gervais, Fatras, Zhang, Lacoste-Julien: Population parameter averaging (2023), algorithm 1",
	Doc: `Replicas train as if alone, and every h steps all of them go a small part of the way to their mean, so that they stay close
enough to be averaged in the end and different enough for that to be of use:

    x^a <- x^a - eta*Nes(m^a, grad f(x^a))      h times
    x^a <- keep*x^a + (1-keep)*mean_a x^a

A round is h steps and a pull while h is at most slice, else slice steps; the phase block counts. Momentum stays with the
replica. The centre is mean_a x, whose loss is that of the source's averaged model; its batch-norm statistics are rebuilt.
Series: loss.
optimiser adam, adamw or muon takes its step in place of Nes's.
Bytes: an all-reduce of M values every h steps: data-parallel SGD's, divided by h.

Deviations: the source gives replicas augmentations and regularisations of their own; here their mini-batches differ. It
lets 1-keep shrink with the learning rate: a schedule of keep does.
Reductions: keep 0 is LocalSGD; keep 1 is n independent SGDs.`,
	Needs: optim.Gradients,
	Knobs: slices.Concat([]optim.Knob{optim.KnobEta}, optim.OptimiserKnobs, []optim.Knob{optim.KnobH.With(10),
		{Name: "keep", Label: "α", Title: "kept share", Doc: "share of a replica that is its own after a pull", Min: 0, Max: 1, Default: 0.99},
		optim.KnobSlice, optim.KnobStart,
	}, optim.MemberStream),
	Series: []optim.Series{optim.SeriesLoss},
	Blocks: func(k optim.Values, l engine.Layout) []optim.Block {
		enter := optim.EnterCentre
		if k.Is("start", "own") {
			enter = optim.EnterDrawn
		}
		return slices.Concat([]optim.Block{optim.Params(optim.BlockX, false, enter, l)}, optim.Moments(k, false, l), []optim.Block{optim.Counter(optim.BlockCursor, false), optim.Counter(optim.BlockPhase, true), optim.Stats(false, l)})
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
	return rep, e.Engine.Do(ctx, engine.Update{Rows: engine.Rows(len(e.Mine)), Prog: []engine.Lin{optim.Assign(x, optim.T(keep, x), optim.T(1-keep, mean))}})
}

func (papa) Centre(ctx context.Context, e *optim.Env, _ optim.Values, dst engine.Mat) error {
	return optim.MeanX(ctx, e, dst)
}
