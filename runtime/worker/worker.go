// Package worker runs an algorithm's program on the members it hosts. It owns all blocks, and does three things to
// them: rounds (a grant), a new epoch (a plan), and back to a snapshot (an abort). Verify is the same worker without a
// coordinator. A Worker is used by one goroutine; it starts none and reads no clock but the one it is given.
package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"brood/models/engine"
	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/runtime/timeline"
)

// Config is what a worker is made of.
type Config struct {
	ID     int
	Seed   uint64
	Layout engine.Layout
	Init   func(m engine.Member, params []float32) // initial parameters of a member; the centre is member 0's
	// batch-norm statistics that members begin with; nil: those of a model that has seen no batch
	Stats    []float32
	Engine   optim.Engine
	Slow     optim.Engine // the same for what the programme asks for, slowed down; nil: Engine
	Data     optim.Data
	Test     []int32 // sample ids, for reporting only
	Link     optim.Link
	Direct   int
	Probe    uint64   // rounds between probes, 0 never
	Evaluate uint64   // rounds between test evaluations, 0 each epoch
	Metrics  []string // what the engine's objective measures beside the fitness
	Measured bool     // nothing is right or wrong: what the centre scores is all that there is to report
	Rebuild  int      // training samples by which the centre's batch-norm statistics are rebuilt; 0 for statSamples
	Lookup   func(name string) (*optim.Algorithm, error)
	Store    Store
	Clock    func() int64        // nanoseconds, for reports
	Overhead func() int64        // bytes the transport sent beyond payload, cumulative; may be nil
	Watch    func() (end func()) // see [optim.Comm]; may be nil
	Hollow   bool                // the engine computes nothing: no samples are drawn for it
	Measure  bool                // measure rates where a plan leaves a knob to the run; false where a record is executed
}

// Store keeps checkpoints. Rows are named "block/member" or "block/shared".
type Store interface {
	Save(round uint64, epoch uint32, worker int, rows []Row) (event.File, error)
	// Load reads the rows that want asks for.
	Load(cp event.Checkpoint, want func(name string) bool) (map[string]engine.Host, error)
}

// Row is a named row of a block.
type Row struct {
	Name   string
	Cols   int
	Record engine.Host // the row of a record; else zero
	// Pull copies elements of the row of another block, from at on, to p, as little-endian float32. It is valid until
	// Save returns.
	Pull func(p []byte, at int) error
}

// Worker is the state of one worker.
type Worker struct {
	cfg   Config
	epoch uint32 // newest heard of

	placed *optim.Roster // as recorded, where bytes are predicted for another placement than one's own

	follow func(round uint64, centre engine.Host) error // see Follow

	broken error // of the engine, for good

	doing atomic.Pointer[stage] // nil while it waits for an order

	now  *installed // nil before the first plan is installed
	next *installed // prepared by the last plan, installed by its first grant
}

// installed is an epoch in force: everything a round depends on.
type installed struct {
	epoch uint32
	alg   *optim.Algorithm
	env   *optim.Env
	round uint64 // rounds done
	time  *timeline.Timeline
	snaps map[uint64]snapshot
	spare []snapshot
	ended bool
	dirty bool // a grant has begun and not ended
}

// New makes a worker without blocks.
func New(cfg Config) *Worker {
	if cfg.Slow == nil {
		cfg.Slow = cfg.Engine
	}
	return &Worker{cfg: cfg}
}

// ID is the worker's number.
func (w *Worker) ID() int { return w.cfg.ID }

// Placement makes the worker predict bytes for a recorded placement of its members: verify hosts all of them.
func (w *Worker) Placement(r optim.Roster) { w.placed = &r }

// State describes the epoch in force: what a checkpoint of it must say.
func (w *Worker) State(ctx context.Context) (c event.Checkpoint, err error) {
	s := w.next
	if s == nil {
		s = w.now
	}
	if s == nil {
		return c, errors.New("no plan is in force")
	}
	digests, _, err := s.digests(ctx)
	return event.Checkpoint{Round: s.round, Epoch: s.epoch, Roster: s.env.Roster, Algorithm: s.alg.Name, Hash: message.Root(digests), Timeline: s.time.Edits(), Progress: s.progress()}, err
}

// Closer is an engine that holds more than memory, a device for instance.
type Closer interface{ Close() }

// Holder is an engine on a device that knows how many bytes of it it holds, of how many. Any goroutine may ask it.
type Holder interface{ Held() (used, total int64) }

// Held is what the worker's engine holds of its device, in bytes; ok is false where there is no device. It may be
// called from any goroutine.
func (w *Worker) Held() (used, total int64, ok bool) {
	if h, is := w.cfg.Engine.(Holder); is {
		used, total = h.Held()
		return used, total, true
	}
	return 0, 0, false
}

// Sensor is an engine on a device whose driver tells how it is: bytes of its memory that are taken, by whomever, the
// share of the time in which it was busy, and degrees Celsius. What nobody tells is below zero. Any goroutine may ask.
type Sensor interface {
	Sense() (taken int64, load, celsius float64)
}

// Sense is what the driver of the worker's device tells; all of it is below zero where there is no device. It may be
// called from any goroutine, and takes the time that the driver takes.
func (w *Worker) Sense() (taken int64, load, celsius float64) {
	if s, is := w.cfg.Engine.(Sensor); is {
		return s.Sense()
	}
	return -1, -1, -1
}

// Restarter is an engine that asks programs, and counts how often they were restarted; ok is false where it has none.
// Any goroutine may ask it.
type Restarter interface{ Restarts() (n int, ok bool) }

// Restarts returns how often the programs of the worker's engine were restarted; ok is false where it has none. It may
// be called from any goroutine.
func (w *Worker) Restarts() (n int, ok bool) {
	if r, is := w.cfg.Engine.(Restarter); is {
		return r.Restarts()
	}
	return 0, false
}

// Free gives the memory of all blocks back to the engine, and closes that if it is a Closer. The worker must not be
// used any more.
func (w *Worker) Free() {
	for _, s := range []*installed{w.now, w.next} {
		if s != nil {
			s.free()
		}
	}
	w.now, w.next = nil, nil
	if c, ok := w.cfg.Engine.(Closer); ok {
		c.Close()
	}
}

// Handle does what an order asks. The reply is nil where none is due. ctx is cancelled by an abort; a cancelled grant
// or plan gives no reply either.
func (w *Worker) Handle(ctx context.Context, m message.Order) message.Report {
	defer w.rests()
	switch m := m.(type) {
	case message.Abort:
		w.epoch = max(w.epoch, m.Epoch)
	case message.Plan:
		if m.Epoch < w.epoch {
			return nil
		}
		w.epoch = m.Epoch
		r, err := w.prepare(ctx, m)
		if err != nil {
			return w.failed(m.Epoch, err)
		}
		return message.Ready{Worker: w.cfg.ID, Epoch: m.Epoch, Noise: r.Noise, Bytes: r.Bytes}
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
			return w.failed(m.Epoch, err)
		}
		return d
	case message.Save:
		if m.Epoch != w.epoch {
			return nil
		}
		w.install(m.Epoch)
		t := w.cfg.Clock()
		files, err := w.save(ctx, m.At)
		s := message.Saved{Worker: w.cfg.ID, Epoch: m.Epoch, At: m.At, Files: files, Nanos: w.cfg.Clock() - t}
		if err != nil {
			w.note(err)
			s.Err = err.Error()
		}
		return s
	case message.Stop, message.Away: // for whoever hosts the worker
	default:
		panic(fmt.Sprintf("worker %d does not know the order %T", w.cfg.ID, m))
	}
	return nil
}

// Broken is why the worker's engine computes no more, if it does not: the worker cannot go on.
func (w *Worker) Broken() error { return w.broken }

func (w *Worker) note(err error) {
	if lost, ok := errors.AsType[*engine.DeviceError](err); ok {
		w.broken = lost
	}
}

func (w *Worker) failed(epoch uint32, err error) message.Report {
	w.note(err)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	f := message.Failed{Worker: w.cfg.ID, Epoch: epoch, Err: err.Error()}
	var nf *NonFiniteError
	if errors.As(err, &nf) {
		f.NonFinite = &nf.NonFinite
	}
	var cut interface{ Lost() (worker int, met bool) } // of a link that can break
	if errors.As(err, &cut) {
		w, met := cut.Lost()
		f.Cut, f.Never = &w, !met
	}
	return f
}

// install puts the prepared epoch in force.
func (w *Worker) install(epoch uint32) {
	if w.next != nil && w.next.epoch == epoch {
		if w.now != nil {
			w.now.free()
		}
		w.now, w.next = w.next, nil
	}
}

// grant runs rounds and reports.
func (w *Worker) grant(ctx context.Context, g message.Grant) (message.Done, error) {
	s := w.now
	t0 := w.cfg.Clock()
	for at, snap := range s.snaps {
		if at < g.Committed {
			delete(s.snaps, at)
			s.spare = append(s.spare, snap)
		}
	}
	if g.Onward {
		s.forget()
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
	d := message.Done{Worker: w.cfg.ID, Epoch: g.Epoch, From: g.From, Predicted: optim.Ledger{}, Evaluation: optim.Ledger{}}
	s.env.Comm.Ledger, s.env.Comm.Waited = optim.Ledger{}, 0
	before := w.overhead()
	points := &series{}
	for s.round < g.To {
		w.turns(t0)
		held, err := w.step(ctx, g.Limit, &d, points)
		if err != nil {
			return d, fmt.Errorf("worker %d, round %d, %s: %w", w.cfg.ID, s.round, s.alg.Name, err)
		}
		if w.follow != nil {
			if err := w.followed(ctx); err != nil {
				return d, err
			}
		}
		if s.ended || held && g.Hold {
			break
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
	if bad != nil {
		bad.From = g.From
		return d, &NonFiniteError{*bad}
	}
	s.dirty = false
	d.To, d.Ended, d.Sent, d.Digests, d.Progress = s.round, s.ended, s.env.Comm.Ledger, digests, s.progress()
	d.Points, d.Overhead, d.Notes = points.rows(), w.overhead()-before, w.notes(s.ended)
	d.Waited = s.env.Comm.Waited
	d.Nanos, d.Extra = t2-t1, t1-t0+w.cfg.Clock()-t2
	return d, nil
}

// Noter is an engine that meets what a person should know, and goes on.
type Noter interface{ Notes() []engine.Note }

// Ender is a Noter that leaves out what is too little to tell of, until it learns that the rounds have ended.
type Ender interface{ Ending() }

// notes are what the engine met since they were asked for, as a report may have them. ended says that no rounds follow.
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

// judgements are the points of fitness as those that a target is compared with.
func judgements(points []optim.Point) (out []optim.Point) {
	for _, p := range points {
		if p.Series == event.SeriesFitness {
			p.Series = event.SeriesJudged
			out = append(out, p)
		}
	}
	return out
}

// step does one round, its probe and its test evaluation. held says that something a target may wait for was measured.
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
	s.env.Probe(w.probes(s.round + 1))
	rep, err := s.alg.Program.Round(ctx, s.env, k, s.round)
	if err = because(s.env, err); err != nil {
		return false, err
	}
	if s.env.Lead() && s.alg.Bytes != nil {
		shape.Drawn, shape.Edges = true, rep.Edges
		if w.placed != nil {
			shape.Roster = *w.placed
		}
		d.Predicted.Add(s.alg.Bytes(shape))
	}
	s.round++
	s.advance(rep)
	after := s.progress()
	points.add(s.round, rep.Points)
	judged := limit.Judged()
	if judged && s.judges() {
		held = rep.Evaluations > 0
		points.add(s.round, judgements(rep.Points))
	}
	s.ended = limit.Reached(after)
	last := s.ended && w.cfg.Evaluate != event.NoTest
	probe := w.probes(s.round) || w.cfg.Probe > 0 && last
	test := w.evaluates(before, after) || last && len(w.cfg.Test) > 0
	if !probe && !test {
		return held, nil
	}
	return true, w.measure(ctx, k, probe, test, judged, d, points)
}

// probes says that a probe follows a round whether or not the run ends with it.
func (w *Worker) probes(round uint64) bool {
	return w.cfg.Probe > 0 && (round%w.cfg.Probe == 0 || round == 1 && w.cfg.Evaluate != event.NoTest)
}

// because is the want of memory behind an error, if that was it: tasks refuse scratch that could not be had.
func because(env *optim.Env, err error) error {
	if full := env.Fault(); err != nil && full != nil {
		return full
	}
	return err
}

// evaluates says whether a test evaluation falls between two states of progress.
func (w *Worker) evaluates(before, after event.Progress) bool {
	if len(w.cfg.Test) == 0 {
		return false
	}
	if w.cfg.Evaluate > 0 {
		return after.Rounds%w.cfg.Evaluate == 0
	}
	return int64(after.Epochs) > int64(before.Epochs)
}

// series collects the points of a grant: some are late, see [optim.Point].
type series []measured

// measured is what was measured after a round.
type measured struct {
	round  uint64
	points []optim.Point
}

func (s *series) add(round uint64, points []optim.Point) { *s = append(*s, measured{round, points}) }

// rows are the points, a row for each round and series. The engine has been waited for.
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
