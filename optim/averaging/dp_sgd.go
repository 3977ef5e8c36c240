package averaging

import (
	"context"
	"slices"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/collective"
)

// DPSGD is data-parallel SGD, the baseline.
var DPSGD = &optim.Algorithm{
	Name:  "dp-sgd",
	Title: "Data-parallel SGD",
	Paper: "Synchronous mini-batch SGD; the baseline of Chaudhari et al., Parle (2017), and Shahab & Grot, PESGD",
	Doc: `All members share one model. Each computes the gradient of its part of a global batch of members*batch samples,
and all take the same step along the mean gradient.

    g = 1/n sum_a g_a;  m <- mu*m + g;  x <- x - eta*(g + mu*m)

clip bounds each g_a before the mean. optimiser adam, adamw or muon takes its step along g in place of the last two
equations; adam and adamw use beta1 and beta2 instead of momentum.

This is not differentially private SGD, which the literature also writes DP-SGD: no noise is added. The global batch is
consecutive samples of one stream, assigned to members by rank, so that a change of n keeps the order of the data.
Bytes: an all-reduce of the gradient a step, 2(n-1)/n*4M a worker with one member each; half of that with wire bf16,
about a quarter with int8.`,
	Needs: optim.Gradients,
	Knobs: slices.Concat([]optim.Knob{optim.KnobEta}, optim.OptimiserKnobs, []optim.Knob{
		optim.KnobB,
		optim.KnobWD,
		optim.KnobClip,
		optim.KnobWire,
	}),
	Series: []optim.Series{optim.SeriesLoss},
	Blocks: func(k optim.Values, l engine.Layout) []optim.Block {
		return optim.StepBlocks(k, l, optim.Params(optim.BlockX, true, optim.EnterCentre, l),
			optim.Counter(optim.BlockCursor, true), optim.Stats(false, l), optim.Residual(k, l))
	},
	Bytes: func(s optim.Shape) map[collective.Op]int64 {
		return map[collective.Op]int64{"gradient": s.AllReduceMeanBytes()}
	},
	Program: dpSGD{},
}

type dpSGD struct{}

func (dpSGD) Round(ctx context.Context, e *optim.Env, k optim.Values, _ uint64) (optim.Report, error) {
	x, g, mean := e.Block(optim.BlockX), e.Scratch(len(e.Mine), e.Layout.Params), e.Scratch(1, e.Layout.Params)
	loss, err := optim.SharedGradient(ctx, e, k, "gradient", x, g, mean)
	if err != nil {
		return optim.Report{}, err
	}
	if err := e.Engine.Do(ctx, e.OptimiserTasks(k.Optimiser("eta", "momentum"), x, 0, mean)...); err != nil {
		return optim.Report{}, err
	}
	rep := e.ReportSharedSteps(k, 1)
	rep.Points = e.LatePoints("loss", loss)
	return rep, nil
}

func (dpSGD) Centre(ctx context.Context, e *optim.Env, _ optim.Values, dst engine.Mat) error {
	return optim.CopyBlock(ctx, e, optim.BlockX, dst)
}
