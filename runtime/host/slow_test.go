package host

import (
	"context"
	goruntime "runtime"
	"testing"
	"time"

	"brood/models/engine"
	"brood/runtime/machine"
)

// busy is an engine whose tasks take processor time, and as much of the clock, or more where other work is there.
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

// A slowed engine takes so many times its processor time by the clock, counts frames that cost the processor something
// in between, makes up for sleeping too long, and says when other work made it late. Calls beside it cost nothing.
func TestSlowed(t *testing.T) {
	const ms = time.Millisecond
	var clock, used, over time.Duration
	at := time.Now()
	b := &busy{clock: &clock, used: &used, takes: 10 * ms}
	debt := &Debt{factor: 5, frames: 5, used: func() (time.Duration, bool) { return used, true }, now: func() time.Time { return at.Add(clock) }}
	debt.reset()
	s := &slowed{Engine: b, factor: 5, debt: debt, sleep: func(_ context.Context, d time.Duration) { clock += d + over }, lag: &Lag{}}
	packets := func(n int, gap time.Duration) { // each uses a millisecond, and comes so late after the one before
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
		{"and four times what frames cost in between", func() { used += 2 * ms; clock += 2 * ms; do() }, 2*ms + 58*ms},
		{"and all of them where they come one after the other", func() { packets(10, ms); do() }, 10*ms + 40*ms + 50*ms},
		{"and less where the processor has time for some of it", func() { packets(10, 3*ms); do() }, 30*ms + 20*ms + 4*ms - 2*ms + 50*ms},
		{"and the last alone where it keeps up with the others", func() { packets(10, 7*ms); do() }, 70*ms + 4*ms + 50*ms},
		{"and nothing where there was time after that too", func() { packets(10, 7*ms); clock += 4 * ms; do() }, 74*ms + 50*ms},
		{"a call beside it as it is", func() { _ = fast.Do(t.Context()) }, 10 * ms},
		{"and nothing of that later", do, 50 * ms},
		{"sleeping too long", func() { over = 3 * ms; do(); over = 0 }, 53 * ms},
		{"is made up for", do, 47 * ms},
		{"and so is what is longer than a call", func() { over = 60 * ms; do(); over = 0 }, 110 * ms},
		{"as far as it goes", do, 10 * ms},
		{"and then the rest of it", do, 30 * ms},
		{"and no more", do, 50 * ms},
		{"where frames are fast, nothing for them", func() { debt.frames = 1; packets(10, ms); do(); debt.frames = 5 }, 10*ms + 50*ms},
		{"other work that it does not notice", func() { b.lost = 30 * ms; do() }, 50 * ms},
	} {
		if got := took(c.with); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
	if late := s.lag.Late(); late != 0 {
		t.Errorf("late by %g before anything was", late)
	}
	b.lost = 90 * ms
	s.lag = &Lag{}
	if got := took(do); got != 100*ms || s.lag.Late() != 1 {
		t.Errorf("beside other work %s and late by %g, want 100ms and 1", got, s.lag.Late())
	}
}

// spinning is an engine that computes until frames, which come at the same time, have used some processor time too.
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

// What frames use of the processor while a worker computes whose frames are fast makes its computing no longer.
func TestFastFramesWithinCalls(t *testing.T) {
	if _, ok := machine.ThreadTime(); !ok {
		t.Skip("nothing here tells the time of a thread")
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
			t.Errorf("fast frames %t, inline %t: computing used %s, of which its own was %s", c.fast, c.inline, used, s.own)
		}
	}
}

// The native engine computes on its caller's thread where it has one, and others may not.
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
