package host

import (
	"context"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"time"

	"brood/models/engine"
	"brood/runtime/machine"
	"brood/runtime/worker"
)

// slowed wraps an engine and emulates a machine that is slower by a factor: it sleeps after each call, so that the call
// takes factor times its processor time. Several such processes can share the cores of one machine. Each keeps its pace
// as long as all of them together need no more processor time than the machine has. Results do not change.
//
// A call that used processor time c lasts factor*c, plus the time for which the slower machine's processor would still
// have been busy with frames when the call began, see [Debt]. Evaluations and checkpoints are not slowed.
type slowed struct {
	engine.Engine
	factor float64
	debt   *Debt
	sleep  func(context.Context, time.Duration)
	thread bool          // measure the processor time of the calling thread instead of the process
	over   time.Duration // by which earlier calls lasted too long, since sleep is inexact; later calls make up for it
	lag    *Lag
}

// Debt is the backlog of the emulated slower processor with the frames that the worker sends and receives. Processor
// time u that frames use here takes factor*u on the slower machine. So the backlog grows by (factor-1)*u, and shrinks
// while this process is idle, for example while it waits for a slow link.
//
// With fast frames, frames cost the same as here, as on a machine whose network card does that work. This also applies
// to frames that arrive during a call, if the engine computes only on the calling thread: the time of that thread
// excludes them.
//
// Methods may be called from any goroutine. Count may be called on nil, and then does nothing.
type Debt struct {
	factor float64                      // slowdown of computing
	frames float64                      // slowdown of frames: factor, or 1 with fast frames
	used   func() (time.Duration, bool) // processor time of this process
	now    func() time.Time

	mu      sync.Mutex
	at      time.Time     // time of the last count
	last    time.Duration // processor time used up to the last count
	backlog time.Duration
}

// NewDebt returns the Debt of a worker that is slower than this machine by a factor. fastFrames excludes frames from
// the slowdown. It returns nil, which means full speed, if factor is at most 1 or NaN.
func NewDebt(factor float64, fastFrames bool) *Debt {
	if !(factor > 1) {
		return nil
	}
	d := &Debt{factor: factor, frames: factor, used: machine.ProcessorTime, now: time.Now}
	if fastFrames {
		d.frames = 1
	}
	d.reset()
	return d
}

// Count updates the backlog with the processor time since the last count. Frequent calls during the exchange of frames
// improve the estimate of idle time.
func (d *Debt) Count() {
	if d != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.count()
	}
}

// count updates the backlog. It assumes that the process was idle first and busy at the end of the interval. The caller
// holds mu.
func (d *Debt) count() {
	now := d.now()
	used, _ := d.used()
	u := used - d.last
	idle := now.Sub(d.at) - u
	d.backlog = max(0, d.backlog-max(0, idle)) + time.Duration((d.frames-1)*float64(u))
	d.at, d.last = now, used
}

// take returns the backlog and sets it to zero. The caller extends its call by that time.
func (d *Debt) take() (backlog time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count()
	backlog, d.backlog = d.backlog, 0
	return backlog
}

// reset clears the backlog and excludes the processor time used up to now.
func (d *Debt) reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at, d.backlog = d.now(), 0
	d.last, _ = d.used()
}

// Lag measures how well a slowed worker kept its pace. It is safe for concurrent use.
type Lag struct{ due, late atomic.Int64 } // nanoseconds

// Late returns by how much this machine was too slow for the pace, as a share of the computing time that was due, since
// other processes used the processors. 0 means that the pace was kept.
func (l *Lag) Late() float64 {
	if due := l.due.Load(); due > 0 {
		return float64(l.late.Load()) / float64(due)
	}
	return 0
}

// inline is implemented by engines that can report whether they compute only on the calling thread.
type inline interface{ Inline() bool }

// slow returns two views of an engine: slower emulates a slower machine, for the programs of algorithms; fast has full
// speed, for work that measurements exclude. lag may be nil.
func slow(e Engine, d *Debt, lag *Lag) (fast, slower engine.Engine) {
	if lag == nil {
		lag = &Lag{}
	}
	d.reset()
	_, known := machine.ThreadTime()
	in, _ := e.(inline)
	s := &slowed{
		Engine: e,
		factor: d.factor,
		debt:   d,
		sleep:  sleep,
		lag:    lag,
		thread: known && d.frames == 1 && in != nil && in.Inline(),
	}
	return &unslowed{e, s}, s
}

// sleep returns after d, or earlier if ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// Do implements engine.Engine.
func (s *slowed) Do(ctx context.Context, tasks ...engine.Task) error {
	return s.paced(ctx, func() error { return s.Engine.Do(ctx, tasks...) })
}

// Wait implements engine.Engine.
func (s *slowed) Wait(ctx context.Context) error {
	return s.paced(ctx, func() error { return s.Engine.Wait(ctx) })
}

// paced calls f and then sleeps until the call has lasted as long as on the slower machine. It does not sleep if the
// processor time is unknown.
func (s *slowed) paced(ctx context.Context, f func() error) error {
	backlog := s.debt.take()
	defer s.debt.reset()
	used := s.debt.used
	if s.thread {
		used = machine.ThreadTime
		goruntime.LockOSThread()
		defer goruntime.UnlockOSThread()
	}
	began := s.debt.now()
	before, ok := used()
	err := f()
	after, _ := used()
	if !ok {
		return err
	}
	took := s.debt.now().Sub(began)
	due := time.Duration(s.factor*float64(after-before)) + backlog
	s.lag.due.Add(int64(due))
	due -= s.over
	switch s.over = 0; {
	case due > took:
		s.sleep(ctx, due-took)
		s.over = s.debt.now().Sub(began) - due
	case due > 0:
		s.lag.late.Add(int64(took - due))
	default: // earlier calls slept for longer than this call was due
		s.over = took - due
	}
	return err
}

// unslowed is the engine inside a slowed one, at full speed. The processor time of its calls does not slow later calls.
type unslowed struct {
	Engine
	of *slowed
}

// Do implements engine.Engine.
func (u *unslowed) Do(ctx context.Context, tasks ...engine.Task) error {
	defer u.reset()
	return u.Engine.Do(ctx, tasks...)
}

// Wait implements engine.Engine.
func (u *unslowed) Wait(ctx context.Context) error {
	defer u.reset()
	return u.Engine.Wait(ctx)
}

// Write implements engine.Memory.
func (u *unslowed) Write(ctx context.Context, dst engine.Span, p []byte) error {
	defer u.reset()
	return u.Engine.Write(ctx, dst, p)
}

// Read implements engine.Memory.
func (u *unslowed) Read(ctx context.Context, p []byte, src engine.Span) error {
	defer u.reset()
	return u.Engine.Read(ctx, p, src)
}

// reset excludes the processor time used up to now from the backlog.
func (u *unslowed) reset() { u.of.debt.reset() }

// Notes implements worker.Noter. It returns nil if the engine has no notes.
func (u *unslowed) Notes() []engine.Note {
	if n, ok := u.Engine.(worker.Noter); ok {
		return n.Notes()
	}
	return nil
}

// Close implements worker.Closer.
func (u *unslowed) Close() { Release(u.Engine) }
