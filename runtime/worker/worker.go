// Package worker runs an algorithm's program on the members it hosts. It owns all blocks and changes them in three
// ways: it executes rounds (a grant), prepares a new epoch (a plan), and restores a snapshot (after an abort). Verify
// uses the same worker without a coordinator. A Worker is used by one goroutine, except where a method says otherwise.
// It starts no goroutines and reads no clock but Config.Clock.
package worker

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/runtime/timeline"
)

// Config configures a worker.
type Config struct {
	ID     int
	Seed   uint64
	Layout engine.Layout
	// Init writes the initial parameters of a member; those of member 0 are the initial centre.
	Init func(ctx context.Context, m engine.Member, params []float32) error
	// initial batch-norm statistics of members; nil: the default ones of the layout
	Stats      []float32
	Engine     engine.Engine
	Slow       engine.Engine // Engine for the program's tasks, slowed down to simulate a slower machine; nil: Engine
	Data       optim.Data
	Test       []int32 // ids of test samples, for reporting only
	Validation []int32 // ids of validation samples that are scored with Test; may be empty
	Link       collective.Link
	Direct     int
	Probe      uint64   // rounds between probes; 0: never
	Evaluate   uint64   // rounds between test evaluations; 0: each epoch
	Metrics    []string // metrics of the engine's objective in addition to the fitness
	Measured   bool     // samples have no right answer, so that there is no training error to report
	Rebuild    int      // training samples to rebuild the centre's batch-norm statistics; 0: statSamples
	Lookup     func(name string) (*optim.Algorithm, error)
	Store      Store
	Clock      func() int64 // nanoseconds, for durations in reports
	Overhead   func() int64 // cumulative bytes that the transport sent in addition to payload; may be nil
	MetaOnly   bool         // the engine computes nothing (meta tensors): no samples are drawn
	Measure    bool         // measure rates if a plan leaves a knob to the run; false to execute a record
}

// Store saves and loads checkpoints. Rows are named "block/member" or "block/shared".
type Store interface {
	Save(round uint64, epoch uint32, worker int, rows []Row) (event.File, error)
	// Load returns the rows whose names want accepts.
	Load(cp event.Checkpoint, want func(name string) bool) (map[string]engine.Host, error)
}

type Row struct {
	Name   string
	Cols   int
	Record engine.Host // row of a record; zero for other blocks
	// Pull reads elements of a row of another block into p, from element at, as little-endian float32; nil for a
	// record. It is valid until Save returns.
	Pull func(p []byte, at int) error
}

// Worker executes the orders of one worker. Create it with New.
type Worker struct {
	cfg   Config
	link  *collective.Witness // of Config.Link
	last  *message.Exchanged  // what the last order exchanged, of an epoch that compares frames
	epoch uint32              // newest epoch received

	byteRoster *collective.Roster // recorded placement by which verify predicts bytes; nil: the worker's own

	follow  func(round uint64, centre engine.Host) error // see Follow
	between func(context.Context)                        // see BetweenRounds

	broken error // panic of the program or loss of the device, after which the worker computes nothing

	doing atomic.Pointer[stage] // nil while it waits for an order

	now  *epochState // nil before the first plan is installed
	next *epochState // prepared by the last plan, installed by its first grant
}

// epochState is an epoch in effect, or a prepared one: everything a round depends on.
type epochState struct {
	epoch uint32
	alg   *optim.Algorithm
	env   *optim.Env
	round uint64 // completed rounds
	time  *timeline.Timeline
	snaps map[uint64]snapshot // by round
	spare []snapshot          // to be reused
	ended bool                // a limit is reached
	dirty bool                // a grant has begun and not completed

	mirrors     mirrors
	transcripts map[uint64]transcript // by round, as snaps; nil in an epoch without witnesses
}

// New returns a worker without blocks.
func New(cfg Config) *Worker {
	if cfg.Slow == nil {
		cfg.Slow = cfg.Engine
	}
	return &Worker{cfg: cfg, link: &collective.Witness{Link: cfg.Link}}
}

// ID returns the worker's number.
func (w *Worker) ID() int { return w.cfg.ID }

// Placement sets the recorded placement by which the worker predicts bytes: verify hosts all members itself.
func (w *Worker) Placement(r collective.Roster) { w.byteRoster = &r }

// State describes the newest prepared epoch, as a checkpoint without files.
func (w *Worker) State(ctx context.Context) (c event.Checkpoint, err error) {
	s := w.next
	if s == nil {
		s = w.now
	}
	if s == nil {
		return c, errors.New("no plan is in force")
	}
	digests, _, err := s.digests(ctx)
	return event.Checkpoint{
		Round:     s.round,
		Epoch:     s.epoch,
		Roster:    s.env.Roster,
		Algorithm: s.alg.Name,
		Hash:      message.Root(digests),
		Timeline:  s.time.Edits(),
		Progress:  s.progress(),
	}, err
}

// Free frees all blocks and closes the engine if it is a Closer. The worker must not be used afterwards.
func (w *Worker) Free() {
	for _, s := range []*epochState{w.now, w.next} {
		if s != nil {
			s.free()
		}
	}
	w.now, w.next = nil, nil
	if c, ok := w.cfg.Engine.(Closer); ok {
		c.Close()
	}
}

// Handle executes an order and returns the reply, or nil if none is due. An abort cancels ctx; a cancelled grant or
// plan has no reply. A panic, of the algorithm for example, is a failure after which the worker is [Worker.Broken].
func (w *Worker) Handle(ctx context.Context, m message.Order) (reply message.Report) {
	defer w.endStage()
	defer func() {
		if v := recover(); v != nil {
			w.broken = fmt.Errorf("the program of worker %d panicked at %v", w.cfg.ID, engine.Recovered(v))
			reply = w.failure(w.epoch, w.broken)
		}
	}()
	switch m := m.(type) {
	case message.Abort:
		w.epoch = max(w.epoch, m.Epoch)
	case message.Plan:
		if m.Epoch < w.epoch {
			return nil
		}
		w.epoch = m.Epoch
		last := w.last
		r, err := w.prepare(ctx, m)
		if err != nil {
			return w.failure(m.Epoch, err)
		}
		ready := message.Ready{Worker: w.cfg.ID, Epoch: m.Epoch, Noise: r.Noise, Bytes: r.Bytes}
		if m.Witness {
			ready.Last = shortened(last)
			ready.Held = &message.Held{Committed: message.Committed{Epoch: m.Epoch, Round: m.At}}
			if ready.Held.Digests, _, err = w.next.digests(ctx); err == nil {
				ready.Held.Mirrored, err = w.next.mirroredDigests(ctx, m.At)
			}
			if err != nil {
				return w.failure(m.Epoch, err)
			}
		}
		return ready
	case message.Grant:
		if m.Epoch != w.epoch {
			return nil
		}
		w.install(m.Epoch)
		if w.now == nil || w.now.epoch != m.Epoch || w.now.ended || w.now.round != m.From {
			return nil
		}
		d, err := w.grant(ctx, m)
		if err != nil {
			return w.failure(m.Epoch, err)
		}
		return d
	case message.Save:
		if m.Epoch != w.epoch {
			return nil
		}
		w.install(m.Epoch)
		return w.Save(ctx, m)
	case message.Audit:
		if m.Epoch != w.epoch || w.now == nil || w.now.epoch != m.Epoch {
			return nil
		}
		r, err := w.audit(ctx, m)
		if err != nil {
			return w.failure(m.Epoch, err)
		}
		return r
	case message.Stop, message.Evict: // handled by the host of the worker
	default:
		panic(fmt.Sprintf("worker %d: unknown order %T", w.cfg.ID, m))
	}
	return nil
}

// Broken returns the error after which the worker cannot continue; nil if it can.
func (w *Worker) Broken() error { return w.broken }

// noteDeviceError remembers the loss of the device.
func (w *Worker) noteDeviceError(err error) {
	if lost, ok := errors.AsType[*engine.DeviceError](err); ok {
		w.broken = lost
	}
}

// failure returns the report of an error, nil for a cancelled order.
func (w *Worker) failure(epoch uint32, err error) message.Report {
	w.noteDeviceError(err)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	f := message.Failed{Worker: w.cfg.ID, Epoch: epoch, Err: err.Error()}
	var nf *NonFiniteError
	if errors.As(err, &nf) {
		f.NonFinite, f.Frames = &nf.NonFinite, nf.frames
	}
	if wrong, ok := errors.AsType[*collective.ProtocolError](err); ok {
		f.Faulty = &wrong.From
	}
	var cut interface{ Lost() (worker int, met bool) } // implemented by errors of links that can break
	if errors.As(err, &cut) {
		w, met := cut.Lost()
		f.Cut, f.Never = &w, !met
	}
	return f
}

// install puts the prepared state of an epoch into effect and frees the last one.
func (w *Worker) install(epoch uint32) {
	if w.next != nil && w.next.epoch == epoch {
		if w.now != nil {
			w.now.free()
		}
		w.now, w.next = w.next, nil
	}
}
