package averaging

import (
	"context"
	"slices"

	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
)

// DiLoCo alternates many AdamW steps per replica with one outer step of Nesterov SGD on the agreed model.
var DiLoCo = &optim.Algorithm{
	Name:  "diloco",
	Title: "DiLoCo",
	Paper: "Douillard, Feng, Rusu, Chhaparia, Donchev, Kuncoro, Ranzato, Szlam, Shen: DiLoCo: " +
		"distributed low-communication training of language models (2023), algorithm 1",
	Doc: `Replicas start from the agreed model xbar and take h steps of an optimiser, by default AdamW, on their own
mini-batches. The mean of xbar minus each replica is the gradient of an outer step:

    x^a <- AdamW(x^a, grad f(x^a); eta_in, beta1, beta2, decay)      h times
    d = mean_a (xbar - x^a);  xbar <- xbar - eta*Nes(mx, d);  x^a <- xbar

A replica keeps Adam's moments and step count over cycles. decay is decoupled: x shrinks by eta_in*decay*x a step.
optimiser muon, with eta_in of about 0.02, is MuLoCo (Therien, Huang, Rish, Belilovsky: MuLoCo: Muon is a practical
inner optimizer for DiLoCo, 2025); sgd and adam give the form of FedOpt. momentum_in applies to sgd and muon. A round is
a whole cycle if h is at most slice, else slice steps of it; the phase block counts the steps. The centre is xbar.

With share above 0 a random share of the elements of x is averaged over the replicas after every inner step, as in
algorithm sparta, so that replicas stay close during a long cycle (SPARTA-DiLoCo: Beton et al., 2025).
Series: loss.
Bytes: an all-reduce of M values a cycle: those of data-parallel SGD divided by h. With share also an all-reduce of
round(share*M) values a step.

Deviations: none in the rule; the source's h of 500 and its warm-up and cosine schedule of eta_in are left to knobs.
Reductions: eta 1 and momentum 0 make xbar the mean of the replicas: local AdamW with averaging.`,
	Needs: optim.Gradients,
	Knobs: slices.Concat([]optim.Knob{optim.KnobOuterEta}, optim.InnerKnobs, []optim.Knob{
		optim.KnobMu, optim.KnobH.With(32), knobShare, optim.KnobSlice,
	}, optim.InnerStream),
	Series: []optim.Series{optim.SeriesLoss},
	Blocks: func(k optim.Values, l engine.Layout) []optim.Block {
		return optim.StepBlocks(k, l, optim.Params(optim.BlockX, false, optim.EnterCentre, l),
			optim.Params(optim.BlockXBar, true, optim.EnterCentre, l),
			optim.Params(optim.BlockMX, true, optim.EnterZero, l),
			optim.Counter(optim.BlockCursor, false),
			optim.Counter(optim.BlockPhase, true),
			optim.Stats(false, l))
	},
	Cycle: optim.CycleOf("h"),
	Bytes: func(s optim.Shape) map[collective.Op]int64 {
		sent := map[collective.Op]int64{}
		if width := spartaWidth(s.K, s.Layout); width > 0 {
			sent["share"] = int64(s.SliceSteps("h")) * s.AllReduceBytes(s.Roster, width)
		}
		if s.EndsCycle("h") {
			sent["outer"] = s.AllReduceBytes(s.Roster, s.Layout.Params)
		}
		return sent
	},
	Program: diLoCo{},
}

type diLoCo struct{}

func (diLoCo) Round(ctx context.Context, e *optim.Env, k optim.Values, round uint64) (optim.Report, error) {
	n, M := len(e.Mine), e.Layout.Params
	x, xbar := e.Block(optim.BlockX), e.Block(optim.BlockXBar)
	loss, steps := make([]float32, n), e.Shape(k).SliceSteps("h")
	if err := diLoCoSteps(ctx, e, k, round, steps, loss); err != nil {
		return optim.Report{}, err
	}
	rep := e.ReportSteps(k, int64(len(e.Roster.Members)*steps))
	rep.Points = e.LatePoints("loss", loss)
	if !e.AdvanceCycle(k, "h", steps) {
		return rep, nil
	}
	d := e.Scratch(1, M)
	if err := e.Comm.AllReduce(ctx, "outer", e.Roster, x, d, true); err != nil {
		return rep, err
	}
	outer := []engine.Lin{optim.Assign(d, optim.T(1, xbar), optim.T(-1, d))}
	outer = append(outer, optim.Nesterov(xbar, e.Block(optim.BlockMX), d, k.F("eta"), k.F("momentum"))...)
	return rep, e.Engine.Do(ctx, optim.Update(1, outer...), optim.Update(n, optim.Assign(x, optim.T(1, xbar))))
}

// diLoCoSteps takes the inner steps of a round. With a share, it averages elements of x after each of them.
func diLoCoSteps(ctx context.Context, e *optim.Env, k optim.Values, round uint64, steps int, loss []float32) error {
	width, n := spartaWidth(k, e.Layout), len(e.Mine)
	if width == 0 {
		return e.InnerSteps(ctx, k, steps, loss)
	}
	step := e.GradientStep(k, e.Block(optim.BlockX), engine.Rows(n), e.CohortScratch(n), loss)
	inner := optim.By(k.Optimiser("eta_in", "momentum_in"))
	src, mean := e.Scratch(n, width), e.Scratch(1, width)
	for i := range steps {
		if err := optim.OptimiserSteps(ctx, e, step, 1, inner); err != nil {
			return err
		}
		if err := spartaAverage(ctx, e, e.Rand(noise.Pair, round, engine.Member(i)), src, mean); err != nil {
			return err
		}
	}
	return nil
}

func (diLoCo) Centre(ctx context.Context, e *optim.Env, _ optim.Values, dst engine.Mat) error {
	return optim.CopyBlock(ctx, e, optim.BlockXBar, dst)
}
