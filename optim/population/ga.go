package population

import (
	"context"
	"slices"

	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
)

// GA evolves networks without gradients.
var GA = &optim.Algorithm{
	Name:  "ga",
	Title: "Genetic algorithm",
	Paper: "Such, Madhavan, Conti, Lehman, Stanley, Clune: Deep neuroevolution (2017); with crossover as Prellberg, " +
		"Kramer (2018) and as the evolutionary part of Shahab & Grot, PESGD (2020)",
	Doc: `A round is a generation: all members are scored on one mini-batch of the training set, the best elite members
stay unchanged, and every other member is replaced by a child of selected parents:

    child = crossover(parents) + N(0, (mutation/k^anneal)^2)         k-th generation, from 1

It is PESGD without SGD: see pesgd for selection and crossover. Fitness is minus the loss; a missing (non-finite) one
ranks last. The elite are scored again on each generation's mini-batch. Batch-norm uses the statistics of the
mini-batch. The centre is the best member of the last generation; before the first, the member with the lowest id.
Series: fitness and diversity.
Bytes per generation: P fitness values to every worker; the rows of parents to the workers that host their children,
each once. A mutation is a pure function of seed, round and child, so that the 8 bytes of its seed are not sent.

Deviations: as in the sources, networks start from different initialisations; the knob start selects this. Such et al.
choose the elite by a second, longer evaluation; a larger batch serves that purpose here.
Reductions: crossover none is the mutation-only GA of Such et al.`,
	Needs: optim.Evaluations,
	Knobs: slices.Concat([]optim.Knob{optim.KnobB.With(512)}, withKnobChanges(variationKnobs, map[string]func(*optim.Knob){
		"elite":     func(k *optim.Knob) { k.Min = 1 },
		"top":       func(k *optim.Knob) { k.Default = 0.25 },
		"crossover": func(k *optim.Knob) { *k = k.Choosing("uniform") },
		"mutation":  func(k *optim.Knob) { k.Default = 0.01 },
		"anneal":    func(k *optim.Knob) { k.Default = 0.25 },
	}), []optim.Knob{optim.KnobStart.Choosing("own")}),
	Series: []optim.Series{optim.SeriesFitness, SeriesDiversity, seriesParent},
	Blocks: func(k optim.Values, l engine.Layout) []optim.Block {
		return []optim.Block{
			optim.Params(optim.BlockX, false, k.EnterX(), l),
			{Name: optim.BlockScore, Cols: 2, Record: true},
			optim.Counter(optim.BlockCursor, true),
			optim.Counter(optim.BlockCycle, true),
		}
	},
	Check:   checkElite,
	Bytes:   func(s optim.Shape) map[collective.Op]int64 { return evolveBytes(s) },
	Program: ga{},
}

type ga struct{}

func (ga) Round(ctx context.Context, e *optim.Env, k optim.Values, round uint64) (optim.Report, error) {
	n, P, x, at := len(e.Mine), int64(len(e.Roster.Members)), e.Block(optim.BlockX), e.Record(optim.BlockCursor).U
	batch := make([]int32, k.I("batch"))
	e.SharedBatch(batch, at[0])
	drawn := e.SharedBatchKey(at[0])
	at[0] += uint64(len(batch))
	t := engine.Evaluate{
		X:       x,
		Rows:    engine.Rows(n),
		Batches: slices.Repeat([][]int32{batch}, n),
		Drawn:   slices.Repeat([]noise.Key{drawn}, n),
		Loss:    make([]float64, n),
		Correct: make([]int64, n),
		Metrics: e.MetricBuffer(n),
	}
	if err := e.Engine.Do(ctx, t); err != nil {
		return optim.Report{}, err
	}
	if err := e.Engine.Wait(ctx); err != nil {
		return optim.Report{}, err
	}
	fit := engine.NewHost(n, 1, engine.F32)
	for i, loss := range t.Loss {
		fit.F[i] = float32(-loss / float64(len(batch)))
	}
	rep := optim.Report{
		Samples:     P * int64(len(batch)),
		Evaluations: P,
		Pass:        optim.Pass{Done: int64(len(batch)), Of: int64(len(e.Data.Train()))},
	}
	l, err := evolve(ctx, e, k, round, x, fit)
	if err != nil {
		return rep, err
	}
	storeScores(e, fit, l.children)
	rep.Edges, rep.Points = l.edges, slices.Concat(
		e.MemberPoints(optim.SeriesFitness.Name, fit.F),
		e.MetricPoints(t.Metrics, len(batch)),
		l.points,
	)
	return rep, nil
}

func (ga) Centre(ctx context.Context, e *optim.Env, _ optim.Values, dst engine.Mat) error {
	return broadcastBest(ctx, e, optim.BlockScore, e.Block(optim.BlockX), dst)
}
