package simulate

import (
	"context"
	"sync"

	"brood/runtime/message"
	"brood/runtime/worker"
)

// Whom a worker waits for that waits for no other worker.
const (
	nobody = -1 // it runs
	core   = -2 // for an order
)

// node is a worker with a time of its own. While it runs its goroutine owns it; while it waits, whoever holds the
// world's lock does.
type node struct {
	world   *world
	id      int
	machine int
	worker  *worker.Worker
	spent   func() float64 // seconds of computing since the last call

	state
	ways    map[int]*way     // by worker
	longest int64            // payload of the busiest way to one that is gone
	draws   uint64           // of its own chance
	chances func() float64   // uniform
	counts  map[uint64]count // at the end of each grant that is not committed
	steps   []step           // that may be taken back, with churn
	died    int64            // when it was gone, with churn

	waits  int // for a worker's frame, or nobody, or core
	woken  *sync.Cond
	orders []order
	cancel context.CancelFunc // of the order being handled
	boxes  map[int][]frame    // by sender
	gone   bool
}

// state is what a worker has come to, all of which may be taken back.
type state struct {
	now     int64 // nanoseconds of the run
	busy    int64 // of them, those it computed in
	up      queue // its network card
	down    queue
	card    queue // its processors, as far as frames keep them busy
	owed    int64 // nanoseconds by which its processor is behind with frames
	counted int64 // when that was counted; until then it was busy
	since   int64 // when down was last free
	sent    int64 // payload
	hops    int64 // turns from receiving to sending
	frames  int64 // sent
	sending bool
}

// way is what a worker knows of its connection to another.
type way struct {
	sentTo
	newest int64                          // arrival of the last frame
	leaves int64                          // when the last one came to the way out of its rack
	racks  struct{ enters, newest int64 } // likewise to that into another one; and its arrival from there
}

// sentTo is what went to another worker.
type sentTo struct {
	line  queue
	bytes int64 // payload
}

type order struct {
	at  int64
	msg message.Order
}

func (n *node) to(id int) *way {
	if n.ways[id] == nil {
		n.ways[id] = &way{}
	}
	return n.ways[id]
}

// compute lets the time of tasks pass.
func (n *node) compute() {
	if s := n.spent(); s > 0 {
		n.keep(nil)
		n.catchUp(n.now)
		d := nanos(s * n.world.cfg.Pace(n.machine, n.uniform))
		n.now += d
		n.busy += d
		n.now += n.owed
		n.owed, n.counted = 0, n.now
	}
}

// catchUp counts what a slower processor makes up for until a time, while it has nothing else to do.
func (n *node) catchUp(at int64) {
	if at > n.counted {
		n.owed = max(0, n.owed-(at-n.counted))
		n.counted = at
	}
}

// done is what the worker has counted so far.
func (n *node) done() count {
	c := count{now: n.now, busy: n.busy, sent: n.sent, line: n.longest, hops: n.hops, frames: n.frames}
	for _, w := range n.ways {
		c.line = max(c.line, w.bytes)
	}
	return c
}

// clock is the worker's own, for what it reports.
func (n *node) clock() int64 {
	n.compute()
	return n.now
}

// uniform is the next number in [0, 1) of the worker's own chance.
func (n *node) uniform() float64 {
	n.draws++
	return chance(n.world.cfg.Seed, n.id, n.draws)
}

// chance is a number in [0, 1) of a worker's.
func chance(seed uint64, worker int, draw uint64) float64 {
	x := seed ^ uint64(worker+1)*0x9e3779b97f4a7c15 ^ draw*0xd1342543de82ef95
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9 // splitmix64's mixing (Steele, Lea, Flood 2014)
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return float64((x^x>>31)>>11) / (1 << 53)
}

// wait stops the worker until whom it waits for has something. The caller holds the lock.
func (n *node) wait(whom int) {
	n.waits = whom
	n.world.pause()
	for n.waits != nobody {
		n.woken.Wait()
	}
}

// wake lets a worker go on that waits. The caller holds the lock.
func (n *node) wake() {
	if n.waits != nobody {
		n.waits = nobody
		n.world.running++
		n.woken.Signal()
	}
}

// post brings an order that arrives at a time. What an abort overtakes is void, and so is the time that the worker ran
// ahead with it. The caller holds the lock, and every worker waits.
func (n *node) post(at int64, msg message.Order) {
	if n.gone {
		return
	}
	n.past(n.world.now)
	if _, abort := msg.(message.Abort); abort {
		n.orders = n.orders[:0]
		n.undo(at)
		if n.cancel != nil {
			n.cancel()
		}
	}
	n.orders = append(n.orders, order{at, msg})
	if _, abort := msg.(message.Abort); abort || n.waits == core {
		n.wake()
	}
}

// end lets the worker go. The caller holds the lock.
func (n *node) end() {
	n.gone = true
	if n.cancel != nil {
		n.cancel()
	}
	n.wake()
}

// live obeys orders until the end.
func (n *node) live(ctx context.Context) {
	w := n.world
	defer func() {
		n.worker.Free()
		w.mu.Lock()
		n.gone = true
		if w.machines != nil {
			n.bury()
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
