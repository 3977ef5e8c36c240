// Package worker runs an algorithm's program on the members it hosts. It owns all blocks and changes them in three
// ways: it executes rounds (a grant), prepares a new epoch (a plan), and restores a snapshot (after an abort). Verify
// uses the same worker without a coordinator. A Worker is used by one goroutine, except where a method says otherwise.
// It starts no goroutines and reads no clock but Config.Clock.
package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

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

	broken error // permanent device error, after which the engine computes nothing

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

// Closer is an engine with resources other than memory, such as a device.
type Closer interface{ Close() }

// MemoryReporter is an engine on a device. DeviceMemory returns the device memory that the engine has allocated and the
// total memory of the device, in bytes. Any goroutine may call it.
type MemoryReporter interface{ DeviceMemory() (used, total int64) }

// DeviceMemory returns the allocated and the total bytes of the engine's device; ok is false without a device. It may
// be called from any goroutine.
func (w *Worker) DeviceMemory() (used, total int64, ok bool) {
	if h, is := w.cfg.Engine.(MemoryReporter); is {
		used, total = h.DeviceMemory()
		return used, total, true
	}
	return 0, 0, false
}

// Sensor is an engine on a device whose driver reports the device's state: bytes of memory in use by all processes, the
// fraction of time it was busy, and degrees Celsius. Unknown values are below zero. Any goroutine may call it.
type Sensor interface {
	Sense() (taken int64, load, celsius float64)
}

// Sense returns the state that the device's driver reports; all values are below zero without a device. It may be
// called from any goroutine, and may block in the driver.
func (w *Worker) Sense() (taken int64, load, celsius float64) {
	if s, is := w.cfg.Engine.(Sensor); is {
		return s.Sense()
	}
	return -1, -1, -1
}

// Restarter is an engine that runs external programs and counts their restarts; ok is false if it runs none. Any
// goroutine may call it.
type Restarter interface{ Restarts() (n int, ok bool) }

// Restarts returns how often external programs of the engine were restarted; ok is false if it runs none. It may be
// called from any goroutine.
func (w *Worker) Restarts() (n int, ok bool) {
	if r, is := w.cfg.Engine.(Restarter); is {
		return r.Restarts()
	}
	return 0, false
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
// plan has no reply.
func (w *Worker) Handle(ctx context.Context, m message.Order) message.Report {
	defer w.endStage()
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

// Broken returns the error after which the worker's engine cannot continue; nil if it works.
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

// grant executes the granted rounds and returns their report.
func (w *Worker) grant(ctx context.Context, g message.Grant) (message.Done, error) {
	s := w.now
	t0 := w.cfg.Clock()
	for at, snap := range s.snaps {
		if at < g.Committed {
			delete(s.snaps, at)
			s.spare = append(s.spare, snap)
		}
	}
	maps.DeleteFunc(s.transcripts, func(at uint64, _ transcript) bool { return at < g.Committed })
	s.mirrors.dropBefore(g.Committed)
	if g.Onward {
		s.freeSpare()
	} else if err := s.snapshot(ctx); err != nil {
		return message.Done{}, err
	}
	s.dirty = true
	for _, e := range g.Edits {
		if err := s.time.Add(e); err != nil {
			return message.Done{}, err
		}
	}
	t1 := w.cfg.Clock()
	d := message.Done{
		Worker:     w.cfg.ID,
		Epoch:      g.Epoch,
		From:       g.From,
		Predicted:  collective.Ledger{},
		Evaluation: collective.Ledger{},
	}
	s.env.Comm.Ledger, s.env.Comm.Waited = collective.Ledger{}, 0
	before := w.overhead()
	points := &series{}
	if s.transcripts != nil {
		defer w.observe(message.OrderName{Epoch: g.Epoch, From: g.From})()
	}
	for s.round < g.To {
		w.beginRound(t0)
		held, err := w.step(ctx, g.Limit, &d, points)
		if err != nil {
			return d, fmt.Errorf("worker %d, round %d, %s: %w", w.cfg.ID, s.round, s.alg.Name, err)
		}
		if w.follow != nil {
			if err := w.callFollow(ctx); err != nil {
				return d, err
			}
		}
		if s.ended || held && g.Hold {
			break
		}
		if w.between != nil {
			w.between(ctx)
		}
	}
	if err := s.env.Engine.Wait(ctx); err != nil {
		return d, fmt.Errorf("worker %d, rounds up to %d, %s: %w", w.cfg.ID, s.round, s.alg.Name, err)
	}
	t2 := w.cfg.Clock()
	digests, bad, err := s.digests(ctx)
	if err != nil {
		return d, err
	}
	if s.transcripts != nil {
		all := w.link.End()
		w.last.With, d.Frames = all, collective.Sums(all)
		s.transcripts[g.From] = transcript{g, collective.Received(all)}
	}
	waited := int64(0)
	if s.mirrors.on() && (bad == nil || s.transcripts != nil) { // then the others wait for this one's rows
		if waited, err = w.grantMirror(ctx, &d); err != nil {
			return d, fmt.Errorf("worker %d, mirror of round %d: %w", w.cfg.ID, s.round, err)
		}
		if s.transcripts != nil {
			if d.Mirrored, err = s.mirroredDigests(ctx, s.round); err != nil {
				return d, err
			}
		}
	}
	if bad != nil {
		bad.From = g.From
		return d, &NonFiniteError{*bad, d.Frames}
	}
	s.dirty = false
	d.To, d.Ended, d.Sent, d.Digests, d.Progress = s.round, s.ended, s.env.Comm.Ledger, digests, s.progress()
	d.Points, d.Overhead, d.Notes = points.rows(), w.overhead()-before, w.notes(s.ended)
	d.Waited = s.env.Comm.Waited
	d.Nanos, d.Extra = t2-t1, t1-t0+w.cfg.Clock()-t2-waited
	return d, nil
}

// observe digests the frames of an order and stores them in w.last, until the returned function or Witness.End is
// called.
func (w *Worker) observe(order message.OrderName) (end func()) {
	w.last = &message.Exchanged{Order: order}
	w.link.Begin()
	return func() {
		if all := w.link.End(); all != nil { // the order was interrupted
			w.last.With = all
		}
	}
}

// mostSums bounds the sums of frames in a Ready.
const mostSums = 1 << 14

// shortened returns what to report of the last order: nothing if that has too many frames.
func shortened(last *message.Exchanged) *message.Exchanged {
	if last == nil {
		return nil
	}
	n := 0
	for _, x := range last.With {
		n += len(x.Sent)
	}
	if n > mostSums {
		return nil
	}
	return last
}

// Noter is an engine that collects notes for the user about events that do not stop it.
type Noter interface{ Notes() []engine.Note }

// Ender is a Noter that holds minor notes back until it learns that the rounds have ended.
type Ender interface{ Ending() }

// notes returns the engine's notes since the last call, limited to what a report may contain. ended reports that no
// rounds follow.
func (w *Worker) notes(ended bool) (out []message.Note) {
	n, ok := w.cfg.Engine.(Noter)
	if !ok {
		return nil
	}
	if e, ok := n.(Ender); ok && ended {
		e.Ending()
	}
	for _, x := range n.Notes() {
		text := strings.Map(func(r rune) rune {
			if unicode.IsPrint(r) {
				return r
			}
			return -1
		}, strings.ToValidUTF8(x.Text, ""))
		for len(text) > message.MostNote {
			_, last := utf8.DecodeLastRuneInString(text)
			text = text[:len(text)-last]
		}
		if len(out) < message.MostNotes {
			out = append(out, message.Note{Kind: event.AlertKind(x.Kind), Text: text})
		}
	}
	return out
}

func (w *Worker) overhead() int64 {
	if w.cfg.Overhead == nil {
		return 0
	}
	return w.cfg.Overhead()
}

// targetPoints returns the fitness points as points of the series that a target is compared with.
func targetPoints(points []optim.Point) (out []optim.Point) {
	for _, p := range points {
		if p.Series == event.SeriesFitness {
			p.Series = event.SeriesJudged
			out = append(out, p)
		}
	}
	return out
}

// step executes one round, its probe and its test evaluation. held reports that it measured something that a target may
// wait for.
func (w *Worker) step(ctx context.Context, limit event.Limit, d *message.Done, points *series) (held bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	s := w.now
	before := s.progress()
	pos := timeline.Position{Round: s.round, Epochs: before.Epochs, Steps: before.Steps}
	s.time.Reach(pos)
	k := s.time.Values(pos)
	shape := s.env.Shape(k)
	s.env.Recycle()
	s.env.Deal(k)
	s.env.Probe(w.probeDue(s.round + 1))
	rep, err := s.alg.Program.Round(ctx, s.env, k, s.round)
	if err = rootCause(s.env, err); err != nil {
		return false, err
	}
	if s.env.Lead() && s.alg.Bytes != nil {
		shape.Drawn, shape.Edges = true, rep.Edges
		if w.byteRoster != nil {
			shape.Roster = *w.byteRoster
		}
		d.Predicted.Add(s.alg.Bytes(shape))
	}
	s.round++
	s.advance(rep)
	after := s.progress()
	points.add(s.round, rep.Points)
	judged := limit.Judged()
	if judged && s.measuresFitness() {
		held = rep.Evaluations > 0
		points.add(s.round, targetPoints(rep.Points))
	}
	s.ended = limit.Reached(after)
	last := s.ended && w.cfg.Evaluate != event.NoTest
	probe := w.probeDue(s.round) || w.cfg.Probe > 0 && last
	test := w.testDue(before, after) || last && len(w.cfg.Test) > 0
	if !probe && !test {
		return held, nil
	}
	return true, w.measure(ctx, k, probe, test, judged, d, points)
}

// probeDue reports whether a probe follows a round, regardless of whether the run ends with it.
func (w *Worker) probeDue(round uint64) bool {
	return w.cfg.Probe > 0 && (round%w.cfg.Probe == 0 || round == 1 && w.cfg.Evaluate != event.NoTest)
}

// rootCause returns the allocation failure of env instead of err, if there was one: tasks fail on scratch memory that
// could not be allocated.
func rootCause(env *optim.Env, err error) error {
	if full := env.Fault(); err != nil && full != nil {
		return full
	}
	return err
}

// testDue reports whether a test evaluation is due between two states of progress.
func (w *Worker) testDue(before, after event.Progress) bool {
	if len(w.cfg.Test) == 0 {
		return false
	}
	if w.cfg.Evaluate > 0 {
		return after.Rounds%w.cfg.Evaluate == 0
	}
	return int64(after.Epochs) > int64(before.Epochs)
}

// series collects the points of a grant. Some values are available only after Engine.Wait, see [optim.Point].
type series []roundPoints

// roundPoints is the points measured after a round.
type roundPoints struct {
	round  uint64
	points []optim.Point
}

func (s *series) add(round uint64, points []optim.Point) { *s = append(*s, roundPoints{round, points}) }

// rows returns the points grouped by round and series. Call it after Engine.Wait.
func (s series) rows() (out []event.Points) {
	for _, m := range s {
		for i := 0; i < len(m.points); {
			r := event.Points{Round: m.round, Series: m.points[i].Series}
			for i < len(m.points) && m.points[i].Series == r.Series {
				r.Members, r.Values = append(r.Members, m.points[i].Member), append(r.Values, m.points[i].Get())
				i++
			}
			out = append(out, r)
		}
	}
	return out
}
