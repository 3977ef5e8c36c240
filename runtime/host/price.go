package host

import (
	"context"
	"slices"
	"time"

	"brood/models/data"
	"brood/models/engine"
	"brood/models/noise"
	"brood/optim/collective"
	"brood/runtime/machine"
)

// price times each kind of work that all contains, on all threads, and returns its cost per unit. It allocates one row
// of parameters and one of gradients per entry on eng and frees them.
func (j *Job) price(ctx context.Context, all operations, eng Engine) (p Prices, err error) {
	r, err := j.pricedRows(ctx, eng)
	defer r.free(eng)
	if err != nil {
		return p, err
	}
	for _, work := range j.pricedWork(all, r, &p) {
		if work.amount == 0 {
			continue
		}
		few := max(1, work.few)
		blocks := (j.Threads + few - 1) / few // one block for each thread that shares an entry
		once, each, err := reducedSamples(ctx, eng, blocks*block, work.once, func(once int) engine.Task {
			return work.task(few, once)
		})
		if err != nil {
			return p, err
		}
		if each /= float64(few); each == 0 {
			each, err = perEntry(ctx, eng, few, work.most, func(n int) engine.Task { return work.task(n, once) })
		}
		if err != nil {
			return p, err
		}
		*work.to = each / float64(once)
	}
	return p, nil
}

// pricedRows are the members on which work is timed: initial parameters, gradients, and fresh statistics if the model
// has some. They have equal Rows.
type pricedRows struct{ x, g, stats engine.Mat }

// free frees the matrices that were allocated.
func (r pricedRows) free(eng Engine) {
	for _, m := range []engine.Mat{r.stats, r.g, r.x} {
		if m.Rows > 0 {
			eng.Free(m)
		}
	}
}

// pricedRows allocates rows for as many members as threads can compute at once. The caller frees them, also after an
// error.
func (j *Job) pricedRows(ctx context.Context, eng Engine) (r pricedRows, err error) {
	n, params, wide := min(j.Members, j.Threads), j.Net.Layout.Params, j.Net.Layout.Stats
	if r.x, err = eng.Alloc(n, params); err != nil {
		return r, err
	}
	if r.g, err = eng.Alloc(n, params); err != nil {
		return r, err
	}
	if wide > 0 {
		if r.stats, err = eng.Alloc(n, wide); err != nil {
			return r, err
		}
	}
	first, fresh := make([]float32, params), make([]float32, wide)
	j.Net.Layout.FreshStats(fresh)
	for i := range n {
		clear(first)
		if err := j.init(ctx, engine.Member(i), first); err != nil {
			return r, err
		}
		if err := eng.Write(ctx, engine.RowOf(r.x, engine.Row(i)), engine.AppendFloats(nil, first)); err != nil {
			return r, err
		}
		if wide > 0 {
			if err := eng.Write(ctx, engine.RowOf(r.stats, engine.Row(i)), engine.AppendFloats(nil, fresh)); err != nil {
				return r, err
			}
		}
	}
	return r, nil
}

// pricedWork is a kind of work that is timed.
type pricedWork struct {
	amount    float64  // skip this kind of work if 0
	to        *float64 // receives the price
	once      int      // units per entry of the task; if these are samples, the task may be timed with fewer
	few, most int      // bounds of the number of entries
	task      func(n, once int) engine.Task
}

// pricedWork returns the kinds of work on r whose prices are in p.
func (j *Job) pricedWork(all operations, r pricedRows, p *Prices) []pricedWork {
	x, g, stats := r.x, r.g, r.stats
	n, rows, one := x.Rows, engine.Rows(x.Rows), x.Sub(0, 1)
	drawn := func(count int) (out []noise.Key) {
		for i := range count {
			out = append(out, noise.Key{Purpose: noise.Order, Member: uint32(i)})
		}
		return out
	}
	samples := func(count, size int) [][]int32 {
		out := make([][]int32, count)
		for i, at := range drawn(count) {
			out[i] = make([]int32, max(1, size))
			data.Batch(out[i], j.Samples.Train(), at, 0, data.Window{Len: j.Config.Train})
		}
		return out
	}
	var scale engine.Mat
	if all.scaled {
		scale = one
	}
	most, scores, ids := all.most, max(all.most.Scores, all.most.Own), collective.IDs(j.Members)
	few := min(j.Members, 2*j.Threads) // entries of tasks that threads take one by one or in pairs
	return []pricedWork{
		{all.gradients, &p.Gradient, most.Gradients, n, n, func(n, once int) engine.Task {
			return engine.Gradients{
				X:       x,
				Rows:    rows,
				Batches: samples(n, once),
				Stats:   stats,
				Masks:   drawn(n),
				G:       g,
				Loss:    make([]float32, n),
			}
		}},
		{all.scores, &p.Score, scores, n, n, func(n, once int) engine.Task {
			return engine.Evaluate{
				X:       x,
				Rows:    rows,
				Batches: samples(n, once),
				Stats:   stats,
				Loss:    make([]float64, n),
				Correct: make([]int64, n),
			}
		}},
		{all.candidates, &p.Candidate, most.Batch, few, j.Members, func(n, once int) engine.Task {
			batches := 1
			if all.fresh {
				batches = n
			}
			return engine.Candidates{
				Theta:      one,
				Noise:      most.Noise,
				Scale:      scale,
				Sigma:      0.01,
				Antithetic: most.Antithetic,
				IDs:        ids[:n],
				Batches:    samples(batches, once),
				Drawn:      drawn(batches),
				Fitness:    make([]float32, n),
			}
		}},
		{all.terms, &p.Term, termsOfUpdate, n, n, func(int, int) engine.Task {
			terms := []engine.Term{{C: 0.5, Src: g}, {C: 0.5, Src: x}}
			return engine.Update{Rows: rows, Prog: []engine.Lin{{Dst: g, Terms: terms}}}
		}},
		{all.muon, &p.Muon, 1, n, n, func(int, int) engine.Task {
			return engine.Muon{X: x, M: g, V: g, G: g, Rows: rows, T: 1}
		}},
		{all.lengths, &p.Length, 1, n, n, func(n, _ int) engine.Task {
			return engine.Distance{X: x, Centre: one, RMS: make([]float64, n)}
		}},
		{all.normals, &p.Normal, 1, min(few, most.Sums), most.Sums, func(n, _ int) engine.Task {
			return engine.NoiseSum{
				Noise:   most.Noise,
				Dst:     engine.All(g.Sub(0, 1)),
				Weights: make([]float32, n),
				IDs:     ids[:n],
			}
		}},
	}
}

// termsOfUpdate is the number of rows that the timed update reads or writes per entry, see operations.terms.
const termsOfUpdate = 3

// block is the number of samples that engines compute at once. Fewer samples take hardly less time.
const block = 32

// longTask is the duration from which on a task is timed only once.
const longTask = 4 * time.Second

// reducedSamples returns the number of samples per entry, between least and most, with which a task is timed: a step of
// a large model may take many seconds, in proportion to its samples. seconds is the time of the task if it is long
// enough that no further measurement is needed, else 0.
func reducedSamples(
	ctx context.Context, eng Engine, least, most int, task func(samples int) engine.Task,
) (n int, seconds float64, err error) {
	for n = min(least, most); ; n = min(4*n, most) {
		work := task(n)
		took, err := timeOnce(ctx, eng, work)
		if err == nil && took > enough && took < longTask { // the first run also allocated buffers
			took, err = timeOnce(ctx, eng, work)
		}
		switch {
		case err != nil:
			return 0, 0, err
		case took > 4*enough:
			return n, took.Seconds(), nil
		case n == most:
			return n, 0, nil
		}
	}
}

// perEntry returns the seconds per entry of a task. It starts with few entries and doubles their number, up to most,
// until the fixed cost of the task is small in comparison.
func perEntry(ctx context.Context, eng Engine, few, most int, task func(entries int) engine.Task) (float64, error) {
	for n, warm := few, false; ; warm = true {
		work := task(n)
		began := time.Now()
		if err := done(ctx, eng, work); err != nil {
			return 0, err
		}
		took := time.Since(began)
		switch {
		case n >= most || warm && took > enough:
			each, err := timed(ctx, eng, work)
			return each / float64(n), err
		case warm:
			n = min(2*n, most)
		}
	}
}

// done submits a task and waits until it is done.
func done(ctx context.Context, eng Engine, task engine.Task) error {
	if err := eng.Do(ctx, task); err != nil {
		return err
	}
	return eng.Wait(ctx)
}

// enough is the duration from which on a task is long enough to be timed.
const enough = 8 * time.Millisecond

// timed runs a task once to warm up and then repeatedly for 15 ms. It returns the median in seconds, since other
// processes may use the machine.
func timed(ctx context.Context, eng Engine, task engine.Task) (float64, error) {
	if err := done(ctx, eng, task); err != nil {
		return 0, err
	}
	var runs []float64
	for begin := time.Now(); len(runs) == 0 || time.Since(begin) < 15*time.Millisecond; {
		took, err := timeOnce(ctx, eng, task)
		if err != nil {
			return 0, err
		}
		runs = append(runs, took.Seconds())
	}
	slices.Sort(runs)
	return runs[len(runs)/2], nil
}

// timeOnce runs a task once and returns its duration. For an engine of type processorTimed it returns the processor
// time if that is shorter.
func timeOnce(ctx context.Context, eng Engine, task engine.Task) (time.Duration, error) {
	_, processor := eng.(processorTimed)
	began := time.Now()
	used, known := machine.ProcessorTime()
	if err := done(ctx, eng, task); err != nil {
		return 0, err
	}
	took := time.Since(began)
	if now, _ := machine.ProcessorTime(); known && processor && now > used {
		took = min(took, now-used)
	}
	return took, nil
}
