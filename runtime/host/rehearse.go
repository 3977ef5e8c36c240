package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/runtime/option"
	"brood/runtime/worker"
	"brood/transport/local"
)

// effort is the work of some rounds, as the tasks name it: no algorithm has to say what it costs.
type effort struct {
	gradients, scores, candidates float64 // samples
	// elements read or written by updates, sums and copies, as multiples of the parameters
	terms         float64
	normals       float64 // drawn outside candidates, as multiples of the parameters
	digests       float64 // likewise
	muon          float64 // steps of Muon
	lengths       float64 // of rows or of differences of rows, likewise
	fresh, scaled bool    // candidates have batches of their own, or a scale for each parameter
	most          engine.Work
}

func (e effort) add(o effort, times float64) effort {
	return effort{e.gradients + times*o.gradients, e.scores + times*o.scores, e.candidates + times*o.candidates,
		e.terms + times*o.terms, e.normals + times*o.normals, e.digests + times*o.digests, e.muon + times*o.muon, e.lengths + times*o.lengths, e.fresh || o.fresh, e.scaled || o.scaled, e.most.Max(o.most)}
}

// dummy is the width that stands for so many parameters in a rehearsal: small, and with their remainders by small
// numbers, so that shares are of one length where the model's are.
func dummy(params int) int { return 252 + params%12 }

// sizes is where an engine that counts has its matrices.
type sizes interface {
	optim.Memory
	Wait(ctx context.Context) error
}

// counter is an engine that counts tasks instead of doing them.
type counter struct {
	sizes
	effort
	width         float64 // of the parameters, as matrices have them
	scratch       int64   // bytes that were allocated, with the model's parameters in place of the dummy's
	host          int64   // bytes that a programme holds beside, likewise
	params, stats int64
	threads       int // of the worker's engine, 0 of one without lanes
}

// Threads implements engine.Threaded.
func (c *counter) Threads() int { return c.threads }

// bytes are those of a matrix, in the model's size. Widths are one number, the statistics, which are one wider than the
// dummy, vectors behind each other, and shares of them, such as the slice of a worker or a fragment.
func (c *counter) bytes(rows, cols int) int64 {
	wide := int64(cols)
	switch width := int(c.width); {
	case cols == 1:
	case cols == 1+width:
		wide = c.stats
	default:
		wide = (int64(cols)*c.params + int64(width) - 1) / int64(width)
	}
	return 4 * int64(rows) * wide
}

func (c *counter) Alloc(rows, cols int) (engine.Mat, error) {
	c.scratch += c.bytes(rows, cols)
	return c.sizes.Alloc(rows, cols)
}

func (c *counter) Free(m engine.Mat) {
	c.scratch -= c.bytes(m.Rows, m.Cols)
	c.sizes.Free(m)
}

// Hold implements optim.Holder.
func (c *counter) Hold(width, bytes int) { c.host += int64(bytes) / 4 * c.bytes(1, width) }

// share is the elements of a span, as multiples of the parameters.
func (c *counter) share(s engine.Span) float64 { return float64(s.Rows*(s.Hi-s.Lo)) / c.width }

func (c *counter) rowsOf(m engine.Mat) float64 { return c.share(engine.All(m)) }

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
			} else {
				c.fresh = true
			}
			c.scaled = c.scaled || t.Scale.Rows > 0
			if drawn := float64(len(t.IDs)); t.Axes.Rows > 0 {
				if t.Antithetic { // pairs share what they have along axes
					drawn /= 2
				}
				c.terms += drawn * (2 + c.rowsOf(t.Axes))
			}
			for i, id := range t.IDs { // equal results would weigh the same, and be more to sum or less
				t.Fitness[i] = -float32(id)
			}
			c.candidates += c.work(engine.Work{Candidates: len(t.IDs), Antithetic: t.Antithetic, Batch: longest(t.Batches), Noise: t.Noise}, t.Batches, each)
		case engine.NoiseSum:
			c.normals += float64(len(t.IDs)) * c.share(t.Dst)
			c.most = c.most.Max(engine.Work{Sums: len(t.IDs), Noise: t.Noise})
		case engine.Perturb:
			c.normals += c.rowsOf(t.X)
		case engine.Update:
			for _, l := range t.Prog {
				c.terms += float64((1+len(l.Terms))*len(t.Rows)*l.Dst.Cols) / c.width
			}
		case engine.Adam:
			c.terms += 8 * float64(len(t.Rows))
		case engine.Muon:
			c.muon += float64(len(t.Rows))
			c.most = c.most.Max(engine.Work{Muon: true})
		case engine.NaturalStep:
			c.terms += 6 * float64(t.Hi-t.Lo) / c.width
		case engine.Sum:
			c.terms += float64(len(t.Src)+1) * c.share(t.Dst)
		case engine.Feedback:
			c.terms += 4 * c.rowsOf(t.Src)
		case engine.Copy:
			c.terms += 2 * c.share(t.Src)
		case engine.Fill:
			c.terms += c.share(t.Dst)
		case engine.Product:
			c.terms += 3 * c.rowsOf(t.Dst)
		case engine.Nudge:
			c.terms += 3 * c.rowsOf(t.X)
		case engine.Clip:
			c.terms += 3 * c.rowsOf(t.X)
		case engine.Finite:
			for i := range t.OK {
				t.OK[i] = true
			}
		case engine.Digest:
			c.digests += c.rowsOf(t.X)
		case engine.Crossover:
			c.terms += 3 * c.rowsOf(t.Dst)
		case engine.Distance:
			for i := range t.RMS { // rows of ones: what is as long as normals are
				t.RMS[i] = 1
			}
			c.lengths += c.rowsOf(t.X)
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
	epochs, steps   float64 // of a round
	probe, test     effort  // what one of them adds to a round
	blocks, scratch int64   // bytes that the workers of this process need
	host            int64   // of the host's memory, whatever the engine's is
	works           []engine.Work
	reports         reports // of a round
}

// reports is what workers tell of rounds.
type reports struct {
	records, points float64
	sent            float64        // bytes of frames, with the model's parameters in place of the dummy's
	series          map[string]int // the members that have a value of it, 1 for one of the population
	ops             int            // that send something
}

// add counts the reports of all workers.
func (h *reports) add(points []event.Points, members int) {
	if h.series == nil {
		h.series = map[string]int{}
	}
	for _, p := range points {
		h.points += float64(len(p.Members))
		if h.series[p.Series] == 0 {
			h.series[p.Series] = 1
		}
		if p.Members[0] != engine.None {
			h.series[p.Series] = members
		}
	}
}

// rehearsing ends after so many rounds or so long, whatever comes first.
const (
	rehearseRounds = 256
	rehearseTime   = 15 * time.Millisecond
)

// rehearse runs the algorithm on counters: its own program, roster, workers and knobs, but no arithmetic and no
// samples.
func (j *Job) rehearse() (r rehearsal, err error) {
	if j.bare() { // a round may be long, and there is nothing to count but the blocks: one of one member
		one := *j
		one.Members, one.Workers = 1, 1
		c, err := one.count(excerpt{evaluate: event.NoTest, rounds: 1})
		r.blocks = int64(j.Members) * c.blocks
		return r, err
	}
	whole := *j
	whole.hollow = true
	base, err := whole.count(excerpt{evaluate: event.NoTest, rounds: rehearseRounds, limit: j.Limit.Rounds, within: rehearseTime})
	if err != nil {
		return r, err
	}
	rounds := float64(base.progress.Rounds)
	if rounds == 0 {
		return r, fmt.Errorf("rehearse %s: no round was done", j.Alg.Name)
	}
	r.round = effort{}.add(base.effort, 1/rounds)
	r.epochs, r.steps = base.progress.Epochs/rounds, float64(base.progress.Steps)/rounds
	first, err := whole.count(excerpt{evaluate: event.NoTest, rounds: 1})
	if err != nil {
		return r, err
	}
	probed, err := whole.count(excerpt{probe: 1, evaluate: event.NoTest, rounds: 1})
	if err != nil {
		return r, err
	}
	tested, err := whole.count(excerpt{evaluate: 1, rounds: 1})
	if err != nil {
		return r, err
	}
	last := first
	if j.Config.Evaluate != event.NoTest {
		if last, err = whole.count(excerpt{probe: 1, evaluate: 1, rounds: 1, limit: 1}); err != nil {
			return r, err
		}
	}
	r.probe, r.test = probed.effort.add(first.effort, -1), tested.effort.add(first.effort, -1)
	r.blocks, r.scratch, r.host, r.works = base.blocks, max(base.scratch, probed.scratch, tested.scratch, last.scratch), base.host, base.works
	for i := range r.works {
		r.works[i] = r.works[i].Max(probed.works[i]).Max(tested.works[i]).Max(last.works[i])
	}
	r.reports = probed.reports
	r.reports.records, r.reports.points, r.reports.sent = base.reports.records/rounds, base.reports.points/rounds, base.reports.sent/rounds
	return r, nil
}

// crew is what all workers of a rehearsal did together.
type crew struct {
	effort
	blocks, scratch, host int64
	works                 []engine.Work // of each worker
	reports               reports       // of all rounds
	progress              event.Progress
}

// excerpt is some first rounds of a run on counters.
type excerpt struct {
	probe, evaluate uint64 // as in a configuration: rounds between probes and between tests
	rounds          uint64
	limit           uint64        // rounds after which the run ends, unless it is 0
	within          time.Duration // fewer rounds, but two of them, where they take longer; 0 is forever
}

// count runs the rounds of an excerpt.
func (j *Job) count(t excerpt) (out crew, err error) {
	workers := min(j.Workers, j.Members)
	hub, counters, ws, ids := &local.Hub{}, make([]*counter, workers), make([]*worker.Worker, workers), make([]int, workers)
	for i := range workers {
		ids[i], counters[i] = i, j.counter()
		ws[i] = worker.New(j.rehearsing(counters[i], hub.Link(i), i, t))
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	// together hands a message to every worker and waits for all replies; the others give up when one fails.
	together := func(m message.Order) ([]message.Report, error) {
		replies, failed := make([]message.Report, workers), make([]error, workers)
		var wg sync.WaitGroup
		for i, w := range ws {
			wg.Go(func() {
				replies[i] = w.Handle(ctx, m)
				if f, bad := replies[i].(message.Failed); bad {
					failed[i] = errors.New(f.Err)
					cancel()
				}
			})
		}
		wg.Wait()
		for _, err := range failed {
			if err != nil {
				return nil, fmt.Errorf("rehearse %s: %w", j.Alg.Name, err)
			}
		}
		return replies, nil
	}
	if _, err := together(message.Plan{Plan: event.Plan{Epoch: 1, From: event.Fresh, New: optim.Place(optim.IDs(j.Members), ids), Algorithm: j.Alg.Name, Timeline: j.Edits}}); err != nil {
		return out, err
	}
	for _, c := range counters {
		out.blocks += c.scratch
		c.scratch = 0
	}
	for begin, n := time.Now(), uint64(0); n < t.rounds && (n < 2 || t.within == 0 || time.Since(begin) < t.within); n++ {
		replies, err := together(message.Grant{Epoch: 1, From: n, To: n + 1, Committed: n, Onward: true, Limit: event.Limit{Rounds: t.limit}})
		if err != nil {
			return out, err
		}
		ended, sent, predicted := false, optim.Ledger{}, optim.Ledger{}
		for i, r := range replies {
			if d, ok := r.(message.Done); ok {
				out.progress, ended = d.Progress, d.Ended
				out.reports.add(d.Points, j.Members)
				sent.Add(d.Sent)
				predicted.Add(d.Predicted)
				if i == 0 { // the others tell of the same series
					out.reports.records += float64(len(d.Points))
				}
			}
		}
		out.reports.ops = max(out.reports.ops, len(sent))
		for op, b := range sent {
			if known, is := predicted[op]; is {
				b = known
			}
			out.reports.sent += float64(b)
		}
		if ended {
			break
		}
	}
	for _, c := range counters {
		out.effort = out.effort.add(c.effort, 1)
		out.scratch += c.scratch
		out.host += c.host
		out.works = append(out.works, c.most)
	}
	return out, nil
}

// counter counts for a model of the job's size.
func (j *Job) counter() *counter {
	if j.bare() { // blocks of a dummy's width are as wide as they say
		return &counter{sizes: ram.Memory{}, width: float64(dummy(0)), params: int64(dummy(0)), stats: int64(1 + dummy(0))}
	}
	params := j.Net.Layout.Params
	c := &counter{sizes: ram.Memory{}, width: float64(dummy(params)), params: int64(params), stats: int64(j.Net.Layout.Stats), threads: j.lanes()}
	if j.hollow {
		c.sizes = ram.Hollow{}
	}
	return c
}

// lanes is how many lanes the engine of a worker has, see engine.Laned.
func (j *Job) lanes() int {
	if j.Slow != nil || !option.Processor(j.Device) {
		return 0
	}
	return max(1, j.Threads/j.Workers)
}

// rehearsing is a worker on a counter. Vectors are dummies, but are exchanged as the model's are, and what is predicted
// of exchanges is of the model's.
func (j *Job) rehearsing(c *counter, link optim.Link, id int, t excerpt) worker.Config {
	wide := dummy(int(c.params))
	l := engine.Layout{Params: wide, For: int(c.params), Tensors: []engine.Tensor{{Name: "all", Shape: []int{wide}, Len: wide, Cols: wide}}}
	if j.Net.Layout.Stats > 0 {
		l.Stats, l.StatTensors = 1+wide, []engine.Tensor{{Name: "all", Shape: []int{1 + wide}, Len: 1 + wide, Cols: 1 + wide}}
	}
	direct := min(j.Config.Direct, max(4, int(int64(j.Config.Direct)*int64(wide)/c.params)))
	lookup := func(name string) (*optim.Algorithm, error) {
		a, err := j.lookup(name)
		if err != nil || j.bare() || a.Bytes == nil {
			return a, err
		}
		real := *a
		real.Bytes = func(s optim.Shape) map[optim.Op]int64 {
			s.Layout, s.Direct = j.Net.Layout, j.Config.Direct
			return a.Bytes(s)
		}
		return &real, nil
	}
	cfg := worker.Config{ID: id, Layout: l, Measured: j.ungraded(), Rebuild: option.Rebuilt(option.Rebuild.Text(j.Options)), Seed: j.Config.Seed, Init: func(engine.Member, []float32) {}, Engine: c, Metrics: j.Config.Metrics, Data: j.Samples, Link: link,
		Hollow: j.hollow, Direct: direct, Probe: t.probe, Evaluate: t.evaluate, Lookup: lookup, Clock: func() int64 { return 0 }}
	if t.evaluate != event.NoTest {
		cfg.Test = j.Samples.Test()
	}
	return cfg
}
