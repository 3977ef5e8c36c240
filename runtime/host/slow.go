package host

import (
	"context"
	"sync/atomic"
	"time"

	"brood/models/engine"
	"brood/optim"
	"brood/runtime/machine"
	"brood/runtime/worker"
)

// slowed is an engine on a machine that is so many times slower than this one: what the process used of its processors
// takes factor times as long. Several such workers share the cores of one machine, and each keeps the pace that it
// would have alone, as long as all of them together need no more processor time than there is. Results are the engine's
// own.
//
// A call that used c of processor time within itself, and after which o had been used since the last call (by frames
// that were sent and received), lasts factor*c, and (factor-1)*o longer: the slower machine's processor would have been
// busy with both. Evaluations and checkpoints are as fast as they can be.
type slowed struct {
	optim.Engine
	factor float64
	used   func() (time.Duration, bool) // processor time of this process
	now    func() time.Time
	sleep  func(context.Context, time.Duration)
	last   time.Duration // used when the last call had ended
	over   time.Duration // by which the last call lasted longer than it was due, since sleep is not exact
	lag    *Lag
}

// Lag says how a slowed worker kept its pace. It may be read by any goroutine.
type Lag struct{ due, late atomic.Int64 }

// Late is the share of the time of computing by which this machine was too slow for a pace, since other work had its
// processors: 0 where the pace was kept.
func (l *Lag) Late() float64 {
	if due := l.due.Load(); due > 0 {
		return float64(l.late.Load()) / float64(due)
	}
	return 0
}

// slow makes an engine slower for programmes; the other one is as fast as it was, for what no figure counts.
func slow(e compute, factor float64, l *Lag) (fast, slower optim.Engine) {
	if l == nil {
		l = &Lag{}
	}
	s := &slowed{Engine: e, factor: factor, used: machine.ProcessorTime, now: time.Now, sleep: rest, lag: l}
	s.last, _ = s.used()
	return &unslowed{e, s}, s
}

// rest sleeps, unless ctx ends.
func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// Do implements optim.Engine.
func (s *slowed) Do(ctx context.Context, tasks ...engine.Task) error {
	return s.paced(ctx, func() error { return s.Engine.Do(ctx, tasks...) })
}

// Wait implements optim.Engine.
func (s *slowed) Wait(ctx context.Context) error {
	return s.paced(ctx, func() error { return s.Engine.Wait(ctx) })
}

func (s *slowed) paced(ctx context.Context, f func() error) error {
	began := s.now()
	before, ok := s.used()
	err := f()
	after, _ := s.used()
	if !ok {
		return err
	}
	took := s.now().Sub(began)
	due := time.Duration(s.factor*float64(after-before) + (s.factor-1)*float64(before-s.last))
	s.lag.due.Add(int64(due))
	due -= s.over
	switch s.over = 0; {
	case due > took:
		s.sleep(ctx, due-took)
		s.over = s.now().Sub(began) - due
	case due > 0:
		s.lag.late.Add(int64(took - due))
	default: // it had slept for longer before
		s.over = took - due
	}
	s.last, _ = s.used()
	return err
}

// unslowed is the engine of a slowed one. What its calls use of the processor makes no later call longer.
type unslowed struct {
	compute
	of *slowed
}

// Do implements optim.Engine.
func (u *unslowed) Do(ctx context.Context, tasks ...engine.Task) error {
	defer u.forget()
	return u.compute.Do(ctx, tasks...)
}

// Wait implements optim.Engine.
func (u *unslowed) Wait(ctx context.Context) error {
	defer u.forget()
	return u.compute.Wait(ctx)
}

// Write implements optim.Memory.
func (u *unslowed) Write(ctx context.Context, dst engine.Span, p []byte) error {
	defer u.forget()
	return u.compute.Write(ctx, dst, p)
}

// Read implements optim.Memory.
func (u *unslowed) Read(ctx context.Context, p []byte, src engine.Span) error {
	defer u.forget()
	return u.compute.Read(ctx, p, src)
}

// forget has what was used until now make no later call longer.
func (u *unslowed) forget() { u.of.last, _ = u.of.used() }

// Notes implements worker.Noter for engines that have some.
func (u *unslowed) Notes() []engine.Note {
	if n, ok := u.compute.(worker.Noter); ok {
		return n.Notes()
	}
	return nil
}

// Close implements worker.Closer.
func (u *unslowed) Close() { release(u.compute) }
