// Package simulate runs a fleet in virtual time: the coordinator's real core and the real programme of an algorithm, on
// workers that compute nothing, over links that carry sizes. What comes out is what such a fleet would take and send,
// and the record of it that the core wrote.
//
// Every worker has a time of its own. It passes while tasks are computed, while bytes leave, and while the worker waits
// for what others send; so a worker runs ahead of the others until it needs something that is not there. A programme
// always says from whom it receives, so that what it finds does not depend on who ran first (Kahn 1974): a seed gives
// the same times on any number of cores. What workers report reaches the core in the order of its time, once all of
// them wait.
//
// What this leaves out: bytes of different frames that share a network card leave one frame after the other and not
// side by side; a connection is as fast from its first byte as later; what carries the coordinator's own messages is
// never full.
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

// Config is a fleet to simulate.
type Config struct {
	Core    coordinator.Config
	Workers int
	Rounds  uint64 // to simulate; the run's own limit may end it before
	Seed    uint64 // of jitter, loss and pace; the programme has its own
	// Worker makes worker id, whose engine is hollow; spent is the seconds of computing that its engine was asked for
	// since the last call.
	Worker func(id int, link collective.Link, clock func() int64) (w *worker.Worker, spent func() float64)
	// Pace is by how much a stretch of computing takes longer than it should on a machine; nil is 1 always. The machines
	// are those of the workers that there are in the beginning, by their numbers.
	Pace func(machine int, uniform func() float64) float64
	Link func(from, to int) Link // between machines; nil is no time
	// Churn is how long a machine stays this time, and how long it is away then; nil: nobody leaves. A worker that leaves
	// dies, or says Goodbye before, as one does that is stopped.
	Churn   func(machine int, uniform func() float64) (stays, away time.Duration)
	Goodbye bool
	Shelf   *Shelf // where workers keep checkpoints; nil: there are none
	// Up and Down are the bytes a second that a worker can send and receive altogether; 0 is no limit.
	Up, Down float64
	Racks    *Racks  // nil: nothing is shared
	PerByte  float64 // seconds that a worker spends on each byte that it sends or receives
	Hop      float64 // seconds that a frame takes beside its bytes and its link
	// Of frames over a link with a Line: Owed is by how many times what they cost the processor a slowed worker's is
	// behind when they are through, 0: none. It catches up while it waits, and what is left makes the next computing
	// longer. Crowded is how many times as long they wait for a processor that several workers share, at least 1.
	Owed, Crowded float64
	Overhead      float64       // bytes on the wire beyond payload, as a share of it
	Control       time.Duration // of a message between a worker and the coordinator, one way
}

// Result is what a simulated fleet took and sent.
type Result struct {
	Workers int
	Rounds  uint64  // that the figures are of
	Epochs  float64 // in them
	Samples uint64  // trained on in them
	Steps   uint64  // of all members in them
	// Seconds of a round, from commit to commit; P95 of commits.
	Seconds, P95 float64
	Training     float64 // share of the time in which a worker computes, on average over workers
	Bytes        float64 // payload of a round, of all workers
	Plain        float64 // seconds of a round by latency and bandwidth alone: see plain
	Cost         Cost    // of a round
	// Sent and Predicted are the payload by operation, without evaluation and probes, as the log of the run has it.
	Sent, Predicted collective.Ledger
	Commits         []event.Commit  // those that no rollback took back, the first too
	At              []time.Duration // when each was made
	Departures      int             // of workers, from the first commit on
	Whole           float64         // share of the time in which all workers host members: rounds of fewer are others
}

// world is a run of a simulated fleet.
type world struct {
	cfg  Config
	core *coordinator.Coordinator

	mu      sync.Mutex
	still   *sync.Cond // no worker runs
	running int
	nodes   []*node // with churn by machine, with the last worker of those that are away
	at      []*node // by worker
	queue   queued
	now     int64
	serial  uint64
	exit    *coordinator.Exit
	marks   []mark        // of commits that stand
	begin   func(n *node) // lets it live

	racks []rack

	// of a fleet with churn: see churn.go
	machines         []hardware // nil without
	came             []int      // machines of the workers that came back, in their order
	departures, vain int        // of all, and since the last commit
	hosts            int        // workers that the plan in force gives members
}

// mark is a commit, and what each worker had counted when it reported it: of the first and of the last.
type mark struct {
	at         int64
	commit     event.Commit
	counts     []count
	departures int
	whole      bool    // all workers took part
	crossed    []int64 // what left each rack
}

// count is what a worker did up to a round.
type count struct {
	now, busy int64 // nanoseconds of the run, and those that it computed in
	sent      int64 // payload
	line      int64 // payload of its busiest way
	hops      int64 // turns from receiving to sending
	frames    int64 // sent
}

// happening is what reaches the core.
type happening struct {
	at     int64
	worker int // ties are broken by it, and by the order of what one worker says
	serial uint64
	ev     coordinator.Event
	then   func()  // in place of ev: it reaches the fleet and not the core
	parcel *parcel // that it moves; nil of all else
}

// tick is between ticks of the core, and most how many of them pass without anything else until the run is stuck.
const (
	tick = int64(100 * time.Millisecond)
	most = 36000
)

// Run simulates until so many rounds are committed, the run ends by itself, or ctx does.
func Run(ctx context.Context, cfg Config) (Result, error) {
	if cfg.Link == nil {
		cfg.Link = func(int, int) Link { return Link{} }
	}
	if cfg.Pace == nil {
		cfg.Pace = func(int, func() float64) float64 { return 1 }
	}
	if cfg.Workers < 1 || cfg.Rounds < 2 {
		return Result{}, fmt.Errorf("%d workers and %d rounds: simulate at least one and two", cfg.Workers, cfg.Rounds)
	}
	c, err := coordinator.New(cfg.Core)
	if err != nil {
		return Result{}, err
	}
	w := &world{cfg: cfg, core: c, at: make([]*node, cfg.Workers)}
	if cfg.Churn != nil {
		w.machines = make([]hardware, cfg.Workers)
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
		w.happens(happening{worker: id, ev: coordinator.Joined{Worker: id}})
	}
	for _, n := range w.nodes {
		w.begin(n)
		if w.machines != nil {
			w.depart(n)
		}
	}
	w.happens(happening{at: tick, worker: math.MaxInt, ev: coordinator.Tick{}})
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
			w.happens(happening{at: h.at + tick, worker: math.MaxInt, ev: h.ev})
		} else {
			quiet = 0
		}
		if w.never(h) || h.parcel != nil && h.parcel.void {
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
			return Result{}, fmt.Errorf("the simulated fleet is stuck after round %d: nothing was said for an hour",
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

// node is a worker of a machine, which does not live yet.
func (w *world) node(id, machine int) *node {
	n := &node{
		world:   w,
		id:      id,
		machine: machine,
		waits:   nobody,
		ways:    map[int]*way{},
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

// pause says that a worker stops running. The caller holds the lock.
func (w *world) pause() {
	if w.running--; w.running == 0 {
		w.still.Signal()
	}
}

func (w *world) happens(h happening) {
	w.serial++
	h.serial = w.serial
	w.queue.push(h)
}

// report brings what a worker says to the core. The caller holds the lock.
func (w *world) report(n *node, r message.Report) {
	if d, ok := r.(message.Done); ok {
		n.counts[d.To] = n.done()
	}
	w.happens(happening{at: n.now + int64(w.cfg.Control), worker: n.id, ev: coordinator.Report{Report: r}})
}

func (w *world) apply(fx []coordinator.Effect) error {
	for _, x := range fx {
		switch x := x.(type) {
		case coordinator.Send:
			if away, ok := x.Msg.(message.Evict); ok {
				return fmt.Errorf("simulated worker %d was put out: %s", x.Worker, away.Why)
			}
			w.post(x.Worker, x.Msg)
		case coordinator.Dismiss:
			if w.machines == nil {
				w.post(x.Worker, message.Stop{})
			} else {
				w.gone(w.at[x.Worker], w.now+w.machines[w.machine(x.Worker)].away)
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
				w.cfg.Shelf.newest(*cp)
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

// post brings an order of the core to a worker that is simulated.
func (w *world) post(worker int, m message.Order) {
	if n := w.at[worker]; n != nil {
		n.post(w.now+int64(w.cfg.Control), m)
	}
}

// mark notes what everybody did up to a commit. After a rollback it takes the place of those whose rounds are done
// again.
func (w *world) mark(c event.Commit) {
	for len(w.marks) > 0 && w.committed() > c.To-c.Rounds {
		w.marks = w.marks[:len(w.marks)-1]
	}
	m := mark{at: w.now, commit: c, departures: w.departures, whole: w.hosts == w.cfg.Workers, crossed: w.crossed()}
	w.vain = 0
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

// result is of the rounds behind the first commit: before it the fleet meets.
func (w *world) result() (Result, error) {
	if len(w.marks) < 2 {
		return Result{}, fmt.Errorf("the simulated run ended at round %d: give it more rounds", w.committed())
	}
	a, z := w.marks[0], w.marks[len(w.marks)-1]
	p, q := a.commit.Progress, z.commit.Progress
	if q.Rounds <= p.Rounds {
		return Result{}, fmt.Errorf("the simulated run came from round %d to %d: give it more rounds", p.Rounds, q.Rounds)
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
	var most count // of each kind, the worker that does most
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

// plain is the time of a round by latency and bandwidth alone: see [Cost.seconds]. crossed is the payload of a round
// that leaves the busiest rack.
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
