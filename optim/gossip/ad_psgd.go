package gossip

import (
	"context"
	"slices"

	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
)

// ADPSGD averages pairs while gradients are under way.
var ADPSGD = &optim.Algorithm{
	Name:  "ad-psgd",
	Title: "AD-PSGD",
	Paper: "Lian, Zhang, Zhang, Liu: Asynchronous decentralized parallel stochastic gradient descent (2018), algorithm 1",
	Doc: `Each member computes gradients at a copy that it pulled of its own model, while averaging with neighbours goes on; the
gradient is applied to what the model has become meanwhile:

    x_i <- x_i - eta*Nes(m_i, grad f(pull_i));  pull_i <- x_i      a gradient of i ends, the next begins
    x_i, x_j <- (x_i + x_j)/2                                      an active i meets a passive j

optimiser adam, adamw or muon takes its step in place of Nes's.

Members of odd rank are active and those of even rank passive; only an active one starts a meeting, always with a passive
one, so that no cycle of waiting can close.
Asynchrony is a schedule: a round is n*(1+gossip) events, one after another, drawn from the seed: with probability
gossip/(1+gossip) a meeting of a uniform active and a uniform passive member, else the end of the gradient of a uniform
member. Staleness is what happens to x_i between its pull and that end, and is kept in the block pull. Events that share no
member run at once, with the same bits. The centre is mean_a x.
Series: loss, the staleness, and whom each member met.
Bytes: 4M each way for a meeting of members of different workers.

Deviations: the bipartite graph is complete. Whole meetings are atomic, as the source's locks make them.
Reductions: gossip 0 is n independent SGDs; two members that always meet between gradients are two-member PopSGD with stale gradients.`,
	Needs: optim.Gradients | optim.Pairs,
	Knobs: slices.Concat([]optim.Knob{optim.KnobEta}, optim.OptimiserKnobs, []optim.Knob{
		{Name: "gossip", Title: "meetings a gradient", Doc: "meetings for each gradient, on average", Min: 0, Max: 100, Default: 1},
	}, optim.MemberStream),
	Series: []optim.Series{optim.SeriesLoss, seriesStaleness, optim.SeriesPartner},
	Blocks: func(k optim.Values, l engine.Layout) []optim.Block {
		return slices.Concat([]optim.Block{optim.Params(optim.BlockX, false, optim.EnterCentre, l)}, optim.Moments(k, false, l),
			[]optim.Block{optim.Params(optim.BlockPull, false, optim.EnterCentre, l), optim.Counter(optim.BlockCursor, false), optim.Stats(false, l)})
	},
	Bytes: func(s optim.Shape) map[collective.Op]int64 {
		if s.Drawn {
			return map[collective.Op]int64{"gossip": eachMoveBytes(s, "gossip", 4*s.Layout.Params)}
		}
		var cross int64 // pairs of different workers, of all pairs
		n, active := len(s.Roster.Members), len(s.Roster.Members)/2
		for i := 1; i < n; i += 2 {
			for j := 0; j < n; j += 2 {
				if s.Roster.Owner[i] != s.Roster.Owner[j] {
					cross++
				}
			}
		}
		meetings := s.K.Get("gossip") * float64(n)
		return map[collective.Op]int64{"gossip": int64(meetings * 8 * float64(s.Layout.Params) * float64(cross) / float64(max(1, active*(n-active))))}
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
		err := optim.TakeSteps(ctx, e, e.GradientStep(k, pull, rows, g, loss), 1, func(e *optim.Env, r engine.Row, g engine.Mat) []engine.Task {
			again := engine.Update{Rows: engine.Rows(1), Prog: []engine.Lin{optim.Assign(pull.Sub(r, 1), optim.T(1, x.Sub(r, 1)))}}
			stale := e.DistanceTasks(seriesStaleness.Name, []engine.Row{r}, x.Sub(r, 1), pull.Sub(r, 1), 1)
			return append(append(stale, step(e, r, g)...), again)
		})
		if err != nil {
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

// adPSGDPlan is a round's events, and what of them runs at once.
type adPSGDPlan struct {
	events [][2]engine.Member
	waves  []adPSGDWave
	edges  []collective.Edge // of all waves
	steps  int64             // gradients that end
}

type adPSGDWave struct {
	ends  []engine.Member   // whose gradients end
	edges []collective.Edge // along which others meet
}

func adPSGDPlanOf(events [][2]engine.Member) adPSGDPlan {
	p := adPSGDPlan{events: events}
	for _, at := range Waves(events) {
		var wave adPSGDWave
		for _, i := range at {
			if a, b := events[i][0], events[i][1]; a != b {
				wave.edges = append(wave.edges, collective.Edge{From: a, To: b, Op: "gossip"}, collective.Edge{From: b, To: a, Op: "gossip"})
			} else {
				wave.ends = append(wave.ends, a)
			}
		}
		p.waves, p.edges, p.steps = append(p.waves, wave), append(p.edges, wave.edges...), p.steps+int64(len(wave.ends))
	}
	return p
}

// adPSGDEvents draws a round's events: a pair is a meeting (active, passive), twice the same member its gradient's end.
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

// seriesStaleness is how far what others' averaging has moved the model lies from where its gradient was computed.
var seriesStaleness = optim.Series{Name: "staleness", Title: "staleness", Kind: optim.PerMember,
	Doc: "RMS distance between the model that a gradient is applied to and the one that it was computed at, of the member's last gradient in a round that a probe follows"}
