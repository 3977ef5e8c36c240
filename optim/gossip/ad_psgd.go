package gossip

import (
	"context"
	"slices"

	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
)

// ADPSGD averages pairs of members while their gradients are being computed.
var ADPSGD = &optim.Algorithm{
	Name:  "ad-psgd",
	Title: "AD-PSGD",
	Paper: "Lian, Zhang, Zhang, Liu: Asynchronous decentralized parallel stochastic gradient descent (2018), algorithm 1",
	Doc: `Each member computes gradients at a copy that it pulled of its own model, while it continues to average with
others. The gradient is then applied to the current model:

    x_i <- x_i - eta*Nes(m_i, grad f(pull_i));  pull_i <- x_i      a gradient of i ends, the next begins
    x_i, x_j <- (x_i + x_j)/2                                      an active i meets a passive j

optimiser adam, adamw or muon replaces the step of Nes.

Members of odd rank are active, those of even rank passive. Only an active member starts a meeting, always with a
passive one, so that members cannot deadlock. A schedule simulates asynchrony: a round is n*(1+gossip) events, one
after another, drawn from the seed. An event is a meeting of a uniform active and a uniform passive member with
probability gossip/(1+gossip), else the end of the gradient of a uniform member. The copy pull_i is the block pull;
staleness is its distance from x_i when the gradient ends. Events that share no member run concurrently, with the same
bits. The centre is mean_a x.
Series: loss, the staleness, and the partner of each member.
Bytes: 4M each way for a meeting of members of different workers.

Deviations: the bipartite graph is complete. Whole meetings are atomic, as the source's locks make them.
Reductions: gossip 0 is n independent SGDs; two members that always meet between gradients are two-member PopSGD with
stale gradients.`,
	Needs: optim.Gradients | optim.Pairs,
	Knobs: slices.Concat([]optim.Knob{optim.KnobEta}, optim.OptimiserKnobs, []optim.Knob{
		{
			Name:    "gossip",
			Title:   "meetings a gradient",
			Doc:     "meetings for each gradient, on average",
			Min:     0,
			Max:     100,
			Default: 1,
		},
	}, optim.MemberStream),
	Series: []optim.Series{optim.SeriesLoss, seriesStaleness, optim.SeriesPartner},
	Blocks: func(k optim.Values, l engine.Layout) []optim.Block {
		return optim.StepBlocks(k, l, optim.Params(optim.BlockX, false, optim.EnterCentre, l),
			optim.Params(optim.BlockPull, false, optim.EnterCentre, l),
			optim.Counter(optim.BlockCursor, false),
			optim.Stats(false, l))
	},
	Bytes: func(s optim.Shape) map[collective.Op]int64 {
		if s.Drawn {
			return map[collective.Op]int64{"gossip": edgeBytes(s, "gossip", 4*s.Layout.Params)}
		}
		var cross int64 // pairs of an active and a passive member on different workers
		n, active := len(s.Roster.Members), len(s.Roster.Members)/2
		for i := 1; i < n; i += 2 {
			for j := 0; j < n; j += 2 {
				if s.Roster.Owner[i] != s.Roster.Owner[j] {
					cross++
				}
			}
		}
		meetings := s.K.Get("gossip") * float64(n)
		width := 8 * float64(s.Layout.Params) // of a meeting, both ways
		b := meetings * width * float64(cross) / float64(max(1, active*(n-active)))
		return map[collective.Op]int64{"gossip": int64(b)}
	},
	Program: adPSGD{},
}

type adPSGD struct{}

func (adPSGD) Round(ctx context.Context, e *optim.Env, k optim.Values, round uint64) (optim.Report, error) {
	n, M := len(e.Mine), e.Layout.Params
	x, pull, g, peer := e.Block(optim.BlockX), e.Block(optim.BlockPull), e.Scratch(n, M), e.Scratch(n, M)
	plan := adPSGDPlanOf(adPSGDEvents(e.Rand(noise.Pair, round, 0), e.Roster.Members, k.Get("gossip")))
	last, step := make([]*float32, n), optim.DefaultStep(k)
	for _, wave := range plan.waves {
		var rows []engine.Row
		for _, m := range wave.ends {
			if r := e.Row(m); r >= 0 {
				rows = append(rows, r)
			}
		}
		loss := make([]float32, len(rows))
		endGradient := func(e *optim.Env, r engine.Row, g engine.Mat) []engine.Task {
			nextPull := optim.Assign(pull.Sub(r, 1), optim.T(1, x.Sub(r, 1)))
			tasks := e.DistanceTasks(seriesStaleness.Name, []engine.Row{r}, x.Sub(r, 1), pull.Sub(r, 1), 1)
			tasks = append(tasks, step(e, r, g)...)
			return append(tasks, optim.Update(1, nextPull))
		}
		if err := optim.TakeSteps(ctx, e, e.GradientStep(k, pull, rows, g, loss), 1, endGradient); err != nil {
			return optim.Report{}, err
		}
		for i, r := range rows {
			last[r] = &loss[i]
		}
		if err := average(ctx, e, "gossip", wave.edges, peer); err != nil {
			return optim.Report{}, err
		}
	}
	rep := e.ReportSteps(k, plan.steps)
	rep.Edges, rep.Points = plan.edges, append(e.LatePointsOf("loss", last), e.PartnersOf(plan.events, false)...)
	return rep, nil
}

// adPSGDPlan contains the events of a round. All workers draw the same plan.
type adPSGDPlan struct {
	events [][2]engine.Member // in the order drawn, see adPSGDEvents
	waves  []adPSGDWave       // the same events, in sets that run concurrently
	edges  []collective.Edge  // of all waves
	steps  int64              // number of gradients that end
}

// adPSGDWave is a set of events of different members.
type adPSGDWave struct {
	ends  []engine.Member   // members whose gradients end
	edges []collective.Edge // both directions of the meetings of other members
}

// adPSGDPlanOf groups events into waves.
func adPSGDPlanOf(events [][2]engine.Member) adPSGDPlan {
	p := adPSGDPlan{events: events}
	for _, at := range Waves(events) {
		var wave adPSGDWave
		for _, i := range at {
			if a, b := events[i][0], events[i][1]; a != b {
				wave.edges = append(wave.edges,
					collective.Edge{From: a, To: b, Op: "gossip"},
					collective.Edge{From: b, To: a, Op: "gossip"})
			} else {
				wave.ends = append(wave.ends, a)
			}
		}
		p.waves = append(p.waves, wave)
		p.edges = append(p.edges, wave.edges...)
		p.steps += int64(len(wave.ends))
	}
	return p
}

// adPSGDEvents draws the events of a round: {active, passive} is a meeting, {m, m} the end of a gradient of member m.
func adPSGDEvents(key noise.Key, members []engine.Member, gossip float64) [][2]engine.Member {
	n := len(members)
	out := make([][2]engine.Member, int(float64(n)*(1+gossip)))
	for i := range out {
		if float64(key.Uniform(3*i)) < gossip/(1+gossip) {
			out[i] = [2]engine.Member{members[2*key.Below(3*i+1, n/2)+1], members[2*key.Below(3*i+2, (n+1)/2)]}
		} else {
			m := members[key.Below(3*i+1, n)]
			out[i] = [2]engine.Member{m, m}
		}
	}
	return out
}

func (adPSGD) Centre(ctx context.Context, e *optim.Env, _ optim.Values, dst engine.Mat) error {
	return optim.MeanX(ctx, e, dst)
}

// seriesStaleness is the RMS distance between a member's model and the copy at which its gradient was computed.
var seriesStaleness = optim.Series{
	Name:  "staleness",
	Title: "staleness",
	Kind:  optim.PerMember,
	Doc: "RMS distance between the model that a gradient is applied to and the one that it was computed at, " +
		"of the member's last gradient in a round that a probe follows",
}
