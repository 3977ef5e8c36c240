package coupled

import (
	"context"
	"slices"

	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
)

// EASGD lets replicas meet a common centre one at a time.
var EASGD = &optim.Algorithm{
	Name:  "easgd",
	Title: "EASGD",
	Paper: "Zhang, Choromanska, LeCun: Deep learning with elastic averaging SGD (2015), algorithms 1 and 2",
	Doc: `Replicas go their own way and meet the centre every tau steps of their own clock t, one after another, with an equal
and opposite elastic move; then each steps along the gradient that it took before it met:

    e = alpha*(x - c);  x <- x - e;  c <- c + e          when tau divides t
    x <- x - eta*Nes(m, g);  t <- t + 1                  every step; g is the gradient at x as it was before the meeting

momentum 0 is EASGD (algorithm 1), above 0 EAMSGD (algorithm 2); optimiser adam, adamw or muon takes its step in place of
Nes's, for which the source has no figures. alpha = 0 stands for 0.9/n, the source's choice.
Asynchrony is a schedule: a round is n turns, one after another, each of a replica drawn uniformly from the seed, so that
clocks run apart as they do on unequal machines, and every meeting has its place in the order. Turns that do not depend on
each other run at once, with the same bits. The centre is the block xbar, equal on all workers.
Series: loss.
Bytes: a meeting brings one row to every worker (4M for each other one, and its spreading); a parameter server would move
4M each way. The clocks take 8 bytes a replica and other worker.

Deviations: Nesterov's momentum is in the form used everywhere here (buffer of gradients, step along g + mu*buf), where the
source evaluates the gradient at x + delta*v: the same iteration in shifted variables but for the elastic move. eta
defaults to 0.01 since delta = 0.99 multiplies it by 100.
Reductions: with tau beyond the run's length the replicas are independent SGDs after their first meeting, at which all stand
at the centre.`,
	Needs: optim.Gradients,
	Knobs: slices.Concat([]optim.Knob{optim.KnobEta.With(0.01), optim.KnobMu.With(0.99)}, optim.OptimiserKnobsWithoutMomentum, []optim.Knob{
		{Name: "tau", Label: "τ", Title: "period", Unit: "steps", Doc: "steps of a replica between its meetings with the centre", Min: 1, Max: 10000, Default: 4, Integer: true, Scale: optim.Log},
		{Name: "alpha", Label: "α", Title: "elasticity", Doc: "share of the distance that replica and centre move towards each other; 0 stands for 0.9/n", Min: 0, Max: 1},
	}, optim.MemberStream),
	Series: []optim.Series{optim.SeriesLoss},
	Blocks: func(k optim.Values, l engine.Layout) []optim.Block {
		return slices.Concat([]optim.Block{optim.Params(optim.BlockX, false, optim.EnterCentre, l)}, optim.Moments(k, false, l),
			[]optim.Block{optim.Params(optim.BlockXBar, true, optim.EnterCentre, l), optim.Counter(optim.BlockCursor, false), optim.Counter(optim.BlockClock, false), optim.Stats(false, l)})
	},
	Bytes: func(s optim.Shape) map[collective.Op]int64 {
		meet := func(m engine.Member) int64 { return s.AllReduceBytes(s.Roster.Only(m), s.Layout.Params) }
		var b int64
		for _, m := range s.Edges {
			b += meet(m.From)
		}
		if !s.Drawn {
			for _, m := range s.Roster.Members { // a turn each
				b += meet(m)
			}
			b /= int64(s.K.I("tau"))
		}
		return map[collective.Op]int64{"meet": b, "clock": s.AllGatherBytes(8)}
	},
	Program: easgd{},
}

type easgd struct{}

func (easgd) Round(ctx context.Context, e *optim.Env, k optim.Values, round uint64) (optim.Report, error) {
	members, n, M := e.Roster.Members, len(e.Mine), e.Layout.Params
	clocks, err := e.GatherCounters(ctx, "clock", optim.BlockClock)
	if err != nil {
		return optim.Report{}, err
	}
	ts := easgdTurns(e.Rand(noise.Pair, round, 0), members, clocks, uint64(k.I("tau")))
	alpha := k.F("alpha")
	if alpha == 0 {
		alpha = 0.9 / float32(len(members))
	}
	rep, last := e.ReportSteps(k, int64(len(ts))), make([]*float32, n)
	g, met := e.Scratch(n, M), e.Scratch(1, M)
	for _, wave := range easgdWaves(ts) {
		var rows []engine.Row
		var meet []engine.Member
		for _, i := range wave {
			if r := e.Row(ts[i].member); r >= 0 {
				rows = append(rows, r)
				e.Record(optim.BlockClock).URow(r)[0]++
			}
			if ts[i].meets {
				meet = append(meet, ts[i].member)
				rep.Edges = append(rep.Edges, collective.Edge{From: ts[i].member, To: ts[i].member, Op: "meet"})
			}
		}
		loss := make([]float32, len(rows))
		if len(rows) > 0 {
			if err := optim.MemberGradients(ctx, e, e.GradientStep(k, e.Block(optim.BlockX), rows, g, loss)); err != nil {
				return rep, err
			}
		}
		for _, m := range meet {
			if err := easgdMeet(ctx, e, m, alpha, met); err != nil {
				return rep, err
			}
		}
		var tasks []engine.Task
		step := optim.DefaultStep(k)
		for i, r := range rows {
			tasks = append(tasks, step(e, r, g.Sub(engine.Row(i), 1))...)
			last[r] = &loss[i]
		}
		if err := e.Engine.Do(ctx, tasks...); err != nil {
			return rep, err
		}
	}
	rep.Points = e.LatePointsOf("loss", last)
	return rep, nil
}

// easgdTurn is one step of a member, which may meet the centre first.
type easgdTurn struct {
	member engine.Member
	meets  bool
}

// easgdTurns draws the round's n turns. clock is the steps that each member, by rank, has taken before.
func easgdTurns(key noise.Key, members []engine.Member, clock []uint64, tau uint64) []easgdTurn {
	out := make([]easgdTurn, len(members))
	for i := range out {
		a := key.Below(i, len(members))
		out[i] = easgdTurn{members[a], clock[a]%tau == 0}
		clock[a]++
	}
	return out
}

// easgdWaves groups turns, by index, into sets that may run at once: a member has one turn in each, and meetings keep
// their order within a set and over sets.
func easgdWaves(ts []easgdTurn) (waves [][]int) {
	next, meeting := map[engine.Member]int{}, 0
	for i, t := range ts {
		w := next[t.member]
		if t.meets {
			w = max(w, meeting)
			meeting = w
		}
		next[t.member] = w + 1
		for w >= len(waves) {
			waves = append(waves, nil)
		}
		waves[w] = append(waves[w], i)
	}
	return waves
}

// easgdMeet is e = alpha*(x - c); x <- x - e; c <- c + e of one member.
func easgdMeet(ctx context.Context, e *optim.Env, m engine.Member, alpha float32, met engine.Mat) error {
	x, c, r := engine.Mat{Cols: e.Layout.Params}, e.Block(optim.BlockXBar), e.Row(m)
	if r >= 0 {
		x = e.Block(optim.BlockX).Sub(r, 1)
	}
	if err := e.Comm.AllReduce(ctx, "meet", e.Roster.Only(m), x, met, false); err != nil {
		return err
	}
	var prog []engine.Lin
	if r >= 0 {
		prog = append(prog, optim.Assign(x, optim.T(1-alpha, x), optim.T(alpha, c)))
	}
	prog = append(prog, optim.Assign(c, optim.T(1-alpha, c), optim.T(alpha, met)))
	return e.Engine.Do(ctx, engine.Update{Rows: engine.Rows(1), Prog: prog})
}

func (easgd) Centre(ctx context.Context, e *optim.Env, _ optim.Values, dst engine.Mat) error {
	return optim.CopyBlock(ctx, e, optim.BlockXBar, dst)
}
