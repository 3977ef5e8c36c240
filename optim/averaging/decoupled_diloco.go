package averaging

import (
	"context"
	"fmt"
	"math"
	"slices"

	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
)

// DecoupledDiLoCo is DiLoCo on fragments, merged from the learners that are up, which differ in speed.
var DecoupledDiLoCo = &optim.Algorithm{
	Name:  "decoupled-diloco",
	Title: "Decoupled DiLoCo",
	Paper: "Douillard, Rush, Donchev, Charles, Fallen, Dubey, Gog, Dean, Woodworth, Garrett et al.: " +
		"Decoupled DiLoCo for resilient distributed pre-training (arXiv:2604.21428, 2026)",
	Doc: `Learners (members) train on their own mini-batches, each at its own speed. A syncer merges one fragment of the
parameters after the other, each once in h ticks, from the learners that are up, which must be quorum or more. All
learners overwrite their fragment by the merged one:

    x^a <- AdamW(x^a, grad f(x^a); eta_in, beta1, beta2, decay)      in every tick in which learner a takes a step
    fragment p, once in h ticks, a over learners that are up:
        v^a = xbar_p - x^a_p,  w^a = steps of a since it received p
        merge mean:  d = sum_a w^a v^a / sum_a w^a
        merge rda:   d = (sum_a w^a |v^a| / sum_a w^a) * u/|u|,  u = sum_a w^a v^a/|v^a|
        xbar_p <- xbar_p - eta*Nes(mx_p, d);  x^a_p <- xbar_p for all a

Radial-directional averaging (rda) keeps the length of d independent of the number of learners, whose v^a are nearly
orthogonal. A schedule simulates asynchrony, so that results do not depend on the machines: a tick is the time of a step
at full speed. The learner of rank i of n takes floor(t*(1 - (1-slowest)*i/(n-1))) steps in t ticks of a cycle of h. In
each cycle a learner is down with probability down, drawn from the seed: it takes no step and sends nothing. When it is
up again it continues from the fragments that the syncer sent. Without a quorum the fragment is not merged in this
cycle. Fragment p is merged after tick floor(h*(p+1)/fragments) of the cycle. optimiser, momentum_in and the moments are
as in diloco. A round ends where a fragment is due, or after slice ticks; the blocks phase and cycle count ticks and
cycles, the block since the steps of each learner since it received each fragment. The centre is xbar.
Series: loss, and the goodput: steps taken, as a share of those at full speed without failures.
Bytes: for a merge of m values an all-reduce of m values over the learners that are up, and to every other worker 16
bytes of each member: its w^a and |v^a|.

Deviations: the source's learners and syncer are processes that wait for nobody. Here rounds are synchronous, and only
their schedule has failures: what a run does when a worker dies is set by --on-loss. There is no separate syncer: every
worker has its state and computes the same merge. The source's syncer waits for a quorum, then for a grace window; here
a learner that is up is in time. The source weighs by tokens*tokens/steps: with equal mini-batches by steps, as here.
Its fragments are groups of tensors, and embeddings are merged by mean; here fragments are runs of equally many
parameters, merged alike. It transfers during two further steps, in four bits: streaming-diloco has both. A learner that
returns copies another one's state there and keeps its own moments here. Rate and momentum of the outer step are those
of diloco: we found none published.
Reductions: slowest 1, down 0 and merge mean is streaming-diloco with delay 0 and alpha 0.`,
	Needs: optim.Gradients,
	Knobs: slices.Concat([]optim.Knob{optim.KnobOuterEta}, optim.InnerKnobs, []optim.Knob{
		optim.KnobMu,
		{
			Name:    "h",
			Title:   "ticks a cycle",
			Unit:    "ticks",
			Doc:     "steps of a learner at full speed between two merges of the same fragment (H in the source)",
			Min:     1,
			Max:     10000,
			Default: 24,
			Integer: true,
			Scale:   optim.Log,
		},
		knobFragments,
		{
			Name:    "merge",
			Title:   "merge",
			Doc:     "average of the learners' changes: of lengths and directions apart (rda), or their weighted mean",
			Choices: []string{"rda", "mean"},
		},
		{
			Name:    "quorum",
			Label:   "K",
			Title:   "minimum quorum",
			Unit:    "learners",
			Doc:     "learners that must be up for a merge",
			Min:     1,
			Max:     1e6,
			Default: 1,
			Integer: true,
			Scale:   optim.Log,
		},
		{
			Name:    "slowest",
			Title:   "slowest speed",
			Doc:     "steps of the slowest learner for each step of the fastest; the others are evenly between them",
			Min:     0.01,
			Max:     1,
			Default: 0.5,
		},
		{
			Name:    "down",
			Title:   "time down",
			Doc:     "probability that a learner takes no part in a cycle",
			Min:     0,
			Max:     0.99,
			Default: 0.1,
		},
		optim.KnobSlice,
	}, optim.InnerStream),
	Series: []optim.Series{
		optim.SeriesLoss,
		{
			Name:  "goodput",
			Title: "goodput",
			Doc:   "steps that the learners took, as a share of those at full speed without failures",
		},
	},
	Blocks: func(k optim.Values, l engine.Layout) []optim.Block {
		return optim.StepBlocks(k, l, optim.Params(optim.BlockX, false, optim.EnterCentre, l),
			optim.Params(optim.BlockXBar, true, optim.EnterCentre, l),
			optim.Params(optim.BlockMX, true, optim.EnterZero, l),
			optim.Block{Name: optim.BlockSince, Cols: k.I("fragments"), Type: engine.U64, Record: true},
			optim.Counter(optim.BlockCursor, false),
			optim.Counter(optim.BlockPhase, true),
			optim.Counter(optim.BlockCycle, true),
			optim.Stats(false, l))
	},
	Check: func(s optim.Shape) error {
		if k, n := s.K.I("quorum"), len(s.Roster.Members); k > n {
			return fmt.Errorf("a quorum of %d of %d members is never reached: lower quorum or give more members", k, n)
		}
		return checkFragments(s)
	},
	Cycle:   fragmentRounds,
	Bytes:   decoupledDiLoCoBytes,
	Program: decoupledDiLoCo{},
}

type decoupledDiLoCo struct{}

func (decoupledDiLoCo) Round(ctx context.Context, e *optim.Env, k optim.Values, _ uint64) (optim.Report, error) {
	phase, cycle := e.Record(optim.BlockPhase).U, e.Record(optim.BlockCycle).U
	h, n := k.I("h"), len(e.Roster.Members)
	ticks, fragment := fragmentSteps(e.Shape(k))
	from := int(phase[0] % streamingDiLoCoPendingUnit % uint64(h))
	up := learnersUp(e.Roster, k, func(m engine.Member) noise.Key { return e.Rand(noise.Pair, cycle[0], m) })
	steps := make([]int, n) // by rank
	total := 0
	for rank, m := range e.Roster.Members {
		if up.Has(m) {
			steps[rank] = learnerSteps(rank, n, k.Get("slowest"), from, from+ticks)
			total += steps[rank]
		}
	}
	loss, err := learn(ctx, e, k, ticks, steps)
	if err != nil {
		return optim.Report{}, err
	}
	rep := e.ReportSteps(k, int64(total))
	rep.Points = append(e.LatePointsOf("loss", loss), e.PopulationPoint("goodput", float64(total)/float64(n*ticks))...)
	if phase[0] = uint64(from + ticks); phase[0] == uint64(h) {
		phase[0] = 0
		cycle[0]++
	}
	if fragment < 0 || len(up.Members) < k.I("quorum") {
		return rep, nil
	}
	for _, m := range up.Members {
		rep.Edges = append(rep.Edges, collective.Edge{From: m, To: m, Op: "fragment"})
	}
	return rep, mergeFragment(ctx, e, k, fragment, up)
}

// learnersUp returns the members that are up in a cycle, which key draws.
func learnersUp(r collective.Roster, k optim.Values, key func(engine.Member) noise.Key) (up collective.Roster) {
	for rank, m := range r.Members {
		if float64(key(m).Uniform(0)) >= k.Get("down") {
			up.Members, up.Owner = append(up.Members, m), append(up.Owner, r.Owner[rank])
		}
	}
	return up
}

// learnerSteps returns the steps in ticks [from, to) of a cycle of the learner of a rank, of n learners that are up.
func learnerSteps(rank, n int, slowest float64, from, to int) int {
	speed := 1 - (1-slowest)*float64(rank)/float64(max(1, n-1))
	return int(math.Floor(speed*float64(to))) - int(math.Floor(speed*float64(from)))
}

// learn takes the given numbers of steps, by rank of the member and at most `most` each, and counts them in the block
// since. It returns the last losses by row, nil for a member without steps.
func learn(ctx context.Context, e *optim.Env, k optim.Values, most int, steps []int) (last []*float32, err error) {
	n, since := len(e.Mine), e.Record(optim.BlockSince)
	x, g, inner := e.Block(optim.BlockX), e.CohortScratch(n), optim.By(k.Optimiser("eta_in", "momentum_in"))
	rows := make([][]engine.Row, most+1) // by number of steps
	for i, m := range e.Mine {
		count, r := steps[e.Roster.Rank(m)], engine.Row(i)
		rows[count] = append(rows[count], r)
		for p := range since.URow(r) {
			since.URow(r)[p] += uint64(count)
		}
	}
	last = make([]*float32, n)
	for count := 1; count <= most; count++ {
		if len(rows[count]) == 0 {
			continue
		}
		loss := make([]float32, len(rows[count]))
		if err := optim.OptimiserSteps(ctx, e, e.GradientStep(k, x, rows[count], g, loss), count, inner); err != nil {
			return nil, err
		}
		for i, r := range rows[count] {
			last[r] = &loss[i]
		}
	}
	return last, nil
}

// mergeFragment merges fragment p of the learners that are up, takes its outer step, and sends it to all members.
func mergeFragment(ctx context.Context, e *optim.Env, k optim.Values, p int, up collective.Roster) error {
	lo, hi := engine.Cut(e.Layout.Params, p, k.I("fragments"))
	n, since := len(e.Mine), e.Record(optim.BlockSince)
	v, xbar, src, d := e.Scratch(n, hi-lo), e.Scratch(1, hi-lo), e.Scratch(n, hi-lo), e.Scratch(1, hi-lo)
	rms := make([]float64, n) // of v, in place of its length
	if err := e.Engine.Do(ctx,
		engine.Copy{Dst: engine.All(v), Src: fragmentColumns(e, optim.BlockX, lo, hi)},
		engine.Copy{Dst: engine.All(xbar), Src: fragmentColumns(e, optim.BlockXBar, lo, hi)},
		optim.Update(n, optim.Assign(v, optim.T(1, xbar), optim.T(-1, v))),
		engine.Distance{X: v, RMS: rms}); err != nil {
		return err
	}
	if err := e.Engine.Wait(ctx); err != nil {
		return err
	}
	mine := engine.NewHost(n, 2, engine.U64)
	all := engine.NewHost(len(e.Roster.Members), 2, engine.U64)
	for i := range e.Mine {
		r := engine.Row(i)
		copy(mine.URow(r), []uint64{since.URow(r)[p], math.Float64bits(rms[i])})
	}
	if err := e.Comm.AllGather(ctx, "metadata", mine, all); err != nil {
		return err
	}
	rda, weights, radius := k.Is("merge", "rda"), 0.0, 0.0
	for _, m := range up.Members {
		row := all.URow(engine.Row(e.Roster.Rank(m)))
		weights += float64(row[0])
		radius += float64(float64(row[0]) * math.Float64frombits(row[1])) // the conversion prevents a fused operation
	}
	var scaled []engine.Task
	leaves := up.Hosted(e.Self)
	for i, m := range leaves {
		r := e.Row(m)
		factor := ratio(float64(mine.URow(r)[0]), weights)
		if rda {
			factor = ratio(factor, rms[r])
		}
		row := optim.Assign(src.Sub(engine.Row(i), 1), optim.T(float32(factor), v.Sub(r, 1)))
		scaled = append(scaled, optim.Update(1, row))
	}
	if err := e.Engine.Do(ctx, scaled...); err != nil {
		return err
	}
	if err := e.Comm.AllReduce(ctx, "fragment", up, src.Sub(0, len(leaves)), d, false); err != nil || weights == 0 {
		return err
	}
	for i := range e.Mine {
		since.URow(engine.Row(i))[p] = 0
	}
	if !rda {
		return fragmentOuterStep(ctx, e, k, lo, d, 0)
	}
	length := make([]float64, 1)
	if err := e.Engine.Do(ctx, engine.Distance{X: d, RMS: length}); err != nil {
		return err
	}
	if err := e.Engine.Wait(ctx); err != nil {
		return err
	}
	scale := float32(ratio(radius/weights, length[0]))
	return fragmentOuterStep(ctx, e, k, lo, d, 0, optim.Update(1, optim.Assign(d, optim.T(scale, d))))
}

// ratio returns a/b, and 0 if b is 0.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// decoupledDiLoCoBytes returns the payload of a round. Before its learners are drawn it returns the mean of a sample.
func decoupledDiLoCoBytes(s optim.Shape) map[collective.Op]int64 {
	_, p := fragmentSteps(s)
	if p < 0 {
		return nil
	}
	lo, hi := engine.Cut(s.Layout.Params, p, s.K.I("fragments"))
	if s.Drawn {
		var up collective.Roster
		for _, edge := range s.Edges {
			up.Members, up.Owner = append(up.Members, edge.From), append(up.Owner, s.Roster.Of(edge.From))
		}
		if len(up.Members) == 0 {
			return nil
		}
		return map[collective.Op]int64{"metadata": s.AllGatherBytes(16), "fragment": s.AllReduceBytes(up, hi-lo)}
	}
	const cycles = 16
	merges, sum := int64(0), int64(0)
	for c := range uint64(cycles) {
		up := learnersUp(s.Roster, s.K, func(m engine.Member) noise.Key {
			return noise.Key{Purpose: noise.Pair, Round: c, Member: uint32(m)}
		})
		if len(up.Members) >= s.K.I("quorum") {
			merges, sum = merges+1, sum+s.AllReduceBytes(up, hi-lo)
		}
	}
	return map[collective.Op]int64{"metadata": merges * s.AllGatherBytes(16) / cycles, "fragment": sum / cycles}
}

func (decoupledDiLoCo) Centre(ctx context.Context, e *optim.Env, _ optim.Values, dst engine.Mat) error {
	return optim.CopyBlock(ctx, e, optim.BlockXBar, dst)
}
