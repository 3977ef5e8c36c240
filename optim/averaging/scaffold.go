package averaging

import (
	"context"
	"slices"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/collective"
)

// SCAFFOLD is federated averaging whose members correct their steps for the difference of their data from the whole.
var SCAFFOLD = &optim.Algorithm{
	Name:  "scaffold",
	Title: "SCAFFOLD",
	Paper: "Karimireddy, Kale, Mohri, Reddi, Stich, Suresh: SCAFFOLD: stochastic controlled averaging for federated " +
		"learning (2020), algorithm 1 with option II",
	Doc: `As in fedavg, a share C (participation) of the n members is drawn in each cycle and takes h steps from the agreed
model xbar. Each member has a control variate c_k, the mean gradient of its last cycle, and all have the mean c of
these. A step replaces the member's part of the gradient by the mean:

    y <- y - eta*(grad f(y) - c_k + c)      h times, from y = xbar, for the members k of S
    c_k' = c_k - c + (xbar - y)/(h*eta)
    xbar <- xbar + eta_g*mean_{k in S} (y - xbar);  c <- c + |S|/n * mean_{k in S} (c_k' - c_k);  c_k <- c_k'

c_k' is computed as the mean of the h gradients, which is the same for a constant eta and needs no division by it. Set
parts to dirichlet or shards for members whose data differ. A round is a whole cycle if h is at most slice, else slice
steps of it; the blocks phase and cycle count them. The centre is xbar.
Series: loss, of the members that train.
Bytes: two all-reduces of M values a cycle, of models and of control variates: twice those of fedavg.

Deviations: none in the rule. Variates start at zero, and so do those of a member that joins. After a change of the
population c is not exactly the mean of the c_k. If members join or leave within a cycle of several rounds, S is
drawn again, and a gradient of the cycle that a member has not computed counts as zero.
Reductions: C 1, eta_g 1 and h 1 is data-parallel SGD, since the variates cancel in the mean; with equal data for all
members it is close to fedavg.`,
	Needs: optim.Gradients,
	Knobs: slices.Concat([]optim.Knob{
		knobParticipation,
		{
			Name:    "eta_g",
			Label:   "η_g",
			Title:   "global step",
			Doc:     "share of the way from the agreed model to the mean of the members' models",
			Min:     0,
			Max:     10,
			Default: 1,
		},
		optim.KnobEta, optim.KnobH.With(8), optim.KnobSlice,
	}, optim.MemberStream),
	Series:      []optim.Series{optim.SeriesLoss},
	NoOptimiser: "corrects plain SGD steps by mean gradients, which the moments of an optimiser would not follow",
	Blocks: func(_ optim.Values, l engine.Layout) []optim.Block {
		return []optim.Block{
			optim.Params(optim.BlockX, false, optim.EnterCentre, l),
			optim.Params(optim.BlockXBar, true, optim.EnterCentre, l),
			optim.Params(optim.BlockControl, false, optim.EnterZero, l),
			optim.Params(optim.BlockCBar, true, optim.EnterZero, l),
			optim.Params(optim.BlockGSum, false, optim.EnterZero, l),
			optim.Counter(optim.BlockCursor, false),
			optim.Counter(optim.BlockPhase, true),
			optim.Counter(optim.BlockCycle, true),
			optim.Stats(false, l),
		}
	},
	Cycle: optim.CycleOf("h"),
	Bytes: func(s optim.Shape) map[collective.Op]int64 {
		if !s.EndsCycle("h") {
			return nil
		}
		b := participantsBytes(s)
		return map[collective.Op]int64{"average": b, "control": b}
	},
	Program: scaffold{},
}

type scaffold struct{}

func (scaffold) Round(ctx context.Context, e *optim.Env, k optim.Values, _ uint64) (optim.Report, error) {
	c, taken := beginRound(e, k), e.Record(optim.BlockPhase).U[0]
	x, control, mean := e.Block(optim.BlockX), e.Block(optim.BlockControl), e.Block(optim.BlockCBar)
	sum, eta := e.Block(optim.BlockGSum), k.F("eta")
	s, loss := c.step(e, k)
	err := optim.TakeSteps(ctx, e, s, c.steps, func(_ *optim.Env, r engine.Row, g engine.Mat) []engine.Task {
		x, control, sum := x.Sub(r, 1), control.Sub(r, 1), sum.Sub(r, 1)
		return []engine.Task{optim.Update(1,
			optim.Assign(sum, optim.T(1, sum), optim.T(1, g)),
			optim.Assign(x, optim.T(1, x), optim.T(-eta, g), optim.T(eta, control), optim.T(-eta, mean)),
		)}
	})
	if err != nil {
		return optim.Report{}, err
	}
	rep := c.endRound(e, k, loss)
	if !c.ends {
		return rep, nil
	}
	return rep, scaffoldEnd(ctx, e, k, c, taken+uint64(c.steps))
}

// scaffoldEnd ends a cycle of the given number of steps: it updates the agreed model and the control variates.
func scaffoldEnd(ctx context.Context, e *optim.Env, k optim.Values, c cycle, steps uint64) error {
	n, M, etaG := len(e.Mine), e.Layout.Params, k.F("eta_g")
	x, xbar, control := e.Block(optim.BlockX), e.Block(optim.BlockXBar), e.Block(optim.BlockControl)
	mean, sum := e.Block(optim.BlockCBar), e.Block(optim.BlockGSum)
	src, y, change := e.Scratch(n, M), e.Scratch(1, M), e.Scratch(1, M)
	err := c.mean(ctx, e, "average", src, y, func(r engine.Row) []engine.Term {
		return []engine.Term{optim.T(1, x.Sub(r, 1))}
	})
	if err != nil {
		return err
	}
	share := 1 / float32(steps)
	err = c.mean(ctx, e, "control", src, change, func(r engine.Row) []engine.Term {
		return []engine.Term{optim.T(share, sum.Sub(r, 1)), optim.T(-1, control.Sub(r, 1))}
	})
	if err != nil {
		return err
	}
	part := float32(float64(len(c.in.Members)) / float64(len(e.Roster.Members)))
	tasks := []engine.Task{optim.Update(1,
		optim.Assign(xbar, optim.T(1-etaG, xbar), optim.T(etaG, y)),
		optim.Assign(mean, optim.T(1, mean), optim.T(part, change)),
	)}
	for _, r := range c.rows {
		tasks = append(tasks, optim.Update(1, optim.Assign(control.Sub(r, 1), optim.T(share, sum.Sub(r, 1)))))
	}
	tasks = append(tasks,
		optim.Update(n, optim.Assign(x, optim.T(1, xbar))),
		engine.Fill{Dst: engine.All(sum)})
	return e.Engine.Do(ctx, tasks...)
}

func (scaffold) Centre(ctx context.Context, e *optim.Env, _ optim.Values, dst engine.Mat) error {
	return optim.CopyBlock(ctx, e, optim.BlockXBar, dst)
}
