package sweep

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"brood/runtime/archive"

	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/session"
)

// Ready is a trial that is about to be trained. The runner owns the session and closes it.
type Ready struct {
	host.Opened
	Trial *Trial
	Watch func(event.Record) // the runner calls it with every record
}

// Runner trains a run to its end. When ctx ends, it finishes the current round and saves. It returns [ErrInterrupted]
// if the user interrupted the run.
type Runner func(ctx context.Context, r Ready) error

// ErrInterrupted is returned by a Runner if the user interrupted the run. The trial has not failed.
var ErrInterrupted = errors.New("interrupted")

// ReadStates sets the states of the trials from their logs and locks, and with Halving their rungs. It fails if it
// cannot read the decisions of an earlier process.
func (b *Batch) ReadStates() error {
	if b.Halving.Factor > 0 {
		return b.enterDecided()
	}
	for _, t := range b.Trials {
		if !t.Over() { // else Check has read the log
			t.State = Elsewhere // update changes only this state
			b.readState(t)
		}
	}
	return nil
}

// readState sets the state of a trial in state Elsewhere.
func (b *Batch) readState(t *Trial) {
	if _, err := b.update(t); err != nil {
		b.fail(t, err)
	}
}

// Run trains the waiting trials, Jobs at a time, until all trials have ended, including those of other processes, or
// ctx ends. A failed run does not stop the others. It calls done with each trial that ends, in this process or another
// one, from several goroutines; with Halving once for each rung. It fails if it cannot store a decision of Halving.
func (b *Batch) Run(ctx context.Context, train Runner, done func(*Trial)) error {
	if b.Halving.Factor > 0 {
		return b.halve(ctx, train, done)
	}
	b.train(ctx, train, done)
	return nil
}

// train trains the waiting trials of one rung.
func (b *Batch) train(ctx context.Context, train Runner, done func(*Trial)) {
	var all sync.WaitGroup
	for range b.Jobs {
		all.Go(func() { b.job(ctx, train, done) })
	}
	all.Wait()
}

// job trains trials until none waits, then waits for those of other processes.
func (b *Batch) job(ctx context.Context, train Runner, done func(*Trial)) {
	for ctx.Err() == nil {
		t, elsewhere := b.next()
		switch {
		case t != nil:
			over, err := b.run(ctx, t, train)
			if err != nil {
				b.fail(t, err)
			}
			if over || err != nil {
				done(t)
			}
		case !elsewhere:
			return
		default:
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
				b.updateElsewhere(done)
			}
		}
	}
}

// next returns a waiting trial, whose state it sets to Runs; nil if there is none. elsewhere reports whether other
// processes train some.
func (b *Batch) next() (t *Trial, elsewhere bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range b.Trials {
		elsewhere = elsewhere || t.State == Elsewhere
		if t.State == Waits && !t.Out {
			t.State = Runs
			return t, true
		}
	}
	return nil, elsewhere
}

// updateElsewhere updates the trials that other processes train.
func (b *Batch) updateElsewhere(done func(*Trial)) {
	b.mu.Lock()
	theirs := slices.DeleteFunc(slices.Clone(b.Trials), func(t *Trial) bool { return t.State != Elsewhere })
	b.mu.Unlock()
	for _, t := range theirs {
		state, err := b.update(t)
		switch {
		case err != nil:
			b.fail(t, err)
			done(t)
		case state.over():
			done(t)
		}
	}
}

// update updates the state of a trial that another process trains or has trained, and returns the new state. If several
// goroutines update a trial at the same time, only one of them gets its new state; the others get Elsewhere.
func (b *Batch) update(t *Trial) (now State, err error) {
	busy := func() bool { busy, _ := session.Running(t.claim); return busy }
	if busy() {
		return Elsewhere, nil
	}
	state, out, err := t.readLog()
	if err != nil {
		if busy() { // another process has created it again
			return Elsewhere, nil
		}
		return Failed, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if t.State != Elsewhere {
		return Elsewhere, nil
	}
	t.State, t.Tally = state, out
	return state, nil
}

// fail records why a trial could not be run.
func (b *Batch) fail(t *Trial, why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t.State, t.Tally, t.Failed = Failed, archive.NewTally(), why
}

func (b *Batch) set(t *Trial, state State, out *archive.Tally) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t.State, t.Tally = state, out
}

// run trains one trial, unless another process holds its lock, and reports whether it is over now. The holder of the
// lock may create, resume and remove the session.
func (b *Batch) run(ctx context.Context, t *Trial, train Runner) (over bool, err error) {
	claim, err := session.Lock(t.claim)
	var locked *session.LockedError
	if errors.As(err, &locked) {
		b.set(t, Elsewhere, archive.NewTally())
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer claim.Close()
	state, out, err := t.readLog()
	if err != nil {
		return false, err
	}
	if state == Waits {
		r, err := b.open(ctx, t, out.Sum.Rounds > 0)
		if ctx.Err() != nil {
			if err == nil {
				r.Session.Close()
			}
			b.set(t, Waits, out)
			return false, nil
		}
		if err != nil {
			return false, err
		}
		now := archive.NewTally()
		var resumed *archive.Resumed
		if r.From != nil {
			resumed = &archive.Resumed{Checkpoint: r.From.Checkpoint, Limit: r.From.Limit}
		}
		now.Begin(r.Job.Config, t.Dir, resumed)
		watch := func(rec event.Record) {
			b.mu.Lock()
			defer b.mu.Unlock()
			now.Record(rec)
		}
		b.set(t, Runs, now)
		if state, out, err = t.ended(train(ctx, Ready{r, t, watch}), ctx.Err() != nil); err != nil {
			return false, err
		}
	}
	b.set(t, state, out)
	return state.over(), nil
}

// open resumes the session of a trial, or creates it.
func (b *Batch) open(ctx context.Context, t *Trial, begun bool) (host.Opened, error) {
	if begun { // the log has its settings
		o := host.Options{Workers: b.Wait, Threads: b.threadsPerRun(), Unattended: true}
		if t.Rung > 0 {
			o.Limit = t.Limit
		}
		return host.Order{Dir: t.Dir, Resume: true, Options: o}.Open(ctx, nil)
	}
	if err := os.RemoveAll(t.Dir); err != nil {
		return host.Opened{}, err
	}
	o := b.options(t)
	if t.Rung > 0 {
		o.Limit = t.Limit
	}
	return host.Order{Dir: t.Dir, Options: o}.Open(ctx, nil)
}
