package averaging

import (
	"context"
	"math"
	"slices"

	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
)

// knobParticipation is the share of the members that participate in a cycle.
var knobParticipation = optim.Knob{
	Name:    "participation",
	Label:   "C",
	Title:   "participation",
	Unit:    "share",
	Doc:     "share of the members that train in a cycle, at least one, drawn without replacement; the others idle",
	Min:     0,
	Max:     1,
	Default: 1,
}

// participants draws the members that train in a cycle, ascending. key is the key of the cycle.
func participants(r collective.Roster, k optim.Values, key noise.Key) (in collective.Roster) {
	n := len(r.Members)
	count := max(1, int(math.Round(k.Get("participation")*float64(n))))
	if count == n {
		return r
	}
	drawn := key.Shuffle(n)[:count]
	slices.Sort(drawn)
	for _, rank := range drawn {
		in.Members, in.Owner = append(in.Members, r.Members[rank]), append(in.Owner, r.Owner[rank])
	}
	return in
}

// cycle is a cycle of an algorithm in which some members take h steps from the agreed model, in one round or more.
type cycle struct {
	in    collective.Roster // members that train
	rows  []engine.Row      // of those that are hosted here
	steps int               // of each of them in this round
	ends  bool              // with this round
}

// beginRound returns the current cycle, at the start of a round. Its number, in block cycle, determines the draw of
// participants: if members join or leave within a cycle, they are drawn again.
func beginRound(e *optim.Env, k optim.Values) (c cycle) {
	s := e.Shape(k)
	c.in = participants(e.Roster, k, e.Rand(noise.Pair, e.Record(optim.BlockCycle).U[0], 0))
	for _, m := range c.in.Hosted(e.Self) {
		c.rows = append(c.rows, e.Row(m))
	}
	c.steps, c.ends = s.SliceSteps("h"), s.EndsCycle("h")
	return c
}

// step returns the gradient step of the participants hosted here, and pointers to their losses by row of all members.
func (c cycle) step(e *optim.Env, k optim.Values) (optim.Step, []*float32) {
	loss, last := make([]float32, len(c.rows)), make([]*float32, len(e.Mine))
	for i, r := range c.rows {
		last[r] = &loss[i]
	}
	return e.GradientStep(k, e.Block(optim.BlockX), c.rows, e.CohortScratch(len(e.Mine)), loss), last
}

// endRound counts the steps of the round in the blocks phase and cycle, and returns its report.
func (c cycle) endRound(e *optim.Env, k optim.Values, loss []*float32) optim.Report {
	rep := e.ReportSteps(k, int64(len(c.in.Members)*c.steps))
	rep.Points = e.LatePointsOf("loss", loss)
	if !e.AdvanceCycle(k, "h", c.steps) {
		return rep
	}
	e.Record(optim.BlockCycle).U[0]++
	for _, m := range c.in.Members {
		rep.Edges = append(rep.Edges, collective.Edge{From: m, To: m, Op: "average"})
	}
	return rep
}

// mean writes the mean of one vector of each participant into dst (1 row). row returns the terms of the vector of the
// participant in row r of the members' blocks. src is scratch with a row for each hosted member.
func (c cycle) mean(ctx context.Context, e *optim.Env, op collective.Op, src, dst engine.Mat,
	row func(r engine.Row) []engine.Term) error {
	tasks := make([]engine.Task, len(c.rows))
	for i, r := range c.rows {
		tasks[i] = optim.Update(1, optim.Assign(src.Sub(engine.Row(i), 1), row(r)...))
	}
	if err := e.Engine.Do(ctx, tasks...); err != nil {
		return err
	}
	return e.Comm.AllReduce(ctx, op, c.in, src.Sub(0, len(c.rows)), dst, true)
}

// participantsBytes returns the payload of an all-reduce of a parameter vector over the participants of the round, as
// the edges list them, or before they are drawn its mean over a sample of draws.
func participantsBytes(s optim.Shape) int64 {
	if s.Drawn {
		var in collective.Roster
		for _, edge := range s.Edges {
			in.Members, in.Owner = append(in.Members, edge.From), append(in.Owner, s.Roster.Of(edge.From))
		}
		return s.AllReduceBytes(in, s.Layout.Params)
	}
	const draws = 16
	var sum int64
	for c := range uint64(draws) {
		in := participants(s.Roster, s.K, noise.Key{Purpose: noise.Pair, Round: c})
		sum += s.AllReduceBytes(in, s.Layout.Params)
	}
	return sum / draws
}
