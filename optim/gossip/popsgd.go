package gossip

import (
	"context"
	"slices"

	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
)

// PopSGD averages the models of random pairs of members.
var PopSGD = &optim.Algorithm{
	Name:  "popsgd",
	Title: "PopSGD",
	Paper: "Nadiradze, Sabour, Davies, Li, Alistarh: Asynchronous decentralized SGD with quantized and local updates " +
		"(SwarmSGD, 2019)",
	Doc: `Pairs (i, j) are drawn one after another, uniformly. Both members of a pair take local steps and then average:

    x_i, x_j <- h_i, h_j steps of SGD;  x_i = x_j = (x_i + x_j)/2                            blocking
    x_i, x_j <- h_i, h_j steps of SGD;  x_i <- (x_i + s_j)/2;  x_j <- (x_j + s_i)/2          non-blocking
    x_i <- h_i steps of SGD;            x_i <- (x_i + s_j)/2                                 one-sided

where s is the model that a member last published: its x at the end of its last meeting (the block shown), so that no
member waits for the local steps of its partner. h_i is h, or geometric on 1, 2, ... with mean h. Momentum, or the
moments of another optimiser, and batch-norm statistics stay with the member. Only blocking conserves the mean. A round
is n/2 meetings (n when one-sided); meetings of disjoint pairs run concurrently, with the same bits as one after
another. The centre is mean_a x.
Independent pairs form chains: a meeting waits for the last meeting of both members. In large populations the longest
chain grows by min_l (2 e^l - 1)/l = 4.31 meetings a round, so that members compute for at most 23 % of the time. With
pairing matching a round is one random perfect matching, each member meets once, and none waits for a chain.
With code lattice8 an exchanged row takes one byte an element and is decoded against the receiver's own x. If it decodes
wrongly because the two differ too much, its checksum does not match and the row is sent again in full.
Without gradients, blocking, per meeting and for independent members, E[Gamma'] = Gamma*(1 - 1/(n-1)), with
Gamma = sum ||x_i - mean||^2, and per round of a matching of an even n, E[Gamma'] = Gamma*(n-2)/(2(n-1)); with pure
noise of variance s^2 as gradient, the limit of E[Gamma] over many independent meetings is h*eta^2*s^2*(n-1)*(1-2/n) a
coordinate.
Series: loss, the partner of each member, and the fallbacks of a round.
Bytes: 4M each way for a meeting of members of different workers. With code lattice8: 8*(ceil(M/8)+1) each way; for each
set of concurrent meetings a verdict of 4 bytes a member to every other worker; and 4M for a fallback.

Deviations: local steps are taken when a pair meets, not between meetings, which other members cannot observe; in the
source's non-blocking form the average precedes the local steps of the meeting. Codes are rounded at random (unbiased).
The slides draw samples with replacement; here a node sees each of its samples once in an epoch, in random order.
Reductions: h 1 without momentum, blocking, is x_i = x_j = (x_i + x_j)/2 - eta*(g_i + g_j)/2.`,
	Needs: optim.Gradients | optim.Pairs,
	Knobs: slices.Concat([]optim.Knob{optim.KnobEta}, optim.OrProgram(optim.OptimiserKnobs), []optim.Knob{
		{
			Name:    "h",
			Title:   "local steps",
			Unit:    "steps",
			Doc:     "steps of each member before a meeting",
			Min:     0,
			Max:     1000,
			Default: 1,
			Integer: true,
		},
		{
			Name:    "steps",
			Title:   "step counts",
			Doc:     "local steps before each meeting: exactly h, or a geometric number with mean h",
			Choices: []string{"fixed", "geometric"},
		},
		{
			Name:  "pairing",
			Title: "pairing",
			Doc: "independent: the pairs of a round are drawn one after another, with replacement; matching: every " +
				"member is in one pair, but one if their number is odd",
			Choices: []string{"independent", "matching"},
		},
		{
			Name:  "mode",
			Title: "mode",
			Doc: "blocking: average with the partner's current model; non-blocking: with its last published copy; " +
				"one-sided: likewise, but the partner does not change",
			Choices: []string{"blocking", "non-blocking", "one-sided"},
		},
		{
			Name:    "code",
			Title:   "exchange as",
			Doc:     "encoding of exchanged parameters: float32, or lattice codes of one byte each",
			Choices: []string{"float32", "lattice8"},
		},
		{
			Name:    "cell",
			Title:   "lattice cell",
			Doc:     "spacing of the lattice; codes decode if partners differ by less than 127 cells in each parameter",
			Min:     1e-9,
			Max:     1,
			Default: 0.001,
			Scale:   optim.Log,
		},
		optim.KnobStart,
	}, optim.MemberStream),
	Series: []optim.Series{
		optim.SeriesLoss,
		optim.SeriesPartner,
		{
			Name:  "fallbacks",
			Title: "fallbacks",
			Unit:  "rows",
			Doc:   "rows that did not decode and were sent in full",
		},
	},
	Blocks: func(k optim.Values, l engine.Layout) []optim.Block {
		enter := k.EnterX()
		b := optim.StepBlocks(k, l, optim.Params(optim.BlockX, false, enter, l),
			optim.Counter(optim.BlockCursor, false), optim.Stats(false, l))
		if !k.Is("mode", "blocking") {
			b = append(b, optim.Params(optim.BlockShown, false, enter, l))
		}
		return b
	},
	Bytes:   popSGDBytes,
	Program: popSGD{},
}

type popSGD struct{}

func (popSGD) Round(ctx context.Context, e *optim.Env, k optim.Values, round uint64) (optim.Report, error) {
	n := len(e.Mine)
	plan := popSGDPlanOf(e, k, round)
	last := make([]*float32, n)
	g, peer := e.Scratch(n, e.Layout.Params), e.Scratch(n, e.Layout.Params)
	var fallback []collective.Edge
	for w, wave := range plan.waves {
		var rows []engine.Row
		var steps []int
		for _, edge := range e.Incoming(wave) {
			rows = append(rows, e.Row(edge.To))
			steps = append(steps, popSGDSteps(e.Rand(noise.Pair, round, edge.To), k, w))
		}
		if err := optim.UnevenSteps(ctx, e, k, rows, steps, g, last); err != nil {
			return optim.Report{}, err
		}
		full, err := popSGDExchange(ctx, e, k, round, w, wave, peer, g)
		if err != nil {
			return optim.Report{}, err
		}
		fallback = append(fallback, full...)
	}
	rep := e.ReportSteps(k, plan.steps)
	rep.Edges = append(slices.Clip(plan.edges), fallback...)
	rep.Points = append(e.LatePointsOf("loss", last), e.PartnersOf(plan.meetings, false)...)
	if k.Is("code", "lattice8") {
		rep.Points = append(rep.Points, e.PopulationPoint("fallbacks", float64(len(fallback)))...)
	}
	return rep, nil
}

// popSGDPlan contains the meetings of a round. All workers draw the same plan.
type popSGDPlan struct {
	meetings [][2]engine.Member  // in the order drawn
	waves    [][]collective.Edge // for each set of concurrent meetings, the edges to average along
	edges    []collective.Edge   // of all waves
	steps    int64               // local steps of all members in the round
}

func popSGDPlanOf(e *optim.Env, k optim.Values, round uint64) popSGDPlan {
	meetings, each := popSGDMeetings(e.Rand(noise.Pair, round, 0), k, e.Roster.Members)
	p := popSGDPlan{meetings: meetings, edges: make([]collective.Edge, 0, each*len(meetings))}
	for w, wave := range Waves(p.meetings) {
		first := len(p.edges)
		for _, i := range wave {
			a, b := p.meetings[i][0], p.meetings[i][1]
			for _, edge := range []collective.Edge{
				{From: b, To: a, Op: "exchange"},
				{From: a, To: b, Op: "exchange"},
			}[:each] {
				p.edges = append(p.edges, edge)
				p.steps += int64(popSGDSteps(e.Rand(noise.Pair, round, edge.To), k, w))
			}
		}
		p.waves = append(p.waves, p.edges[first:])
	}
	return p
}

// popSGDMeetings draws the meetings of a round, and returns the number of edges of a meeting. key is the pairing key of
// the round. In a one-sided meeting the first member of a pair receives.
func popSGDMeetings(key noise.Key, k optim.Values, members []engine.Member) (meetings [][2]engine.Member, edges int) {
	oneSided := k.Is("mode", "one-sided")
	if k.Is("pairing", "matching") {
		meetings = Pairing(key, members)
		if !oneSided {
			return meetings, 2
		}
		for _, m := range slices.Clone(meetings) {
			meetings = append(meetings, [2]engine.Member{m[1], m[0]})
		}
		return meetings, 1
	}
	if oneSided {
		return Meetings(key, members, len(members)), 1
	}
	return Meetings(key, members, max(1, len(members)/2)), 2
}

// popSGDBytes returns the payload of a round. Before the round's pairs are drawn it returns the expectation.
func popSGDBytes(s optim.Shape) map[collective.Op]int64 {
	n, width := len(s.Roster.Members), 4*s.Layout.Params
	lattice := s.K.Is("code", "lattice8")
	if lattice {
		width = 8 * latticeWords(s.Layout.Params)
	}
	if !s.Drawn {
		var pairs int64 // ordered pairs of different workers
		for _, w := range s.Roster.Workers() {
			h := len(s.Roster.Hosted(w))
			pairs += int64(h * (n - h))
		}
		meetings, each := popSGDMeetings(noise.Key{Purpose: noise.Pair}, s.K, s.Roster.Members)
		b := map[collective.Op]int64{"exchange": int64(len(meetings)*each) * pairs * int64(width) / max(1, int64(n*(n-1)))}
		if lattice && n > 1 {
			const rounds = 64 // sample rounds, over which the number of waves is averaged
			waves := 0
			for r := range uint64(rounds) {
				meetings, _ := popSGDMeetings(noise.Key{Purpose: noise.Pair, Round: r}, s.K, s.Roster.Members)
				waves += len(Waves(meetings))
			}
			b["verdict"] = int64(waves) * s.AllGatherBytes(4) / rounds
		}
		return b
	}
	b := map[collective.Op]int64{"exchange": edgeBytes(s, "exchange", width)}
	if lattice {
		var meetings [][2]engine.Member
		exchanges := slices.DeleteFunc(slices.Clone(s.Edges), func(e collective.Edge) bool {
			return e.Op != "exchange"
		})
		each := 2 // edges of a meeting
		if s.K.Is("mode", "one-sided") {
			each = 1
		}
		for _, e := range collective.EveryNth(exchanges, each) {
			meetings = append(meetings, [2]engine.Member{e.From, e.To})
		}
		b["fallback"] = edgeBytes(s, "fallback", 4*s.Layout.Params)
		b["verdict"] = int64(len(Waves(meetings))) * s.AllGatherBytes(4)
	}
	return b
}

// popSGDSteps returns the local steps of a member before its meeting in wave w: h, or a geometric number with mean h,
// at most 50*h. key is the pairing key of the member and round.
func popSGDSteps(key noise.Key, k optim.Values, w int) int {
	h := k.I("h")
	if h < 2 || k.Is("steps", "fixed") {
		return h
	}
	key.Stream = 1<<31 | uint32(w) // distinct from the streams of pairings and lattice codes
	s := 1
	for float64(key.Uniform(s)) >= 1/float64(h) && s < 50*h {
		s++
	}
	return s
}

// popSGDExchange averages along the edges of a wave and, unless the mode is blocking, publishes the results in the
// block shown. It returns the edges whose lattice codes did not decode, so that a full row was sent. peer and spare are
// scratch with a row for each hosted member.
func popSGDExchange(
	ctx context.Context, e *optim.Env, k optim.Values, round uint64, wave int, edges []collective.Edge,
	peer, spare engine.Mat,
) (fallback []collective.Edge, err error) {
	in, x, shown := e.Incoming(edges), e.Block(optim.BlockX), e.Block(optim.BlockShown)
	src, stale := x, !k.Is("mode", "blocking")
	if stale {
		src = shown
	}
	peer = peer.Sub(0, len(in))
	if k.Is("code", "lattice8") {
		fallback, err = moveLattice(ctx, e, k.Get("cell"), round, wave, edges, src, peer, spare)
	} else {
		err = e.Comm.Move(ctx, "exchange", edges, src, peer)
	}
	if err != nil {
		return nil, err
	}
	tasks := averageTasks(e, in, peer)
	if stale {
		for _, edge := range in {
			r := e.Row(edge.To)
			publish := optim.Assign(shown.Sub(r, 1), optim.T(1, x.Sub(r, 1)))
			tasks = append(tasks, optim.Update(1, publish))
		}
	}
	return fallback, e.Engine.Do(ctx, tasks...)
}

func (popSGD) Centre(ctx context.Context, e *optim.Env, _ optim.Values, dst engine.Mat) error {
	return optim.MeanX(ctx, e, dst)
}
