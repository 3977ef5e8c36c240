package optim

import (
	"context"
	"errors"

	"brood/models/engine"
	"brood/models/noise"
)

// OpenAIES estimates the gradient of a smoothed objective from candidates.
var OpenAIES = &Algorithm{
	Name:  "openai-es",
	Title: "OpenAI-ES",
	Paper: "Salimans, Ho, Chen, Sidor, Sutskever: Evolution strategies as a scalable alternative to RL (2017); distribution after DarwiNN (2019)",
	Doc: `Each member is a candidate theta +- sigma*eps in antithetic pairs: ranks 2k and 2k+1 of the population share eps_k.
Fitness is minus the loss on one mini-batch that all candidates of a generation see.

    u = centred ranks in [-0.5, 0.5] over ALL results;  g = 1/(P*sigma) * sum_i u_i eps_i - decay*theta
    theta <- theta + step(g), by Adam (b1 = 0.9, b2 = 0.999) or Nesterov SGD

The division by P and by sigma is a documented choice: the starter code omits sigma. A missing (non-finite) fitness ranks
last. distribution says who computes the update and does not change a bit of it: with seed every worker regenerates
all noise and only P fitness values travel; with chromosome each worker computes its slice of M and slices are gathered.
Bytes a generation: seed 4P(N-1); chromosome 4(P+M)(N-1), summed over N workers.`,
	Needs: Evaluations,
	Knobs: []Knob{
		KnobEta.With(0.005),
		{Name: "sigma", Title: "sigma", Doc: "standard deviation of the perturbations", Min: 1e-6, Max: 10, Default: 0.02, Scale: Log},
		KnobB.With(256), KnobWD, KnobMu,
		{Name: "optimiser", Title: "optimiser", Doc: "how the estimated gradient is followed", Choices: []string{"adam", "sgd"}, Max: 1},
		{Name: "distribution", Title: "distribution", Doc: "who computes the update: everybody all of it, or everybody a slice", Choices: []string{"seed", "chromosome"}, Max: 1},
	},
	Series: []Series{SeriesFitness},
	Blocks: func(k Values, l engine.Layout) []Block {
		b := []Block{Params(BlockX, true, EnterCentre, l), Params(BlockM, true, EnterZero, l), Counter(BlockCursor, true), Counter(BlockCycle, true)}
		if k.I("optimiser") == esAdam {
			b = append(b, Params(BlockV, true, EnterZero, l))
		}
		return b
	},
	Check: func(s Shape) error {
		if len(s.Roster.Members)%2 == 1 {
			return errors.New("antithetic pairs need an even population: give members a multiple of 2")
		}
		return nil
	},
	Bytes: func(s Shape) map[Op]int64 {
		b := map[Op]int64{"fitness": s.AllGatherBytes(4)}
		if s.K.I("distribution") == esChromosome {
			b["slices"] = s.GatherSlicesBytes(s.Layout.Params)
		}
		return b
	},
	Program: openaiES{},
}

const (
	esAdam       = 0
	esChromosome = 1
)

type openaiES struct{}

func (openaiES) Round(ctx context.Context, e *Env, k Values, round uint64) (Report, error) {
	P, M := len(e.Roster.Members), e.Layout.Params
	x, at, cycle := e.Block(BlockX), e.Block(BlockCursor).U, e.Block(BlockCycle).U
	batch := make([]int32, k.I("batch"))
	e.SharedBatch(batch, at[0])
	at[0] += uint64(len(batch))
	ids := make([]Member, len(e.Mine))
	for i, m := range e.Mine {
		ids[i] = Member(e.Roster.Rank(m))
	}
	key := e.Rand(noise.Candidate, round, 0)
	mine, all := engine.New(len(ids), 1, engine.F32), engine.New(P, 1, engine.F32)
	c := engine.Candidates{Theta: x, Sigma: k.F("sigma"), Key: key, Antithetic: true, IDs: ids, Batches: [][]int32{batch}, Fitness: mine.F}
	if err := e.Engine.Do(ctx, c); err != nil {
		return Report{}, err
	}
	if err := e.Comm.AllGather(ctx, "fitness", mine, all); err != nil {
		return Report{}, err
	}
	g := e.Scratch(1, M)
	u := CentredRanks(all.F)
	pairs, w := make([]Member, P/2), make([]float32, P/2)
	for i := range pairs {
		pairs[i], w[i] = Member(2*i), u[2*i]-u[2*i+1]
	}
	sum := engine.NoiseSum{Dst: engine.All(g), Weights: w, Key: key, Antithetic: true, IDs: pairs}
	sliced := k.I("distribution") == esChromosome
	if sliced {
		sum.Dst.Lo, sum.Dst.Hi = e.Comm.Slice(M)
	}
	if err := e.Engine.Do(ctx, sum); err != nil {
		return Report{}, err
	}
	if sliced {
		if err := e.Comm.GatherSlices(ctx, "slices", g); err != nil {
			return Report{}, err
		}
	}
	cycle[0]++
	if err := e.Engine.Do(ctx, follow(e, k, g, P, cycle[0])...); err != nil {
		return Report{}, err
	}
	return Report{Samples: int64(P * len(batch)), Evaluations: int64(P), Pass: Pass{int64(len(batch)), int64(len(e.Data.Train()))},
		Points: e.MemberPoints("fitness", mine.F)}, nil
}

// follow descends along minus the estimated ascent direction.
func follow(e *Env, k Values, g engine.Mat, P int, t uint64) []engine.Task {
	x, one := e.Block(BlockX), engine.Rows(1)
	scale := engine.Update{Rows: one, Prog: []engine.Lin{Assign(g, T(-1/(float32(P)*k.F("sigma")), g), T(k.F("decay"), x))}}
	if k.I("optimiser") == esAdam {
		return []engine.Task{scale, engine.Adam{X: x, M: e.Block(BlockM), V: e.Block(BlockV), G: g, Rows: one, Eta: k.F("eta"), B1: 0.9, B2: 0.999, Eps: 1e-8, T: t}}
	}
	return []engine.Task{scale, engine.Update{Rows: one, Prog: Nesterov(x, e.Block(BlockM), g, k.F("eta"), k.F("momentum"))}}
}

func (openaiES) Centre(ctx context.Context, e *Env, _ Values, dst engine.Mat) error {
	return CopyBlock(ctx, e, BlockX, dst)
}
