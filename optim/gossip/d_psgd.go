package gossip

import (
	"context"
	"slices"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/collective"
)

// DPSGD is decentralised parallel SGD: members average with their neighbours in a fixed graph.
var DPSGD = &optim.Algorithm{
	Name:  "d-psgd",
	Title: "D-PSGD",
	Paper: "Lian, Zhang, Zhang, Hsieh, Zhang, Liu: Can decentralized algorithms outperform centralized algorithms? " +
		"(2017), algorithm 1; exponential graphs: Ying, Yuan, Chen, Hu, Pan, Yin: Exponential graph is provably efficient " +
		"for decentralized deep training (2021)",
	Doc: `Every member averages with its neighbours in a graph, and takes a gradient step from where it was before:

    x_i <- sum_j W_ij x_j - eta*Nes(m_i, grad f(x_i))

with W_ij = 1/(d+1) for i itself and its d neighbours, and else 0. All members have equally many, so W is doubly
stochastic and averaging keeps the mean of the x_i. optimiser adam, adamw or muon replaces the step of Nes. The graph is
over the ranks of the n members:

    ring          the members before and after; d = 2
    torus         the four around a member in rows x columns, both wrapping around; rows is the largest divisor of n
                  that is at most its root: a prime number of members is a ring
    exponential   those 2^a before it, for all 2^a < n (Ying: static)
    one-peer      one of these, the next each round (Ying: one-peer); the block phase counts

Neighbours that coincide count once: in a ring of two, d = 1. In exponential graphs a member receives from those before
it and sends to those after it. The centre is mean_i x; spread, which every run measures, is the consensus distance.
Series: loss, and the members that each one sent to.
Bytes: 4M for each row sent to another worker, once to each.

Deviations: none in the rule. The source's communication overlaps the gradient; here a round takes one after the other.
Reductions: eta 0 is averaging by gossip, exact after log2(n) rounds of the one-peer graph if n is a power of two; a
ring of three averages fully each round.`,
	Needs: optim.Gradients | optim.Pairs,
	Knobs: slices.Concat([]optim.Knob{optim.KnobEta}, optim.OrProgram(optim.OptimiserKnobs), []optim.Knob{
		{
			Name:    "graph",
			Title:   "graph",
			Doc:     "who averages with whom",
			Choices: []string{"ring", "torus", "exponential", "one-peer"},
		},
	}, optim.MemberStream),
	Series: []optim.Series{optim.SeriesLoss, optim.SeriesPartner},
	Blocks: func(k optim.Values, l engine.Layout) []optim.Block {
		return optim.StepBlocks(k, l, optim.Params(optim.BlockX, false, optim.EnterCentre, l),
			optim.Counter(optim.BlockCursor, false),
			optim.Counter(optim.BlockPhase, true),
			optim.Stats(false, l))
	},
	Bytes: func(s optim.Shape) map[collective.Op]int64 {
		return map[collective.Op]int64{"neighbours": s.MoveBytes(dPSGDEdges(s.Roster, s.K, s.Phase), 4*s.Layout.Params)}
	},
	Program: dPSGD{},
}

type dPSGD struct{}

func (dPSGD) Round(ctx context.Context, e *optim.Env, k optim.Values, _ uint64) (optim.Report, error) {
	n, M, x, phase := len(e.Mine), e.Layout.Params, e.Block(optim.BlockX), e.Record(optim.BlockPhase).U
	edges := dPSGDEdges(e.Roster, k, phase[0])
	in := e.Incoming(edges)
	got, moved, loss := e.Scratch(len(in), M), e.Scratch(n, M), make([]*float32, n)
	if err := e.Comm.Move(ctx, "neighbours", edges, x, got); err != nil {
		return optim.Report{}, err
	}
	// how far averaging moves each member, before its step changes x
	if err := e.Engine.Do(ctx, dPSGDMoves(e, in, got, moved)...); err != nil {
		return optim.Report{}, err
	}
	if err := optim.LocalSteps(ctx, e, k, engine.Rows(n), 1, e.CohortScratch(n), loss); err != nil {
		return optim.Report{}, err
	}
	phase[0] = (phase[0] + 1) % uint64(len(sgpHops(len(e.Roster.Members))))
	rep := e.ReportSteps(k, int64(len(e.Roster.Members)))
	sent := make([][2]engine.Member, 0, len(edges))
	for _, edge := range edges {
		if e.Row(edge.From) >= 0 {
			sent = append(sent, [2]engine.Member{edge.From, edge.To})
		}
	}
	rep.Points = append(e.LatePointsOf("loss", loss), e.PartnersOf(sent, true)...)
	return rep, e.Engine.Do(ctx, optim.Update(n, optim.Assign(x, optim.T(1, x), optim.T(1, moved))))
}

// dPSGDMoves returns the tasks that write sum_j W_ij x_j - x_i of each hosted member i into its row of moved. got has a
// row for each of the edges in, which end at hosted members.
func dPSGDMoves(e *optim.Env, in []collective.Edge, got, moved engine.Mat) []engine.Task {
	from := make([][]engine.Row, len(e.Mine)) // rows of got, by row of the member that averages them
	for i, edge := range in {
		r := e.Row(edge.To)
		from[r] = append(from[r], engine.Row(i))
	}
	tasks := make([]engine.Task, len(e.Mine))
	for r, rows := range from {
		row, d := engine.Row(r), float32(len(rows))
		move := optim.Assign(moved.Sub(row, 1), optim.T(-d/(d+1), e.Block(optim.BlockX).Sub(row, 1)))
		for _, i := range rows {
			move.Terms = append(move.Terms, optim.T(1/(d+1), got.Sub(i, 1)))
		}
		tasks[r] = optim.Update(1, move)
	}
	return tasks
}

// dPSGDEdges returns the edges of a round, those into each member together, in the order of members.
func dPSGDEdges(r collective.Roster, k optim.Values, phase uint64) (edges []collective.Edge) {
	graph := k.Choice("graph")
	for rank, m := range r.Members {
		for _, from := range dPSGDNeighbours(graph, rank, len(r.Members), phase) {
			edges = append(edges, collective.Edge{From: r.Members[from], To: m, Op: "neighbours"})
		}
	}
	return edges
}

// dPSGDNeighbours returns the ranks from which the member of a rank, of n, receives: distinct, ascending, without its
// own.
func dPSGDNeighbours(graph string, rank, n int, phase uint64) (out []int) {
	switch hops := sgpHops(n); graph {
	case "ring":
		out = []int{rank + 1, rank + n - 1}
	case "torus":
		rows := 1
		for d := 2; d*d <= n; d++ {
			if n%d == 0 {
				rows = d
			}
		}
		cols := n / rows
		row, col := rank/cols, rank%cols
		out = []int{
			row*cols + (col+1)%cols,
			row*cols + (col+cols-1)%cols,
			rank + cols,
			rank + n - cols,
		}
	case "exponential":
		for _, hop := range hops {
			out = append(out, rank+n-hop)
		}
	case "one-peer":
		out = []int{rank + n - hops[phase%uint64(len(hops))]}
	}
	for i := range out {
		out[i] %= n
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(from int) bool { return from == rank })
}

// Centre computes mean_i x.
func (dPSGD) Centre(ctx context.Context, e *optim.Env, _ optim.Values, dst engine.Mat) error {
	return optim.MeanX(ctx, e, dst)
}
