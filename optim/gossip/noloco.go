package gossip

import (
	"context"
	"fmt"
	"slices"

	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
)

// NoLoCo is DiLoCo with outer steps between pairs of replicas, so that no replica waits for all others.
var NoLoCo = &optim.Algorithm{
	Name:  "noloco",
	Title: "NoLoCo",
	Paper: "Kolehmainen, Blagoev, Donaghy, Ersoy, Nies: NoLoCo: no-all-reduce low communication training method for " +
		"large models (2025), section 3",
	Doc: `Replicas take h steps of AdamW on their own mini-batches. Then they are paired at random, each once. The outer
step of a replica follows the mean change of its pair, and moves towards the mean of the models where its pair began:

    x_i <- AdamW(x_i, grad f(x_i); eta_in, beta1, beta2, decay)      h times
    m_i <- momentum*m_i + eta*mean_j(x_j - s_j) + gamma*(mean_j s_j - s_i);  s_i <- s_i + m_i;  x_i <- s_i

with j over the pair, and s the model where a replica began its cycle: each has its own, unlike the agreed model of
DiLoCo. gamma keeps the replicas together: without gradients the expected square of their distances falls only below

    gamma < 2*(1 - momentum^2)/(1 + momentum - c*momentum),  c = n/(n-1) for n members if n is even, else 1

and a larger gamma is refused. With an odd number of members one is alone and takes its own values as the mean. Adam's
moments stay with the replica. optimiser replaces AdamW by SGD, Adam or Muon; momentum_in applies to sgd and muon. A
round is a whole cycle if h is at most slice, else slice steps of it; the phase block counts the steps. The centre is
mean_i s.
Series: loss, and the partner of each replica.
Bytes: a cycle 4M each way for a pair on different workers, and twice as much if gamma differs from eta; if they are
equal, the terms of s_j cancel and it is not sent.

Deviations: for pairs the source gives momentum < gamma < 2 + momentum. The bound above is exact for the second moments
of m_i and of the distances of s_i, as every pair is equally likely: a gamma below the source's range converges too, and
much of that range diverges unless momentum is 0. The source also routes activations at random between pipeline stages,
of which there are none here. Its inner optimiser is Adam: AdamW with decay 0.
Reductions: momentum 0 and eta 1 put a pair with equal s at the mean of its x; two members are always such a pair.`,
	Needs: optim.Gradients | optim.Pairs,
	Knobs: slices.Concat([]optim.Knob{optim.KnobOuterEta}, optim.InnerKnobs, []optim.Knob{
		optim.KnobMu.With(0.5),
		{
			Name:    "gamma",
			Label:   "γ",
			Title:   "pull to the pair",
			Doc:     "share of the way to the mean of the models where a pair began, in an outer step",
			Min:     0,
			Max:     3,
			Default: 0.7,
		},
		optim.KnobH.With(32), optim.KnobSlice,
	}, optim.InnerStream),
	Series: []optim.Series{optim.SeriesLoss, optim.SeriesPartner},
	Blocks: func(k optim.Values, l engine.Layout) []optim.Block {
		return optim.StepBlocks(k, l, optim.Params(optim.BlockX, false, optim.EnterCentre, l),
			optim.Params(optim.BlockBegun, false, optim.EnterCentre, l),
			optim.Params(optim.BlockMX, false, optim.EnterZero, l),
			optim.Counter(optim.BlockCursor, false),
			optim.Counter(optim.BlockPhase, true),
			optim.Stats(false, l))
	},
	Check: func(s optim.Shape) error {
		n, gamma, momentum := len(s.Roster.Members), s.K.Get("gamma"), s.K.Get("momentum")
		if bound := noLoCoBound(n, momentum); n > 1 && gamma >= bound {
			return fmt.Errorf("%d replicas move apart with gamma %g and momentum %g: give gamma below %.4g",
				n, gamma, momentum, bound)
		}
		return nil
	},
	Cycle: optim.CycleOf("h"),
	Bytes: func(s optim.Shape) map[collective.Op]int64 {
		if !s.EndsCycle("h") {
			return nil
		}
		width := 4 * s.Layout.Params
		if !noLoCoOmitsBegun(s.K) {
			width *= 2
		}
		if s.Drawn {
			return map[collective.Op]int64{"outer": s.MoveBytes(s.Edges, width)}
		}
		var cross int64 // ordered pairs of different workers
		n := len(s.Roster.Members)
		for _, w := range s.Roster.Workers() {
			h := len(s.Roster.Hosted(w))
			cross += int64(h * (n - h))
		}
		return map[collective.Op]int64{"outer": int64(n/2*2) * cross * int64(width) / max(1, int64(n*(n-1)))}
	},
	Program: noLoCo{},
}

type noLoCo struct{}

func (noLoCo) Round(ctx context.Context, e *optim.Env, k optim.Values, round uint64) (optim.Report, error) {
	rep, ends, err := optim.InnerRound(ctx, e, k)
	if err != nil || !ends {
		return rep, err
	}
	pairs := Pairing(e.Rand(noise.Pair, round, 0), e.Roster.Members)
	var edges []collective.Edge
	for _, pair := range pairs {
		edges = append(edges,
			collective.Edge{From: pair[0], To: pair[1], Op: "outer"},
			collective.Edge{From: pair[1], To: pair[0], Op: "outer"})
	}
	rep.Edges, rep.Points = edges, append(rep.Points, e.PartnersOf(pairs, false)...)
	return rep, noLoCoStep(ctx, e, k, edges)
}

// noLoCoBound returns the least gamma with which n replicas, without gradients, do not approach each other in mean
// square.
func noLoCoBound(n int, momentum float64) float64 {
	c := 1.0
	if n%2 == 0 {
		c = float64(n) / float64(n-1)
	}
	return 2 * (1 - float64(momentum*momentum)) / (1 + momentum - float64(c*momentum))
}

// noLoCoOmitsBegun reports whether the outer step does not depend on the model where the partner began, since its terms
// cancel.
func noLoCoOmitsBegun(k optim.Values) bool { return k.F("gamma") == k.F("eta") }

// noLoCoStep takes the outer step of every member hosted here.
func noLoCoStep(ctx context.Context, e *optim.Env, k optim.Values, edges []collective.Edge) error {
	in, x, s, m := e.Incoming(edges), e.Block(optim.BlockX), e.Block(optim.BlockBegun), e.Block(optim.BlockMX)
	theirs := e.Scratch(len(in), e.Layout.Params)
	if err := e.Comm.Move(ctx, "outer", edges, x, theirs); err != nil {
		return err
	}
	var theirBegun engine.Mat
	if !noLoCoOmitsBegun(k) {
		theirBegun = e.Scratch(len(in), e.Layout.Params)
		if err := e.Comm.Move(ctx, "outer", edges, s, theirBegun); err != nil {
			return err
		}
	}
	partner := map[engine.Row]engine.Row{} // from a hosted member's row to its partner's row of theirs
	for i, edge := range in {
		partner[e.Row(edge.To)] = engine.Row(i)
	}
	eta, gamma := k.F("eta"), k.F("gamma")
	var tasks []engine.Task
	for r := range engine.Row(len(e.Mine)) {
		mr, sr, xr := m.Sub(r, 1), s.Sub(r, 1), x.Sub(r, 1)
		step := optim.Assign(mr, optim.T(k.F("momentum"), mr), optim.T(eta, xr), optim.T(-eta, sr))
		if i, ok := partner[r]; ok {
			step = optim.Assign(
				mr,
				optim.T(k.F("momentum"), mr),
				optim.T(eta/2, xr),
				optim.T(eta/2, theirs.Sub(i, 1)),
				optim.T(-(eta+gamma)/2, sr),
			)
			if theirBegun.Rows > 0 {
				step.Terms = append(step.Terms, optim.T((gamma-eta)/2, theirBegun.Sub(i, 1)))
			}
		}
		tasks = append(tasks, optim.Update(1,
			step,
			optim.Assign(sr, optim.T(1, sr), optim.T(1, mr)),
			optim.Assign(xr, optim.T(1, sr)),
		))
	}
	return e.Engine.Do(ctx, tasks...)
}

func (noLoCo) Centre(ctx context.Context, e *optim.Env, _ optim.Values, dst engine.Mat) error {
	return e.Comm.AllReduce(ctx, "centre", e.Roster, e.Block(optim.BlockBegun), dst, true)
}
