package averaging

import (
	"context"
	"errors"
	"slices"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/collective"
)

// FedAvg averages the models of a random share of the members, which each train on their own data.
var FedAvg = &optim.Algorithm{
	Name:  "fedavg",
	Title: "FedAvg",
	Paper: "McMahan, Moore, Ramage, Hampson, Agüera y Arcas: Communication-efficient learning of deep networks from " +
		"decentralized data (2017), algorithm 1; FedProx: Li, Sahu, Zaheer, Sanjabi, Talwalkar, Smith: " +
		"Federated optimization in heterogeneous networks (2020), algorithm 2",
	Doc: `In each cycle a share C (participation) of the members is drawn without replacement. They take h steps from the
agreed model xbar on their own data; the others idle. The new model is the mean of theirs, weighted by samples n_k:

    S = max(1, round(C*n)) random members;  x^k <- xbar for k in S
    x^k <- x^k - eta*(grad f(x^k) + mu*(x^k - xbar))      h times
    xbar <- sum_{k in S} n_k x^k / sum_{k in S} n_k

FedProx is mu above 0: the proximal term keeps a member near xbar. Set parts to dirichlet or shards for members whose
data differ. weigh equal replaces n_k by 1. momentum and optimiser replace the plain step of the sources; their state
stays with the member until it is drawn again. A round is a whole cycle if h is at most slice, else slice steps of it;
the blocks phase and cycle count them. The centre is xbar.
Series: loss, of the members that train.
Bytes: an all-reduce of M values a cycle, in which only the members of S contribute a row. Every worker adds a slice of
the sum, as a part of the server, and stores xbar.

Deviations: members take h steps each instead of E passes over their samples; for equal parts h = E*n_k/batch. FedProx
draws members with probability n_k/n and averages with equal weights; here as FedAvg. If members join or leave within a
cycle of several rounds, S is drawn again.
Reductions: C 1, mu 0 and equal parts is localsgd without momentum.`,
	Needs: optim.Gradients,
	Knobs: slices.Concat([]optim.Knob{
		knobParticipation,
		{
			Name:  "mu",
			Label: "μ_prox",
			Title: "proximal term",
			Unit:  "coefficient",
			Doc:   "coefficient of the pull of a member to the agreed model, as part of its gradient (FedProx); 0 is FedAvg",
			Min:   0,
			Max:   1000,
			Scale: optim.Log,
		},
		{
			Name:    "weigh",
			Title:   "weights",
			Doc:     "weight of a member in the mean: its number of samples, or equal",
			Choices: []string{"samples", "equal"},
		},
		optim.KnobEta,
		optim.KnobMu.With(0).OnlyWith("optimiser", "sgd", "muon"),
	}, optim.OrProgram(optim.OptimiserKnobsWithoutMomentum),
		[]optim.Knob{optim.KnobH.With(8), optim.KnobSlice}, optim.MemberStream),
	Series: []optim.Series{optim.SeriesLoss},
	Blocks: func(k optim.Values, l engine.Layout) []optim.Block {
		return optim.StepBlocks(k, l, optim.Params(optim.BlockX, false, optim.EnterCentre, l),
			optim.Params(optim.BlockXBar, true, optim.EnterCentre, l),
			optim.Counter(optim.BlockCursor, false),
			optim.Counter(optim.BlockPhase, true),
			optim.Counter(optim.BlockCycle, true),
			optim.Stats(false, l))
	},
	Check: func(s optim.Shape) error {
		if s.K.ByProgram() && s.K.Get("mu") > 0 {
			return errors.New("the optimiser of a program adds no proximal term: set mu to 0, or choose another")
		}
		return nil
	},
	Cycle: optim.CycleOf("h"),
	Bytes: func(s optim.Shape) map[collective.Op]int64 {
		if !s.EndsCycle("h") {
			return nil
		}
		return map[collective.Op]int64{"average": participantsBytes(s)}
	},
	Program: fedAvg{},
}

type fedAvg struct{}

func (fedAvg) Round(ctx context.Context, e *optim.Env, k optim.Values, _ uint64) (optim.Report, error) {
	c, x, xbar := beginRound(e, k), e.Block(optim.BlockX), e.Block(optim.BlockXBar)
	s, loss := c.step(e, k)
	if err := fedAvgSteps(ctx, e, k, s, c.steps); err != nil {
		return optim.Report{}, err
	}
	rep := c.endRound(e, k, loss)
	if !c.ends {
		return rep, nil
	}
	weight := fedAvgWeights(e, k, c.in)
	err := c.mean(ctx, e, "average", e.Scratch(len(e.Mine), e.Layout.Params), xbar, func(r engine.Row) []engine.Term {
		return []engine.Term{optim.T(weight(e.Mine[r]), x.Sub(r, 1))}
	})
	if err != nil {
		return rep, err
	}
	return rep, e.Engine.Do(ctx, optim.Update(len(e.Mine), optim.Assign(x, optim.T(1, xbar))))
}

// fedAvgSteps takes the steps of the members of s, with the proximal term if there is one.
func fedAvgSteps(ctx context.Context, e *optim.Env, k optim.Values, s optim.Step, steps int) error {
	d, mu, xbar := k.Optimiser("eta", "momentum"), k.F("mu"), e.Block(optim.BlockXBar)
	if mu == 0 {
		return optim.OptimiserSteps(ctx, e, s, steps, optim.By(d))
	}
	return optim.TakeSteps(ctx, e, s, steps, func(e *optim.Env, r engine.Row, g engine.Mat) []engine.Task {
		x := e.Block(optim.BlockX).Sub(r, 1)
		return e.OptimiserTasks(d, x, r, g, optim.Assign(g, optim.T(1, g), optim.T(mu, x), optim.T(-mu, xbar)))
	})
}

// fedAvgWeights returns a function that returns the weight of a member of in, relative to the mean weight of in.
func fedAvgWeights(e *optim.Env, k optim.Values, in collective.Roster) func(m engine.Member) float32 {
	if k.Is("weigh", "equal") {
		return func(engine.Member) float32 { return 1 }
	}
	total := 0
	for _, m := range in.Members {
		total += e.Samples(m)
	}
	return func(m engine.Member) float32 {
		return float32(float64(len(in.Members)*e.Samples(m)) / float64(total))
	}
}

func (fedAvg) Centre(ctx context.Context, e *optim.Env, _ optim.Values, dst engine.Mat) error {
	return optim.CopyBlock(ctx, e, optim.BlockXBar, dst)
}
