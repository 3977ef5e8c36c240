package simulate

import (
	"context"
	"sync"

	"brood/runtime/message"
	"brood/runtime/worker"
)

// Values of node.waits other than a worker.
const (
	running = -1 // the worker runs
	core    = -2 // it waits for an order
)

// node is a worker with its own virtual time. While it runs, its goroutine owns it; while it waits, the holder of the
// world's lock does.
type node struct {
	world   *world
	id      int
	machine int
	worker  *worker.Worker
	spent   func() float64 // seconds of computing since the last call

	state
	conns   map[int]*conn    // connections by worker
	longest int64            // payload of its busiest connection to a worker that is gone
	draws   uint64           // random numbers drawn so far
	chances func() float64   // uniform; tests may replace it
	counts  map[uint64]count // at the end of each grant that is not committed yet
	steps   []step           // that may be rolled back; only with churn
	died    int64            // time of its end; only with churn

	waits  int // the worker whose frame it waits for, or running, or core
	woken  *sync.Cond
	orders []order
	cancel context.CancelFunc // cancels the order in progress
	boxes  map[int][]frame    // received frames by sender
	gone   bool
}

// state is the part of a node that a rollback restores.
type state struct {
	now     int64 // virtual time, in nanoseconds
	busy    int64 // time spent computing, in nanoseconds
	up      queue // sender side of its network card
	down    queue
	since   int64 // time at which down was last idle
	sent    int64 // payload in bytes
	hops    int64 // turns from receiving to sending
	frames  int64 // frames sent
	sending bool
}

// conn is a worker's state of its connection to another worker.
type conn struct {
	sentTo
	newest int64                          // arrival of the last frame
	leaves int64                          // time at which the last frame reached the uplink of its rack
	racks  struct{ enters, newest int64 } // the same for the downlink of the other rack, and arrival from there
}

// sentTo is the data sent to another worker.
type sentTo struct {
	line  queue
	bytes int64 // payload in bytes
}

type order struct {
	at  int64
	msg message.Order
}

func (n *node) to(id int) *conn {
	if n.conns[id] == nil {
		n.conns[id] = &conn{}
	}
	return n.conns[id]
}

// compute advances the time by the cost of the tasks since the last call.
func (n *node) compute() {
	if s := n.spent(); s > 0 {
		n.saveStep(nil)
		d := nanos(s * n.world.cfg.Pace(n.machine, n.uniform))
		n.now += d
		n.busy += d
	}
}

// done returns the counts of the worker so far.
func (n *node) done() count {
	c := count{now: n.now, busy: n.busy, sent: n.sent, line: n.longest, hops: n.hops, frames: n.frames}
	for _, w := range n.conns {
		c.line = max(c.line, w.bytes)
	}
	return c
}

// clock returns the virtual time of the worker, for its reports.
func (n *node) clock() int64 {
	n.compute()
	return n.now
}

// uniform returns the worker's next random number in [0, 1).
func (n *node) uniform() float64 {
	n.draws++
	return chance(n.world.cfg.Seed, n.id, n.draws)
}

// chance returns a random number in [0, 1) of a worker.
func chance(seed uint64, worker int, draw uint64) float64 {
	x := seed ^ uint64(worker+1)*0x9e3779b97f4a7c15 ^ draw*0xd1342543de82ef95
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9 // splitmix64's mixing (Steele, Lea, Flood 2014)
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return float64((x^x>>31)>>11) / (1 << 53)
}

// wait blocks until the event that the worker waits for has occurred. The caller holds the lock.
func (n *node) wait(worker int) {
	n.waits = worker
	n.world.pause()
	for n.waits != running {
		n.woken.Wait()
	}
}

// wake lets a waiting worker continue. The caller holds the lock.
func (n *node) wake() {
	if n.waits != running {
		n.waits = running
		n.world.running++
		n.woken.Signal()
	}
}

// post delivers an order that arrives at a time. An abort voids all earlier orders and rolls back the worker to that
// time. The caller holds the lock, and every worker waits.
func (n *node) post(at int64, msg message.Order) {
	if n.gone {
		return
	}
	n.dropSteps(n.world.now)
	if _, abort := msg.(message.Abort); abort {
		n.orders = n.orders[:0]
		n.rollBack(at)
		if n.cancel != nil {
			n.cancel()
		}
	}
	n.orders = append(n.orders, order{at, msg})
	if _, abort := msg.(message.Abort); abort || n.waits == core {
		n.wake()
	}
}

// end ends the worker. The caller holds the lock.
func (n *node) end() {
	n.gone = true
	if n.cancel != nil {
		n.cancel()
	}
	n.wake()
}

// live executes orders until the end.
func (n *node) live(ctx context.Context) {
	w := n.world
	defer func() {
		n.worker.Free()
		w.mu.Lock()
		n.gone = true
		if w.machines != nil {
			n.release()
		}
		w.pause()
		w.mu.Unlock()
	}()
	for {
		w.mu.Lock()
		for len(n.orders) == 0 && !n.gone {
			n.wait(core)
		}
		if n.gone {
			w.mu.Unlock()
			return
		}
		o := n.orders[0]
		n.orders = n.orders[1:]
		n.now = max(n.now, o.at)
		octx, cancel := context.WithCancel(ctx)
		n.cancel = cancel
		w.mu.Unlock()
		if _, stop := o.msg.(message.Stop); stop {
			cancel()
			return
		}
		reply := n.worker.Handle(octx, o.msg)
		n.compute()
		cancel()
		w.mu.Lock()
		if reply != nil && !n.gone {
			w.report(n, reply)
		}
		w.mu.Unlock()
	}
}
