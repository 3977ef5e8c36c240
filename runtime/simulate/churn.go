package simulate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"brood/models/engine"
	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/runtime/worker"
)

// In a fleet with churn machines leave and come back. What becomes of their members, and of the rounds that were under
// way, the core decides as it does for a real fleet: a worker that comes back has a number that was never used before
// and joins.
//
// Workers run ahead of the core, and what they did beyond the moment at which it voids their rounds, or at which their
// machine dies, never was: each keeps what it needs to take that back. What others did with frames that were never sent
// is void too, since no rounds are committed that a worker has not reported.

// Missed is how long after its death a worker is missed: as long as a real one has been silent then, at most.
const Missed = 2 * time.Second

// hardware is what a worker runs on, and runs on again when it comes back.
type hardware struct {
	draws    uint64
	away     int64 // how long its next absence lasts
	before   count // by its former workers, up to their end
	reported count // by its present one, up to the last commit that it took part in
}

// depart has a machine's worker go once it has stayed.
func (w *world) depart(n *node) {
	m := &w.machines[n.machine]
	stays, away := w.cfg.Churn(n.machine, func() float64 {
		m.draws++
		return chance(^w.cfg.Seed, n.machine, m.draws)
	})
	m.away = int64(away)
	w.happens(happening{at: w.now + int64(stays), worker: n.id, then: func() {
		w.departures, w.vain = w.departures+1, w.vain+1
		if w.cfg.Goodbye {
			w.happens(happening{at: w.now + int64(w.cfg.Control), worker: n.id,
				ev: coordinator.Report{Report: message.Leaving{Worker: n.id}}})
			return
		}
		w.happens(happening{at: w.now + int64(Missed), worker: n.id, ev: coordinator.Lost{Worker: n.id, Reason: "it died"}})
		w.gone(n, w.now+max(m.away, int64(Missed)))
	}})
}

// gone ends a machine's worker, and begins another at the time at which the machine is back.
func (w *world) gone(n *node, back int64) {
	m := &w.machines[n.machine]
	n.undo(w.now)
	n.died = w.now
	m.before, m.reported = m.before.plus(n.done()), count{}
	n.end()
	w.happens(happening{at: back, worker: n.id, then: func() {
		for _, other := range w.nodes { // which the core has told that it is lost
			other.forget(n.id)
		}
		w.came = append(w.came, n.machine)
		next := w.node(len(w.at), n.machine)
		w.at, w.nodes[n.machine] = append(w.at, next), next
		next.now = w.now
		w.begin(next)
		w.happens(happening{at: w.now + int64(w.cfg.Control), worker: next.id, ev: coordinator.Joined{Worker: next.id}})
		w.depart(next)
	}})
}

// forget drops what a worker has of one that is gone, but for what counts. The caller holds the lock.
func (n *node) forget(gone int) {
	delete(n.boxes, gone)
	if way := n.ways[gone]; way != nil {
		n.longest = max(n.longest, way.bytes)
		delete(n.ways, gone)
	}
}

// bury drops what nobody asks a worker for that is gone: there may be many of them. The caller holds the lock, and the
// worker's goroutine is at its end.
func (n *node) bury() {
	n.worker, n.spent, n.steps, n.ways, n.boxes, n.counts, n.orders = nil, nil, nil, nil, nil, nil, nil
}

// never says that what happens is a report which a worker had run ahead to when its machine died.
func (w *world) never(h happening) bool {
	if _, ok := h.ev.(coordinator.Report); !ok || w.machines == nil {
		return false
	}
	n := w.at[h.worker]
	return n.gone && h.at-int64(w.cfg.Control) > n.died
}

// machine is what a worker runs on.
func (w *world) machine(worker int) int {
	if worker < w.cfg.Workers {
		return worker
	}
	return w.came[worker-w.cfg.Workers]
}

// counted is what a machine's workers have done up to a commit.
func (w *world) counted(n *node, c event.Commit) count {
	if w.machines == nil {
		return n.counts[c.To]
	}
	m := &w.machines[n.machine]
	now := w.now
	if done, ok := n.counts[c.To]; ok && !n.gone {
		m.reported, now = done, done.now
	}
	sum := m.before.plus(m.reported)
	sum.now = now
	return sum
}

// plus is what two workers of a machine did.
func (c count) plus(o count) count {
	return count{max(c.now, o.now), c.busy + o.busy, c.sent + o.sent, c.line + o.line, c.hops + o.hops,
		c.frames + o.frames}
}

// ErrChurn ends a simulation whose machines leave sooner than rounds are committed.
var ErrChurn = errors.New("machines leave sooner than rounds are committed")

// stuck says so.
func (w *world) stuck() error {
	if w.vain > 10*w.cfg.Workers+100 {
		return fmt.Errorf("the simulated fleet is stuck after round %d, and workers left %d times since: %w", w.committed(),
			w.vain, ErrChurn)
	}
	return nil
}

// step is a node as it was before it computed, sent or received something.
type step struct {
	state
	way *way
	was way
}

// keep notes how the node stands before it does something, with what it knows of a connection that this will change.
func (n *node) keep(to *way) {
	if n.world.machines == nil {
		return
	}
	s := step{state: n.state, way: to}
	if to != nil {
		s.was = *to
	}
	n.steps = append(n.steps, s)
}

// undo takes back what the node does from a time on.
func (n *node) undo(at int64) {
	n.world.unsend(n, at)
	for len(n.steps) > 0 {
		s := n.steps[len(n.steps)-1]
		if s.now < at { // it was at this one
			n.busy = min(n.busy, s.busy+at-s.now)
			break
		}
		n.steps = n.steps[:len(n.steps)-1]
		n.state = s.state
		if s.way != nil {
			s.was.racks = s.way.racks // which no worker runs ahead of
			*s.way = s.was
		}
	}
	n.now = min(n.now, at)
}

// past forgets the steps that nothing takes back any more: the core is at this time.
func (n *node) past(at int64) {
	i, _ := slices.BinarySearchFunc(n.steps, at, func(s step, at int64) int {
		if s.now < at {
			return -1
		}
		return 1
	})
	n.steps = slices.Delete(n.steps, 0, max(0, i-1))
}

// Shelf keeps the checkpoints of a simulated fleet: records as they are, and of other rows what they are called and how
// long they are.
type Shelf struct {
	mu    sync.Mutex
	files map[string]shelved
}

type shelved struct {
	round uint64
	rows  []worker.Row
}

// Save implements [worker.Store].
func (s *Shelf) Save(round uint64, epoch uint32, by int, rows []worker.Row) (event.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files == nil {
		s.files = map[string]shelved{}
	}
	kept := slices.Clone(rows)
	for i := range kept {
		kept[i].Record, kept[i].Pull = kept[i].Record.Clone(), nil
	}
	f := event.File{Path: fmt.Sprintf("%d-%d-%d", round, epoch, by)}
	s.files[f.Path] = shelved{round, kept}
	return f, nil
}

// newest drops what is older than a checkpoint that is complete.
func (s *Shelf) newest(cp event.Checkpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.files, func(_ string, f shelved) bool { return f.round < cp.Round })
}

// Load implements [worker.Store].
func (s *Shelf) Load(cp event.Checkpoint, want func(name string) bool) (map[string]engine.Host, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]engine.Host{}
	for _, f := range cp.Files {
		for _, r := range s.files[f.Path].rows {
			switch {
			case !want(r.Name):
			case r.Record.Rows > 0:
				out[r.Name] = r.Record.Clone()
			default:
				out[r.Name] = engine.NewHost(1, r.Cols, engine.F32)
			}
		}
	}
	return out, nil
}

var _ worker.Store = (*Shelf)(nil)
