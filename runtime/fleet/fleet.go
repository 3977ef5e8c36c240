// Package fleet is the shell of a run: it feeds events to the coordinator's deterministic core, carries out its effects
// in order, and hosts the workers of this process, one goroutine each. Workers of other processes take part through a
// [WorkerHandle], which runtime/remote implements. The fleet's event loop, in Run, owns the core; all other goroutines
// send to it through channels.
package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"brood/models/usererr"
	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/runtime/view"
	"brood/runtime/worker"
)

// Recorder is the log. Append writes records in order; an error ends the run.
type Recorder interface {
	Append(records ...event.Record) error
}

// Config configures a fleet.
type Config struct {
	Core    coordinator.Config
	Log     Recorder
	Workers int                                  // workers hosted in this process; with 0 the run waits for remote workers
	FirstID int                                  // number of the first worker; lower ones belong to workers that return
	Spawn   func(id int) (*worker.Worker, error) // creates the worker with this id
	// Delay before a dead worker of this process is replaced, or until it may return if that is later; 0: never.
	Respawn time.Duration
	Grace   time.Duration // see Attend
	Now     func() time.Time
	Tick    time.Duration          // time between ticks of the core; 0 means 100 ms
	Shape   func(event.Link) error // sets the speed of a link; must not block; nil: the run has no links
	// Fault stores the stack of a panic that was caught, for a bug report. Any goroutine may call it; may be nil.
	Fault func(what any, stack []byte)
	// Recompute returns the state after the last commit from the log, for coordinator.Recompute. It may be nil if
	// Core.Reattach is.
	Recompute func(context.Context) (event.Checkpoint, error)
	// Watch receives every record after it is in the log. It must not block. May be nil.
	Watch func(event.Record)
}

// Fleet is a run in progress.
type Fleet struct {
	cfg    Config
	core   *coordinator.Coordinator
	events chan any
	done   chan struct{} // closed when Run returns

	handles      map[int]WorkerHandle  // by worker
	returnDelays map[int]time.Duration // delays after which evicted workers that are not gone yet may return
	wg           sync.WaitGroup
	nextID       atomic.Int64
	mu           sync.Mutex       // guards returned
	returned     map[int]returned // by number below FirstID
	recompute    chan struct{}    // an order to recompute, at most one in a run
	furthest     uint64           // the highest committed round
	deaths       int              // deaths of workers of this process since it was committed
	failure      string           // the last failure that a worker reported since then, "" for none
	exit         *coordinator.Exit
	logErr       error // error of the log or of Spawn, or too many deaths: ends the run
}

type command struct {
	cmd   event.Command
	reply chan event.Receipt
}

type status struct{ reply chan []view.Worker }

type died struct {
	worker int
	reason string
	local  bool // the worker was hosted in this process
}

type spawn struct{}

// recomputed is the result of Config.Recompute. An error ends the run, so that its workers wait for another process.
type recomputed struct {
	checkpoint event.Checkpoint
	err        error
}

// maxDeaths is the number of deaths without a new highest round, in addition to one for each worker of this process,
// that ends the run: its program or its data always fail.
const maxDeaths = 4

// New creates a fleet. It fails if the core rejects its configuration.
func New(cfg Config) (*Fleet, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Tick == 0 {
		cfg.Tick = 100 * time.Millisecond
	}
	core, err := coordinator.New(cfg.Core)
	if err != nil {
		return nil, err
	}
	f := &Fleet{
		cfg:          cfg,
		core:         core,
		events:       make(chan any, 64),
		done:         make(chan struct{}),
		handles:      map[int]WorkerHandle{},
		returnDelays: map[int]time.Duration{},
		returned:     map[int]returned{},
		recompute:    make(chan struct{}, 1),
	}
	f.nextID.Store(int64(cfg.FirstID))
	return f, nil
}

// Fault is a panic in the coordinator's own code.
type Fault struct {
	Value any // value of the panic
	Stack []byte
}

func (f *Fault) Error() string {
	return fmt.Sprintf("the coordinator has failed (%v): what was committed is in the log; "+
		"resume the session, and report this", f.Value)
}

// Run trains until the core's exit or until ctx ends. In the latter case the workers are cut off at once, and the log
// holds what was committed. A panic of the coordinator is returned as a [Fault]. If the run ends with an error, the
// workers are sent [Unfinished], so that they may return to the process that resumes it. Call Run once.
func (f *Fleet) Run(ctx context.Context) (exit coordinator.Exit, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		if r := recover(); r != nil {
			stack := debug.Stack()
			f.Fault(r, stack)
			err = &Fault{r, stack}
			exit = coordinator.Exit{Phase: event.Failed, Reason: err.Error()}
		}
		cancel()
		for _, b := range f.handles {
			if err != nil {
				b.Post(Unfinished)
			}
			b.Close()
		}
		close(f.done)
		f.closeQueued()
		f.wg.Wait()
	}()
	if f.cfg.Recompute != nil {
		f.wg.Go(func() { f.recomputeOnce(ctx) })
	}
	for range f.cfg.Workers {
		f.spawn(ctx)
	}
	tick := time.NewTicker(f.cfg.Tick)
	defer tick.Stop()
	for f.exit == nil {
		select {
		case <-ctx.Done():
			return coordinator.Exit{Phase: event.Stopped, Reason: "left at once"}, ctx.Err()
		case <-tick.C:
			f.step(coordinator.Tick{})
		case ev := <-f.events:
			f.handle(ctx, ev)
		}
		if f.logErr != nil {
			return coordinator.Exit{Phase: event.Failed, Reason: f.logErr.Error()}, f.logErr
		}
	}
	return *f.exit, nil
}

// handle processes an event in the loop.
func (f *Fleet) handle(ctx context.Context, ev any) {
	switch e := ev.(type) {
	case status:
		var out []view.Worker
		for _, w := range f.core.Workers() {
			out = append(out, view.Worker{ID: w.ID, State: w.State, Members: w.Members})
		}
		e.reply <- out
	case command:
		if e.cmd.Action == event.Kill || e.cmd.Link != nil {
			e.reply <- f.applyLocal(e.cmd)
			return
		}
		fx := f.core.Step(f.cfg.Now(), coordinator.Command{Command: e.cmd})
		f.apply(fx)
		for _, x := range fx { // the records before the receipt are in the log now
			if r, ok := x.(coordinator.Receipt); ok && f.logErr == nil {
				e.reply <- r.Receipt
			}
		}
	case died:
		delete(f.handles, e.worker)
		if e.local {
			f.deaths++
		}
		if f.deaths > maxDeaths+f.cfg.Workers {
			f.logErr = fmt.Errorf("workers die repeatedly without a new round; the last one: %s", cmp.Or(f.failure, e.reason))
			return
		}
		f.step(coordinator.Lost{Worker: e.worker, Reason: e.reason})
		f.setHere(e.worker, false)
		if f.cfg.Respawn > 0 && f.exit == nil && e.local {
			time.AfterFunc(max(f.cfg.Respawn, f.returnDelays[e.worker]), func() { f.post(spawn{}) })
		}
		delete(f.returnDelays, e.worker)
	case recomputed:
		if f.logErr = e.err; e.err == nil {
			f.step(coordinator.Recomputed{Checkpoint: e.checkpoint})
		}
	case joined:
		f.handles[e.worker] = e.handle
		f.step(coordinator.Joined{Worker: e.worker, Key: e.key, Machine: e.machine, Held: e.held})
	case spawn:
		f.spawn(ctx)
	case message.Report:
		if r, ok := e.(message.Failed); ok && r.Cut == nil {
			f.failure = r.Err
		}
		f.step(coordinator.Report{Report: e})
	case coordinator.Event:
		f.step(e)
	default:
		panic(fmt.Sprintf("the fleet does not know the event %T", ev))
	}
}

// applyLocal executes the commands that the core does not handle: killing a worker and shaping a link.
func (f *Fleet) applyLocal(cmd event.Command) event.Receipt {
	others := len(cmd.Set) > 0 || cmd.Members != 0 || cmd.Algorithm != "" || cmd.Limit != nil
	if others || cmd.Link != nil && cmd.Action != "" {
		reason := "a kill and a slow link cannot be combined with other commands: send the rest separately"
		return event.Receipt{ID: cmd.ID, Reason: reason}
	}
	err := coordinator.ValidateReason(cmd.Why)
	if err != nil {
		return event.Receipt{ID: cmd.ID, Reason: err.Error(), Usage: usererr.Is(err)}
	}
	var note coordinator.Note
	if l := cmd.Link; l != nil {
		text := fmt.Sprintf("%s, set by %s", l, coordinator.By(cmd))
		note = coordinator.Note{Kind: event.AlertLink, Text: text}
		err = errors.New("the workers of this run share one process without links: use brood serve")
		if f.cfg.Shape != nil {
			err = f.cfg.Shape(*l)
		}
	} else {
		text := fmt.Sprintf("worker %d is killed by %s", cmd.Worker, coordinator.By(cmd))
		note = coordinator.Note{Kind: event.AlertKill, Text: text}
		if f.handles[cmd.Worker] == nil {
			err = fmt.Errorf("there is no worker %d here", cmd.Worker)
		}
	}
	if err != nil {
		return event.Receipt{ID: cmd.ID, Reason: err.Error()}
	}
	f.step(note)
	if cmd.Link == nil {
		f.handles[cmd.Worker].Post(message.Evict{Why: "it was killed by " + coordinator.By(cmd)})
	}
	return event.Receipt{ID: cmd.ID, Accepted: true}
}

// Workers returns the workers that are present; nil if the run has ended or ctx ends. It waits for the loop, which must
// not call it.
func (f *Fleet) Workers(ctx context.Context) []view.Worker {
	s := status{make(chan []view.Worker, 1)}
	select {
	case f.events <- s:
	case <-f.done:
		return nil
	case <-ctx.Done():
		return nil
	}
	select {
	case out := <-s.reply:
		return out
	case <-f.done:
		return nil
	case <-ctx.Done():
		return nil
	}
}

// Fault stores the stack of a panic that was caught. It does not end the run; the caller handles the failure.
func (f *Fleet) Fault(what any, stack []byte) {
	if f.cfg.Fault != nil {
		f.cfg.Fault(what, stack)
	}
}

// step passes an event to the core and carries out its effects.
func (f *Fleet) step(ev coordinator.Event) {
	f.apply(f.core.Step(f.cfg.Now(), ev))
}

// apply carries out effects in order: records are in the log before later messages are sent.
func (f *Fleet) apply(fx []coordinator.Effect) {
	var pending []event.Record
	flush := func() {
		if len(pending) > 0 && f.logErr == nil {
			f.logErr = f.cfg.Log.Append(pending...)
			if f.cfg.Watch != nil && f.logErr == nil {
				for _, r := range pending {
					f.cfg.Watch(r)
				}
			}
		}
		pending = pending[:0]
	}
	for _, x := range fx {
		switch x := x.(type) {
		case coordinator.Append:
			if c := x.Record.Commit; c != nil && c.To > f.furthest {
				f.deaths, f.furthest, f.failure = 0, c.To, ""
			}
			pending = append(pending, x.Record)
		case coordinator.Send:
			flush()
			if b := f.handles[x.Worker]; b != nil && f.logErr == nil {
				if a, ok := x.Msg.(message.Evict); ok {
					f.returnDelays[x.Worker] = a.After
				}
				b.Post(x.Msg)
			}
		case coordinator.Release:
			flush()
			if b := f.handles[x.Worker]; b != nil {
				b.Post(message.Stop{})
			}
		case coordinator.Recompute:
			flush()
			f.recompute <- struct{}{}
		case *coordinator.Fault:
			f.Fault(x.Value, x.Stack)
		case coordinator.Exit:
			flush()
			f.exit = &x
		case coordinator.Receipt: // handle delivers it once all records are in the log
		default:
			panic(fmt.Sprintf("the fleet does not know the effect %T", x))
		}
	}
	flush()
}

// spawn starts a worker of this process and announces it to the core.
func (f *Fleet) spawn(ctx context.Context) {
	id := f.Reserve()
	w, err := f.cfg.Spawn(id)
	if err != nil {
		f.logErr = fmt.Errorf("worker %d: %w", id, err)
		return
	}
	box := NewMailbox()
	f.handles[id] = box
	f.wg.Go(func() {
		reason := "it was killed"
		if err := Attend(ctx, box, w, f.cfg.Grace, f.Report); err != nil {
			reason = err.Error()
		}
		w.Free()
		f.post(died{id, reason, true})
	})
	f.step(coordinator.Joined{Worker: id})
}

// recomputeOnce waits for the order to recompute the state, and carries it out.
func (f *Fleet) recomputeOnce(ctx context.Context) {
	select {
	case <-f.recompute:
		var r recomputed
		r.checkpoint, r.err = f.recomputeSafely(ctx)
		f.post(r)
	case <-ctx.Done():
	}
}

// recomputeSafely turns a panic into an error, which ends the run.
func (f *Fleet) recomputeSafely(ctx context.Context) (cp event.Checkpoint, err error) {
	defer func() {
		if r := recover(); r != nil {
			f.Fault(r, debug.Stack())
			err = fmt.Errorf("recompute the last commit: %v", r)
		}
	}()
	return f.cfg.Recompute(ctx)
}

// post sends an event to the loop. It waits while the loop is busy and drops the event after the run's end.
func (f *Fleet) post(ev any) {
	select {
	case f.events <- ev:
	case <-f.done:
	}
}

// ErrOver is returned for commands to a run that has ended.
var ErrOver = errors.New("the run has ended")

// Command sends a command to the core and waits for its receipt, not for its effect. It returns ErrOver after the run's
// end.
func (f *Fleet) Command(ctx context.Context, cmd event.Command) (event.Receipt, error) {
	c := command{cmd, make(chan event.Receipt, 1)}
	select {
	case f.events <- c:
	case <-f.done:
		return event.Receipt{}, ErrOver
	case <-ctx.Done():
		return event.Receipt{}, ctx.Err()
	}
	select {
	case r := <-c.reply:
		return r, nil
	case <-f.done:
		select {
		case r := <-c.reply: // this command ended the run
			return r, nil
		default:
			return event.Receipt{}, ErrOver
		}
	case <-ctx.Done():
		return event.Receipt{}, ctx.Err()
	}
}

// Trouble pauses the run until a person has fixed a fault outside it. It returns at once and may be called from within
// the log's Append.
func (f *Fleet) Trouble(why event.PauseReason, reason string) {
	f.wg.Go(func() { f.post(coordinator.Trouble{Why: why, Reason: reason}) })
}

// Note records an alert. It waits for the fleet's loop, which must not call it.
func (f *Fleet) Note(n coordinator.Note) { f.post(n) }

// Measured records measurements of the machines. It waits for the fleet's loop, which must not call it.
func (f *Fleet) Measured(m coordinator.Measured) { f.post(m) }

// Join adds a worker of this process. It waits for the fleet's loop, which must not call it.
func (f *Fleet) Join() { f.post(spawn{}) }

// Interrupt asks the run to finish its round, save and exit.
func (f *Fleet) Interrupt() { f.post(coordinator.Interrupt{}) }
