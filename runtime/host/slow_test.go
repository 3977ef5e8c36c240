package host

import (
	"context"
	goruntime "runtime"
	"testing"
	"time"

	"brood/models/engine"
	"brood/runtime/machine"
)

// busy is an engine whose tasks use takes of processor time, and last lost longer by the clock, as if other processes
// ran.
type busy struct {
	memory
	clock, used *time.Duration
	takes, lost time.Duration
}

func (b *busy) Do(context.Context, ...engine.Task) error {
	*b.used += b.takes
	*b.clock += b.takes + b.lost
	return nil
}

// TestSlowed: a call of a slowed engine lasts factor times its processor time, plus the backlog of frames. Later calls
// make up for sleep that was too long. Late reports the time that other processes took. Calls of the unslowed engine
// are not extended.
func TestSlowed(t *testing.T) {
	const ms = time.Millisecond
	var clock, used, over time.Duration
	at := time.Now()
	b := &busy{clock: &clock, used: &used, takes: 10 * ms}
	debt := &Debt{
		factor: 5,
		frames: 5,
		used:   func() (time.Duration, bool) { return used, true },
		now:    func() time.Time { return at.Add(clock) },
	}
	debt.reset()
	s := &slowed{
		Engine: b,
		factor: 5,
		debt:   debt,
		sleep:  func(_ context.Context, d time.Duration) { clock += d + over },
		lag:    &Lag{},
	}
	packets := func(n int, gap time.Duration) { // each uses a millisecond and arrives gap after the previous one
		for range n {
			clock += gap
			used += ms
			debt.Count()
		}
	}
	fast := &unslowed{b, s}
	took := func(f func()) time.Duration {
		before := clock
		f()
		return clock - before
	}
	do := func() { _ = s.Do(t.Context()) }
	for _, c := range []struct {
		what string
		with func()
		want time.Duration
	}{
		{"five times its processor time", do, 50 * ms},
		{"plus four times the processor time of frames before it", func() { used += 2 * ms; clock += 2 * ms; do() }, 2*ms + 58*ms},
		{"all of it, if frames arrive without idle time", func() { packets(10, ms); do() }, 10*ms + 40*ms + 50*ms},
		{"part of it, if idle time between frames covers the rest", func() { packets(10, 3*ms); do() }, 30*ms + 20*ms + 4*ms - 2*ms + 50*ms},
		{"only the last frame, if idle time covers the others", func() { packets(10, 7*ms); do() }, 70*ms + 4*ms + 50*ms},
		{"none, if idle time also follows the last frame", func() { packets(10, 7*ms); clock += 4 * ms; do() }, 74*ms + 50*ms},
		{"an unslowed call", func() { _ = fast.Do(t.Context()) }, 10 * ms},
		{"unslowed calls do not slow later calls", do, 50 * ms},
		{"sleeping too long", func() { over = 3 * ms; do(); over = 0 }, 53 * ms},
		{"is made up for by the next call", do, 47 * ms},
		{"sleeping too long by more than a call", func() { over = 60 * ms; do(); over = 0 }, 110 * ms},
		{"is made up for by one call", do, 10 * ms},
		{"and by the next", do, 30 * ms},
		{"and then the pace is normal", do, 50 * ms},
		{"fast frames add nothing", func() { debt.frames = 1; packets(10, ms); do(); debt.frames = 5 }, 10*ms + 50*ms},
		{"other processes that leave enough time", func() { b.lost = 30 * ms; do() }, 50 * ms},
	} {
		if got := took(c.with); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
	if late := s.lag.Late(); late != 0 {
		t.Errorf("late by %g before any call was late", late)
	}
	b.lost = 90 * ms
	s.lag = &Lag{}
	if got := took(do); got != 100*ms || s.lag.Late() != 1 {
		t.Errorf("with other processes %s and late by %g, want 100ms and 1", got, s.lag.Late())
	}
}

// spinning is an engine that computes for own of processor time after frames, on another thread, have used processor
// time too.
type spinning struct {
	memory
	frames, own time.Duration
	inline      bool
}

func (s *spinning) Inline() bool { return s.inline }

func (s *spinning) Do(context.Context, ...engine.Task) error {
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	began, _ := machine.ThreadTime()
	came := make(chan struct{})
	go func() {
		defer close(came)
		goruntime.LockOSThread()
		first, _ := machine.ThreadTime()
		for now := first; now-first < s.frames; now, _ = machine.ThreadTime() {
		}
	}()
	<-came
	now := began
	for now-began < s.own {
		now, _ = machine.ThreadTime()
	}
	s.own = now - began
	return nil
}

// TestFastFramesWithinCalls: if frames are fast and the engine computes on the calling thread, the processor time of
// frames during a call does not extend the call.
func TestFastFramesWithinCalls(t *testing.T) {
	if _, ok := machine.ThreadTime(); !ok {
		t.Skip("this system does not report the processor time of a thread")
	}
	for _, c := range []struct {
		fast, inline, counted bool
	}{{true, true, false}, {false, true, true}, {true, false, true}} {
		s := &spinning{frames: 20 * time.Millisecond, own: 5 * time.Millisecond, inline: c.inline}
		lag := &Lag{}
		_, slower := slow(s, NewDebt(3, c.fast), lag)
		slower.(*slowed).sleep = func(context.Context, time.Duration) {}
		if err := slower.Do(t.Context()); err != nil {
			t.Fatal(err)
		}
		used := time.Duration(lag.due.Load()) / 3
		if counted := used > s.own+s.frames/2; counted != c.counted {
			t.Errorf("fast frames %t, inline %t: computing counts as %s, the thread itself used %s", c.fast, c.inline,
				used, s.own)
		}
	}
}

// TestInline: the native engine with one thread computes on the calling thread. With more threads, and for other
// engines, it is not guaranteed.
func TestInline(t *testing.T) {
	for kind, want := range map[string][2]bool{"native": {true, false}, "gorgonia": {}} {
		t.Setenv("BROOD_ENGINE", kind)
		j, err := Prepare(Options{Model: "mlp-small", Data: fewImages, Members: 1, Workers: 1, Threads: 1, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		for i, threads := range []int{1, 2} {
			e, err := j.engine(j.Config.Kernels, threads)
			if err != nil {
				t.Fatal(err)
			}
			in, ok := e.(inline)
			if got := ok && in.Inline(); got != want[i] {
				t.Errorf("%s with %d threads computes on its caller's thread alone: %t", kind, threads, got)
			}
			Release(e)
		}
	}
}
