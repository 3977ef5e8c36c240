package optim

import (
	"context"

	"brood/models/engine"
	"brood/models/noise"
)

// DPSGD is data-parallel SGD, the baseline.
var DPSGD = &Algorithm{
	Name:  "dp-sgd",
	Title: "Data-parallel SGD",
	Paper: "Synchronous mini-batch SGD; the baseline of Chaudhari et al., Parle (2017), and Shahab & Grot, PESGD",
	Doc: `One model; every member computes the gradient of its part of a global batch of members*batch samples, and all take
the same step.

    g = 1/n sum_a g_a;  m <- mu*m + g;  x <- x - eta*(g + mu*m)

The global batch is consecutive samples of one stream, dealt by rank, so the data order survives any change of n.
Bytes: an all-reduce of the gradient a step, 2(n-1)/n*4M a worker with one member each.`,
	Needs:  Gradients,
	Knobs:  []Knob{KnobEta, KnobMu, KnobB, KnobWD},
	Series: []Series{SeriesLoss},
	Blocks: func(_ Values, l engine.Layout) []Block {
		return []Block{Params(BlockX, true, EnterCentre, l), Params(BlockM, true, EnterZero, l), Counter(BlockCursor, true), Stats(false, l)}
	},
	Bytes: func(s Shape) map[Op]int64 {
		return map[Op]int64{"gradient": s.AllReduceBytes(s.Roster, s.Layout.Params)}
	},
	Program: dpSGD{},
}

type dpSGD struct{}

func (dpSGD) Round(ctx context.Context, e *Env, k Values, _ uint64) (Report, error) {
	n, mine, b := len(e.Roster.Members), len(e.Mine), k.I("batch")
	x, at := e.Block(BlockX), e.Block(BlockCursor).U
	batches, masks := make([][]int32, mine), make([]noise.Key, mine)
	for i, m := range e.Mine {
		pos := at[0] + uint64(e.Roster.Rank(m)*b)
		batches[i] = make([]int32, b)
		e.SharedBatch(batches[i], pos)
		masks[i] = e.Rand(noise.Dropout, pos, 0)
	}
	at[0] += uint64(n * b)
	g, mean, loss := e.Scratch(mine, e.Layout.Params), e.Scratch(1, e.Layout.Params), make([]float32, mine)
	s := Step{X: x, XRows: make([]engine.Row, mine), Rows: engine.Rows(mine), G: g, Loss: loss, Decay: k.F("decay")}
	if err := e.gradients(ctx, s, batches, masks); err != nil {
		return Report{}, err
	}
	if err := e.Comm.AllReduce(ctx, "gradient", e.Roster, g, mean, true); err != nil {
		return Report{}, err
	}
	step := engine.Update{Rows: engine.Rows(1), Prog: Nesterov(x, e.Block(BlockM), mean, k.F("eta"), k.F("momentum"))}
	if err := e.Engine.Do(ctx, step); err != nil {
		return Report{}, err
	}
	return Report{Steps: 1, Samples: int64(n * b), Pass: Pass{int64(n * b), int64(len(e.Data.Train()))}, Points: e.MemberPoints("loss", loss)}, nil
}

func (dpSGD) Centre(ctx context.Context, e *Env, _ Values, dst engine.Mat) error {
	return CopyBlock(ctx, e, BlockX, dst)
}
