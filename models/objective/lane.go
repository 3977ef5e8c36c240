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
)

// pieces are the batches of a task for each program, where it has enough candidates: few cost little, and many leave no
// program idle at the end.
const pieces = 8

// work is the evaluations of one task. Lanes take pieces of it.
type work struct {
	units   []unit
	fitness []float64 // out, one for each
	metrics []float64 // out, a row for each
	size    int       // units of a piece
	lanes   int
	fill    func(l *lane, i int, dst []float32) error
	next    atomic.Int64 // piece
	failed  atomic.Bool
}

// piece takes the next piece, if there is one. early asks for one that will only wait for another: there is none where
// other lanes would have nothing to do instead.
func (w *work) piece(early bool) (lo, hi int, ok bool) {
	last := (len(w.units) + w.size - 1) / w.size
	if w.failed.Load() || early && int(w.next.Load()) >= last-w.lanes {
		return 0, 0, false
	}
	k := int(w.next.Add(1) - 1)
	return k * w.size, min(len(w.units), (k+1)*w.size), k < last
}

// lane is a goroutine's share: its program, and what that was asked.
type lane struct {
	id    int
	e     *Engine
	p     *process // nil until it is needed
	spare []*batch // that nobody waits for
}

// batch is a piece on its way: the rows of its candidates, and where their fitness goes.
type batch struct {
	rows    [][]float32
	seeds   []int32
	frame   []byte
	first   uint64 // id
	fitness []float64
	metrics []float64
}

// row are the metrics of candidate k.
func (b *batch) row(k int) []float64 {
	n := len(b.metrics) / len(b.fitness)
	return b.metrics[k*n : (k+1)*n]
}

// miss leaves candidate k without a result.
func (b *batch) miss(k int) {
	b.fitness[k] = math.NaN()
	for i := range b.row(k) {
		b.row(k)[i] = math.NaN()
	}
}

// run evaluates pieces until there are none. A program has the next one before it has answered the one before, so that
// it waits for nobody.
func (l *lane) run(ctx context.Context, w *work) (err error) {
	defer func() {
		if err != nil {
			w.failed.Store(true)
			if l.p != nil { // what it was asked is of no use to anybody
				_ = l.p.end(err)
				l.p = nil
			}
		}
	}()
	var asked []*batch
	for {
		for len(asked) < 2 {
			lo, hi, ok := w.piece(len(asked) > 0)
			if !ok {
				break
			}
			b, err := l.prepare(w, lo, hi)
			if err != nil {
				return err
			}
			if l.e.call != nil {
				if err := l.call(ctx, b); err != nil {
					return err
				}
				continue
			}
			if err := l.ready(ctx); err != nil {
				return err
			}
			l.send(b)
			asked = append(asked, b)
		}
		if len(asked) == 0 {
			return ctx.Err()
		}
		if failed := l.receive(ctx, asked[0]); failed != nil {
			if err := ctx.Err(); err != nil {
				return err
			}
			if wrong := (*answerError)(nil); errors.As(failed, &wrong) && len(asked[0].rows) > 1 {
				l.lose(asked[0], failed)
				l.spare = append(l.spare, asked[0])
				asked = append(asked[:0], asked[1:]...)
				if err := l.again(ctx, asked); err != nil {
					return err
				}
				continue
			}
			for _, b := range asked {
				if err := l.alone(ctx, b); err != nil {
					return err
				}
			}
			l.spare, asked = append(l.spare, asked...), asked[:0]
			continue
		}
		l.spare = append(l.spare, asked[0])
		asked = append(asked[:0], asked[1:]...)
	}
}

// send asks the program, with ids that it has not seen.
func (l *lane) send(b *batch) {
	b.first = l.p.next
	l.p.next += uint64(len(b.rows))
	b.frame = l.p.batch(b.frame, b.first, b.seeds, b.rows, l.e.model.Layout.Params)
}

// prepare writes the parameters of a piece, within their bounds.
func (l *lane) prepare(w *work, lo, hi int) (*batch, error) {
	b := &batch{}
	if n := len(l.spare); n > 0 {
		b, l.spare = l.spare[n-1], l.spare[:n-1]
	}
	n := len(l.e.metrics)
	b.fitness, b.metrics, b.seeds = w.fitness[lo:hi], w.metrics[lo*n:hi*n], b.seeds[:0]
	for k, u := range w.units[lo:hi] {
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
		if k > 0 && w.units[lo+k-1].i == u.i {
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

// call has the function evaluate a batch.
func (l *lane) call(ctx context.Context, b *batch) error {
	for k, x := range b.rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		f, err := l.e.call(x, uint64(b.seeds[k]), b.row(k))
		if err != nil {
			l.e.miss(err.Error())
			b.miss(k)
			continue
		}
		b.fitness[k] = l.e.checked(f, b.row(k))
	}
	l.spare = append(l.spare, b)
	return nil
}

// receive takes the answer to the batch that was asked first. failed says why there is none: the program is gone then.
func (l *lane) receive(ctx context.Context, b *batch) (failed error) {
	limit := time.Duration(len(b.rows)) * l.e.limit
	if failed = l.p.receive(ctx, limit, b.first, b.fitness, b.metrics); failed != nil {
		failed = l.p.end(failed)
		l.p = nil
		if wrong := (*answerError)(nil); ctx.Err() == nil && !errors.As(failed, &wrong) {
			l.e.restarted(failed)
		}
		return failed
	}
	for k, f := range b.fitness {
		b.fitness[k] = l.e.checked(f, b.row(k))
	}
	l.e.answered(len(b.rows))
	return nil
}

// lose leaves a batch without results, whose answer was wrong. It is not asked for again: a program that mixes up a
// batch and not a candidate alone would never be told of.
func (l *lane) lose(b *batch, why error) {
	l.e.answered(len(b.rows))
	for k := range b.rows {
		l.e.miss(why.Error())
		b.miss(k)
	}
}

// again asks a program that was started anew for batches that were on their way to the one before.
func (l *lane) again(ctx context.Context, asked []*batch) error {
	if len(asked) == 0 {
		return nil
	}
	if err := l.ready(ctx); err != nil {
		return err
	}
	for _, b := range asked {
		l.send(b)
	}
	return nil
}

// alone asks for a batch again row by row, each of a program that was started anew where the one before failed: what
// fails then is missing, and the others do not suffer from it.
func (l *lane) alone(ctx context.Context, b *batch) error {
	for k := range b.rows {
		if err := l.ready(ctx); err != nil {
			return err
		}
		one := &batch{rows: b.rows[k : k+1], seeds: b.seeds[k : k+1], fitness: b.fitness[k : k+1], metrics: b.row(k)}
		l.send(one)
		if failed := l.receive(ctx, one); failed != nil {
			if err := ctx.Err(); err != nil {
				return err
			}
			l.e.answered(1)
			l.e.miss(failed.Error())
			b.miss(k)
		}
	}
	return nil
}

// ready starts the program where none runs, and tries again for a while.
func (l *lane) ready(ctx context.Context) (err error) {
	if l.p != nil || l.e.call != nil {
		return nil
	}
	for try := range starts {
		if try > 0 {
			select {
			case <-time.After(pause << (try - 1)):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if l.p, err = start(ctx, &l.e.o); err == nil {
			return l.declared()
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if late := (*lateError)(nil); errors.As(err, &late) {
			break // it would be late again, and everybody waits
		}
	}
	return fmt.Errorf("the objective %s does not start: %w", strings.Join(l.e.o.Command, " "), err)
}

// declared holds every process to the metrics that the first one declared.
func (l *lane) declared() error {
	if l.e.known && !slices.Equal(l.p.greeted.metrics, l.e.metrics) {
		err := fmt.Errorf("it declares the metrics %q, where it declared %q before", l.p.greeted.metrics, l.e.metrics)
		err, l.p = l.p.end(err), nil
		return fmt.Errorf("the objective %s cannot be evaluated: %w", strings.Join(l.e.o.Command, " "), err)
	}
	return nil
}
