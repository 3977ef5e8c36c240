package averaging

import (
	"context"
	"slices"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/collective"
)

// SparseLoCo is DiLoCo in which replicas send only the largest values of their change and accumulate the rest (error
// feedback).
var SparseLoCo = &optim.Algorithm{
	Name:  "sparseloco",
	Title: "SparseLoCo",
	Paper: "Sarfi, Therien, Lidin, Belilovsky: Communication efficient LLM pre-training with SparseLoCo (2025), " +
		"algorithm 1",
	Doc: `Replicas start from the agreed model xbar and take h steps of an optimiser, by default AdamW, each on its own
mini-batches. A replica adds its change over the cycle to its residual, the sum of what it has not sent so far. It sends
the largest values of every chunk of the residual, in two bits each, and subtracts them. There is no outer momentum: the
residual takes its place.

    x^a <- AdamW(x^a, grad f(x^a); eta_in, beta1, beta2, decay)      h times
    e^a <- beta*e^a + (xbar - x^a);  s^a = Q(top(e^a));  e^a <- e^a - s^a
    xbar <- xbar - eta*mean_a s^a;  x^a <- xbar

top selects the keep values of largest magnitude of each chunk of chunk consecutive elements of a tensor; of a shorter
chunk the same fraction, at least one. Q encodes a value as its sign and the nearer of two magnitudes of its chunk: the
mean of the selected magnitudes that are at most their overall mean, and the mean of the others. values float32 sends
the exact values. e is the block residual. A round is a whole cycle if h is at most slice, else slice steps of it; the
phase block counts the steps. The centre is xbar.
Series: loss.
Bytes: a cycle sends each replica's message to every other worker; its length does not depend on the values. A chunk of
n takes 64 bits and keep times 2 bits and an index below n (12 bits for 4096); messages are padded to a multiple of 64
bits. At the defaults that is 15 bits for each of 1.6 % of the values, 1/137 of the model.

Deviations: the source cuts matrices into blocks of 64 x 64 and other tensors into chunks of 4096, and its code has a
table of four values for each tensor; here chunks are consecutive elements and each has its own table. The source warms
eta_in up; here a schedule of the knob does. The CPU encodes messages, so that on a device a row of e is copied twice a
cycle, and a mean once.
Reductions: with keep = chunk and values float32 it is DiLoCo without outer momentum, for any beta.`,
	Needs: optim.Gradients,
	Knobs: slices.Concat([]optim.Knob{optim.KnobOuterEta.With(1)}, optim.InnerKnobs, []optim.Knob{
		{
			Name:    "beta",
			Label:   "β",
			Title:   "memory",
			Doc:     "factor on the residual, the values not sent so far, in each cycle",
			Min:     0,
			Max:     1,
			Default: 0.95,
		},
		{
			Name:    "chunk",
			Title:   "chunk",
			Unit:    "values",
			Doc:     "consecutive values of a tensor of which the largest are sent",
			Min:     2,
			Max:     1 << 20,
			Default: 4096,
			Integer: true,
			Scale:   optim.Log,
		},
		{
			Name:    "keep",
			Title:   "values of a chunk",
			Unit:    "values",
			Doc:     "values sent of a full chunk; a shorter one sends the same fraction",
			Min:     1,
			Max:     1 << 20,
			Default: 64,
			Integer: true,
			Scale:   optim.Log,
		},
		{
			Name:    "values",
			Title:   "values",
			Doc:     "encoding of a sent value: two bits, or exact",
			Choices: []string{"2bit", "float32"},
		},
		optim.KnobH.With(32), optim.KnobSlice,
	}, optim.InnerStream),
	Series: []optim.Series{optim.SeriesLoss},
	Blocks: func(k optim.Values, l engine.Layout) []optim.Block {
		return optim.StepBlocks(k, l, optim.Params(optim.BlockX, false, optim.EnterCentre, l),
			optim.Params(optim.BlockXBar, true, optim.EnterCentre, l),
			optim.Params(optim.BlockResidual, false, optim.EnterZero, l),
			optim.Counter(optim.BlockCursor, false),
			optim.Counter(optim.BlockPhase, true),
			optim.Stats(false, l))
	},
	Cycle: optim.CycleOf("h"),
	Bytes: func(s optim.Shape) map[collective.Op]int64 {
		if !s.EndsCycle("h") {
			return nil
		}
		return map[collective.Op]int64{"gather": s.AllGatherBytes(8 * sparseLoCoCode(s.K, s.Layout).words)}
	},
	Program: sparseLoCo{},
}

type sparseLoCo struct{}

func (sparseLoCo) Round(ctx context.Context, e *optim.Env, k optim.Values, _ uint64) (optim.Report, error) {
	rep, ends, err := optim.InnerRound(ctx, e, k)
	if err != nil || !ends {
		return rep, err
	}
	n, x, xbar, residual := len(e.Mine), e.Block(optim.BlockX), e.Block(optim.BlockXBar), e.Block(optim.BlockResidual)
	addChange := optim.Assign(residual, optim.T(k.F("beta"), residual), optim.T(1, xbar), optim.T(-1, x))
	if err := e.Engine.Do(ctx, optim.Update(n, addChange)); err != nil {
		return rep, err
	}
	d := e.Scratch(1, e.Layout.Params)
	if err := sparseMean(ctx, e, "gather", sparseLoCoCode(k, e.Layout), sparseTransform{}, residual, d); err != nil {
		return rep, err
	}
	outer := optim.Assign(xbar, optim.T(1, xbar), optim.T(-k.F("eta"), d))
	return rep, e.Engine.Do(ctx, optim.Update(1, outer), optim.Update(n, optim.Assign(x, optim.T(1, xbar))))
}

func sparseLoCoCode(k optim.Values, l engine.Layout) sparseCode {
	return newSparseCode(l, k.I("chunk"), k.I("keep"), k.Is("values", "float32"))
}

func (sparseLoCo) Centre(ctx context.Context, e *optim.Env, _ optim.Values, dst engine.Mat) error {
	return optim.CopyBlock(ctx, e, optim.BlockXBar, dst)
}
