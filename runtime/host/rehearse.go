package host

import (
	"context"
	"fmt"
	"time"

	"brood/models/engine"
	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/runtime/worker"
	"brood/transport/local"
)

// effort is the work of some rounds, as the tasks name it: no algorithm has to say what it costs.
type effort struct {
	gradients, scores, candidates float64 // samples
	terms                         float64 // elements read or written by updates, sums and copies, as multiples of the parameters
	normals                       float64 // drawn outside candidates, as multiples of the parameters
	most                          engine.Work
}

func (e effort) add(o effort, times float64) effort {
	return effort{e.gradients + times*o.gradients, e.scores + times*o.scores, e.candidates + times*o.candidates,
		e.terms + times*o.terms, e.normals + times*o.normals, e.most.Max(o.most)}
}

// dummy is the width of the parameters in a rehearsal: small, and no other width occurs.
const dummy = 251

// counter is an engine that counts tasks instead of doing them.
type counter struct {
	effort
	blocks, scratch int64 // bytes, with the model's parameters in place of the dummy's
	params, stats   int64
}

func (c *counter) Alloc(rows, cols int, t engine.DType) engine.Mat {
	wide := int64(cols)
	switch cols {
	case dummy:
		wide = c.params
	case 1 + dummy:
		wide = c.stats
	}
	c.scratch += int64(rows) * wide * int64(t.Size())
	return engine.New(rows, cols, t)
}

func (c *counter) Copy(ctx context.Context, dst, src engine.Span) error {
	c.terms += 2 * share(src)
	return engine.CopyHost(dst, src)
}

func share(s engine.Span) float64 { return float64(s.Rows*(s.Hi-s.Lo)) / dummy }

func rowsOf(m engine.Mat) float64 { return share(engine.All(m)) }

func (c *counter) Do(ctx context.Context, tasks ...engine.Task) error {
	for _, t := range tasks {
		switch t := t.(type) {
		case engine.Gradients:
			c.gradients += c.work(engine.Work{Members: len(t.Rows), Gradients: longest(t.Batches)}, t.Batches, 1)
		case engine.Evaluate:
			w := engine.Work{Rows: len(t.Rows), Scores: longest(t.Batches)}
			if c.stats > 0 && t.Stats.Rows == 0 {
				w.Scores, w.Own = 0, w.Scores
			}
			c.scores += c.work(w, t.Batches, 1)
		case engine.Statistics:
			c.scores += c.work(engine.Work{Rows: len(t.Rows), Own: longest(t.Batches)}, t.Batches, len(t.Rows))
		case engine.Candidates:
			each := 1
			if len(t.Batches) == 1 {
				each = len(t.IDs)
			}
			c.candidates += c.work(engine.Work{Candidates: len(t.IDs), Antithetic: t.Antithetic, Batch: longest(t.Batches), Noise: t.Noise}, t.Batches, each)
		case engine.NoiseSum:
			c.normals += float64(len(t.IDs)) * share(t.Dst)
		case engine.Perturb:
			c.normals += rowsOf(t.X)
		case engine.Update:
			for _, l := range t.Prog {
				c.terms += float64((1+len(l.Terms))*len(t.Rows)*l.Dst.Cols) / dummy
			}
		case engine.Adam:
			c.terms += 8 * float64(len(t.Rows))
		case engine.NaturalStep:
			c.terms += 6 * float64(t.Hi-t.Lo) / dummy
		case engine.TreeSum:
			c.terms += 3 * rowsOf(t.Dst)
		case engine.Crossover:
			c.terms += 3 * rowsOf(t.Dst)
		case engine.Distance:
			c.terms += 2 * rowsOf(t.X)
		default:
			return fmt.Errorf("rehearse: task %T is not known", t)
		}
	}
	return nil
}

// work counts the samples of batches that are seen so many times.
func (c *counter) work(w engine.Work, batches [][]int32, times int) float64 {
	c.most = c.most.Max(w)
	n := 0
	for _, b := range batches {
		n += len(b)
	}
	return float64(n * times)
}

func longest(batches [][]int32) (n int) {
	for _, b := range batches {
		n = max(n, len(b))
	}
	return n
}

// rehearsal is what the first rounds of a job would do.
type rehearsal struct {
	round           effort  // on average
	epochs          float64 // of a round
	beside          float64 // seconds of a round that are not spent in tasks: the order of the data, bookkeeping
	probe, test     effort  // of one of them
	blocks, scratch int64   // bytes that one worker with all members needs
}

// rehearsing ends after so many rounds or so long, whatever comes first.
const (
	rehearseRounds = 256
	rehearseTime   = 15 * time.Millisecond
)

// rehearse runs the algorithm on a counter: its own programme, roster, knobs and data order, but no arithmetic.
func (j *Job) rehearse() (r rehearsal, err error) {
	began := time.Now()
	if j.bare() { // a round may be long, and there is nothing to count but the blocks: one of one member
		one := *j
		one.Members = 1
		c, _, err := one.count(0, 0, 1)
		r.blocks, r.beside = int64(j.Members)*c.blocks, float64(j.Members)*time.Since(began).Seconds()/float64(min(j.Members, j.Workers))
		return r, err
	}
	base, progress, err := j.count(0, 0, rehearseRounds)
	if err != nil {
		return r, err
	}
	if progress.Rounds == 0 {
		return r, fmt.Errorf("rehearse %s: no round was done", j.Alg.Name)
	}
	r.round = effort{}.add(base.effort, 1/float64(progress.Rounds))
	r.beside = time.Since(began).Seconds() / float64(progress.Rounds)
	r.epochs = progress.Epochs / float64(progress.Rounds)
	r.blocks, r.scratch = base.blocks, base.scratch
	first, _, err := j.count(0, 0, 1)
	if err != nil {
		return r, err
	}
	probed, _, err := j.count(1, 0, 1)
	if err != nil {
		return r, err
	}
	tested, _, err := j.count(0, 1, 1)
	r.probe, r.test = probed.effort.add(first.effort, -1), tested.effort.add(first.effort, -1)
	r.scratch = max(r.scratch, probed.scratch, tested.scratch)
	return r, err
}

// count runs up to so many rounds on a counter; probe and test are the rounds between them, 0 never.
func (j *Job) count(probe, test, rounds uint64) (*counter, event.Progress, error) {
	c := &counter{params: int64(j.Net.Layout.Params), stats: int64(j.Net.Layout.Stats)}
	if j.bare() { // blocks of a dummy's width are as wide as they say
		c.params, c.stats = dummy, 1+dummy
	}
	l := engine.Layout{Params: dummy, Tensors: []engine.Tensor{{Name: "all", Shape: []int{dummy}, Len: dummy, Cols: dummy}}}
	if j.Net.Layout.Stats > 0 {
		l.Stats, l.StatTensors = 1+dummy, []engine.Tensor{{Name: "all", Shape: []int{1 + dummy}, Len: 1 + dummy, Cols: 1 + dummy}}
	}
	cfg := worker.Config{Layout: l, Seed: j.Config.Seed, Init: func(engine.Member, []float32) {}, Engine: c, Data: j.Samples, Link: (&local.Hub{}).Link(0),
		Direct: j.Config.Direct, Probe: probe, Lookup: j.lookup, Clock: func() int64 { return 0 }}
	if test > 0 {
		cfg.Evaluate, cfg.Test = test, j.Samples.Test()
	}
	w, ctx := worker.New(cfg), context.Background()
	ready := w.Handle(ctx, message.Plan{Plan: event.Plan{Epoch: 1, From: event.Fresh, New: optim.Place(optim.IDs(j.Members), []int{0}), Algorithm: j.Alg.Name, Timeline: j.Edits}})
	if f, failed := ready.(message.Failed); failed {
		return c, event.Progress{}, fmt.Errorf("rehearse %s: %s", j.Alg.Name, f.Err)
	}
	c.blocks, c.scratch = c.scratch, 0
	var p event.Progress
	for begin, n := time.Now(), uint64(0); n < rounds && (n < 2 || time.Since(begin) < rehearseTime); n++ {
		switch d := w.Handle(ctx, message.Grant{Epoch: 1, From: n, To: n + 1, Committed: n, Limit: event.Limit{Rounds: j.Limit.Rounds}}).(type) {
		case message.Done:
			p = d.Progress
			if d.Ended {
				return c, p, nil
			}
		case message.Failed:
			return c, p, fmt.Errorf("rehearse %s: round %d: %s", j.Alg.Name, n, d.Err)
		}
	}
	return c, p, nil
}
