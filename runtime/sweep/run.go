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

// Ready is a trial that is about to be trained.
type Ready struct {
	host.Opened // whose session is the runner's, who closes it
	Trial       *Trial
	Watch       func(event.Record) // is told of every record
}

// Runner trains what is ready to its end, or until ctx ends, when it finishes the round under way and saves. It returns
// [ErrLeft] where a person had it leave before.
type Runner func(ctx context.Context, r Ready) error

// ErrLeft says that a run ended since a person had it leave: it is no failure of the trial.
var ErrLeft = errors.New("it was left")

// Look finds out what the logs say of the trials, and who is at them.
func (b *Batch) Look() {
	for _, t := range b.Trials {
		if t.Over() { // by its log
			continue
		}
		t.State = Elsewhere // as far as is known
		if _, err := b.update(t); err != nil {
			b.fail(t, err)
		}
	}
}

// Run trains what is not done, some at a time, until nothing is left that anybody trains, or ctx ends. A run that fails
// does not end the others. done is told of each trial that ended meanwhile, here or elsewhere, by several goroutines.
func (b *Batch) Run(ctx context.Context, train Runner, done func(*Trial)) {
	var all sync.WaitGroup
	for range b.Jobs {
		all.Go(func() { b.drain(ctx, train, done) })
	}
	all.Wait()
}

// drain takes trials until none is left. Those that other processes train are waited for.
func (b *Batch) drain(ctx context.Context, train Runner, done func(*Trial)) {
	for ctx.Err() == nil {
		t, left := b.next()
		switch {
		case t != nil:
			over, err := b.run(ctx, t, train)
			if err != nil {
				b.fail(t, err)
			}
			if over || err != nil {
				done(t)
			}
		case !left:
			return
		default:
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
				b.others(done)
			}
		}
	}
}

// next is a trial that waits, now taken; left says that others train some.
func (b *Batch) next() (t *Trial, left bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range b.Trials {
		left = left || t.State == Elsewhere
		if t.State == Waits {
			t.State = Runs
			return t, true
		}
	}
	return nil, left
}

// others looks again at what other processes had taken.
func (b *Batch) others(done func(*Trial)) {
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

// update looks at a trial that another process had, or may have, and says what became of it. Of several goroutines that
// find out, one is told.
func (b *Batch) update(t *Trial) (now State, err error) {
	busy := func() bool { busy, _ := session.Running(t.claim); return busy }
	if busy() {
		return Elsewhere, nil
	}
	state, out, err := t.look()
	if err != nil {
		if busy() { // it was made anew meanwhile
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

// fail notes why a trial could not be run.
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

// run trains one trial, unless another process has taken it, and says whether it is over now. Who holds the claim of a
// trial may make, resume and remove its session.
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
	state, out, err := t.look()
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

// open goes on with the session of a trial, or makes it anew.
func (b *Batch) open(ctx context.Context, t *Trial, begun bool) (host.Opened, error) {
	if begun { // its log holds its settings
		return host.Order{Dir: t.Dir, Resume: true, Options: host.Options{Workers: b.Wait, Threads: b.share(),
			Unattended: true}}.Open(ctx, nil)
	}
	if err := os.RemoveAll(t.Dir); err != nil {
		return host.Opened{}, err
	}
	return host.Order{Dir: t.Dir, Options: b.options(t)}.Open(ctx, nil)
}
