package optim

import (
	"context"
	"errors"

	"brood/models/engine"
	"brood/models/noise"
)

// PopSGD lets random pairs meet and average.
var PopSGD = &Algorithm{
	Name:  "popsgd",
	Title: "PopSGD",
	Paper: "Nadiradze, Sabour, Davies, Li, Alistarh: Asynchronous decentralized SGD with population protocols (SwarmSGD, 2019)",
	Doc: `A fair scheduler draws pairs (i, j), one after another, uniformly; both take h local steps and then average (blocking):

    x_i, x_j <- h steps of SGD each;   x_i = x_j = (x_i + x_j)/2

A round is n/2 meetings; those of disjoint pairs run at once, which gives the same bits as one after another. Momentum and
batch-norm statistics stay with the member. Without gradients, per meeting, for independent members:
E[Gamma'] = Gamma*(1 - 1/(n-1)), Gamma = sum ||x_i - mean||^2.
Bytes: 4M each way for a meeting of members of different workers.`,
	Needs: Gradients | Pairs,
	Knobs: []Knob{
		KnobEta, KnobMu, KnobB, KnobWD,
		{Name: "h", Title: "local steps", Unit: "steps", Doc: "steps of each member before a meeting", Min: 0, Max: 1000, Default: 1, Integer: true},
		{Name: "start", Title: "start", Doc: "members start from one initialisation or each from its own", Choices: []string{"same", "own"}, Max: 1},
	},
	Series: []Series{SeriesLoss},
	Blocks: func(k Values, l engine.Layout) []Block {
		enter := EnterCentre
		if k.I("start") == 1 {
			enter = EnterOwn
		}
		return []Block{Params(BlockX, false, enter, l), Params(BlockM, false, EnterZero, l), Counter(BlockCursor, false), Stats(false, l)}
	},
	Check: func(s Shape) error {
		if len(s.Roster.Members) < 2 {
			return errors.New("pairs need two members or more: give members at least 2")
		}
		return nil
	},
	Bytes: func(s Shape) map[Op]int64 {
		M, n := s.Layout.Params, int64(len(s.Roster.Members))
		if !s.Drawn {
			pairs := int64(0) // ordered pairs of different workers
			for _, w := range s.Roster.Workers() {
				h := int64(len(s.Roster.Hosted(w)))
				pairs += h * (n - h)
			}
			return map[Op]int64{"exchange": n / 2 * 2 * pairs * 4 * int64(M) / max(1, n*(n-1))}
		}
		var b int64
		for i := range s.Edges { // every meeting is an exchange of its own
			b += s.MoveBytes(s.Edges[i:i+1], 4*M)
		}
		return map[Op]int64{"exchange": b}
	},
	Program: popSGD{},
}

type popSGD struct{}

// Meetings draws count unordered pairs of members, uniform and independent, from the round's pairing stream.
func Meetings(key noise.Key, members []Member, count int) [][2]Member {
	n, out := len(members), make([][2]Member, count)
	for i := range out {
		a, b := key.Below(2*i, n), key.Below(2*i+1, n-1)
		if b >= a {
			b++
		}
		out[i] = [2]Member{members[a], members[b]}
	}
	return out
}

// Waves groups an ordered list of meetings into sets of disjoint ones, by index: running the sets in order gives the same
// bits as running the list in order.
func Waves(meetings [][2]Member) (waves [][]int) {
	next := map[Member]int{} // first wave in which the member is free
	for i, m := range meetings {
		w := max(next[m[0]], next[m[1]])
		next[m[0]], next[m[1]] = w+1, w+1
		if w == len(waves) {
			waves = append(waves, nil)
		}
		waves[w] = append(waves[w], i)
	}
	return waves
}

func (popSGD) Round(ctx context.Context, e *Env, k Values, round uint64) (Report, error) {
	n, h := len(e.Roster.Members), k.I("h")
	meetings := Meetings(e.Rand(noise.Pair, round, 0), e.Roster.Members, max(1, n/2))
	last, stepped := make([]float32, len(e.Mine)), make([]bool, len(e.Mine))
	rep, g, peer := Report{}, e.Scratch(len(e.Mine), e.Layout.Params), e.Scratch(len(e.Mine), e.Layout.Params)
	for _, wave := range Waves(meetings) {
		var rows []engine.Row
		var edges []Edge
		for _, i := range wave {
			a, b := meetings[i][0], meetings[i][1]
			edges = append(edges, Edge{a, b, "exchange"}, Edge{b, a, "exchange"})
			for _, m := range meetings[i] {
				if r := e.Row(m); r >= 0 {
					rows = append(rows, r)
					stepped[r] = true
				}
			}
		}
		rep.Edges = append(rep.Edges, edges...)
		if err := localSteps(ctx, e, k, rows, h, g, last); err != nil {
			return rep, err
		}
		if err := average(ctx, e, edges, peer.Sub(0, len(rows))); err != nil {
			return rep, err
		}
	}
	b := int64(k.I("batch"))
	rep.Steps = int64(2 * len(meetings) * h)
	rep.Samples = rep.Steps * b
	rep.Pass = Pass{rep.Samples, int64(n) * int64(len(e.Data.Train()))}
	for r, m := range e.Mine {
		if h > 0 && stepped[r] {
			rep.Points = append(rep.Points, Point{m, "loss", float64(last[r])})
		}
	}
	return rep, nil
}

// localSteps takes h steps of Nesterov SGD on some members, with g as scratch; last receives their last losses, by row.
func localSteps(ctx context.Context, e *Env, k Values, rows []engine.Row, h int, g engine.Mat, last []float32) error {
	if len(rows) == 0 || h == 0 {
		return nil
	}
	x, m := e.Block(BlockX), e.Block(BlockM)
	loss := make([]float32, len(rows))
	for range h {
		s := Step{X: x, XRows: rows, Rows: rows, G: g, Loss: loss, Batch: k.I("batch"), Frac: 1, Decay: k.F("decay")}
		if err := MemberGradients(ctx, e, s); err != nil {
			return err
		}
		tasks := make([]engine.Task, len(rows))
		for i, r := range rows {
			tasks[i] = engine.Update{Rows: engine.Rows(1), Prog: Nesterov(x.Sub(r, 1), m.Sub(r, 1), g.Sub(engine.Row(i), 1), k.F("eta"), k.F("momentum"))}
		}
		if err := e.Engine.Do(ctx, tasks...); err != nil {
			return err
		}
	}
	for i, r := range rows {
		last[r] = loss[i]
	}
	return nil
}

// average replaces both ends of each pair of edges by their mean. peer has a row for each hosted end.
func average(ctx context.Context, e *Env, edges []Edge, peer engine.Mat) error {
	x := e.Block(BlockX)
	if err := e.Comm.Move(ctx, "exchange", edges, x, peer); err != nil {
		return err
	}
	var tasks []engine.Task
	for i, in := range Incoming(edges, e.Roster, e.Self) {
		xr := x.Sub(e.Row(in.To), 1)
		tasks = append(tasks, engine.Update{Rows: engine.Rows(1), Prog: []engine.Lin{Assign(xr, T(0.5, xr), T(0.5, peer.Sub(engine.Row(i), 1)))}})
	}
	return e.Engine.Do(ctx, tasks...)
}

func (popSGD) Centre(ctx context.Context, e *Env, _ Values, dst engine.Mat) error {
	return MeanX(ctx, e, dst)
}
