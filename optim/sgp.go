package optim

import (
	"context"
	"fmt"
	"slices"

	"brood/models/engine"
)

// SGP is stochastic gradient push: push-sum averaging over a directed graph.
var SGP = &Algorithm{
	Name:  "sgp",
	Title: "Stochastic gradient push",
	Paper: "Assran, Loizou, Ballas, Rabbat: Stochastic gradient push for distributed deep learning (2019), algorithm 1",
	Doc: `Every member carries a mass w*x and a weight w, which starts at one; its model is the quotient x. It takes a gradient
step on the model and pushes equal shares of mass and weight to itself and to its out-peers:

    x_i <- x_i - eta*Nes(m_i, grad f(x_i))
    w_i x_i <- sum_j p*w_j x_j;  w_i <- sum_j p*w_j;  p = 1/(peers+1), j over i itself and those that push to it

optimiser adam, adamw or muon takes its step in place of Nes's (adam is the source's Adam-SGP).

The out-peers are 2^a members further round the ring of ids, for peers successive exponents a of those with 2^a < n; a moves
on by one each round, counted in the phase block. Nobody waits for an answer and the sum of masses is conserved: the centre
is sum w*x / sum w. In and out degrees are equal here, so all weights stay one until a member leaves: it hands its mass to
the next one that stays. A member that dies takes its mass along, which moves the centre but not the rule.
Series: loss, the weight w, and whom each member pushed to.
Bytes: 4M+4 for each row that crosses to another worker, at most peers a member.

Deviations: the block x holds the de-biased model z = x/w of the source instead of the mass, so that it means what it means
elsewhere; the mass is formed when it is pushed. One synchronous step a round (the source's overlap of 0).
Reductions: eta 0 is push-sum, which solves distributed averaging; two members with one peer average fully each round.`,
	Needs: Gradients | Pairs,
	Knobs: slices.Concat([]Knob{KnobEta}, OptimiserKnobs, []Knob{
		{Name: "peers", Title: "out-peers", Doc: "members that each one pushes to in a round", Min: 1, Max: 30, Default: 1, Integer: true},
	}, MemberStream),
	Series: []Series{SeriesLoss, {Name: "weight", Title: "push-sum weight", Doc: "share of the member in the centre, times n", Kind: PerMember}, SeriesPartner},
	Blocks: func(k Values, l engine.Layout) []Block {
		return slices.Concat([]Block{Params(BlockX, false, EnterCentre, l)}, Moments(k, false, l), []Block{{Name: BlockW, Cols: 1, Enter: EnterOne, Record: true},
			Counter(BlockCursor, false), Counter(BlockPhase, true), Stats(false, l)})
	},
	Check: func(s Shape) error {
		n := len(s.Roster.Members)
		if most := len(sgpHops(n)); s.K.I("peers") > most {
			return fmt.Errorf("%d members have out-peers at %d distances: give peers at most %d, or more members", n, most, most)
		}
		return nil
	},
	Bytes: func(s Shape) map[Op]int64 {
		rows := s.MoveBytes(sgpPushes(s.Roster, s.Phase, s.K.I("peers")), 1)
		return map[Op]int64{"push": rows * 4 * int64(s.Layout.Params), "weight": rows * 4}
	},
	Program: sgp{},
}

type sgp struct{}

func (sgp) Round(ctx context.Context, e *Env, k Values, round uint64) (Report, error) {
	n, phase, peers := len(e.Mine), e.Record(BlockPhase).U, k.I("peers")
	loss, all := make([]*float32, n), e.Scratch((peers+1)*n, e.Layout.Params)
	if err := localSteps(ctx, e, k, engine.Rows(n), 1, all.Sub(0, n), loss); err != nil {
		return Report{}, err
	}
	edges := once(e.Comm, "pushes", round, func() []Edge { return sgpPushes(e.Roster, phase[0], peers) })
	met := make([][2]Member, 0, peers*n)
	for _, edge := range edges {
		if e.Row(edge.From) >= 0 {
			met = append(met, [2]Member{edge.From, edge.To})
		}
	}
	phase[0] = (phase[0] + 1) % uint64(len(sgpHops(len(e.Roster.Members))))
	keep := 1 / float64(peers+1)
	if err := sgpReceive(ctx, e, "push", edges, keep, keep, all); err != nil {
		return Report{}, err
	}
	rep := e.memberSteps(k, int64(len(e.Roster.Members)))
	rep.Points = slices.Concat(e.latePoints("loss", loss), e.MemberPoints("weight", e.Record(BlockW).F), e.PartnersOf(met, true))
	return rep, nil
}

// sgpHops are the distances 2^a < n of the exponential graph.
func sgpHops(n int) (out []int) {
	for h := 1; h < n; h *= 2 {
		out = append(out, h)
	}
	return out
}

// sgpPushes lists the edges into every member, peers each.
func sgpPushes(r Roster, phase uint64, peers int) (edges []Edge) {
	n := len(r.Members)
	h := sgpHops(n)
	edges = make([]Edge, 0, peers*n)
	for i, m := range r.Members {
		for j := range peers {
			hop := h[(phase+uint64(j))%uint64(len(h))]
			edges = append(edges, Edge{r.Members[(i+n-hop)%n], m, "push"})
		}
	}
	return edges
}

// sgpReceive gives every end of an edge its mass: a hosted member keeps a share of its own and adds the share p of what
// each incoming edge brings, in their order. got is scratch for a row per hosted member and incoming edge.
func sgpReceive(ctx context.Context, e *Env, op Op, edges []Edge, keep, p float64, got engine.Mat) error {
	x, w, in := e.Block(BlockX), e.Record(BlockW), e.incoming(edges)
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
		mix := Assign(xr, T(float32(own/sum), xr))
		for i, edge := range in {
			if edge.To == m {
				mix.Terms = append(mix.Terms, T(float32(p*float64(weights.F[i])/sum), rows.Sub(engine.Row(i), 1)))
			}
		}
		w.F[r] = float32(sum)
		if len(mix.Terms) > 1 {
			tasks = append(tasks, engine.Update{Rows: engine.Rows(1), Prog: []engine.Lin{mix}})
		}
	}
	return e.Engine.Do(ctx, tasks...)
}

// Leave hands the mass of each departing member to the next one round the ring that stays.
func (sgp) Leave(ctx context.Context, e *Env, _ Values, gone []Member) error {
	members, n := e.Roster.Members, len(e.Roster.Members)
	var edges []Edge
	for _, m := range gone {
		for i := 1; i < n; i++ {
			if to := members[(e.Roster.Rank(m)+i)%n]; !slices.Contains(gone, to) {
				edges = append(edges, Edge{m, to, "leave"})
				break
			}
		}
	}
	if err := sgpReceive(ctx, e, "leave", edges, 1, 1, e.Scratch(len(e.incoming(edges)), e.Layout.Params)); err != nil {
		return err
	}
	for _, m := range gone {
		if r := e.Row(m); r >= 0 {
			e.Record(BlockW).F[r] = 0
		}
	}
	return nil
}

// Centre is sum w*x / sum w.
func (sgp) Centre(ctx context.Context, e *Env, _ Values, dst engine.Mat) error {
	x, w, mass, sum := e.Block(BlockX), e.Record(BlockW), e.Scratch(len(e.Mine), e.Layout.Params), e.Scratch(1, 1)
	var tasks []engine.Task
	for r := range e.Mine {
		row := engine.Row(r)
		tasks = append(tasks, engine.Update{Rows: engine.Rows(1), Prog: []engine.Lin{Assign(mass.Sub(row, 1), T(w.F[r], x.Sub(row, 1)))}})
	}
	if err := e.Engine.Do(ctx, tasks...); err != nil {
		return err
	}
	if err := e.Comm.AllReduce(ctx, "centre", e.Roster, mass, dst, false); err != nil {
		return err
	}
	masses := e.Scratch(len(e.Mine), 1)
	if err := e.Engine.Write(ctx, engine.All(masses), engine.AppendFloats(nil, w.F)); err != nil {
		return err
	}
	if err := e.Comm.AllReduce(ctx, "centre", e.Roster, masses, sum, false); err != nil {
		return err
	}
	total, err := Download(ctx, e.Engine, sum)
	if err != nil {
		return err
	}
	return e.Engine.Do(ctx, engine.Update{Rows: engine.Rows(1), Prog: []engine.Lin{Assign(dst, T(1/total.F[0], dst))}})
}
