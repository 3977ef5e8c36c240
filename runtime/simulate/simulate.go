// Package simulate runs a fleet in virtual time: the coordinator's real core and the real program of an algorithm, on
// workers that do not compute, over links that transfer only sizes. The result is the time and the traffic of such a
// fleet, and the log that the core wrote.
//
// Every worker has its own virtual time. It advances while tasks are computed, while bytes are sent, and while the
// worker waits for others. So a worker runs ahead of the others until it needs something that has not arrived. A
// program always names the worker that it receives from, so that the result does not depend on which worker ran first
// (Kahn 1974): a seed gives the same times on any number of cores. Reports of workers reach the core in the order of
// their times, once all workers wait.
//
// Limits of the model: frames that share a network card are sent one after the other, not interleaved; a connection has
// its full rate from the first byte on; the links of the coordinator are never saturated.
package simulate

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"brood/optim/collective"
	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/runtime/worker"
)

// Config configures a simulated fleet.
type Config struct {
	Core    coordinator.Config
	Workers int
	Rounds  uint64 // number of rounds to simulate; the limit of the run may end it earlier
	Seed    uint64 // of jitter, loss and pace; the program has its own
	// Worker creates worker id, whose engine must not compute. spent returns the seconds that the tasks of its engine
	// would have taken since the last call.
	Worker func(id int, link collective.Link, clock func() int64) (w *worker.Worker, spent func() float64)
	// Pace returns the factor by which a stretch of computing takes longer on a machine; nil means 1. Machine i runs the
	// worker that initially has number i.
	Pace func(machine int, uniform func() float64) float64
	Link func(from, to int) Link // between machines; nil: frames take no time
	// Churn returns how long a machine stays and how long it is then away; nil: no machine leaves. A worker that leaves
	// dies; with Goodbye it announces that it leaves, as a worker that is stopped does.
	Churn   func(machine int, uniform func() float64) (stays, away time.Duration)
	Goodbye bool
	Store   *Store // where workers save checkpoints; nil: none
	// Up and Down are the bytes per second that a worker can send and receive in total; 0 means no limit.
	Up, Down float64
	Racks    *Racks        // nil: no shared links
	PerByte  float64       // seconds that a worker spends on each byte that it sends or receives
	Hop      float64       // seconds that a frame takes in addition to its bytes and its link
	Overhead float64       // bytes on the wire in addition to the payload, as a share of it
	Control  time.Duration // one-way time of a message between a worker and the coordinator
}

// Result has the time and the traffic of a simulated fleet.
type Result struct {
	Workers int
	Rounds  uint64  // number of rounds that the figures cover
	Epochs  float64 // of these rounds
	Samples uint64  // trained on in these rounds
	Steps   uint64  // of all members in these rounds
	// Seconds is the mean time of a round, from commit to commit; P95 is the 95th percentile over commits.
	Seconds, P95 float64
	Training     float64 // share of the time that a worker computes, averaged over workers
	Bytes        float64 // payload of a round, of all workers
	Plain        float64 // seconds of a round by latency and bandwidth alone, see world.plain
	Cost         Cost    // of a round
	// Sent and Predicted are the payload by operation, without evaluations and probes, as in the log.
	Sent, Predicted collective.Ledger
	Commits         []event.Commit  // those that no rollback undid, including the first
	At              []time.Duration // time of each commit
	Departures      int             // departures of workers after the first commit
	Whole           float64         // share of the time in which all workers host members
}

// world is a simulated fleet in progress.
type world struct {
	cfg  Config
	core *coordinator.Coordinator

	mu      sync.Mutex
	still   *sync.Cond // signaled if no worker runs
	running int
	nodes   []*node // with churn by machine: its last worker, also while the machine is away
	at      []*node // by worker
	queue   eventQueue
	now     int64
	serial  uint64
	exit    *coordinator.Exit
	marks   []mark        // of commits that no rollback undid
	begin   func(n *node) // starts its goroutine

	racks []rack

	// With churn, see churn.go.
	machines                []machineState // nil without
	returned                []int          // machines of the workers that returned, in order
	departures, sinceCommit int            // departures in total, and since the last commit
	hosts                   int            // workers that host members in the current plan
}

// mark is a commit, with the counts of each machine when it reported the rounds, for the first and the last mark.
type mark struct {
	at         int64
	commit     event.Commit
	counts     []count
	departures int
	whole      bool    // all workers took part
	crossed    []int64 // payload that has left each rack
}

// count has the work of a worker up to a round.
type count struct {
	now, busy int64 // virtual time and computing time, in nanoseconds
	sent      int64 // payload in bytes
	line      int64 // payload of its busiest connection
	hops      int64 // turns from receiving to sending
	frames    int64 // frames sent
}

// timedEvent is an event for the core or the fleet at a virtual time.
type timedEvent struct {
	at     int64
	worker int // orders events at the same time, with serial
	serial uint64
	ev     coordinator.Event
	then   func()  // the action on the fleet, instead of an event for the core
	parcel *parcel // the frame that it moves; nil for other events
}

// tick is the period of ticks of the core in nanoseconds; after most ticks without other events the run is stuck.
const (
	tick = int64(100 * time.Millisecond)
	most = 36000
)

// Run simulates until cfg.Rounds rounds are committed, the run ends, or ctx does.
func Run(ctx context.Context, cfg Config) (Result, error) {
	if cfg.Link == nil {
		cfg.Link = func(int, int) Link { return Link{} }
	}
	if cfg.Pace == nil {
		cfg.Pace = func(int, func() float64) float64 { return 1 }
	}
	if cfg.Workers < 1 || cfg.Rounds < 2 {
		return Result{}, fmt.Errorf("%d workers and %d rounds: simulate at least 1 worker and 2 rounds",
			cfg.Workers, cfg.Rounds)
	}
	c, err := coordinator.New(cfg.Core)
	if err != nil {
		return Result{}, err
	}
	w := &world{cfg: cfg, core: c, at: make([]*node, cfg.Workers)}
	if cfg.Churn != nil {
		w.machines = make([]machineState, cfg.Workers)
	}
	w.still = sync.NewCond(&w.mu)
	return w.run(ctx)
}

func (w *world) run(ctx context.Context) (Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	w.mu.Lock()
	defer func() {
		for _, n := range w.nodes {
			n.end()
		}
		w.mu.Unlock()
		cancel()
		all.Wait()
	}()
	w.begin = func(n *node) {
		w.running++
		all.Go(func() { n.live(ctx) })
	}
	for id := range w.cfg.Workers {
		n := w.node(id, id)
		w.nodes, w.at[id] = append(w.nodes, n), n
	}
	for id := range w.cfg.Workers {
		w.schedule(timedEvent{worker: id, ev: coordinator.Joined{Worker: id}})
	}
	for _, n := range w.nodes {
		w.begin(n)
		if w.machines != nil {
			w.scheduleDeparture(n)
		}
	}
	w.schedule(timedEvent{at: tick, worker: math.MaxInt, ev: coordinator.Tick{}})
	for popped, quiet := 0, 0; ; popped++ {
		for w.running > 0 {
			w.still.Wait()
		}
		if popped%256 == 0 && ctx.Err() != nil {
			return Result{}, ctx.Err()
		}
		h := w.queue.pop()
		w.now = h.at
		quiet++
		if _, ok := h.ev.(coordinator.Tick); ok {
			w.schedule(timedEvent{at: h.at + tick, worker: math.MaxInt, ev: h.ev})
		} else {
			quiet = 0
		}
		if w.isVoid(h) || h.parcel != nil && h.parcel.void {
			continue
		}
		if h.then != nil {
			h.then()
			if err := w.stuck(); err != nil {
				return Result{}, err
			}
			continue
		}
		if quiet > most {
			return Result{}, fmt.Errorf("the simulated fleet is stuck after round %d: no worker reported for an hour",
				w.committed())
		}
		if err := w.apply(w.core.Step(time.Unix(0, w.now), h.ev)); err != nil {
			return Result{}, err
		}
		if w.exit != nil || w.committed() >= w.cfg.Rounds {
			return w.result()
		}
	}
}

// node creates a worker on a machine. It does not start its goroutine.
func (w *world) node(id, machine int) *node {
	n := &node{
		world:   w,
		id:      id,
		machine: machine,
		waits:   running,
		conns:   map[int]*conn{},
		boxes:   map[int][]frame{},
		counts:  map[uint64]count{},
		woken:   sync.NewCond(&w.mu),
	}
	n.chances = n.uniform
	n.worker, n.spent = w.cfg.Worker(id, n, n.clock)
	return n
}

func (w *world) committed() uint64 {
	if len(w.marks) == 0 {
		return 0
	}
	return w.marks[len(w.marks)-1].commit.To
}

// pause counts a worker that stops running. The caller holds the lock.
func (w *world) pause() {
	if w.running--; w.running == 0 {
		w.still.Signal()
	}
}

func (w *world) schedule(h timedEvent) {
	w.serial++
	h.serial = w.serial
	w.queue.push(h)
}

// report sends a report of a worker to the core. The caller holds the lock.
func (w *world) report(n *node, r message.Report) {
	if d, ok := r.(message.Done); ok {
		n.counts[d.To] = n.done()
	}
	w.schedule(timedEvent{at: n.now + int64(w.cfg.Control), worker: n.id, ev: coordinator.Report{Report: r}})
}

func (w *world) apply(fx []coordinator.Effect) error {
	for _, x := range fx {
		switch x := x.(type) {
		case coordinator.Send:
			if away, ok := x.Msg.(message.Evict); ok {
				return fmt.Errorf("simulated worker %d was evicted: %s", x.Worker, away.Why)
			}
			w.post(x.Worker, x.Msg)
		case coordinator.Release:
			if w.machines == nil {
				w.post(x.Worker, message.Stop{})
			} else {
				w.endWorker(w.at[x.Worker], w.now+w.machines[w.machine(x.Worker)].away)
			}
		case coordinator.Append:
			if a := x.Record.Alert; a != nil && a.Level == event.LevelError &&
				(w.machines == nil || a.Kind != event.AlertLostWorker) {
				return fmt.Errorf("the simulated run: %s", a.Text)
			}
			if p := x.Record.Plan; p != nil {
				w.hosts = len(p.New.Workers())
			}
			if c := x.Record.Commit; c != nil {
				w.mark(*c)
			}
			if cp := x.Record.Checkpoint; cp != nil {
				w.cfg.Store.newest(*cp)
			}
		case coordinator.Exit:
			w.exit = &x
		case coordinator.Receipt:
		case *coordinator.Fault:
			return fmt.Errorf("the coordinator has failed: %v", x.Value)
		default:
			panic(fmt.Sprintf("the simulator does not know the effect %T", x))
		}
	}
	return nil
}

// post sends an order of the core to a simulated worker.
func (w *world) post(worker int, m message.Order) {
	if n := w.at[worker]; n != nil {
		n.post(w.now+int64(w.cfg.Control), m)
	}
}

// mark adds a mark with the counts up to a commit. After a rollback it replaces the marks of repeated rounds.
func (w *world) mark(c event.Commit) {
	for len(w.marks) > 0 && w.committed() > c.To-c.Rounds {
		w.marks = w.marks[:len(w.marks)-1]
	}
	m := mark{at: w.now, commit: c, departures: w.departures, whole: w.hosts == w.cfg.Workers, crossed: w.crossed()}
	w.sinceCommit = 0
	for _, n := range w.nodes {
		m.counts = append(m.counts, w.counted(n, c))
		for to := range n.counts {
			if to <= c.To {
				delete(n.counts, to)
			}
		}
	}
	if last := len(w.marks) - 1; last > 0 {
		w.marks[last].counts, w.marks[last].crossed = nil, nil
	}
	w.marks = append(w.marks, m)
}

// result returns the result for the rounds after the first commit, before which the fleet joins.
func (w *world) result() (Result, error) {
	if len(w.marks) < 2 {
		return Result{}, fmt.Errorf("the simulated run ended at round %d: give it more rounds", w.committed())
	}
	a, z := w.marks[0], w.marks[len(w.marks)-1]
	p, q := a.commit.Progress, z.commit.Progress
	if q.Rounds <= p.Rounds {
		return Result{}, fmt.Errorf("the simulated run only went from round %d to %d: give it more rounds",
			p.Rounds, q.Rounds)
	}
	r := Result{
		Sent:      collective.Ledger{},
		Predicted: collective.Ledger{},
		Workers:   w.cfg.Workers,
		Rounds:    q.Rounds - p.Rounds,
		Samples:   q.Samples - p.Samples,
		Steps:     q.Steps - p.Steps,
		Epochs:    q.Epochs - p.Epochs,
	}
	rounds := float64(r.Rounds)
	r.Seconds = float64(z.at-a.at) / 1e9 / rounds
	r.Departures = z.departures - a.departures
	var most count // maximum of each kind over workers
	for i, last := range z.counts {
		d := last.since(a.counts[i])
		r.Training += float64(d.busy) / float64(max(1, d.now)) / float64(w.cfg.Workers)
		r.Bytes += float64(d.sent) / rounds
		most = count{
			busy:   max(most.busy, d.busy),
			sent:   max(most.sent, d.sent),
			line:   max(most.line, d.line),
			hops:   max(most.hops, d.hops),
			frames: max(most.frames, d.frames),
		}
	}
	r.Cost = Cost{
		Busy:   float64(most.busy) / 1e9 / rounds,
		Turns:  float64(most.hops) / rounds,
		Sent:   float64(most.sent) / rounds,
		Line:   float64(most.line) / rounds,
		Frames: float64(most.frames) / rounds,
	}
	r.Plain = w.plain(r.Cost, float64(busiest(a, z))/rounds)
	for _, m := range w.marks {
		r.Commits, r.At = append(r.Commits, m.commit), append(r.At, time.Duration(m.at))
	}
	var each []float64
	var whole int64
	for i, m := range w.marks[1:] {
		each = append(each, float64(m.at-w.marks[i].at)/1e9/float64(m.commit.Rounds))
		if m.whole {
			whole += m.at - w.marks[i].at
		}
		r.Sent.Add(m.commit.Sent)
		r.Predicted.Add(m.commit.Predicted)
	}
	r.Whole = float64(whole) / float64(max(1, z.at-a.at))
	slices.Sort(each)
	r.P95 = each[(len(each)*95+99)/100-1]
	return r, nil
}

// plain returns the time of a round by latency and bandwidth alone, see [Cost.seconds]. crossed is the payload of a
// round that leaves the busiest rack.
func (w *world) plain(c Cost, crossed float64) float64 {
	s := c.seconds(w.cfg, false)
	r := w.cfg.Racks
	if r == nil || crossed == 0 {
		return s
	}
	s += c.Turns * r.Delay.Seconds()
	if r.Up > 0 {
		own := c
		own.Busy, own.Turns = 0, 0
		s += max(0, crossed/r.Up-own.seconds(w.cfg, false))
	}
	return s
}

func (c count) since(o count) count {
	return count{c.now - o.now, c.busy - o.busy, c.sent - o.sent, c.line - o.line, c.hops - o.hops, c.frames - o.frames}
}

var _ collective.Link = (*node)(nil)
