package optim

import (
	"context"
	"slices"

	"brood/models/engine"
)

// PAPA trains replicas apart and pulls each a little towards their mean now and then.
var PAPA = &Algorithm{
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
	Needs: Gradients,
	Knobs: slices.Concat([]Knob{KnobEta}, OptimiserKnobs, []Knob{knobH.With(10),
		{Name: "keep", Label: "α", Title: "kept share", Doc: "share of a replica that is its own after a pull", Min: 0, Max: 1, Default: 0.99},
		KnobSlice, knobStart,
	}, MemberStream),
	Series: []Series{SeriesLoss},
	Blocks: func(k Values, l engine.Layout) []Block {
		enter := EnterCentre
		if k.Is("start", "own") {
			enter = EnterDrawn
		}
		return slices.Concat([]Block{Params(BlockX, false, enter, l)}, Moments(k, false, l), []Block{Counter(BlockCursor, false), Counter(BlockPhase, true), Stats(false, l)})
	},
	Cycle: cycleOf("h"),
	Bytes: func(s Shape) map[Op]int64 {
		if !s.ends("h") {
			return nil
		}
		return map[Op]int64{"average": s.AllReduceBytes(s.Roster, s.Layout.Params)}
	},
	Program: papa{},
}

type papa struct{}

func (papa) Round(ctx context.Context, e *Env, k Values, _ uint64) (Report, error) {
	rep, ends, err := localRound(ctx, e, k)
	if err != nil || !ends {
		return rep, err
	}
	x, mean, keep := e.Block(BlockX), e.Scratch(1, e.Layout.Params), k.F("keep")
	if err := e.Comm.AllReduce(ctx, "average", e.Roster, x, mean, true); err != nil {
		return rep, err
	}
	return rep, e.Engine.Do(ctx, engine.Update{Rows: engine.Rows(len(e.Mine)), Prog: []engine.Lin{Assign(x, T(keep, x), T(1-keep, mean))}})
}

func (papa) Centre(ctx context.Context, e *Env, _ Values, dst engine.Mat) error {
	return MeanX(ctx, e, dst)
}
