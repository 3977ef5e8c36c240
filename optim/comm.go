package optim

import (
	"context"
	"fmt"
	"slices"

	"brood/models/engine"
)

// Link is what a transport gives a worker. Messages of a pair arrive in the order they were sent. Send takes ownership
// of p and never waits for the peer: a program sends everything and then receives. Recv drops frames of an older epoch
// than asked for and keeps those of a newer one for later; it returns when a frame of this epoch is there or ctx ends.
type Link interface {
	Send(to int, epoch uint32, seq uint64, op string, p []byte) error
	Recv(ctx context.Context, from int, epoch uint32) (seq uint64, op string, p []byte, err error)
}

// Teller is a Link that is told where the programme stands: a simulator's is, which makes up what workers send that it
// does not run.
type Teller interface {
	Link
	// Sent says that all of an exchange is sent, and what is received next belongs to it. All workers of an epoch pass the
	// same exchanges in the same order: along these edges, rows of so many bytes; nil is from all to all.
	Sent(edges []Edge, bytes int)
	// Expect says what the next Recv has to bring.
	Expect(seq uint64, op string, bytes int)
}

// Crowd is a Teller that tells lengths alone from nearly all workers, since it runs few: what goes from one to all, or
// from all to one, it takes at once. Nothing is behind matrices whose rows travel over it (see ram.Hollow).
type Crowd interface {
	Teller
	// Crowded says whether that is so; else frames are sent and received one by one.
	Crowded() bool
	// Scatter is a Send of so many bytes to each worker of a list but oneself, in its order, and says how many all of them
	// have. frame makes what goes to the worker of a place in the list: it is asked of those that are run.
	Scatter(epoch uint32, op string, to []int, bytes func(k int) int, frame func(k int) (seq uint64, p []byte, err error)) (sent int64, err error)
	// Collect is a Recv of so many bytes from each worker of a list but oneself, in its order. take is told of what came
	// from those that are run.
	Collect(ctx context.Context, epoch uint32, op string, from []int, bytes func(k int) int, take func(k int, seq uint64, op string, p []byte) error) error
}

// Oncer is a Crowd in which one may do for all what every worker finds alike.
type Oncer interface {
	// Once is what make gives, for all that ask for it by this key: the same on every worker, and not to be changed.
	Once(key any, make func() any) any
}

// Ledger counts payload bytes by operation.
type Ledger map[Op]int64

// Add adds another ledger.
func (l Ledger) Add(o map[Op]int64) { l.AddTimes(o, 1) }

// AddTimes adds another ledger so many times.
func (l Ledger) AddTimes(o map[Op]int64, times int64) {
	for op, n := range o {
		if n != 0 {
			l[op] += times * n
		}
	}
}

// Comm is the collectives of one worker in one epoch. Every worker calls them in the same order with the same
// arguments but for its own rows. Sums follow the fixed tree.
type Comm struct {
	Self    int
	Epoch   uint32
	Roster  Roster
	Workers []int // who takes part in every collective, ascending
	Link    Link
	Engine  Engine              // whose matrices travel
	Ledger  Ledger              // payload sent by this worker
	Direct  int                 // collectives up to this many bytes go to everyone in one hop instead of two
	Watch   func() (end func()) // told of every collective, for a benchmark; may be nil
	Clock   func() int64        // nanoseconds; nil: waiting is not counted
	Waited  int64               // nanoseconds that this worker has waited for frames

	teller     Teller                      // the link, if it is one
	crowd      Crowd                       // likewise, where it is crowded
	sent, seen map[int]uint64              // sequence numbers are per pair: two workers may converse unseen by the others
	all        struct{ sent, seen uint64 } // frames to and from every other of Workers at once, beside those
	parts      map[int][]node              // by worker, of the roster
	adding     *addition                   // of the roster, in a crowd
	spans      []engine.Span               // rows that are added up there
	sizes      map[slicing][]int           // of slices
	hosting    *Hosting                    // of the roster
	staging    []engine.Mat                // rows for what was received or added up within a collective
	used       int
	floats     []float32 // of a row on its way through a code
	bytes      []byte
}

// NewComm readies the collectives of an epoch.
func NewComm(self int, epoch uint32, r Roster, workers []int, link Link, e Engine, direct int) *Comm {
	teller, _ := link.(Teller)
	crowd, _ := link.(Crowd)
	if crowd != nil && !crowd.Crowded() {
		crowd = nil
	}
	return &Comm{teller: teller, crowd: crowd, Self: self, Epoch: epoch, Roster: r, Workers: workers, Link: link, Engine: e, Direct: direct,
		Ledger: Ledger{}, sent: map[int]uint64{}, seen: map[int]uint64{}}
}

// Free gives back what the collectives hold of the engine's memory.
func (c *Comm) Free() {
	for _, m := range c.staging {
		c.Engine.Free(m)
	}
	c.staging = nil
}

// Continue makes c the successor of a Comm of the same epoch, which must not be used any more: it goes on in its
// sequence.
func (c *Comm) Continue(from *Comm) {
	for _, w := range from.Workers { // c may have others
		if from.all.sent > 0 {
			from.sent[w] += from.all.sent
		}
		if from.all.seen > 0 {
			from.seen[w] += from.all.seen
		}
	}
	from.all.sent, from.all.seen = 0, 0
	c.sent, c.seen = from.sent, from.seen
}

func (c *Comm) send(to int, op Op, p []byte) error {
	c.sent[to]++
	c.Ledger[op] += int64(len(p))
	if err := c.Link.Send(to, c.Epoch, c.sent[to]+c.all.sent, string(op), p); err != nil {
		return fmt.Errorf("%s: send to worker %d: %w", op, to, err)
	}
	return nil
}

// scatter sends every other worker a frame of so many bytes: frame makes that of the worker of a place in Workers.
func (c *Comm) scatter(op Op, bytes func(k int) int, frame func(k int) ([]byte, error)) error {
	if c.crowd == nil {
		for k, w := range c.Workers {
			if w == c.Self {
				continue
			}
			p, err := frame(k)
			if err == nil {
				err = c.send(w, op, p)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	c.all.sent++
	sent, err := c.crowd.Scatter(c.Epoch, string(op), c.Workers, bytes, func(k int) (uint64, []byte, error) {
		p, err := frame(k)
		return c.sent[c.Workers[k]] + c.all.sent, p, err
	})
	c.Ledger[op] += sent
	if err != nil {
		return fmt.Errorf("%s: send to all: %w", op, err)
	}
	return nil
}

// collect receives a frame of so many bytes from every other worker: take is given that of the worker of a place in
// Workers. Of a crowd's few it is, and the others say nothing.
func (c *Comm) collect(ctx context.Context, op Op, bytes func(k int) int, take func(k int, p []byte) error) error {
	if c.crowd == nil {
		for k, w := range c.Workers {
			if w == c.Self {
				continue
			}
			p, err := c.recv(ctx, w, op, bytes(k))
			if err == nil {
				err = take(k, p)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	c.all.seen++
	defer c.waiting()()
	err := c.crowd.Collect(ctx, c.Epoch, string(op), c.Workers, bytes, func(k int, seq uint64, got string, p []byte) error {
		if err := c.inStep(c.Workers[k], op, c.seen[c.Workers[k]]+c.all.seen, bytes(k), seq, got, p); err != nil {
			return err
		}
		return take(k, p)
	})
	if err != nil {
		return fmt.Errorf("%s: receive from all: %w", op, err)
	}
	return nil
}

// exchanged says that all of an exchange is sent.
func (c *Comm) exchanged(edges []Edge, bytes int) {
	if c.teller != nil {
		c.teller.Sent(edges, bytes)
	}
}

// recv returns the next frame of the pair, which must be op's and of want bytes.
func (c *Comm) recv(ctx context.Context, from int, op Op, want int) ([]byte, error) {
	if c.teller != nil {
		c.teller.Expect(c.seen[from]+c.all.seen+1, string(op), want)
	}
	defer c.waiting()()
	seq, got, p, err := c.Link.Recv(ctx, from, c.Epoch)
	if err != nil {
		return nil, fmt.Errorf("%s: receive from worker %d: %w", op, from, err)
	}
	c.seen[from]++
	return p, c.inStep(from, op, c.seen[from]+c.all.seen, want, seq, got, p)
}

// inStep says whether a frame is the one that is due.
func (c *Comm) inStep(from int, op Op, wantSeq uint64, want int, seq uint64, got string, p []byte) error {
	if seq != wantSeq || got != string(op) || len(p) != want {
		return &ProtocolError{From: from, Op: op, Got: Op(got), Seq: seq, WantSeq: wantSeq, Bytes: len(p), WantBytes: want}
	}
	return nil
}

// ProtocolError says that a peer is not in step: a programming error or a hostile peer, never a lost frame.
type ProtocolError struct {
	From             int
	Op, Got          Op
	Seq, WantSeq     uint64
	Bytes, WantBytes int
}

func (e *ProtocolError) Error() string {
	return fmt.Sprintf("worker %d is out of step: expected %s #%d of %d bytes, got %s #%d of %d bytes",
		e.From, e.Op, e.WantSeq, e.WantBytes, e.Got, e.Seq, e.Bytes)
}

// waiting counts the time until what it returns is called.
func (c *Comm) waiting() func() {
	if c.Clock == nil {
		return func() {}
	}
	began := c.Clock()
	return func() { c.Waited += c.Clock() - began }
}

// watch tells Watch of a collective until what it returns is called.
func (c *Comm) watch() func() {
	if c.Watch == nil {
		return func() {}
	}
	return c.Watch()
}

// leg is what a worker does next for a collective that it has begun: it waits for others, and may send more. Until the
// last one no other collective may begin, so that all workers' frames come in one order; computing in between hides the
// time that frames take.
type leg func(ctx context.Context) error

// legs are those of one collective.
type legs []leg

// take takes all of them, one after the other.
func (l legs) take(ctx context.Context) error {
	for _, t := range l {
		if err := t(ctx); err != nil {
			return err
		}
	}
	return nil
}

// then has the last of them end with what is to be done once all of it is here.
func (l legs) then(end leg) legs {
	if len(l) == 0 {
		return legs{end}
	}
	last := l[len(l)-1]
	l[len(l)-1] = func(ctx context.Context) error {
		if err := last(ctx); err != nil {
			return err
		}
		return end(ctx)
	}
	return l
}

// AllGather brings a record per member to everybody: mine has a row for each member hosted here, all one for each
// member of the roster, in order.
func (c *Comm) AllGather(ctx context.Context, op Op, mine, all engine.Host) error {
	todo, err := c.beginAllGather(op, mine, all)
	if err != nil {
		return err
	}
	return todo.take(ctx)
}

// beginAllGather begins an AllGather; mine is read before it returns, and all is filled by the last leg.
func (c *Comm) beginAllGather(op Op, mine, all engine.Host) (legs, error) {
	defer c.watch()()
	if mine.Type != all.Type || mine.Cols != all.Cols || all.Rows != len(c.Roster.Members) {
		return nil, fmt.Errorf("%s: gather %dx%d %s into %dx%d %s of %d members", op, mine.Rows, mine.Cols, mine.Type, all.Rows, all.Cols, all.Type, len(c.Roster.Members))
	}
	own := engine.AppendRows(nil, mine, 0, mine.Rows)
	if c.allHost() {
		if err := c.scatter(op, func(int) int { return len(own) }, func(int) ([]byte, error) { return slices.Clone(own), nil }); err != nil {
			return nil, err
		}
	} else if mine.Rows > 0 {
		for _, w := range c.Workers {
			if w == c.Self {
				continue
			}
			if err := c.send(w, op, slices.Clone(own)); err != nil {
				return nil, err
			}
		}
	}
	c.exchanged(nil, 0)
	return legs{func(ctx context.Context) error { return c.hearAll(ctx, op, own, all) }}, nil
}

// allHost says that every worker hosts a member, so that each has a frame for each.
func (c *Comm) allHost() bool { return len(c.host().Workers) == len(c.Workers) }

// place puts the rows of a worker's members into those of all.
func (c *Comm) place(all engine.Host, worker int, p []byte) {
	width := all.Cols * all.Type.Size()
	for i, m := range c.hosting.Of(worker) {
		engine.ReadRow(all, engine.Row(c.Roster.Rank(m)), p[i*width:])
	}
}

// hearAll fills all from what the others have sent in an AllGather, and from one's own rows. Of a crowd those that are
// not run say nothing, and theirs are zero.
func (c *Comm) hearAll(ctx context.Context, op Op, own []byte, all engine.Host) error {
	defer c.watch()()
	clear(all.U)
	clear(all.F)
	c.place(all, c.Self, own)
	width := all.Cols * all.Type.Size()
	bytes := func(k int) int { return width * len(c.hosting.Of(c.Workers[k])) }
	take := func(k int, p []byte) error { c.place(all, c.Workers[k], p); return nil }
	if c.allHost() {
		return c.collect(ctx, op, bytes, take)
	}
	for k, w := range c.Workers {
		if w == c.Self || len(c.hosting.Of(w)) == 0 {
			continue
		}
		p, err := c.recv(ctx, w, op, bytes(k))
		if err == nil {
			err = take(k, p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
