package averaging

import (
	"context"
	"fmt"
	"slices"

	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
)

// BGD is gradient descent on the whole training set.
var BGD = &optim.Algorithm{
	Name:  "bgd",
	Title: "Full-batch gradient descent",
	Paper: "Parallel batch gradient descent; the baseline of Bartolo et al., Hybrid-ES",
	Doc: `One model takes one step per pass over the N training samples, which are divided into groups shards:

    g = 1/N sum_s sum_{i in shard s} grad f_i(x);  m <- mu*m + g;  x <- x - eta*(g + mu*m)

All shards are processed at the same rate, each in mini-batches of batch samples or slightly more; a member processes a
run of neighbouring shards. A round processes slice mini-batches of each shard; a pass takes as many rounds as needed.
The block g is the sum so far and the block phase counts the mini-batches done, so that members may join and leave
within a pass. Shards, not members, are the leaves of the sum: the bits do not depend on the number of members or on the
workers, only on groups and batch. The centre is x.
Series: loss, the mean over the samples that a member processed in the round.
Bytes: an all-reduce of M values a round with a part for each shard, or run of shards, of a worker.

Deviations: the source gives each of its N workers a shard; here the number of shards is the knob groups. batch and
slice only set memory and the length of a round, except that dropout and batch-norm see mini-batches. clip bounds g
itself. optimiser adam, adamw or muon takes its step along g in place of the last two equations. If groups or batch
changes within a pass, that pass weighs samples unevenly.
Reductions: groups 1 with batch N is the textbook rule; any other division agrees up to rounding.`,
	Needs: optim.Gradients,
	Knobs: slices.Concat([]optim.Knob{optim.KnobEta}, optim.OptimiserKnobs, []optim.Knob{
		{
			Name:    "groups",
			Title:   "shards",
			Doc:     "shards of the training set, processed at the same rate",
			Min:     1,
			Max:     1 << 16,
			Default: 8,
			Integer: true,
			Scale:   optim.Log,
		},
		optim.KnobB.With(500), optim.KnobSlice, optim.KnobWD, optim.KnobClip,
	}),
	Series: []optim.Series{optim.SeriesLoss},
	Blocks: func(k optim.Values, l engine.Layout) []optim.Block {
		return optim.StepBlocks(k, l, optim.Params(optim.BlockX, true, optim.EnterCentre, l),
			optim.Params(optim.BlockG, true, optim.EnterZero, l),
			optim.Counter(optim.BlockPhase, true),
			optim.Stats(false, l))
	},
	Check: func(s optim.Shape) error {
		if groups := s.K.I("groups"); 2*groups > s.Data.Train {
			return fmt.Errorf("%d shards of %d training samples leave some with fewer than two: give groups at most %d",
				groups, s.Data.Train, s.Data.Train/2)
		}
		return nil
	},
	Bytes: func(s optim.Shape) map[collective.Op]int64 {
		return map[collective.Op]int64{"gradient": s.AllReduceBytes(s.Roster.Shards(s.K.I("groups")), s.Layout.Params)}
	},
	Program: bgd{},
}

type bgd struct{}

func (bgd) Round(ctx context.Context, e *optim.Env, k optim.Values, _ uint64) (optim.Report, error) {
	samples, groups, phase := len(e.Data.Train()), k.I("groups"), e.Record(optim.BlockPhase).U
	leaves := e.Roster.Shards(groups)
	batches, lo, hi := bgdPass(k, samples, phase[0])
	var done int64
	for b := lo; b < hi; b++ {
		for s := range groups {
			from, to := bgdBatch(samples, groups, s, batches, b)
			done += int64(to - from)
		}
	}
	sum, total := e.Scratch(len(leaves.Hosted(e.Self)), e.Layout.Params), e.Scratch(1, e.Layout.Params)
	points, err := bgdGradients(ctx, e, leaves, sum, batches, lo, hi)
	if err != nil {
		return optim.Report{}, err
	}
	if err := e.Comm.AllReduce(ctx, "gradient", leaves, sum, total, false); err != nil {
		return optim.Report{}, err
	}
	x, g := e.Block(optim.BlockX), e.Block(optim.BlockG)
	addTotal := optim.Assign(g, optim.T(1, g), optim.T(1, total))
	tasks := []engine.Task{optim.Update(1, addTotal)}
	rep := optim.Report{Samples: done, Pass: optim.Pass{Done: done, Of: int64(samples)}, Points: points}
	if phase[0] = uint64(hi); hi < batches {
		return rep, e.Engine.Do(ctx, tasks...)
	}
	phase[0], rep.Steps = 0, 1
	s := optim.Step{X: x, XRows: engine.Rows(1), Rows: engine.Rows(1), G: g, Clip: k.Clip()}
	if !k.DecouplesDecay() {
		s.Decay = k.F("decay")
	}
	tasks = append(append(tasks, s.Regularise()...), e.OptimiserTasks(k.Optimiser("eta", "momentum"), x, 0, g)...)
	return rep, e.Engine.Do(ctx, append(tasks, engine.Fill{Dst: engine.All(g)})...)
}

// bgdPass returns the number of mini-batches of a shard in a pass, and the range [lo, hi) of them that the round
// starting at phase processes.
func bgdPass(k optim.Values, samples int, phase uint64) (batches, lo, hi int) {
	batches = max(1, samples/k.I("groups")/k.I("batch"))
	lo = min(int(phase), batches-1)
	return batches, lo, min(lo+k.I("slice"), batches)
}

// bgdGradients computes the contribution of mini-batches [lo, hi) of each hosted shard to the gradient of the whole
// training set. It writes them to sum, a row for each hosted shard, and returns each member's mean loss over its
// samples.
func bgdGradients(
	ctx context.Context, e *optim.Env, leaves collective.Roster, sum engine.Mat, batches, lo, hi int,
) ([]optim.Point, error) {
	train, groups, mine := e.Data.Train(), len(leaves.Members), leaves.Hosted(e.Self)
	if err := e.Engine.Do(ctx, engine.Fill{Dst: engine.All(sum)}); err != nil {
		return nil, err
	}
	type batch struct {
		r       engine.Row
		loss    *float32
		samples int
	}
	g, done := e.Scratch(len(e.Mine), e.Layout.Params), []batch(nil)
	for b := lo; b < hi; b++ {
		for q, more := 0, true; more; q++ { // the q-th shard of each member at the same time
			s := optim.Step{X: e.Block(optim.BlockX), G: g}
			var ids [][]int32
			var masks []noise.Key
			var add []engine.Task
			for r, m := range e.Mine {
				shard, end := e.Roster.ShardsOf(e.Roster.Rank(m), groups)
				if shard += q; shard >= end {
					continue
				}
				from, to := bgdBatch(len(train), groups, shard, batches, b)
				ids, masks = append(ids, train[from:to]), append(masks, e.Rand(noise.Dropout, uint64(from), 0))
				row := sum.Sub(engine.Row(slices.Index(mine, engine.Member(shard))), 1)
				share := float32(float64(to-from) / float64(len(train)))
				addShare := optim.Assign(row, optim.T(1, row), optim.T(share, g.Sub(engine.Row(len(s.Rows)), 1)))
				add = append(add, optim.Update(1, addShare))
				s.Rows, s.XRows = append(s.Rows, engine.Row(r)), append(s.XRows, 0)
			}
			if more = len(s.Rows) > 0; !more {
				break
			}
			s.Loss = make([]float32, len(s.Rows))
			if err := e.Gradients(ctx, s, ids, masks); err != nil {
				return nil, err
			}
			if err := e.Engine.Do(ctx, add...); err != nil {
				return nil, err
			}
			for i, r := range s.Rows {
				done = append(done, batch{r, &s.Loss[i], len(ids[i])})
			}
		}
	}
	if err := e.Engine.Wait(ctx); err != nil {
		return nil, err
	}
	total, count, mean := make([]float64, len(e.Mine)), make([]int, len(e.Mine)), make([]*float32, len(e.Mine))
	for _, b := range done {
		total[b.r] += float64(float64(*b.loss) * float64(b.samples))
		count[b.r] += b.samples
		m := float32(total[b.r] / float64(count[b.r]))
		mean[b.r] = &m
	}
	return e.LatePointsOf("loss", mean), nil
}

// bgdBatch returns the range [lo, hi) of the training samples in mini-batch b of shard s.
func bgdBatch(samples, groups, s, batches, b int) (lo, hi int) {
	a, z := engine.Cut(samples, s, groups)
	lo, hi = engine.Cut(z-a, b, batches)
	return a + lo, a + hi
}

func (bgd) Centre(ctx context.Context, e *optim.Env, _ optim.Values, dst engine.Mat) error {
	return optim.CopyBlock(ctx, e, optim.BlockX, dst)
}
