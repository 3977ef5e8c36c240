package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/session"
)

var errInterrupted = errors.New("interrupted: the same command goes on")

// train runs the batch, here or on a fleet.
func (b *batch) train(ctx context.Context, view *batchView) error {
	ctx, stop := interruptible(ctx, view)
	defer stop()
	if err := b.keep(); err != nil {
		return err
	}
	shut, err := b.fleet.open(b.dir, view)
	if err != nil {
		return err
	}
	b.begun = true
	err = b.work(ctx, view)
	if b.interrupted = stop(); b.interrupted != 0 && b.left() {
		err = &exitError{code: b.interrupted, err: errInterrupted}
	}
	return errors.Join(err, shut())
}

// work runs what is not done, a few at a time, until nothing is left that anybody trains. A run that fails does not end the others.
func (b *batch) work(ctx context.Context, view *batchView) error {
	for _, t := range b.trials {
		if !t.over() { // by its log
			t.state = trialElsewhere // as far as is known
			if _, err := b.update(t); err != nil {
				b.fail(t, err)
			}
		}
		if view.json && t.over() {
			view.done(t)
		}
	}
	view.begin()
	defer view.close()
	var all sync.WaitGroup
	for range b.jobs {
		all.Go(func() { b.drain(ctx, view) })
	}
	all.Wait()
	view.close()
	if err := b.writeRuns(); err != nil {
		fmt.Fprintln(view.s.err, "brood: "+err.Error())
	}
	failed := 0
	for _, t := range b.trials {
		if t.failed != nil {
			failed++
			fmt.Fprintf(view.s.err, "brood: %s: %v\n", t, t.failed)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %s failed; the same command tries them again", failed, plural(len(b.trials), "run"))
	}
	return nil
}

// left says that the same command would go on with some run.
func (b *batch) left() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.trials, func(t *trial) bool { return !t.over() && t.failed == nil })
}

// interruptible is ctx until a signal, at which the runs under way finish their round and save; each listens for a second one itself. The
// first call of stop gives the exit status of the signal that came, or 0.
func interruptible(ctx context.Context, view *batchView) (out context.Context, stop func() int) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 1)
	quiet := leaving(signals)
	status, heard := 0, make(chan struct{})
	hear := func(sig os.Signal) {
		quiet() // where no run is under way a second one ends the process
		status = leftBy(sig)
		cancel()
		view.note("finishing the rounds under way and saving; once more to leave at once")
	}
	go func() {
		defer close(heard)
		select {
		case sig := <-signals:
			hear(sig)
		case <-ctx.Done():
			select {
			case sig := <-signals:
				hear(sig)
			default:
			}
		}
	}()
	return ctx, func() int {
		quiet()
		cancel()
		<-heard
		return status
	}
}

// drain takes trials until none is left. Those that other processes train are waited for.
func (b *batch) drain(ctx context.Context, view *batchView) {
	for ctx.Err() == nil {
		t, left := b.next()
		switch {
		case t != nil:
			if err := b.run(ctx, t, view); err != nil {
				b.fail(t, err)
				view.done(t)
			}
		case !left:
			return
		default:
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
				b.others(view)
			}
		}
	}
}

// next is a trial that waits, now taken; left says that others train some.
func (b *batch) next() (t *trial, left bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range b.trials {
		left = left || t.state == trialElsewhere
		if t.state == trialWaits {
			t.state = trialRuns
			return t, true
		}
	}
	return nil, left
}

// others looks again at what other processes had taken.
func (b *batch) others(view *batchView) {
	b.mu.Lock()
	theirs := slices.DeleteFunc(slices.Clone(b.trials), func(t *trial) bool { return t.state != trialElsewhere })
	b.mu.Unlock()
	for _, t := range theirs {
		state, err := b.update(t)
		switch {
		case err != nil:
			b.fail(t, err)
			view.done(t)
		case state.over():
			view.done(t)
		}
	}
}

// update looks at a trial that another process had, or may have, and says what became of it. Of several goroutines that
// find out, one is told.
func (b *batch) update(t *trial) (now trialState, err error) {
	busy := func() bool { busy, _ := session.Running(t.claim); return busy }
	if busy() {
		return trialElsewhere, nil
	}
	state, out, err := t.look()
	if err != nil {
		if busy() { // it was made anew meanwhile
			return trialElsewhere, nil
		}
		return trialFailed, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if t.state != trialElsewhere {
		return trialElsewhere, nil
	}
	t.state, t.tally = state, out
	return state, nil
}

// fail notes why a trial could not be run.
func (b *batch) fail(t *trial, why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t.state, t.tally, t.failed = trialFailed, newTally(), why
}

func (b *batch) set(t *trial, state trialState, out *tally) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t.state, t.tally = state, out
}

// look reads from a trial's log how far it is. One that is at its limit is done, whatever ended its process.
func (t *trial) look() (trialState, *tally, error) {
	out, err := recount(t.dir)
	switch {
	case errors.Is(err, session.ErrNoLog):
		return trialWaits, newTally(), nil
	case err != nil:
		return trialWaits, nil, fmt.Errorf("%w: remove %s to run it again", err, t.dir)
	case out.diverged:
		return trialDiverged, out, nil
	case out.phase == event.Finished:
		return trialDone, out, nil
	}
	if l := out.config.Limit; l.Epochs > 0 && out.sum.Epochs >= l.Epochs || l.Rounds > 0 && out.sum.Rounds >= l.Rounds {
		if out.bare() || out.tested() != nil && out.tested().Round == out.sum.Rounds { // else what it came to is not in the log: a full disk, or a power cut
			return trialDone, out, nil
		}
	}
	return trialWaits, out, nil
}

// recount reads a log into a summary. Its time is that of the workers' rounds, so pauses between processes do not count.
func recount(dir string) (*tally, error) {
	r, err := session.OpenReader(dir)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	t := newTally()
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		t.record(rec)
	}
	t.finish(coordinator.Exit{})
	t.sum.Seconds = t.spent()
	return t, nil
}

// follower is the printer of a run of a batch: it counts.
type follower struct {
	*tally
	b *batch
}

func (f *follower) begin(p prepared) {
	f.b.mu.Lock()
	f.tally.begin(p)
	f.b.mu.Unlock()
}

func (f *follower) record(r event.Record) {
	f.b.mu.Lock()
	f.tally.record(r)
	f.b.mu.Unlock()
}

func (f *follower) note(string)          {} // the batch says it, for all runs under way
func (f *follower) end(coordinator.Exit) {}

// run trains one trial to its end, unless another process has taken it. Who holds the claim of a trial may make, resume and
// remove its session.
func (b *batch) run(ctx context.Context, t *trial, view *batchView) error {
	claim, err := session.Lock(t.claim)
	var locked *session.LockedError
	if errors.As(err, &locked) {
		b.set(t, trialElsewhere, newTally())
		return nil
	}
	if err != nil {
		return err
	}
	defer claim.Close()
	state, out, err := t.look()
	if err != nil {
		return err
	}
	if state == trialWaits {
		p, err := b.prepare(ctx, t, out.sum.Rounds > 0)
		if ctx.Err() != nil {
			if err == nil {
				p.sess.Close()
			}
			b.set(t, trialWaits, out)
			return nil
		}
		if err != nil {
			return err
		}
		now := &follower{newTally(), b}
		b.set(t, trialRuns, now.tally)
		p.until = ctx
		if state, out, err = t.ended(train(context.WithoutCancel(ctx), p, now), ctx.Err() != nil); err != nil {
			return err
		}
	}
	if b.set(t, state, out); t.over() {
		view.done(t)
	}
	return nil
}

// ended is what became of a trial, and why it did not end as it should: it is no error that it diverged or was interrupted.
func (t *trial) ended(err error, interrupted bool) (trialState, *tally, error) {
	state, out, bad := t.look()
	var left *exitError
	switch {
	case bad != nil:
		return state, out, bad
	case state != trialWaits, errors.As(err, &left) && left.code >= exitCtrlC, err == nil && interrupted:
		return state, out, nil
	case err == nil:
		err = errors.New("somebody stopped it")
	}
	return state, out, err
}
