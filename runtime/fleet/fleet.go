// Package fleet is the shell of a run: it feeds the coordinator's pure core with events, carries out its effects in
// their order, and hosts workers of this process as goroutines. Workers of other processes take a [Seat]:
// runtime/remote brings them. The fleet's one event loop owns the core; everything else talks to it through channels.
package fleet

import (
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

// Recorder is the log: records in order; an error pauses the run.
type Recorder interface {
	Append(records ...event.Record) error
}

// Config is what a fleet needs.
type Config struct {
	Core    coordinator.Config
	Log     Recorder
	Workers int                                  // hosted in this process; with 0 the run waits for seats
	Spawn   func(id int) (*worker.Worker, error) // makes worker id
	// A worker that dies is replaced after this, or when it may come back if that is later; 0: never.
	Respawn time.Duration
	Grace   time.Duration // see Attend
	Now     func() time.Time
	Tick    time.Duration          // between ticks of the core; 0 means 100 ms
	Shape   func(event.Link) error // slows links down; nil: there are none. It must not wait
	// Fault keeps the stack of a mistake of ours for the report. Any goroutine may call it; may be nil.
	Fault func(what any, stack []byte)
	// Watch is told of every record after it is in the log; it must not block. May be nil.
	Watch func(event.Record)
}

// Fleet is a run in progress.
type Fleet struct {
	cfg    Config
	core   *coordinator.Coordinator
	events chan any
	done   chan struct{} // closed when Run returns

	boxes  map[int]Seat
	away   map[int]time.Duration // how long those stay away that were sent and are not gone yet
	wg     sync.WaitGroup
	nextID atomic.Int64
	deaths int // of workers of this process, since the last commit
	exit   *coordinator.Exit
	logErr error // of the log, or of a worker that cannot be made: the run ends
}

type command struct {
	cmd   event.Command
	reply chan event.Receipt
}

type status struct{ reply chan []view.Worker }

type died struct {
	worker int
	reason string
	here   bool // it was hosted in this process
}

type spawn struct{}

// tooMany deaths without a commit between them, beyond one of each worker, end the run: its program or its data fail
// always.
const tooMany = 4

// New readies a fleet; it refuses what the core refuses.
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
	return &Fleet{cfg: cfg, core: core, events: make(chan any, 64), done: make(chan struct{}), boxes: map[int]Seat{}, away: map[int]time.Duration{}}, nil
}

// Fault is a mistake of the coordinator's own.
type Fault struct {
	Value any // that it panicked with
	Stack []byte
}

func (f *Fault) Error() string {
	return fmt.Sprintf("the coordinator has failed (%v): what was committed is in the log; resume the session, and report this", f.Value)
}

// Run trains until the core's exit, or until ctx ends: then the workers are dropped where they stand, and the log holds
// what was committed. A fault of the coordinator's own is an error too. Whatever ends it before the run is over,
// workers are told that they may come back to whoever goes on with it.
func (f *Fleet) Run(ctx context.Context) (exit coordinator.Exit, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		if r := recover(); r != nil {
			f.Fault(r, debug.Stack())
			err = &Fault{r, debug.Stack()}
			exit = coordinator.Exit{Phase: event.Failed, Reason: err.Error()}
		}
		cancel()
		for _, b := range f.boxes {
			if err != nil {
				b.Post(Unfinished)
			}
			b.Close()
		}
		close(f.done)
		f.unseat()
		f.wg.Wait()
	}()
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
			e.reply <- f.disturb(e.cmd)
			return
		}
		fx := f.core.Step(f.cfg.Now(), coordinator.Command{Command: e.cmd})
		f.apply(fx)
		for _, x := range fx { // after the records that it promises
			if r, ok := x.(coordinator.Receipt); ok && f.logErr == nil {
				e.reply <- r.Receipt
			}
		}
	case died:
		delete(f.boxes, e.worker)
		if e.here {
			f.deaths++
		}
		if f.deaths > tooMany+f.cfg.Workers {
			f.logErr = fmt.Errorf("workers die one after the other without finishing a round; the last one because: %s", e.reason)
			return
		}
		f.step(coordinator.Lost{Worker: e.worker, Reason: e.reason})
		if f.cfg.Respawn > 0 && f.exit == nil && e.here {
			time.AfterFunc(max(f.cfg.Respawn, f.away[e.worker]), func() { f.post(spawn{}) })
		}
		delete(f.away, e.worker)
	case seated:
		f.boxes[e.worker] = e.seat
		f.step(coordinator.Joined{Worker: e.worker, Key: e.key})
	case spawn:
		f.spawn(ctx)
	case message.Report:
		f.step(coordinator.Report{Report: e})
	case coordinator.Event:
		f.step(e)
	default:
		panic(fmt.Sprintf("the fleet does not know the event %T", ev))
	}
}

// disturb obeys the commands that are not the core's: the end of a worker, and a slow link.
func (f *Fleet) disturb(cmd event.Command) event.Receipt {
	if len(cmd.Set) > 0 || cmd.Members != 0 || cmd.Algorithm != "" || cmd.Limit != nil || cmd.Link != nil && cmd.Action != "" {
		return event.Receipt{ID: cmd.ID, Reason: "a kill and a slow link are commands of their own: send the rest by itself"}
	}
	err := coordinator.Sayable(cmd.Why)
	if err != nil {
		return event.Receipt{ID: cmd.ID, Reason: err.Error(), Typed: usererr.Is(err)}
	}
	var note coordinator.Note
	if l := cmd.Link; l != nil {
		note = coordinator.Note{Kind: event.AlertLink, Text: fmt.Sprintf("%s, says %s", l, coordinator.By(cmd))}
		if err = errors.New("the workers of this run share one process: only between those of brood serve are there links"); f.cfg.Shape != nil {
			err = f.cfg.Shape(*l)
		}
	} else {
		note = coordinator.Note{Kind: event.AlertKill, Text: fmt.Sprintf("worker %d is killed, says %s", cmd.Worker, coordinator.By(cmd))}
		if f.boxes[cmd.Worker] == nil {
			err = fmt.Errorf("there is no worker %d here", cmd.Worker)
		}
	}
	if err != nil {
		return event.Receipt{ID: cmd.ID, Reason: err.Error()}
	}
	f.step(note)
	if cmd.Link == nil {
		f.boxes[cmd.Worker].Post(message.Away{Why: "it was killed by " + coordinator.By(cmd)})
	}
	return event.Receipt{ID: cmd.ID, Accepted: true}
}

// Workers are those that are there.
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

// Fault keeps the stack of a mistake of ours that was caught: what goes on is told by itself.
func (f *Fleet) Fault(what any, stack []byte) {
	if f.cfg.Fault != nil {
		f.cfg.Fault(what, stack)
	}
}

func (f *Fleet) step(ev coordinator.Event) {
	f.apply(f.core.Step(f.cfg.Now(), ev))
}

// apply carries out effects in order: records are in the log before the messages behind them leave.
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
			if x.Record.Commit != nil {
				f.deaths = 0
			}
			pending = append(pending, x.Record)
		case coordinator.Send:
			flush()
			if b := f.boxes[x.Worker]; b != nil && f.logErr == nil {
				if a, ok := x.Msg.(message.Away); ok {
					f.away[x.Worker] = a.After
				}
				b.Post(x.Msg)
			}
		case coordinator.Dismiss:
			flush()
			if b := f.boxes[x.Worker]; b != nil {
				b.Post(message.Stop{})
			}
		case *coordinator.Fault:
			f.Fault(x.Value, x.Stack)
		case coordinator.Exit:
			flush()
			f.exit = &x
		case coordinator.Receipt: // handle answers, once all records are in the log
		default:
			panic(fmt.Sprintf("the fleet does not know the effect %T", x))
		}
	}
	flush()
}

// spawn starts a worker and tells the core.
func (f *Fleet) spawn(ctx context.Context) {
	id := f.Reserve()
	w, err := f.cfg.Spawn(id)
	if err != nil {
		f.logErr = fmt.Errorf("worker %d: %w", id, err)
		return
	}
	box := NewMailbox()
	f.boxes[id] = box
	f.wg.Go(func() {
		reason := "it was killed"
		if err := Attend(ctx, box, w, f.cfg.Grace, f.Report); err != nil {
			reason = err.Error()
		}
		f.post(died{id, reason, true})
	})
	f.step(coordinator.Joined{Worker: id})
}

func (f *Fleet) post(ev any) {
	select {
	case f.events <- ev:
	case <-f.done:
	}
}

// ErrOver answers commands to a run that has ended.
var ErrOver = errors.New("the run has ended")

// Command asks the core; it waits for the receipt, not for the effect.
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
		case r := <-c.reply: // the command that ended the run
			return r, nil
		default:
			return event.Receipt{}, ErrOver
		}
	case <-ctx.Done():
		return event.Receipt{}, ctx.Err()
	}
}

// Trouble pauses the run until a person has mended something around it. It returns at once and may be called from
// within the log's Append.
func (f *Fleet) Trouble(why event.PauseReason, reason string) {
	f.wg.Go(func() { f.post(coordinator.Trouble{Why: why, Reason: reason}) })
}

// Note records what is worth telling. It waits for the fleet's loop, which must not call it.
func (f *Fleet) Note(n coordinator.Note) { f.post(n) }

// Measured records what machines measure of themselves. It waits for the fleet's loop, which must not call it.
func (f *Fleet) Measured(m coordinator.Measured) { f.post(m) }

// Join adds a worker of this process.
func (f *Fleet) Join() { f.post(spawn{}) }

// Interrupt asks the run to finish its round, save and leave.
func (f *Fleet) Interrupt() { f.post(coordinator.Interrupt{}) }
