package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	goruntime "runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"brood/presets"
	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/session"
)

// work runs what is not done, a few at a time, until nothing is left that anybody trains.
func (w *sweep) work(ctx context.Context, view *sweepView) error {
	for _, t := range w.trials {
		if err := w.update(t); err != nil {
			return err
		}
	}
	view.begin()
	defer view.close()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM) // the runs under way hear them too
	defer stop()
	failed := make(chan error, w.jobs)
	for range w.jobs {
		go func() { failed <- w.drain(ctx, view) }()
	}
	var first error
	for range w.jobs {
		if err := <-failed; err != nil && first == nil {
			first = err
			stop()
		}
	}
	view.end()
	var interrupted *exitError
	if errors.As(first, &interrupted) && interrupted.code >= exitCtrlC {
		return &exitError{code: interrupted.code, err: errors.New("interrupted: the same command goes on")}
	}
	return first
}

// drain takes trials until none is left. Those that other processes train are waited for.
func (w *sweep) drain(ctx context.Context, view *sweepView) error {
	for {
		t, left := w.next()
		switch {
		case ctx.Err() != nil:
			return &exitError{code: exitCtrlC, err: errors.New("interrupted")}
		case t == nil && !left:
			return nil
		case t == nil:
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
				if err := w.others(view); err != nil {
					return err
				}
			}
			continue
		}
		if err := w.run(t, view); err != nil {
			return err
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
func (w *sweep) others(view *sweepView) error {
	w.mu.Lock()
	theirs := slices.DeleteFunc(slices.Clone(w.trials), func(t *trial) bool { return t.state != trialElsewhere })
	w.mu.Unlock()
	for _, t := range theirs {
		if err := w.update(t); err != nil {
			return err
		}
		if t.over() {
			view.done(t)
		}
	}
	return nil
}

// look reads from a trial's log how far it is, when this process has the claim of it.
func (t *trial) look() (trialState, *tally, error) {
	info := session.Describe(t.dir)
	if info.Algorithm == "" { // no session, or one without a plan
		return trialWaits, newTally(), nil
	}
	out, err := recount(t.dir)
	switch {
	case err != nil:
		return trialWaits, nil, fmt.Errorf("%w: remove %s to run it again", err, t.dir)
	case out.diverged:
		return trialDiverged, out, nil
	case info.Phase == event.Finished:
		return trialDone, out, nil
	}
	return trialWaits, out, nil
}

// update is look for a trial that this process is not at.
func (w *sweep) update(t *trial) error {
	state, out := trialElsewhere, newTally()
	if busy, _ := session.Running(t.claim); !busy {
		var err error
		if state, out, err = t.look(); err != nil {
			return err
		}
	}
	w.set(t, state, out)
	return nil
}

func (w *sweep) set(t *trial, state trialState, out *tally) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t.state, t.tally = state, out
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
func (f *follower) note(string)          {}
func (f *follower) end(coordinator.Exit) {}

// run trains one trial to its end, unless another process has taken it. Who holds the claim of a trial may make, resume and
// remove its session.
func (w *sweep) run(t *trial, view *sweepView) error {
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
	var ended error
	if state == trialWaits {
		p, err := w.prepare(t, out.sum.Rounds > 0)
		if err != nil {
			return fmt.Errorf("%s seed %d: %w", w.show(t.point), t.seed, err)
		}
		now := &follower{newTally(), w}
		w.set(t, trialRuns, now.tally)
		now.begin(p)
		ended = train(w.base.Context(), p, now, 0)
		if state, out, err = t.look(); err != nil {
			return err
		}
	}
	switch w.set(t, state, out); {
	case t.over():
		view.done(t)
		return nil
	case ended == nil:
		ended = errors.New("its log does not say that it ended")
	}
	return ended
}

// prepare goes on with the session of a trial, or makes it anew.
func (w *sweep) prepare(t *trial, begun bool) (prepared, error) {
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
	return f.prepare(w.base.Context(), c, preset)
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

// results are the settings, best first; those without a figure come last.
func (w *sweep) results() []result {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []result
	for _, p := range presets.Points(w.axes) {
		r := result{point: p}
		for _, t := range w.trials {
			if !slices.Equal(t.point, p) {
				continue
			}
			r.of++
			if t.state == trialDiverged {
				r.diverged++
			}
			if t.state != trialDone {
				continue
			}
			r.seconds += t.tally.sum.Seconds
			if x, ok := t.tally.metric(w.by); ok {
				r.sample = append(r.sample, x)
			}
			if x, ok := t.tally.metric("test_error"); ok {
				r.error = append(r.error, x)
			}
		}
		r.seconds /= float64(max(1, len(r.sample)))
		out = append(out, r)
	}
	more := map[string]bool{"samples_per_s": true, "centre_advance": true}[w.by]
	slices.SortStableFunc(out, func(a, b result) int {
		if len(a.sample) == 0 || len(b.sample) == 0 {
			return len(b.sample) - len(a.sample)
		}
		if more {
			a, b = b, a
		}
		return cmp.Compare(a.sample.Mean(), b.sample.Mean())
	})
	return out
}
