package gossip

import (
	"context"
	"fmt"
	"slices"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/collective"
)

// SGP is stochastic gradient push: push-sum averaging over a directed graph.
var SGP = &optim.Algorithm{
	Name:  "sgp",
	Title: "Stochastic gradient push",
	Paper: "Assran, Loizou, Ballas, Rabbat: Stochastic gradient push for distributed deep learning (2019), algorithm 1",
	Doc: `Every member has a mass w*x and a weight w, which starts at one; its model is the quotient x. It takes a gradient
step on the model and pushes equal shares of mass and weight to itself and to its out-peers:

    x_i <- x_i - eta*Nes(m_i, grad f(x_i))
    w_i x_i <- sum_j p*w_j x_j;  w_i <- sum_j p*w_j;  p = 1/(peers+1), j over i itself and those that push to it

optimiser adam, adamw or muon replaces the step of Nes (adam is the source's Adam-SGP).

The out-peers of a member are 2^a members ahead of it on the ring of ids. The knob peers is the number of successive
exponents a in use, all with 2^a < n. The first exponent increases by one each round, cyclically; the phase block stores
it. No member waits for an answer and the sum of masses is conserved: the centre is sum w*x / sum w. Since in and out
degrees are equal here, all weights stay one until a member leaves: it passes its mass to the next member that stays.
The mass of a member that fails is lost, which moves the centre but does not change the rule.
Series: loss, the weight w, and the members that each one pushed to.
Bytes: 4M+4 for each row sent to another worker, at most peers a member.

Deviations: the block x contains the de-biased model z = x/w of the source instead of the mass, as in other algorithms;
the mass is computed when it is pushed. The step is of z; algorithm 1 subtracts it from the mass, which moves z by 1/w
as much, so that the two are equal until a member leaves. One synchronous step a round (the source's overlap of 0).
Reductions: eta 0 is push-sum, which solves distributed averaging; two members with one peer average fully each round.`,
	Needs: optim.Gradients | optim.Pairs,
	Knobs: slices.Concat([]optim.Knob{optim.KnobEta}, optim.OrProgram(optim.OptimiserKnobs), []optim.Knob{
		{
			Name:    "peers",
			Title:   "out-peers",
			Doc:     "members that each member pushes to in a round",
			Min:     1,
			Max:     30,
			Default: 1,
			Integer: true,
		},
	}, optim.MemberStream),
	Series: []optim.Series{
		optim.SeriesLoss,
		{
			Name:  "weight",
			Title: "push-sum weight",
			Doc:   "share of the member in the centre, times n",
			Kind:  optim.PerMember,
		},
		optim.SeriesPartner,
	},
	Blocks: func(k optim.Values, l engine.Layout) []optim.Block {
		return optim.StepBlocks(k, l, optim.Params(optim.BlockX, false, optim.EnterCentre, l),
			optim.Block{Name: optim.BlockW, Cols: 1, Enter: optim.EnterOne, Record: true},
			optim.Counter(optim.BlockCursor, false),
			optim.Counter(optim.BlockPhase, true),
			optim.Stats(false, l))
	},
	Check: func(s optim.Shape) error {
		n := len(s.Roster.Members)
		if most := len(sgpHops(n)); s.K.I("peers") > most {
			return fmt.Errorf("%d members have out-peers at %d distances: give peers at most %d, or more members",
				n, most, most)
		}
		return nil
	},
	Bytes: func(s optim.Shape) map[collective.Op]int64 {
		rows := s.MoveBytes(sgpPushes(s.Roster, s.Phase, s.K.I("peers")), 1)
		return map[collective.Op]int64{"push": rows * 4 * int64(s.Layout.Params), "weight": rows * 4}
	},
	Program: sgp{},
}

type sgp struct{}

func (sgp) Round(ctx context.Context, e *optim.Env, k optim.Values, round uint64) (optim.Report, error) {
	n, phase, peers := len(e.Mine), e.Record(optim.BlockPhase).U, k.I("peers")
	loss, all := make([]*float32, n), e.Scratch((peers+1)*n, e.Layout.Params)
	if err := optim.LocalSteps(ctx, e, k, engine.Rows(n), 1, all.Sub(0, n), loss); err != nil {
		return optim.Report{}, err
	}
	edges := sgpPushes(e.Roster, phase[0], peers)
	pushes := make([][2]engine.Member, 0, peers*n)
	for _, edge := range edges {
		if e.Row(edge.From) >= 0 {
			pushes = append(pushes, [2]engine.Member{edge.From, edge.To})
		}
	}
	phase[0] = (phase[0] + 1) % uint64(len(sgpHops(len(e.Roster.Members))))
	keep := 1 / float64(peers+1)
	if err := sgpReceive(ctx, e, "push", edges, keep, keep, all); err != nil {
		return optim.Report{}, err
	}
	rep := e.ReportSteps(k, int64(len(e.Roster.Members)))
	rep.Points = slices.Concat(
		e.LatePointsOf("loss", loss),
		e.MemberPoints("weight", e.Record(optim.BlockW).F),
		e.PartnersOf(pushes, true),
	)
	return rep, nil
}

// sgpHops returns the distances 2^a < n of the exponential graph, ascending.
func sgpHops(n int) (out []int) {
	for h := 1; h < n; h *= 2 {
		out = append(out, h)
	}
	return out
}

// sgpPushes returns the edges of a round: peers edges into each member, in the order of members.
func sgpPushes(r collective.Roster, phase uint64, peers int) (edges []collective.Edge) {
	n := len(r.Members)
	h := sgpHops(n)
	edges = make([]collective.Edge, 0, peers*n)
	for i, m := range r.Members {
		for j := range peers {
			hop := h[(phase+uint64(j))%uint64(len(h))]
			edges = append(edges, collective.Edge{From: r.Members[(i+n-hop)%n], To: m, Op: "push"})
		}
	}
	return edges
}

// sgpReceive moves mass along edges. Each hosted member keeps the share keep of its mass and weight and adds the share
// p of the source's mass and weight for each incoming edge, in the order of edges. got is scratch with a row for each
// edge that ends at a hosted member.
func sgpReceive(
	ctx context.Context, e *optim.Env, op collective.Op, edges []collective.Edge, keep, p float64, got engine.Mat,
) error {
	x, w, in := e.Block(optim.BlockX), e.Record(optim.BlockW), e.Incoming(edges)
	rows, weights := got.Sub(0, len(in)), engine.NewHost(len(in), 1, engine.F32)
	if err := e.Comm.Move(ctx, op, edges, x, rows); err != nil {
		return err
	}
	if err := e.Comm.MoveRecords(ctx, "weight", edges, w, weights); err != nil {
		return err
	}
	var tasks []engine.Task
	for r, m := range e.Mine {
		own := keep * float64(w.F[r])
		sum := own
		for i, edge := range in {
			if edge.To == m {
				sum += float64(p * float64(weights.F[i]))
			}
		}
		xr := x.Sub(engine.Row(r), 1)
		mix := optim.Assign(xr, optim.T(float32(own/sum), xr))
		for i, edge := range in {
			if edge.To == m {
				share := float32(p * float64(weights.F[i]) / sum)
				mix.Terms = append(mix.Terms, optim.T(share, rows.Sub(engine.Row(i), 1)))
			}
		}
		w.F[r] = float32(sum)
		if len(mix.Terms) > 1 {
			tasks = append(tasks, optim.Update(1, mix))
		}
	}
	return e.Engine.Do(ctx, tasks...)
}

// Leave passes the mass of each leaving member to the next member on the ring that stays, and sets its weight to 0.
func (sgp) Leave(ctx context.Context, e *optim.Env, _ optim.Values, gone []engine.Member) error {
	members, n := e.Roster.Members, len(e.Roster.Members)
	var edges []collective.Edge
	for _, m := range gone {
		for i := 1; i < n; i++ {
			if to := members[(e.Roster.Rank(m)+i)%n]; !slices.Contains(gone, to) {
				edges = append(edges, collective.Edge{From: m, To: to, Op: "leave"})
				break
			}
		}
	}
	if err := sgpReceive(ctx, e, "leave", edges, 1, 1, e.Scratch(len(e.Incoming(edges)), e.Layout.Params)); err != nil {
		return err
	}
	for _, m := range gone {
		if r := e.Row(m); r >= 0 {
			e.Record(optim.BlockW).F[r] = 0
		}
	}
	return nil
}

// Centre computes sum w*x / sum w.
func (sgp) Centre(ctx context.Context, e *optim.Env, _ optim.Values, dst engine.Mat) error {
	x, w := e.Block(optim.BlockX), e.Record(optim.BlockW)
	masses, sum := e.Scratch(len(e.Mine), e.Layout.Params), e.Scratch(1, 1)
	var tasks []engine.Task
	for r := range e.Mine {
		row := engine.Row(r)
		mass := optim.Assign(masses.Sub(row, 1), optim.T(w.F[r], x.Sub(row, 1)))
		tasks = append(tasks, optim.Update(1, mass))
	}
	if err := e.Engine.Do(ctx, tasks...); err != nil {
		return err
	}
	if err := e.Comm.AllReduce(ctx, "centre", e.Roster, masses, dst, false); err != nil {
		return err
	}
	weights := e.Scratch(len(e.Mine), 1)
	if err := e.Engine.Write(ctx, engine.All(weights), engine.AppendFloats(nil, w.F)); err != nil {
		return err
	}
	if err := e.Comm.AllReduce(ctx, "centre", e.Roster, weights, sum, false); err != nil {
		return err
	}
	total, err := engine.Download(ctx, e.Engine, sum)
	if err != nil {
		return err
	}
	return e.Engine.Do(ctx, optim.Update(1, optim.Assign(dst, optim.T(1/total.F[0], dst))))
}
