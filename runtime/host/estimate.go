package host

import (
	"context"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"brood/models/data"
	"brood/models/engine"
	"brood/models/noise"
	"brood/runtime/coordinator"
)

// processBytes is an idle process of this binary, resident; dataCopies is the peak of a data set while it is read, in
// copies of its pixels. All were measured.
const (
	processBytes = 45 << 20
	dataCopies   = 2.2
	shortBytes   = 60 << 20 // of the points and records of thousands of rounds a second, as protocols have them
	upkeep       = 1.1      // of the time of tasks: with snapshots, digests, links and the log
)

// estimate sets what a run of this job is expected to need, and how often it is probed unless that was asked for.
func (j *Job) estimate(ctx context.Context, eng compute) error {
	r, err := j.rehearse()
	if err != nil {
		return err
	}
	if j.Config.Probe == 0 && !j.bare() { // probes may cost about 5%, counting a gradient as three evaluations
		samples := func(e effort) float64 { return 3*e.gradients + e.scores + e.candidates }
		j.Config.Probe = uint64(max(1, math.Round(samples(r.probe)/(0.05*max(1, samples(r.round))))))
	}
	j.Config.Memory = j.memory(r, eng)
	if err := j.fits(eng); err != nil {
		return err
	}
	j.Config.Seconds, err = j.seconds(ctx, r, eng)
	return err
}

// memory predicts the peak resident bytes: blocks, the snapshots of the outstanding grants, scratch, data and what the engine holds.
func (j *Job) memory(r rehearsal, eng compute) int64 {
	copies, sum := int64(4), int64(processBytes)
	if j.Workers == 1 && r.blocks > coordinator.KeepBytes {
		copies = 1
	}
	if j.bare() {
		sum += shortBytes
	}
	return sum + copies*r.blocks + r.scratch + int64(dataCopies*float64(j.Samples.Bytes())) + eng.Room(r.round.most.Max(r.probe.most).Max(r.test.most))
}

// garbage is how much of it may pile up beside large blocks before it is collected: they hold no pointers, so that collecting is cheap.
const garbage = 256 << 20

// collect holds the process to the memory that the run is expected to need, unless a person has said how with GOGC.
func (j *Job) collect() {
	if os.Getenv("GOGC") == "" && j.Config.Memory > garbage {
		debug.SetGCPercent(int(max(5, 100*garbage/j.Config.Memory)))
	}
}

// seconds predicts the time of the run by timing the engine for a moment: 0 when its limit says nothing of work.
func (j *Job) seconds(ctx context.Context, r rehearsal, eng compute) (float64, error) {
	l, rounds := j.Limit, math.Inf(1)
	if l.Rounds > 0 {
		rounds = float64(l.Rounds)
	}
	if l.Epochs > 0 && r.epochs > 0 {
		rounds = min(rounds, math.Ceil(l.Epochs/r.epochs))
	}
	if math.IsInf(rounds, 1) {
		return l.Seconds, nil
	}
	all := effort{}.add(r.round, rounds).add(r.probe, rounds/float64(max(1, j.Config.Probe)))
	tests := rounds * r.epochs
	if j.Config.Evaluate > 0 {
		tests = rounds / float64(j.Config.Evaluate)
	}
	all = all.add(r.test, 1+tests)
	total, err := j.clock(ctx, all, eng)
	total = upkeep*total + rounds*r.beside
	if l.Seconds > 0 {
		total = min(total, l.Seconds)
	}
	return total, err
}

// clock times each kind of work for a moment, with all threads at it, and says how long all of it takes.
func (j *Job) clock(ctx context.Context, all effort, eng compute) (seconds float64, err error) {
	n, params := min(j.Members, j.Threads), j.Net.Layout.Params
	x, g := engine.New(n, params, engine.F32), engine.New(n, params, engine.F32)
	var stats engine.Mat
	if j.Net.Layout.Stats > 0 {
		stats = engine.New(n, j.Net.Layout.Stats, engine.F32)
		for i := range n {
			j.Net.Layout.FreshStats(stats.Row(engine.Row(i)))
		}
	}
	for i := range n {
		j.init(engine.Member(i), x.Row(engine.Row(i)))
	}
	rows, one, drawn := engine.Rows(n), x.Sub(0, 1), make([]noise.Key, n)
	for i := range drawn {
		drawn[i] = noise.Key{Purpose: noise.Order, Member: uint32(i)}
	}
	samples := func(count, size int) [][]int32 {
		out := make([][]int32, count)
		for i := range out {
			out[i] = make([]int32, max(1, size))
			data.Batch(out[i], j.Samples.Train(), drawn[i], 0, data.Window{Len: j.Config.Train})
		}
		return out
	}
	ids := make([]engine.Member, 2*j.Threads)
	for i := range ids {
		ids[i] = engine.Member(i)
	}
	scores := max(all.most.Scores, all.most.Own)
	for _, work := range []struct {
		amount, once float64
		task         func() engine.Task
	}{
		{all.gradients, float64(n * all.most.Gradients), func() engine.Task {
			return engine.Gradients{X: x, Rows: rows, Batches: samples(n, all.most.Gradients), Stats: stats, Masks: drawn, G: g, Loss: make([]float32, n)}
		}},
		{all.scores, float64(n * scores), func() engine.Task {
			return engine.Evaluate{X: x, Rows: rows, Batches: samples(n, scores), Stats: stats, Loss: make([]float64, n), Correct: make([]int64, n)}
		}},
		{all.candidates, float64(len(ids) * all.most.Batch), func() engine.Task {
			return engine.Candidates{Theta: one, Noise: all.most.Noise, Sigma: 0.01, Antithetic: true, IDs: ids, Batches: samples(1, all.most.Batch), Drawn: drawn[:1], Fitness: make([]float32, len(ids))}
		}},
		{all.terms, 3 * float64(n), func() engine.Task {
			return engine.Update{Rows: rows, Prog: []engine.Lin{{Dst: g, Terms: []engine.Term{{C: 0.5, Src: g}, {C: 0.5, Src: x}}}}}
		}},
		{all.normals, float64(len(ids)), func() engine.Task {
			return engine.NoiseSum{Noise: all.most.Noise, Dst: engine.All(g.Sub(0, 1)), Weights: make([]float32, len(ids)), IDs: ids}
		}},
	} {
		if work.amount == 0 {
			continue
		}
		each, err := timed(ctx, eng, work.task())
		if err != nil {
			return 0, err
		}
		seconds += each * work.amount / work.once
	}
	return seconds, nil
}

// timed runs a task once to warm up and then for some milliseconds; the median run counts, since the machine may be
// shared.
func timed(ctx context.Context, eng compute, task engine.Task) (float64, error) {
	if err := eng.Do(ctx, task); err != nil {
		return 0, err
	}
	var runs []float64
	for begin := time.Now(); time.Since(begin) < 15*time.Millisecond; {
		t0 := time.Now()
		if err := eng.Do(ctx, task); err != nil {
			return 0, err
		}
		runs = append(runs, time.Since(t0).Seconds())
	}
	slices.Sort(runs)
	return runs[len(runs)/2], nil
}
