package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	goruntime "runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"brood/presets"
	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/session"
)

// work runs what is not done, a few at a time, until nothing is left that anybody trains. A run that fails does not end the others.
func (w *sweep) work(ctx context.Context, view *sweepView) error {
	for _, t := range w.trials {
		t.state = trialElsewhere // as far as is known
		if _, err := w.update(t); err != nil {
			w.set(t, trialFailed, newTally())
			t.failed = err
		}
	}
	view.begin()
	defer view.close()
	ctx, code, stop := interruptible(ctx)
	defer stop()
	var all sync.WaitGroup
	for range w.jobs {
		all.Go(func() { w.drain(ctx, view) })
	}
	all.Wait()
	view.end()
	if n := code(); n != 0 {
		return &exitError{code: n, err: errors.New("interrupted: the same command goes on")}
	}
	failed := 0
	for _, t := range w.trials {
		if t.failed != nil {
			failed++
			fmt.Fprintf(view.s.err, "brood: %s seed %d: %v\n", w.show(t.point), t.seed, t.failed)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %s failed; the same command tries them again", failed, plural(len(w.trials), "run"))
	}
	return nil
}

// interruptible is ctx until a signal, whose exit status code gives; the runs under way hear of it too.
func interruptible(ctx context.Context) (out context.Context, code func() int, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	var status atomic.Int32
	go func() {
		select {
		case sig := <-signals:
			status.Store(exitCtrlC)
			if sig == syscall.SIGTERM {
				status.Store(exitSigterm)
			}
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() int { return int(status.Load()) }, func() { signal.Stop(signals); cancel() }
}

// drain takes trials until none is left. Those that other processes train are waited for.
func (w *sweep) drain(ctx context.Context, view *sweepView) {
	for ctx.Err() == nil {
		t, left := w.next()
		switch {
		case t != nil:
			if err := w.run(ctx, t, view); err != nil {
				w.set(t, trialFailed, newTally())
				t.failed = err
				view.done(t)
			}
		case !left:
			return
		default:
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
				w.others(view)
			}
		}
	}
}

// next is a trial that waits, now taken; left says that others train some.
func (w *sweep) next() (t *trial, left bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.trials {
		left = left || t.state == trialElsewhere
		if t.state == trialWaits {
			t.state = trialRuns
			return t, true
		}
	}
	return nil, left
}

// others looks again at what other processes had taken.
func (w *sweep) others(view *sweepView) {
	w.mu.Lock()
	theirs := slices.DeleteFunc(slices.Clone(w.trials), func(t *trial) bool { return t.state != trialElsewhere })
	w.mu.Unlock()
	for _, t := range theirs {
		if changed, err := w.update(t); err == nil && changed && t.over() { // an error is told by who takes it
			view.done(t)
		}
	}
}

// update looks at a trial that another process had, or may have, and says whether it has it no more. Of several goroutines that
// find out, one is told.
func (w *sweep) update(t *trial) (changed bool, err error) {
	busy := func() bool { busy, _ := session.Running(t.claim); return busy }
	if busy() {
		return false, nil
	}
	state, out, err := t.look()
	if err != nil {
		if busy() { // it was made anew meanwhile
			return false, nil
		}
		return false, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.state != trialElsewhere {
		return false, nil
	}
	t.state, t.tally = state, out
	return true, nil
}

func (w *sweep) set(t *trial, state trialState, out *tally) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t.state, t.tally = state, out
}

// look reads from a trial's log how far it is. One that is at its limit is done, whatever ended its process.
func (t *trial) look() (trialState, *tally, error) {
	out, err := recount(t.dir)
	switch l := t.limit; {
	case errors.Is(err, session.ErrNoLog):
		return trialWaits, newTally(), nil
	case err != nil:
		return trialWaits, nil, fmt.Errorf("%w: remove %s to run it again", err, t.dir)
	case out.diverged:
		return trialDiverged, out, nil
	case out.phase == event.Finished, l.Epochs > 0 && out.sum.Epochs >= l.Epochs, l.Rounds > 0 && out.sum.Rounds >= l.Rounds:
		return trialDone, out, nil
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
	t, nanos := newTally(), int64(0)
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		t.record(rec)
		if rec.Commit != nil {
			nanos += rec.Commit.Nanos
		}
	}
	t.finish(coordinator.Exit{})
	t.sum.Seconds = float64(nanos) / 1e9
	t.sum.SamplesPerSecond = float64(t.sum.Samples) / max(t.sum.Seconds, 1e-9)
	return t, nil
}

// follower is the printer of a run of a sweep: it counts.
type follower struct {
	*tally
	w *sweep
}

func (f *follower) record(r event.Record) {
	f.w.mu.Lock()
	f.tally.record(r)
	f.w.mu.Unlock()
}

// patience waits for a person who paused the run, and not for one who would mend a run that diverged.
func (f *follower) patience() time.Duration {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	if f.diverged {
		return 0
	}
	return math.MaxInt64
}

func (f *follower) note(string)          {}
func (f *follower) end(coordinator.Exit) {}

// run trains one trial to its end, unless another process has taken it. Who holds the claim of a trial may make, resume and
// remove its session.
func (w *sweep) run(ctx context.Context, t *trial, view *sweepView) error {
	claim, err := session.Lock(t.claim)
	var locked *session.LockedError
	if errors.As(err, &locked) {
		w.set(t, trialElsewhere, newTally())
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
		p, err := w.prepare(ctx, t, out.sum.Rounds > 0)
		if ctx.Err() != nil {
			if err == nil {
				p.sess.Close()
			}
			w.set(t, trialWaits, out)
			return nil
		}
		if err != nil {
			return err
		}
		now := &follower{newTally(), w}
		now.begin(p)
		w.set(t, trialRuns, now.tally)
		if state, out, err = t.ended(train(w.base.Context(), p, now, now.patience)); err != nil {
			return err
		}
	}
	if w.set(t, state, out); t.over() {
		view.done(t)
	}
	return nil
}

// ended is what became of a trial, and why it did not end as it should: it is no error that it diverged or was interrupted.
func (t *trial) ended(err error) (trialState, *tally, error) {
	state, out, bad := t.look()
	var left *exitError
	switch {
	case bad != nil:
		return state, out, bad
	case state != trialWaits, errors.As(err, &left) && left.code >= exitCtrlC:
		return state, out, nil
	case err == nil:
		err = errors.New("somebody stopped it")
	}
	return state, out, err
}

// prepare goes on with the session of a trial, or makes it anew.
func (w *sweep) prepare(ctx context.Context, t *trial, begun bool) (prepared, error) {
	threads, _ := w.base.Flags().GetInt("threads")
	if threads == 0 {
		threads = goruntime.NumCPU()
	}
	threads = max(1, threads/w.jobs)
	f, c, err := w.flags(t, threads)
	if err != nil {
		return prepared{}, err
	}
	preset := w.preset
	if begun { // its log holds its settings
		preset, f, c = "", &runFlags{}, &cobra.Command{Use: "run"}
		f.register(c)
		err = c.ParseFlags([]string{"--resume", t.dir, "--threads", strconv.Itoa(threads)})
	} else {
		f.session = t.dir
		err = os.RemoveAll(t.dir)
	}
	if err != nil {
		return prepared{}, err
	}
	return f.prepare(ctx, c, preset)
}

// result is a metric of one setting over its seeds.
type result struct {
	point    presets.Point
	sample   presets.Sample
	error    presets.Sample // test error, whatever is sorted by
	seconds  float64        // mean
	of       int            // seeds wanted
	diverged int
}

// results are the settings, best first; those of which a seed diverged come after those of which none did, and last those without a
// figure.
func (w *sweep) results() []result {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []result
	for trials := range slices.Chunk(w.trials, w.seeds) {
		r, done := result{point: trials[0].point, of: w.seeds}, 0
		for _, t := range trials {
			if t.state == trialDiverged {
				r.diverged++
			}
			if t.state != trialDone {
				continue
			}
			done++
			r.seconds += t.tally.sum.Seconds
			if x, ok := t.tally.metric(w.by); ok {
				r.sample = append(r.sample, x)
			}
			if x, ok := t.tally.metric("test_error"); ok {
				r.error = append(r.error, x)
			}
		}
		r.seconds /= float64(max(1, done))
		out = append(out, r)
	}
	sign := 1.0
	if w.by == "samples_per_s" || w.by == "centre_advance" { // more is better
		sign = -1
	}
	rank := func(r result) (class int, x float64) {
		switch {
		case len(r.sample) == 0:
			return 2, 0
		case r.diverged > 0:
			return 1, sign * r.sample.Mean()
		}
		return 0, sign * r.sample.Mean()
	}
	slices.SortStableFunc(out, func(a, b result) int {
		ca, xa := rank(a)
		cb, xb := rank(b)
		return cmp.Or(cmp.Compare(ca, cb), cmp.Compare(xa, xb))
	})
	return out
}
