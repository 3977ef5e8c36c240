package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/optim"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/runtime/option"
	"brood/runtime/timeline"
	"brood/runtime/worker"
	"brood/transport/local"
)

// operations counts the work of some rounds. The counts come from the tasks that the algorithm issues, so algorithms
// need no cost model.
type operations struct {
	gradients, scores, candidates float64 // samples
	// The following counts are multiples of the model's parameters, unless they say otherwise.
	terms         float64     // elements read or written by updates, sums and copies
	normals       float64     // normals drawn outside candidates
	digests       float64     // elements hashed
	muon          float64     // steps of Muon, a plain count
	lengths       float64     // elements read for the lengths of rows or of differences of rows
	fresh, scaled bool        // whether each candidate has its own batch; whether each parameter has a noise scale
	most          engine.Work // maximum of each dimension over all tasks, for the engine's memory estimate
}

func (e operations) add(o operations, times float64) operations {
	return operations{
		gradients:  e.gradients + times*o.gradients,
		scores:     e.scores + times*o.scores,
		candidates: e.candidates + times*o.candidates,
		terms:      e.terms + times*o.terms,
		normals:    e.normals + times*o.normals,
		digests:    e.digests + times*o.digests,
		muon:       e.muon + times*o.muon,
		lengths:    e.lengths + times*o.lengths,
		fresh:      e.fresh || o.fresh,
		scaled:     e.scaled || o.scaled,
		most:       e.most.Max(o.most),
	}
}

// scaledWidth returns the vector width that replaces the number of parameters in a dry run. It is small, and congruent
// to params modulo 12, so that workers get shards of equal length if those of the model are equal.
func scaledWidth(params int) int { return 252 + params%12 }

// sizes allocates the matrices of a counter.
type sizes interface {
	engine.Memory
	Wait(ctx context.Context) error
}

// counter is an engine that counts tasks instead of executing them.
type counter struct {
	sizes
	operations
	width         float64 // columns of a matrix of parameters, see scaledWidth
	scratch       int64   // bytes allocated in matrices, scaled up to the size of the model
	host          int64   // bytes that the program holds outside the engine, scaled likewise
	params, stats int64   // of the model
	threads       int     // executor threads of the worker's engine; 0 if it has none, see engine.ThreadedEngine
}

// Threads implements engine.Threaded.
func (c *counter) Threads() int { return c.threads }

// Steps implements engine.Stepper: only a program's own optimiser cannot be replaced by gradients and updates.
func (c *counter) Steps(optimiser string) bool { return optimiser == engine.Program }

// bytes returns the size of a matrix in bytes, scaled up to the model. A single column is not scaled; 1+width columns
// are the batch-norm statistics; other widths are concatenated vectors or parts of them, such as the slice of a worker
// or a fragment, and scale with the parameters.
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

// CountHostMemory implements optim.HostMemoryCounter.
func (c *counter) CountHostMemory(width, bytes int) { c.host += int64(bytes) / 4 * c.bytes(1, width) }

// share returns the number of elements of a span as a multiple of the parameters.
func (c *counter) share(s engine.Span) float64 { return float64(s.Rows*(s.Hi-s.Lo)) / c.width }

func (c *counter) rowsOf(m engine.Mat) float64 { return c.share(engine.All(m)) }

func (c *counter) Do(ctx context.Context, tasks ...engine.Task) error {
	for _, t := range tasks {
		switch t := t.(type) {
		case engine.Gradients:
			c.gradients += c.work(engine.Work{Members: len(t.Rows), Gradients: longest(t.Batches)}, t.Batches, 1)
		case engine.Steps:
			for _, e := range t.Entries {
				c.gradients += c.work(engine.Work{Members: len(t.Rows), Gradients: longest(e.Batches)}, e.Batches, 1)
			}
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
				if t.Antithetic { // a pair shares its component along the axes
					drawn /= 2
				}
				c.terms += drawn * (2 + c.rowsOf(t.Axes))
			}
			for i, id := range t.IDs { // distinct, since ties would change the number of terms to sum
				t.Fitness[i] = -float32(id)
			}
			work := engine.Work{
				Candidates: len(t.IDs),
				Antithetic: t.Antithetic,
				Batch:      longest(t.Batches),
				Noise:      t.Noise,
			}
			c.candidates += c.work(work, t.Batches, each)
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
		case engine.CopyColumns:
			c.terms += 2 * float64(t.Dst.Rows*t.Columns()) / c.width
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
			for i := range t.RMS { // 1 is the expected length of normals
				t.RMS[i] = 1
			}
			c.lengths += c.rowsOf(t.X)
		default:
			return fmt.Errorf("dry run: unknown task %T", t)
		}
	}
	return nil
}

// work records the maximum of w and returns the number of samples in the batches, multiplied by times.
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

// dryRunResult is the work, memory and traffic of the first rounds of a job.
type dryRunResult struct {
	round           operations // on average
	epochs, steps   float64    // of a round, on average
	probe, test     operations // additional work of a round with a probe or a test
	blocks, scratch int64      // bytes that the workers of this process allocate for members, and within a round
	host            int64      // bytes of host memory that programs hold outside the engine
	works           []engine.Work
	reports         reports // of a round, on average
}

// reports counts what workers report and send in rounds.
type reports struct {
	records, points float64
	sent            float64        // bytes of frames, scaled up to the size of the model
	series          map[string]int // members that have a value of each series; 1 for a series of the population
	ops             int            // operations that send data
}

// add counts the points of one worker.
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

// A dry run ends after dryRunRounds rounds or dryRunTime, whichever comes first.
const (
	dryRunRounds = 256
	dryRunTime   = 15 * time.Millisecond
)

// dryRun executes the first rounds of the algorithm on counters, with its real program, roster, workers and knobs, but
// without arithmetic and without samples.
func (j *Job) dryRun() (r dryRunResult, err error) {
	if j.Modelless() { // only blocks are counted, and a round may be long: run one round of one member
		one := *j
		one.Members, one.Workers = 1, 1
		c, err := one.count(excerpt{evaluate: event.NoTest, rounds: 1})
		r.blocks = int64(j.Members) * c.blocks
		return r, err
	}
	whole := *j
	whole.metaOnly = true
	base, err := whole.count(excerpt{
		evaluate: event.NoTest,
		rounds:   dryRunRounds,
		limit:    j.Limit.Rounds,
		within:   dryRunTime,
	})
	if err != nil {
		return r, err
	}
	rounds := float64(base.progress.Rounds)
	if rounds == 0 {
		return r, fmt.Errorf("dry run of %s: no round was executed", j.Alg.Name)
	}
	r.round = operations{}.add(base.operations, 1/rounds)
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
	r.probe, r.test = probed.operations.add(first.operations, -1), tested.operations.add(first.operations, -1)
	r.blocks, r.host, r.works = base.blocks, base.host, base.works
	r.scratch = max(base.scratch, probed.scratch, tested.scratch, last.scratch)
	for i := range r.works {
		r.works[i] = r.works[i].Max(probed.works[i]).Max(tested.works[i]).Max(last.works[i])
	}
	r.reports = probed.reports
	r.reports.records, r.reports.points = base.reports.records/rounds, base.reports.points/rounds
	r.reports.sent = base.reports.sent / rounds
	return r, nil
}

// workerTotals sums the counts of all workers of a dry run.
type workerTotals struct {
	operations
	blocks, scratch, host int64
	works                 []engine.Work // of each worker
	reports               reports       // of all rounds
	progress              event.Progress
}

// excerpt selects the first rounds of a run, to be executed on counters.
type excerpt struct {
	probe, evaluate uint64        // rounds between probes and between tests, as in event.Config
	rounds          uint64        // at most
	limit           uint64        // round limit of the run; 0 means none
	within          time.Duration // time after which no further round starts, except for the second; 0 means no bound
}

// count executes the rounds of an excerpt. It returns the first error of a worker, by worker id.
func (j *Job) count(t excerpt) (out workerTotals, err error) {
	workers := min(j.Workers, j.Members)
	hub, counters := &local.Hub{}, make([]*counter, workers)
	ws, ids := make([]*worker.Worker, workers), make([]int, workers)
	for i := range workers {
		ids[i], counters[i] = i, j.counter()
		ws[i] = worker.New(j.dryRunWorker(counters[i], hub.Link(i), i, t))
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	// broadcast sends a message to every worker and waits for all replies. A failure cancels the other workers.
	broadcast := func(m message.Order) ([]message.Report, error) {
		replies, failed := make([]message.Report, workers), make([]error, workers+1)
		done := make(chan int, workers)
		for i, w := range ws {
			go func() {
				replies[i] = w.Handle(ctx, m)
				done <- i
			}()
		}
		look := time.NewTicker(100 * time.Millisecond)
		defer look.Stop()
		for busy := slices.Clone(ids); len(busy) > 0; {
			select {
			case i := <-done:
				busy = slices.DeleteFunc(busy, func(id int) bool { return id == i })
				if f, bad := replies[i].(message.Failed); bad {
					failed[i] = errors.New(f.Err)
					cancel()
				}
			case <-look.C:
				if err := hub.Deadlock(busy...); err != nil && ctx.Err() == nil {
					failed[workers] = err
					cancel()
				}
			}
		}
		for _, err := range failed {
			if err != nil {
				return nil, fmt.Errorf("dry run of %s: %w", j.Alg.Name, err)
			}
		}
		return replies, nil
	}
	plan := event.Plan{
		Epoch:     1,
		From:      event.Fresh,
		New:       collective.Place(collective.IDs(j.Members), ids),
		Algorithm: j.Alg.Name,
		Timeline:  j.Edits,
	}
	if _, err := broadcast(message.Plan{Plan: plan}); err != nil {
		return out, err
	}
	for _, c := range counters {
		out.blocks += c.scratch
		c.scratch = 0
	}
	out.blocks += j.stateBytes()
	for begin, n := time.Now(), uint64(0); n < t.rounds && (n < 2 || t.within == 0 || time.Since(begin) < t.within); n++ {
		replies, err := broadcast(message.Grant{
			Epoch:     1,
			From:      n,
			To:        n + 1,
			Committed: n,
			Onward:    true,
			Limit:     event.Limit{Rounds: t.limit},
		})
		if err != nil {
			return out, err
		}
		ended, sent, predicted := false, collective.Ledger{}, collective.Ledger{}
		for i, r := range replies {
			if d, ok := r.(message.Done); ok {
				out.progress, ended = d.Progress, d.Ended
				out.reports.add(d.Points, j.Members)
				sent.Add(d.Sent)
				predicted.Add(d.Predicted)
				if i == 0 { // the other workers report the same series
					out.reports.records += float64(len(d.Points))
				}
			}
		}
		out.reports.ops = max(out.reports.ops, len(sent))
		for op, b := range sent {
			if exact, ok := predicted[op]; ok {
				b = exact
			}
			out.reports.sent += float64(b)
		}
		if ended {
			break
		}
	}
	for _, c := range counters {
		out.operations = out.operations.add(c.operations, 1)
		out.scratch += c.scratch
		out.host += c.host
		out.works = append(out.works, c.most)
	}
	return out, nil
}

// stateBytes returns the bytes of the states of a program's optimiser, one for each member.
func (j *Job) stateBytes() int64 {
	t, err := timeline.New(j.Alg, j.Edits)
	if err != nil || !t.Values(timeline.Position{}).ByProgram() {
		return 0
	}
	return 8 * int64(j.Members) * int64(j.Net.Layout.State)
}

// counter returns a counter for a model of the job's size.
func (j *Job) counter() *counter {
	if j.Modelless() { // without a model nothing is scaled up
		width := scaledWidth(0)
		return &counter{sizes: ram.Memory{}, width: float64(width), params: int64(width), stats: int64(1 + width)}
	}
	params := j.Net.Layout.Params
	c := &counter{
		sizes:   ram.Memory{},
		width:   float64(scaledWidth(params)),
		params:  int64(params),
		stats:   int64(j.Net.Layout.Stats),
		threads: j.engineThreads(),
	}
	if j.metaOnly {
		c.sizes = ram.Meta{}
	}
	return c
}

// engineThreads returns the number of executor threads of a worker's engine, see engine.ThreadedEngine; 0 for a slowed
// worker or a device.
func (j *Job) engineThreads() int {
	if j.Slow != nil || !option.IsCPU(j.Device) {
		return 0
	}
	return max(1, j.Threads/j.Workers)
}

// dryRunWorker returns the configuration of a worker on counter c. Its vectors have the scaled width, and collectives
// take the same path (direct or not) as with the model. The predicted bytes of exchanges are those of the model.
func (j *Job) dryRunWorker(c *counter, link collective.Link, id int, t excerpt) worker.Config {
	wide := scaledWidth(int(c.params))
	one := func(n int) []engine.Tensor { return []engine.Tensor{{Name: "all", Shape: []int{n}, Len: n, Cols: n}} }
	l := engine.Layout{Params: wide, For: int(c.params), Tensors: one(wide)}
	l.State = min(1, j.Net.Layout.State)
	if j.Net.Layout.Stats > 0 {
		l.Stats, l.StatTensors = 1+wide, one(1+wide)
	}
	direct := min(j.Config.Direct, max(4, int(int64(j.Config.Direct)*int64(wide)/c.params)))
	lookup := func(name string) (*optim.Algorithm, error) {
		a, err := j.lookup(name)
		if err != nil || j.Modelless() || a.Bytes == nil {
			return a, err
		}
		real := *a
		real.Bytes = func(s optim.Shape) map[collective.Op]int64 {
			s.Layout, s.Direct = j.Net.Layout, j.Config.Direct
			return a.Bytes(s)
		}
		return &real, nil
	}
	cfg := worker.Config{
		ID:       id,
		Layout:   l,
		Measured: j.ungraded(),
		Rebuild:  option.Rebuilt(option.Rebuild.Text(j.Options)),
		Seed:     j.Config.Seed,
		Init:     func(context.Context, engine.Member, []float32) error { return nil },
		Engine:   c,
		Metrics:  j.Config.Metrics,
		Data:     j.Samples,
		Link:     link,
		MetaOnly: j.metaOnly,
		Direct:   direct,
		Probe:    t.probe,
		Evaluate: t.evaluate,
		Lookup:   lookup,
		Clock:    func() int64 { return 0 },
	}
	if t.evaluate != event.NoTest {
		cfg.Test, cfg.Validation = j.Samples.Test(), j.validation()
	}
	return cfg
}
