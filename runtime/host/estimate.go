package host

import (
	"context"
	"math"
	"slices"
	"time"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/graph"
	"brood/models/noise"
	"brood/optim"
	"brood/runtime/timeline"
)

// processBytes is an idle process of this binary, resident; dataCopies is the peak of a data set while it is read, in
// copies of its pixels. Both were measured.
const (
	processBytes = 45 << 20
	dataCopies   = 2.2
	updateShare  = 1.15 // of the time of gradients: with updates, reductions, snapshots and digests
)

// values are the knobs of the first round. Edits were checked before.
func (j *Job) values() optim.Values {
	tl, err := timeline.New(j.Alg, j.Edits)
	if err != nil {
		return j.Alg.Defaults()
	}
	return tl.Values(timeline.Position{})
}

// Memory predicts the peak resident bytes: blocks, the snapshots of the outstanding grants, scratch, data and the engine.
func (j *Job) Memory() int64 {
	v, params := j.values(), int64(4*j.Net.Layout.Params)
	var state int64
	for _, b := range j.Alg.Blocks(v, j.Net.Layout) {
		rows := int64(j.Members)
		if b.Shared {
			rows = int64(j.Workers)
		}
		state += rows * int64(b.Cols) * int64(b.Type.Size())
	}
	scratch := 2 * params * int64(j.Workers)
	if j.Alg.Needs&optim.Gradients != 0 {
		scratch = 4 * params * int64(j.Members)
	}
	return 4*state + scratch + int64(dataCopies*float64(j.Samples.Len()*j.Samples.Features())) + j.engineBytes(v["batch"]) + processBytes
}

// engineBytes is what the graphs of all threads hold: parameters with their gradients, and for every size of batch every
// layer's values, a convolution's patches among them.
func (j *Job) engineBytes(batch float64) int64 {
	var acts int64
	for _, l := range j.Net.Layers {
		acts += int64(models.Size(l.Out))
		if l.Kind == models.Conv && len(l.In) == 3 {
			acts += int64(l.In[0]*l.Kernel*l.Kernel) * int64(models.Size(l.Out[1:]))
		}
	}
	samples := int64(batch) + optim.ScoreChunk // evaluations run in two pieces, of which both sizes stay
	if j.Net.Layout.Stats > 0 {
		samples += 128 // statistics are rebuilt in batches of that size
	}
	return int64(j.Threads) * (4*4*int64(j.Net.Layout.Params) + samples*acts*16)
}

// stepsPerRound is the gradient steps a member takes in a round, at most.
func stepsPerRound(v optim.Values) float64 {
	steps := 1.0
	for _, name := range []string{"ell", "h"} {
		if x, ok := v[name]; ok {
			steps = x
		}
	}
	slice, sliced := v["slice"]
	if _, cycle := v["ell"]; sliced && !cycle {
		return slice
	}
	if sliced {
		steps = min(steps, slice)
	}
	return steps
}

// work is the samples of one round, of all members together, and those of one epoch.
func (j *Job) work(v optim.Values) (round, epoch float64) {
	members, train := float64(j.Members), float64(j.Config.Train)
	round = members * v["batch"] * stepsPerRound(v)
	epoch = train * members
	for _, b := range j.Alg.Blocks(v, j.Net.Layout) {
		if b.Name == optim.BlockCursor && b.Shared && j.Alg.Needs&optim.Gradients != 0 {
			epoch = train // one stream, dealt to the members
		}
	}
	return round, epoch
}

// Seconds predicts the time of the run by timing the engine for a moment: 0 when its limit says nothing of work.
func (j *Job) Seconds(ctx context.Context) (float64, error) {
	v := j.values()
	round, epoch := j.work(v)
	l := j.Limit
	samples := math.Inf(1)
	if l.Rounds > 0 {
		samples = float64(l.Rounds) * round
	}
	if l.Epochs > 0 {
		samples = min(samples, l.Epochs*epoch)
	}
	if math.IsInf(samples, 1) || round == 0 {
		return l.Seconds, nil
	}
	gradient, score, err := j.clock(ctx, int(v["batch"]))
	if err != nil {
		return 0, err
	}
	each := gradient
	if j.Alg.Needs&optim.Gradients == 0 { // the update takes the noise of every pair once more
		if each, err = j.candidate(ctx, int(v["batch"])); err != nil {
			return 0, err
		}
		each *= 1.3
	}
	rounds := samples / round
	probes := rounds / float64(max(1, j.Config.Probe)) * probeCost(j)
	tests := samples / epoch
	if j.Config.Evaluate > 0 {
		tests = rounds / float64(j.Config.Evaluate)
	}
	total := updateShare*samples*each + (probes+(tests+1)*float64(j.Config.Test))*score
	if l.Seconds > 0 {
		total = min(total, l.Seconds)
	}
	return total, nil
}

// probeCost is the evaluated samples of one probe.
func probeCost(j *Job) float64 {
	if j.Alg.Needs&optim.Gradients == 0 {
		return optim.ScoreChunk
	}
	return optim.ScoreChunk * float64(1+j.Members)
}

// clock times a gradient, where the algorithm takes any, and an evaluation, in seconds a sample with all threads at work.
func (j *Job) clock(ctx context.Context, batch int) (gradient, score float64, err error) {
	eng, err := graph.New(j.Net, j.Samples, j.Threads)
	if err != nil {
		return 0, 0, err
	}
	n := min(j.Members, j.Threads)
	x, g := engine.New(n, j.Net.Layout.Params, engine.F32), engine.New(n, j.Net.Layout.Params, engine.F32)
	stats := engine.New(n, j.Net.Layout.Stats, engine.F32)
	batches, masks := make([][]int32, n), make([]noise.Key, n)
	for i := range n {
		j.init(engine.Member(i), x.Row(engine.Row(i)))
		if err := j.Net.InitStats(stats.Row(engine.Row(i))); err != nil {
			return 0, 0, err
		}
		batches[i] = make([]int32, batch)
		data.Batch(batches[i], j.Samples.Train(), noise.Key{Purpose: noise.Order, Member: uint32(i)}, 0, data.Window{Len: j.Config.Train})
	}
	if j.Net.Layout.Stats == 0 {
		stats = engine.Mat{}
	}
	rows := engine.Rows(n)
	if j.Alg.Needs&optim.Gradients != 0 {
		gradient, err = timed(ctx, eng, n*batch, engine.Gradients{X: x, Rows: rows, Batches: batches, Stats: stats, Masks: masks, G: g, Loss: make([]float32, n)})
		if err != nil {
			return 0, 0, err
		}
	}
	score, err = timed(ctx, eng, n*batch, engine.Evaluate{X: x, Rows: rows, Batches: batches, Stats: stats, Loss: make([]float64, n), Correct: make([]int64, n)})
	return gradient, score, err
}

// candidate times the evaluation of perturbed parameters, in seconds a sample with all threads at work.
func (j *Job) candidate(ctx context.Context, batch int) (float64, error) {
	eng, err := graph.New(j.Net, j.Samples, j.Threads)
	if err != nil {
		return 0, err
	}
	theta := engine.New(1, j.Net.Layout.Params, engine.F32)
	j.init(0, theta.F)
	ids := make([]engine.Member, 2*j.Threads)
	for i := range ids {
		ids[i] = engine.Member(i)
	}
	samples := make([]int32, batch)
	data.Batch(samples, j.Samples.Train(), noise.Key{Purpose: noise.Order}, 0, data.Window{Len: j.Config.Train})
	return timed(ctx, eng, len(ids)*batch, engine.Candidates{Theta: theta, Sigma: 0.01, Antithetic: true, IDs: ids, Batches: [][]int32{samples}, Fitness: make([]float32, len(ids))})
}

// timed runs a task once to warm up and then for some tens of milliseconds; the median run counts, since the machine may be
// shared.
func timed(ctx context.Context, eng *graph.Engine, samples int, task engine.Task) (float64, error) {
	if err := eng.Do(ctx, task); err != nil {
		return 0, err
	}
	var runs []float64
	for begin := time.Now(); time.Since(begin) < 60*time.Millisecond; {
		t0 := time.Now()
		if err := eng.Do(ctx, task); err != nil {
			return 0, err
		}
		runs = append(runs, time.Since(t0).Seconds())
	}
	slices.Sort(runs)
	return runs[len(runs)/2] / float64(samples), nil
}
