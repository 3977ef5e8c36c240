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

// slowed is an engine on a machine that is so many times slower than this one: what the process used of its processors
// takes factor times as long. Several such workers share the cores of one machine, and each keeps the pace that it
// would have alone, as long as all of them together need no more processor time than there is. Results are the engine's
// own.
//
// A call that used c of processor time within itself lasts factor*c, and longer by what the slower machine's processor
// would still have been busy with frames when it began: see [Debt]. Evaluations and checkpoints are as fast as they can
// be.
type slowed struct {
	engine.Engine
	factor float64
	debt   *Debt
	sleep  func(context.Context, time.Duration)
	thread bool          // a call uses what its thread used, whatever others did meanwhile
	over   time.Duration // by which the last call lasted longer than it was due, since sleep is not exact
	lag    *Lag
}

// Debt is what the processor of a slowed worker is behind with frames that were sent and received. What they use
// here, u, keeps a processor that is factor times slower busy for factor*u: it is (factor-1)*u more behind when this
// one is done, and catches up while this one has nothing to do, such as while bytes are under way on a slow link.
// Where frames are fast they cost what they cost here, as on a machine whose network card does that work: also those
// that come within a call, where that computes on its caller's thread alone, whose time can be told from the
// others'. It may be used by any goroutine; a nil one does nothing.
type Debt struct {
	factor float64                      // of computing
	frames float64                      // and of frames
	used   func() (time.Duration, bool) // processor time of this process
	now    func() time.Time

	mu   sync.Mutex
	at   time.Time     // when it was counted last
	last time.Duration // used at that time
	owed time.Duration
}

// NewDebt is that of a worker that is so many times slower than this machine, perhaps but for its frames; nil: it is
// not.
func NewDebt(factor float64, fastFrames bool) *Debt {
	if !(factor > 1) {
		return nil
	}
	d := &Debt{factor: factor, frames: factor, used: machine.ProcessorTime, now: time.Now}
	if fastFrames {
		d.frames = 1
	}
	d.forget()
	return d
}

// Count counts what was used since the last time. The oftener it is called while frames come and go, the better is
// known when the processor had nothing to do.
func (d *Debt) Count() {
	if d != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.count()
	}
}

// count is called with the lock held. It takes it that what was used was used last.
func (d *Debt) count() {
	now := d.now()
	used, _ := d.used()
	u := used - d.last
	idle := now.Sub(d.at) - u
	d.owed = max(0, d.owed-max(0, idle)) + time.Duration((d.frames-1)*float64(u))
	d.at, d.last = now, used
}

// take is what is owed, and no longer afterwards, since a call begins that takes as much longer.
func (d *Debt) take() (owed time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count()
	owed, d.owed = d.owed, 0
	return owed
}

// forget has what was used until now be of no account.
func (d *Debt) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at, d.owed = d.now(), 0
	d.last, _ = d.used()
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

// inline is an engine that may compute on the thread of its caller, and on no other.
type inline interface{ Inline() bool }

// slow makes an engine slower for programmes; the other one is as fast as it was, for what no figure counts.
func slow(e compute, d *Debt, l *Lag) (fast, slower engine.Engine) {
	if l == nil {
		l = &Lag{}
	}
	d.forget()
	_, known := machine.ThreadTime()
	in, _ := e.(inline)
	s := &slowed{Engine: e, factor: d.factor, debt: d, sleep: rest, lag: l, thread: known && d.frames == 1 && in != nil && in.Inline()}
	return &unslowed{e, s}, s
}

// rest sleeps, unless ctx ends.
func rest(ctx context.Context, d time.Duration) {
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

func (s *slowed) paced(ctx context.Context, f func() error) error {
	owed := s.debt.take()
	defer s.debt.forget()
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
	due := time.Duration(s.factor*float64(after-before)) + owed
	s.lag.due.Add(int64(due))
	due -= s.over
	switch s.over = 0; {
	case due > took:
		s.sleep(ctx, due-took)
		s.over = s.debt.now().Sub(began) - due
	case due > 0:
		s.lag.late.Add(int64(took - due))
	default: // it had slept for longer before
		s.over = took - due
	}
	return err
}

// unslowed is the engine of a slowed one. What its calls use of the processor makes no later call longer.
type unslowed struct {
	compute
	of *slowed
}

// Do implements engine.Engine.
func (u *unslowed) Do(ctx context.Context, tasks ...engine.Task) error {
	defer u.forget()
	return u.compute.Do(ctx, tasks...)
}

// Wait implements engine.Engine.
func (u *unslowed) Wait(ctx context.Context) error {
	defer u.forget()
	return u.compute.Wait(ctx)
}

// Write implements engine.Memory.
func (u *unslowed) Write(ctx context.Context, dst engine.Span, p []byte) error {
	defer u.forget()
	return u.compute.Write(ctx, dst, p)
}

// Read implements engine.Memory.
func (u *unslowed) Read(ctx context.Context, p []byte, src engine.Span) error {
	defer u.forget()
	return u.compute.Read(ctx, p, src)
}

// forget has what was used until now make no later call longer.
func (u *unslowed) forget() { u.of.debt.forget() }

// Notes implements worker.Noter for engines that have some.
func (u *unslowed) Notes() []engine.Note {
	if n, ok := u.compute.(worker.Noter); ok {
		return n.Notes()
	}
	return nil
}

// Close implements worker.Closer.
func (u *unslowed) Close() { release(u.compute) }
