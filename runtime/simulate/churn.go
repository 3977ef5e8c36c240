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

// In a fleet with churn, machines leave and return. The core decides what happens to their members and to the rounds in
// progress, as for a real fleet: a worker that returns has a new number and joins.
//
// Workers run ahead of the core. What they did after the time at which the core voids their rounds, or at which their
// machine dies, is rolled back; each worker stores the steps for that. Effects of rolled-back frames on other workers
// are void too, since no round is committed before all its workers have reported.

// Missed is the time after which the death of a worker is detected: the longest silence that a real fleet allows.
const Missed = 2 * time.Second

// machineState is the state of a machine across the workers that run on it in sequence.
type machineState struct {
	draws    uint64
	away     int64 // duration of its next absence, in nanoseconds
	before   count // of its former workers, up to their end
	reported count // of its present worker, up to the last commit that it took part in
}

// scheduleDeparture draws how long a machine's worker stays, and schedules its end.
func (w *world) scheduleDeparture(n *node) {
	m := &w.machines[n.machine]
	stays, away := w.cfg.Churn(n.machine, func() float64 {
		m.draws++
		return chance(^w.cfg.Seed, n.machine, m.draws)
	})
	m.away = int64(away)
	w.schedule(timedEvent{at: w.now + int64(stays), worker: n.id, then: func() {
		w.departures, w.sinceCommit = w.departures+1, w.sinceCommit+1
		if w.cfg.Goodbye {
			w.schedule(timedEvent{at: w.now + int64(w.cfg.Control), worker: n.id,
				ev: coordinator.Report{Report: message.Leaving{Worker: n.id}}})
			return
		}
		w.schedule(timedEvent{at: w.now + int64(Missed), worker: n.id, ev: coordinator.Lost{Worker: n.id, Reason: "it died"}})
		w.endWorker(n, w.now+max(m.away, int64(Missed)))
	}})
}

// endWorker ends a machine's worker now, and starts another when the machine is back.
func (w *world) endWorker(n *node, back int64) {
	m := &w.machines[n.machine]
	n.rollBack(w.now)
	n.died = w.now
	m.before, m.reported = m.before.plus(n.done()), count{}
	n.end()
	w.schedule(timedEvent{at: back, worker: n.id, then: func() {
		for _, other := range w.nodes { // which know by now that the worker is lost
			other.forget(n.id)
		}
		w.returned = append(w.returned, n.machine)
		next := w.node(len(w.at), n.machine)
		w.at, w.nodes[n.machine] = append(w.at, next), next
		next.now = w.now
		w.begin(next)
		w.schedule(timedEvent{at: w.now + int64(w.cfg.Control), worker: next.id, ev: coordinator.Joined{Worker: next.id}})
		w.scheduleDeparture(next)
	}})
}

// forget removes the state of a connection to a worker that is gone, except its byte count. The caller holds the lock.
func (n *node) forget(gone int) {
	delete(n.boxes, gone)
	if conn := n.conns[gone]; conn != nil {
		n.longest = max(n.longest, conn.bytes)
		delete(n.conns, gone)
	}
}

// release frees the data of a worker that is gone, since there may be many of them. The caller holds the lock, and the
// worker's goroutine is at its end.
func (n *node) release() {
	n.worker, n.spent, n.steps, n.conns, n.boxes, n.counts, n.orders = nil, nil, nil, nil, nil, nil, nil
}

// isVoid reports whether an event is a report that its worker had run ahead to when its machine died.
func (w *world) isVoid(h timedEvent) bool {
	if _, ok := h.ev.(coordinator.Report); !ok || w.machines == nil {
		return false
	}
	n := w.at[h.worker]
	return n.gone && h.at-int64(w.cfg.Control) > n.died
}

// machine returns the machine that a worker runs on.
func (w *world) machine(worker int) int {
	if worker < w.cfg.Workers {
		return worker
	}
	return w.returned[worker-w.cfg.Workers]
}

// counted returns the counts of all workers of a machine up to a commit.
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

// plus adds the counts of two workers of a machine.
func (c count) plus(o count) count {
	return count{max(c.now, o.now), c.busy + o.busy, c.sent + o.sent, c.line + o.line, c.hops + o.hops,
		c.frames + o.frames}
}

// ErrChurn reports that machines leave sooner than rounds are committed.
var ErrChurn = errors.New("machines leave sooner than rounds are committed")

// stuck returns ErrChurn if workers leave without commits.
func (w *world) stuck() error {
	if w.sinceCommit > 10*w.cfg.Workers+100 {
		return fmt.Errorf("the simulated fleet is stuck after round %d, and workers left %d times since: %w", w.committed(),
			w.sinceCommit, ErrChurn)
	}
	return nil
}

// step is the state of a node before it computed, sent or received something.
type step struct {
	state
	conn *conn
	was  conn
}

// saveStep stores the state of the node before an action, and that of the connection that the action changes, if any.
func (n *node) saveStep(to *conn) {
	if n.world.machines == nil {
		return
	}
	s := step{state: n.state, conn: to}
	if to != nil {
		s.was = *to
	}
	n.steps = append(n.steps, s)
}

// rollBack undoes everything that the node did at a time or later.
func (n *node) rollBack(at int64) {
	n.world.voidFrames(n, at)
	for len(n.steps) > 0 {
		s := n.steps[len(n.steps)-1]
		if s.now < at { // it was in progress at that time
			n.busy = min(n.busy, s.busy+at-s.now)
			break
		}
		n.steps = n.steps[:len(n.steps)-1]
		n.state = s.state
		if s.conn != nil {
			s.was.racks = s.conn.racks // no worker runs ahead of racks
			*s.conn = s.was
		}
	}
	n.now = min(n.now, at)
}

// dropSteps removes the steps before a time that the core has reached: nothing rolls back behind it.
func (n *node) dropSteps(at int64) {
	i, _ := slices.BinarySearchFunc(n.steps, at, func(s step, at int64) int {
		if s.now < at {
			return -1
		}
		return 1
	})
	n.steps = slices.Delete(n.steps, 0, max(0, i-1))
}

// Store stores the checkpoints of a simulated fleet: records with their contents, other rows as names and lengths.
type Store struct {
	mu    sync.Mutex
	files map[string]savedFile
}

type savedFile struct {
	round uint64
	rows  []worker.Row
}

// Save implements [worker.Store].
func (s *Store) Save(round uint64, epoch uint32, by int, rows []worker.Row) (event.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files == nil {
		s.files = map[string]savedFile{}
	}
	kept := slices.Clone(rows)
	for i := range kept {
		kept[i].Record, kept[i].Pull = kept[i].Record.Clone(), nil
	}
	f := event.File{Path: fmt.Sprintf("%d-%d-%d", round, epoch, by)}
	s.files[f.Path] = savedFile{round, kept}
	return f, nil
}

// newest removes the files that are older than a complete checkpoint.
func (s *Store) newest(cp event.Checkpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.files, func(_ string, f savedFile) bool { return f.round < cp.Round })
}

// Load implements [worker.Store].
func (s *Store) Load(cp event.Checkpoint, want func(name string) bool) (map[string]engine.Host, error) {
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

var _ worker.Store = (*Store)(nil)
