package evolution

import (
	"context"
	"math"

	"brood/models/arith"
	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
)

// hybridESCandidates generates the shifted steps of an iteration of Hybrid-ES: base + scale*length(id)*eps(id), where
// scale is zero for components outside the mask. Candidate id g*tries + k is the k-th of group g. Candidates are not
// stored or sent: they are functions of the seed, the round and the id.
type hybridESCandidates struct {
	key    noise.Key
	shape  string     // knob shape
	base   engine.Mat // theta - eta*d
	s      float64    // standard deviation of the shifts of d
	scale  float32    // eta*s
	mask   engine.Mat // 1 for each component that is shifted, else 0; the zero Mat if all are shifted
	scaled engine.Mat // scratch: the mask times the scale
}

// newHybridESCandidates prepares the candidates of a round: the base, the scale and the mask.
func newHybridESCandidates(
	ctx context.Context,
	e *optim.Env,
	k optim.Values,
	round uint64,
) (*hybridESCandidates, error) {
	M := e.Layout.Params
	t := &hybridESCandidates{key: e.Rand(noise.Direction, round, 0), shape: k.Choice("shape"), base: e.Scratch(1, M)}
	x, d := e.Block(optim.BlockX), e.Block(optim.BlockD)
	if err := e.Engine.Do(
		ctx,
		optim.Update(1, optim.Assign(t.base, optim.T(1, x), optim.T(-k.F("eta"), d))),
	); err != nil {
		return nil, err
	}
	if t.s = k.Get("s"); k.Is("unit", "gradient") {
		rms, err := e.RMS(ctx, d)
		if err != nil {
			return nil, err
		}
		t.s *= rms
	}
	t.scale = float32(k.Get("eta") * t.s)
	if share := k.F("components"); share < 1 {
		t.mask, t.scaled = e.Scratch(1, M), e.Scratch(1, M)
		coin := t.key
		coin.Stream = 1 << 31 // differs from the streams of the tensors' noise
		words := coin.Schedule()
		mask := make([]float32, M)
		for j := range mask {
			if float32(words.Block(coin.Counter(uint32(j / 4)))[j%4]>>8)*(1.0/(1<<24)) < share {
				mask[j] = 1
			}
		}
		if err := e.Engine.Write(ctx, engine.All(t.mask), engine.AppendFloats(nil, mask)); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// length returns the factor of a candidate's normal shift. The resulting components have variance 1 for every shape, so
// that shapes differ only in their tails.
func (t *hybridESCandidates) length(id uint64) float32 {
	key := t.key
	key.Member, key.Stream = uint32(id), 1<<31+1
	switch t.shape {
	case "laplace": // makes components Laplace: the square of the length is exponential
		return float32(math.Sqrt(-arith.Log(1 - float64(key.Uniform(0)))))
	case "student": // makes components Student t with 3 degrees of freedom, divided by the standard deviation sqrt(3)
		var chi float64
		for i := range 3 {
			chi += float64(float64(key.Gauss(i)) * float64(key.Gauss(i)))
		}
		return float32(1 / math.Sqrt(chi))
	}
	return 1
}

// costs returns the loss of each candidate on batch, which starts at position at of the shared stream.
func (t *hybridESCandidates) costs(
	ctx context.Context,
	e *optim.Env,
	ids []uint64,
	batch []int32,
	at uint64,
) ([]float32, error) {
	fit, members := make([]float32, len(ids)), make([]engine.Member, len(ids))
	for i, id := range ids {
		members[i] = engine.Member(id)
	}
	run := func(lo, hi int, length float32) error {
		c := engine.Candidates{
			Theta:   t.base,
			Sigma:   t.scale * length,
			Key:     t.key,
			IDs:     members[lo:hi],
			Batches: [][]int32{batch},
			Drawn:   []noise.Key{e.SharedBatchKey(at)},
			Fitness: fit[lo:hi],
		}
		var tasks []engine.Task
		if t.mask.Rows > 0 {
			c.Scale = t.scaled
			tasks = append(
				tasks,
				optim.Update(1, optim.Assign(c.Scale, optim.T(c.Sigma, t.mask))),
			)
		}
		return e.Engine.Do(ctx, append(tasks, c)...)
	}
	if t.shape == "normal" {
		if err := run(0, len(ids), 1); err != nil {
			return nil, err
		}
	} else {
		for i, id := range ids { // scales differ by candidate
			if err := run(i, i+1, t.length(id)); err != nil {
				return nil, err
			}
		}
	}
	if err := e.Engine.Wait(ctx); err != nil {
		return nil, err
	}
	for i := range fit {
		fit[i] = -fit[i]
	}
	return fit, nil
}

// race evaluates the candidates of hosted groups and sends each group's best to every worker, 12 bytes each. It returns
// the best by group, adds to the report and advances the cursor. It is collective.
func (t *hybridESCandidates) race(
	ctx context.Context,
	e *optim.Env,
	k optim.Values,
	rep *optim.Report,
) ([]hybridESResult, error) {
	groups, tries, at := k.I("groups"), uint64(k.I("tries")), e.Record(optim.BlockCursor).U
	batch := make([]int32, k.I("judges"))
	e.SharedBatch(batch, at[0])
	leaves := e.Roster.Shards(groups)
	hosted := leaves.Hosted(e.Self)
	var ids []uint64
	for _, g := range hosted {
		for i := range tries {
			ids = append(ids, uint64(g)*tries+i)
		}
	}
	cost, err := t.costs(ctx, e, ids, batch, at[0])
	if err != nil {
		return nil, err
	}
	at[0] += uint64(len(batch))
	seed, low := engine.NewHost(len(hosted), 1, engine.U64), engine.NewHost(len(hosted), 1, engine.F32)
	for i := range hosted {
		fit := make([]float32, tries)
		for j := range fit {
			fit[j] = -cost[i*int(tries)+j]
		}
		best := i*int(tries) + optim.Order(fit)[0]
		seed.U[i], low.F[i] = ids[best], cost[best]
	}
	workers := e.Roster.Workers()
	to, edges := collective.Roster{Members: collective.IDs(len(workers)), Owner: workers}, []collective.Edge(nil)
	for _, g := range leaves.Members {
		for w := range workers {
			edges = append(edges, collective.Edge{From: g, To: engine.Member(w), Op: "winner"})
		}
	}
	seeds, lows := engine.NewHost(groups, 1, engine.U64), engine.NewHost(groups, 1, engine.F32)
	if err := e.Comm.MoveRecordsBetween(ctx, "winner", leaves, to, edges, seed, seeds); err != nil {
		return nil, err
	}
	if err := e.Comm.MoveRecordsBetween(ctx, "winner", leaves, to, edges, low, lows); err != nil {
		return nil, err
	}
	out := make([]hybridESResult, groups)
	for g := range out {
		out[g] = hybridESResult{seeds.U[g], lows.F[g]}
	}
	n := int64(groups) * int64(tries)
	rep.Evaluations, rep.Samples, rep.Pass.Done = n, rep.Samples+n*int64(len(batch)), rep.Pass.Done+int64(len(batch))
	return out, nil
}

// hybridESWeights returns the weights of the groups' winners in the step, which sum to 1. It returns nil if no cost is
// finite.
func hybridESWeights(k optim.Values, best []hybridESResult) []float32 {
	fit := make([]float32, len(best))
	for g, r := range best {
		fit[g] = -r.cost
	}
	top := optim.Order(fit)[0]
	if fit[top] != fit[top] {
		return nil
	}
	w, total := make([]float64, len(best)), 0.0
	for g, r := range best {
		switch {
		case k.Is("combine", "argmin"):
			if g == top {
				w[g] = 1
			}
		case r.cost == r.cost:
			w[g] = arith.Exp(-(float64(r.cost) - float64(best[top].cost)) / k.Get("temperature"))
		}
		total += w[g]
	}
	out := make([]float32, len(w))
	for g := range w {
		out[g] = float32(w[g] / total)
	}
	return out
}

// apply regenerates the winners' steps and moves x to their weighted mean. If no winner has a finite cost, x stays
// unchanged.
func (t *hybridESCandidates) apply(
	ctx context.Context,
	e *optim.Env,
	k optim.Values,
	best []hybridESResult,
	rep *optim.Report,
) error {
	w := hybridESWeights(k, best)
	if w == nil {
		return nil
	}
	x, shift := e.Block(optim.BlockX), e.Scratch(1, e.Layout.Params)
	sum, low := engine.NoiseSum{Dst: engine.All(shift), Key: t.key}, float32(math.Inf(1))
	for g, r := range best {
		if r.cost < low {
			low = r.cost
		}
		if w[g] > 0 {
			sum.IDs, sum.Weights = append(sum.IDs, engine.Member(r.id)), append(sum.Weights, w[g]*(t.scale*t.length(r.id)))
		}
	}
	tasks := []engine.Task{sum}
	if t.mask.Rows > 0 {
		tasks = append(tasks, engine.Product{Dst: shift, A: shift, B: t.mask})
	}
	rep.Points = append(
		append(rep.Points, e.PopulationPoint("shift.variance", t.s*t.s)...),
		e.PopulationPoint("cost", float64(low))...)
	return e.Engine.Do(
		ctx,
		append(
			tasks,
			optim.Update(1, optim.Assign(x, optim.T(1, t.base), optim.T(1, shift))),
		)...,
	)
}
