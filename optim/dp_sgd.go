package optim

import (
	"context"
	"slices"

	"brood/models/engine"
)

// DPSGD is data-parallel SGD, the baseline.
var DPSGD = &Algorithm{
	Name:  "dp-sgd",
	Title: "Data-parallel SGD",
	Paper: "Synchronous mini-batch SGD; the baseline of Chaudhari et al., Parle (2017), and Shahab & Grot, PESGD",
	Doc: `One model; every member computes the gradient of its part of a global batch of members*batch samples, and all take
the same step.

    g = 1/n sum_a g_a;  m <- mu*m + g;  x <- x - eta*(g + mu*m)

clip bounds each g_a before the mean. optimiser adam, adamw or muon takes its step along g in place of the last two, of which
adam and adamw know beta1 and beta2 and no momentum.

Not the differentially private SGD that the literature writes DP-SGD: nothing is private here, and no noise is added.
The global batch is consecutive samples of one stream, dealt by rank, so the data order survives any change of n.
Bytes: an all-reduce of the gradient a step, 2(n-1)/n*4M a worker with one member each; half of that with wire bf16, about a quarter with int8.`,
	Needs:  Gradients,
	Knobs:  slices.Concat([]Knob{KnobEta}, OptimiserKnobs, []Knob{KnobB, KnobWD, KnobClip, KnobWire}),
	Series: []Series{SeriesLoss},
	Blocks: func(k Values, l engine.Layout) []Block {
		return slices.Concat([]Block{Params(BlockX, true, EnterCentre, l)}, Moments(k, true, l), []Block{Counter(BlockCursor, true), Stats(false, l), residual(k, l)})
	},
	Bytes: func(s Shape) map[Op]int64 {
		return map[Op]int64{"gradient": s.meanBytes()}
	},
	Program: dpSGD{},
}

type dpSGD struct{}

func (dpSGD) Round(ctx context.Context, e *Env, k Values, _ uint64) (Report, error) {
	x, g, mean := e.Block(BlockX), e.Scratch(len(e.Mine), e.Layout.Params), e.Scratch(1, e.Layout.Params)
	loss, err := sharedGradient(ctx, e, k, "gradient", x, g, mean)
	if err != nil {
		return Report{}, err
	}
	if err := e.Engine.Do(ctx, e.follow(k.descent("eta", "momentum"), x, 0, mean)...); err != nil {
		return Report{}, err
	}
	rep := e.sharedSteps(k, 1)
	rep.Points = e.LatePoints("loss", loss)
	return rep, nil
}

func (dpSGD) Centre(ctx context.Context, e *Env, _ Values, dst engine.Mat) error {
	return CopyBlock(ctx, e, BlockX, dst)
}
