package coupled

import (
	"context"
	"slices"

	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
)

// EASGD couples replicas to a common centre, one replica at a time (elastic averaging).
var EASGD = &optim.Algorithm{
	Name:  "easgd",
	Title: "EASGD",
	Paper: "Zhang, Choromanska, LeCun: Deep learning with elastic averaging SGD (2015), algorithms 1 and 2",
	Doc: `Replicas train independently. Every tau steps of its own clock t a replica meets the centre: both move towards
each other by the same amount. Meetings happen one after another. The replica then steps along the gradient that it
computed before the meeting:

    e = alpha*(x - c);  x <- x - e;  c <- c + e          when tau divides t
    x <- x - eta*Nes(m, g);  t <- t + 1                  every step; g is the gradient at x before the meeting

momentum 0 is EASGD (algorithm 1), above 0 EAMSGD (algorithm 2); optimiser adam, adamw or muon replaces the step of Nes,
for which the source has no figures. alpha = 0 selects 0.9/n, the source's choice. A schedule simulates asynchrony: a
round is n turns, one after another, each of a replica drawn uniformly from the seed. Clocks thus diverge as on unequal
machines, and meetings have a fixed order. Turns that do not depend on each other run concurrently, with the same bits.
The centre is the block xbar, equal on all workers.
Series: loss.
Bytes: a meeting brings one row to every worker (4M for each other worker, and its spreading); a parameter server would
move 4M each way. The clocks take 8 bytes for each replica and other worker.

Deviations: Nesterov's momentum has the form used everywhere here (buffer of gradients, step along g + mu*buf), whereas
the source evaluates the gradient at x + delta*v: the same iteration in shifted variables except for the elastic move.
eta defaults to 0.01 since delta = 0.99 multiplies it by 100.
Reductions: with tau beyond the run's length the replicas are independent SGDs after their first meeting, at which all
equal the centre.`,
	Needs: optim.Gradients,
	Knobs: slices.Concat([]optim.Knob{
		optim.KnobEta.With(0.01),
		optim.KnobMu.With(0.99),
	}, optim.OptimiserKnobsWithoutMomentum, []optim.Knob{
		{
			Name:    "tau",
			Label:   "τ",
			Title:   "period",
			Unit:    "steps",
			Doc:     "steps of a replica between two meetings with the centre",
			Min:     1,
			Max:     10000,
			Default: 4,
			Integer: true,
			Scale:   optim.Log,
		},
		{
			Name:  "alpha",
			Label: "α",
			Title: "elasticity",
			Doc:   "share of the distance that replica and centre each move towards the other; 0 selects 0.9/n",
			Min:   0,
			Max:   1,
		},
	}, optim.MemberStream),
	Series: []optim.Series{optim.SeriesLoss},
	Blocks: func(k optim.Values, l engine.Layout) []optim.Block {
		return optim.StepBlocks(k, l, optim.Params(optim.BlockX, false, optim.EnterCentre, l),
			optim.Params(optim.BlockXBar, true, optim.EnterCentre, l),
			optim.Counter(optim.BlockCursor, false),
			optim.Counter(optim.BlockClock, false),
			optim.Stats(false, l))
	},
	Bytes: func(s optim.Shape) map[collective.Op]int64 {
		meet := func(m engine.Member) int64 { return s.AllReduceBytes(s.Roster.Only(m), s.Layout.Params) }
		var b int64
		for _, m := range s.Edges {
			b += meet(m.From)
		}
		if !s.Drawn {
			for _, m := range s.Roster.Members { // on average each member has one turn
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
	turns := easgdTurns(e.Rand(noise.Pair, round, 0), members, clocks, uint64(k.I("tau")))
	alpha := k.F("alpha")
	if alpha == 0 {
		alpha = 0.9 / float32(len(members))
	}
	rep, last := e.ReportSteps(k, int64(len(turns))), make([]*float32, n)
	g, received := e.Scratch(n, M), e.Scratch(1, M)
	for _, wave := range easgdWaves(turns) {
		var rows []engine.Row
		var meet []engine.Member
		for _, i := range wave {
			m := turns[i].member
			if r := e.Row(m); r >= 0 {
				rows = append(rows, r)
				e.Record(optim.BlockClock).URow(r)[0]++
			}
			if turns[i].meets {
				meet = append(meet, m)
				rep.Edges = append(rep.Edges, collective.Edge{From: m, To: m, Op: "meet"})
			}
		}
		loss := make([]float32, len(rows))
		if len(rows) > 0 {
			s := e.GradientStep(k, e.Block(optim.BlockX), rows, g, loss)
			if err := optim.MemberGradients(ctx, e, s); err != nil {
				return rep, err
			}
		}
		for _, m := range meet {
			if err := easgdMeet(ctx, e, m, alpha, received); err != nil {
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

// easgdTurn is one step of a member.
type easgdTurn struct {
	member engine.Member
	meets  bool // the member meets the centre between its gradient and its step
}

// easgdTurns draws the n turns of a round. clock contains the number of steps of each member so far, by rank;
// easgdTurns advances it.
func easgdTurns(key noise.Key, members []engine.Member, clock []uint64, tau uint64) []easgdTurn {
	out := make([]easgdTurn, len(members))
	for i := range out {
		a := key.Below(i, len(members))
		out[i] = easgdTurn{members[a], clock[a]%tau == 0}
		clock[a]++
	}
	return out
}

// easgdWaves groups turns, by index, into sets that may run concurrently. A member has at most one turn in a set.
// Meetings keep their order, within a set and from set to set.
func easgdWaves(turns []easgdTurn) (waves [][]int) {
	next := map[engine.Member]int{} // the first wave after the member's last turn
	meeting := 0                    // the wave of the last meeting
	for i, t := range turns {
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

// easgdMeet lets member m meet the centre: e = alpha*(x - c); x <- x - e; c <- c + e. All workers call it, since all
// store the centre. received is scratch of one row, for the x of m.
func easgdMeet(ctx context.Context, e *optim.Env, m engine.Member, alpha float32, received engine.Mat) error {
	x, c, r := engine.Mat{Cols: e.Layout.Params}, e.Block(optim.BlockXBar), e.Row(m)
	if r >= 0 {
		x = e.Block(optim.BlockX).Sub(r, 1)
	}
	if err := e.Comm.AllReduce(ctx, "meet", e.Roster.Only(m), x, received, false); err != nil {
		return err
	}
	var prog []engine.Lin
	if r >= 0 {
		prog = append(prog, optim.Assign(x, optim.T(1-alpha, x), optim.T(alpha, c)))
	}
	prog = append(prog, optim.Assign(c, optim.T(1-alpha, c), optim.T(alpha, received)))
	return e.Engine.Do(ctx, optim.Update(1, prog...))
}

func (easgd) Centre(ctx context.Context, e *optim.Env, _ optim.Values, dst engine.Mat) error {
	return optim.CopyBlock(ctx, e, optim.BlockXBar, dst)
}
