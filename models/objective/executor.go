package objective

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"brood/models/subprocess"
)

// batchesPerProcess is the number of batches into which a task is divided per process, if it has enough evaluations.
// Fewer batches have less overhead; more leave processes idle for less time at the end of the task.
const batchesPerProcess = 8

// job is the evaluations of one task, divided into batches. Executors take batches concurrently.
type job struct {
	evaluations []evaluation
	fitness     []float64 // out, one per evaluation
	metrics     []float64 // out, one row per evaluation
	batchSize   int       // evaluations per batch
	executors   int
	fill        func(l *executor, i int, dst []float32) error
	candidates  int
	report      func(candidates int) // called as candidates are evaluated; may be nil
	done        atomic.Int64         // evaluations
	next        atomic.Int64         // index of the next batch
	failed      atomic.Bool
}

// nextBatch takes the next batch and returns the range of its evaluations; ok is false if there is none or an executor
// failed. early requests a batch that would wait behind another one of the same process; it is refused for the last
// batches, which idle executors should take.
func (w *job) nextBatch(early bool) (lo, hi int, ok bool) {
	last := (len(w.evaluations) + w.batchSize - 1) / w.batchSize
	if w.failed.Load() || early && int(w.next.Load()) >= last-w.executors {
		return 0, 0, false
	}
	k := int(w.next.Add(1) - 1)
	return k * w.batchSize, min(len(w.evaluations), (k+1)*w.batchSize), k < last
}

// executor evaluates batches with its own process, or with the function. It is used by one goroutine at a time.
type executor struct {
	id          int
	e           *Engine
	p           *process // nil until needed
	freeBatches []*batch // for reuse
}

// batch is a range of a job's evaluations while it is evaluated.
type batch struct {
	rows    [][]float32 // parameters, one row per evaluation
	seeds   []int32
	frame   []byte    // memory of the frame sent to the process
	first   uint64    // id of the first evaluation; the ids are consecutive
	fitness []float64 // out, part of job.fitness
	metrics []float64 // out, part of job.metrics
}

// metricRow returns the metrics of evaluation k.
func (b *batch) metricRow(k int) []float64 {
	n := len(b.metrics) / len(b.fitness)
	return b.metrics[k*n : (k+1)*n]
}

// setMissing sets the fitness and metrics of evaluation k to NaN.
func (b *batch) setMissing(k int) {
	b.fitness[k] = math.NaN()
	for i := range b.metricRow(k) {
		b.metricRow(k)[i] = math.NaN()
	}
}

// run evaluates batches of w until there are none. It sends a process the next batch before receiving the results of
// the current one, so that the process is never idle. If a process fails, its batches are evaluated again row by row;
// if its answer is invalid, a batch of several rows is missing. An error ends the job for all executors.
func (l *executor) run(ctx context.Context, w *job) (err error) {
	defer func() {
		if err != nil {
			w.failed.Store(true)
			if l.p != nil { // its pending results are not needed
				_ = l.p.fail(err)
				l.p = nil
			}
		}
	}()
	var inFlight []*batch
	for {
		for len(inFlight) < 2 {
			lo, hi, ok := w.nextBatch(len(inFlight) > 0)
			if !ok {
				break
			}
			b, err := l.prepare(w, lo, hi)
			if err != nil {
				return err
			}
			if l.e.fn != nil {
				if err := l.callFunction(ctx, b); err != nil {
					return err
				}
				l.finish(w, b)
				continue
			}
			if err := l.ensureProcess(ctx); err != nil {
				return err
			}
			l.send(b)
			inFlight = append(inFlight, b)
		}
		if len(inFlight) == 0 {
			return ctx.Err()
		}
		if failed := l.receive(ctx, inFlight[0]); failed != nil {
			if err := ctx.Err(); err != nil {
				return err
			}
			if wrong := (*answerError)(nil); errors.As(failed, &wrong) && len(inFlight[0].rows) > 1 {
				l.discard(inFlight[0], failed)
				l.finish(w, inFlight[0])
				inFlight = append(inFlight[:0], inFlight[1:]...)
				if err := l.resend(ctx, inFlight); err != nil {
					return err
				}
				continue
			}
			for _, b := range inFlight {
				if err := l.retrySingly(ctx, b); err != nil {
					return err
				}
				l.finish(w, b)
			}
			inFlight = inFlight[:0]
			continue
		}
		l.finish(w, inFlight[0])
		inFlight = append(inFlight[:0], inFlight[1:]...)
	}
}

// send sends a batch to the process, with ids not used before.
func (l *executor) send(b *batch) {
	b.first = l.p.next
	l.p.next += uint64(len(b.rows))
	b.frame = l.p.sendBatch(b.frame, b.first, b.seeds, b.rows, l.e.model.Layout.Params)
}

// prepare returns the batch of evaluations [lo, hi), with the parameters clamped to their bounds.
func (l *executor) prepare(w *job, lo, hi int) (*batch, error) {
	b := &batch{}
	if n := len(l.freeBatches); n > 0 {
		b, l.freeBatches = l.freeBatches[n-1], l.freeBatches[:n-1]
	}
	n := len(l.e.metrics)
	b.fitness, b.metrics, b.seeds = w.fitness[lo:hi], w.metrics[lo*n:hi*n], b.seeds[:0]
	for k, u := range w.evaluations[lo:hi] {
		if cap(b.rows) == k {
			b.rows = append(b.rows[:k], make([]float32, l.e.model.Layout.Params))
		}
		b.rows = b.rows[:k+1]
		b.seeds = append(b.seeds, u.seed)
		row := b.rows[k]
		if row == nil {
			row = make([]float32, l.e.model.Layout.Params)
			b.rows[k] = row
		}
		if k > 0 && w.evaluations[lo+k-1].i == u.i {
			copy(row, b.rows[k-1])
			continue
		}
		if err := w.fill(l, u.i, row); err != nil {
			return nil, err
		}
		for j := range l.e.low {
			row[j] = min(max(row[j], l.e.low[j]), l.e.high[j])
		}
	}
	return b, nil
}

// callFunction evaluates a batch with the function.
func (l *executor) callFunction(ctx context.Context, b *batch) error {
	for k, x := range b.rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		f, err := l.e.fn(x, uint64(b.seeds[k]), b.metricRow(k))
		if err != nil {
			l.e.recordMissing(err.Error())
			b.setMissing(k)
			continue
		}
		b.fitness[k] = l.e.checkResult(f, b.metricRow(k))
	}
	return nil
}

// finish reuses an evaluated batch and reports the candidates that it completes. A candidate counts as completed for
// every set of evaluations as large as its set of seeds.
func (l *executor) finish(w *job, b *batch) {
	l.freeBatches = append(l.freeBatches, b)
	n := int64(len(b.rows))
	done, seeds := w.done.Add(n), int64(max(1, len(w.evaluations)/w.candidates))
	before, after := (done-n)/seeds, min(done/seeds, int64(w.candidates))
	if w.report != nil && after > before {
		w.report(int(after - before))
	}
}

// receive reads the results of b, the batch sent first. If it fails, the process is ended and l.p is nil; failed is the
// cause.
func (l *executor) receive(ctx context.Context, b *batch) (failed error) {
	limit := time.Duration(len(b.rows)) * l.e.limit
	if failed = l.p.receive(ctx, limit, b.first, b.fitness, b.metrics); failed != nil {
		failed = l.p.fail(failed)
		l.p = nil
		if wrong := (*answerError)(nil); ctx.Err() == nil && !errors.As(failed, &wrong) {
			l.e.countRestart(failed)
		}
		return failed
	}
	for k, f := range b.fitness {
		b.fitness[k] = l.e.checkResult(f, b.metricRow(k))
	}
	l.e.countEvaluations(len(b.rows))
	return nil
}

// discard sets all results of a batch to missing after an invalid answer. The batch is not evaluated again row by row:
// a program that fails only with batches of several candidates would then never be reported.
func (l *executor) discard(b *batch, why error) {
	l.e.countEvaluations(len(b.rows))
	for k := range b.rows {
		l.e.recordMissing(why.Error())
		b.setMissing(k)
	}
}

// resend sends batches, which the previous process did not answer, to a new process.
func (l *executor) resend(ctx context.Context, inFlight []*batch) error {
	if len(inFlight) == 0 {
		return nil
	}
	if err := l.ensureProcess(ctx); err != nil {
		return err
	}
	for _, b := range inFlight {
		l.send(b)
	}
	return nil
}

// retrySingly evaluates a batch again row by row, restarting the process after each failure. Only the rows that fail
// are missing.
func (l *executor) retrySingly(ctx context.Context, b *batch) error {
	for k := range b.rows {
		if err := l.ensureProcess(ctx); err != nil {
			return err
		}
		one := &batch{
			rows:    b.rows[k : k+1],
			seeds:   b.seeds[k : k+1],
			fitness: b.fitness[k : k+1],
			metrics: b.metricRow(k),
		}
		l.send(one)
		if failed := l.receive(ctx, one); failed != nil {
			if err := ctx.Err(); err != nil {
				return err
			}
			l.e.countEvaluations(1)
			l.e.recordMissing(failed.Error())
			b.setMissing(k)
		}
	}
	return nil
}

// ensureProcess starts the program if it is not running, with up to maxStarts attempts. After a timeout it does not
// retry. It does nothing if the objective is a function.
func (l *executor) ensureProcess(ctx context.Context) (err error) {
	if l.p != nil || l.e.fn != nil {
		return nil
	}
	for try := range maxStarts {
		if try > 0 {
			select {
			case <-time.After(restartDelay << (try - 1)):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if l.p, err = start(ctx, &l.e.o); err == nil {
			return l.checkDeclared()
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if late := (*subprocess.TimeoutError)(nil); errors.As(err, &late) {
			break // a retry would probably time out too, while all other workers wait
		}
	}
	return fmt.Errorf("the objective %s does not start: %w", strings.Join(l.e.o.Command, " "), err)
}

// checkDeclared returns an error if the process declares other metrics than the first process did.
func (l *executor) checkDeclared() error {
	if l.e.metricsKnown && !slices.Equal(l.p.reply.metrics, l.e.metrics) {
		err := fmt.Errorf("it declares the metrics %q, where it declared %q before", l.p.reply.metrics, l.e.metrics)
		err, l.p = l.p.fail(err), nil
		return fmt.Errorf("the objective %s cannot be evaluated: %w", strings.Join(l.e.o.Command, " "), err)
	}
	return nil
}
