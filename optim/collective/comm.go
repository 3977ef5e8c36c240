package collective

import (
	"context"
	"fmt"
	"slices"

	"brood/models/engine"
)

// Link is a worker's transport. Frames from one worker to another arrive in the order they were sent. Send takes
// ownership of p and never waits for the peer, so a program sends everything and then receives. Recv discards frames of
// epochs older than the requested one and buffers frames of newer ones. It returns when a frame of the requested epoch
// is available or ctx ends.
type Link interface {
	Send(to int, epoch uint32, seq uint64, op string, p []byte) error
	Recv(ctx context.Context, from int, epoch uint32) (seq uint64, op string, p []byte, err error)
}

// Teller is implemented by simulated links. The program announces each exchange so that the simulator can synthesize
// frames of workers it does not execute.
type Teller interface {
	Link
	// Sent announces that this worker has sent all its frames of an exchange; the frames received next belong to it. All
	// workers of an epoch announce the same exchanges in the same order. The exchange sends rows of the given size in
	// bytes along edges; nil edges mean all-to-all.
	Sent(edges []Edge, bytes int)
	// Expect announces the sequence number, operation and size in bytes of the frame that the next Recv must return.
	Expect(seq uint64, op string, bytes int)
}

// Crowd is a Teller for a simulated fleet of which only a few workers are executed. It knows only the frame lengths of
// the others, and handles one-to-all and all-to-one transfers in one call each. Matrices whose rows it carries have no
// storage (see ram.Hollow).
type Crowd interface {
	Teller
	// Crowded reports whether Scatter and Collect apply; if not, frames are sent and received one by one.
	Crowded() bool
	// Scatter sends bytes(k) bytes to each worker to[k] except the caller, in list order, and returns the total number of
	// bytes. frame(k) builds the frame for to[k]; it is called only for executed workers.
	Scatter(epoch uint32, op string, to []int, bytes func(k int) int, frame func(k int) (seq uint64, p []byte, err error)) (sent int64, err error)
	// Collect receives bytes(k) bytes from each worker from[k] except the caller, in list order. It calls take(k) with the
	// frame of each executed worker.
	Collect(ctx context.Context, epoch uint32, op string, from []int, bytes func(k int) int, take func(k int, seq uint64, op string, p []byte) error) error
}

// Oncer is implemented by a Crowd that computes values common to all workers only once.
type Oncer interface {
	// Once returns the result of make, shared by all callers with this key. The result must be the same on every worker
	// and must not be modified.
	Once(key any, make func() any) any
}

// Ledger counts payload bytes by operation.
type Ledger map[Op]int64

// Add adds another ledger.
func (l Ledger) Add(o map[Op]int64) { l.AddTimes(o, 1) }

// AddTimes adds another ledger, multiplied by times.
func (l Ledger) AddTimes(o map[Op]int64, times int64) {
	for op, n := range o {
		if n != 0 {
			l[op] += times * n
		}
	}
}

// Comm provides the collectives of one worker in one epoch. Every worker must call them in the same order with the same
// arguments, except for its own rows. Sums follow the fixed tree.
type Comm struct {
	Self    int
	Epoch   uint32
	Roster  Roster
	Workers []int // participants of every collective, ascending
	Link    Link
	Engine  engine.Engine       // owner of the matrices that the collectives read and write
	Ledger  Ledger              // payload sent by this worker
	Direct  int                 // collectives of at most this many bytes take one hop instead of two
	Watch   func() (end func()) // called at the start of every collective, end at its end, for a benchmark; may be nil
	Clock   func() int64        // nanoseconds; nil: waiting is not measured
	Waited  int64               // nanoseconds that this worker spent waiting for frames

	teller     Teller                      // Link, if it implements Teller; else nil
	crowd      Crowd                       // Link, if it implements Crowd and Crowded reports true; else nil
	sent, seen map[int]uint64              // last sequence numbers per peer: a pair may exchange frames without the others
	all        struct{ sent, seen uint64 } // frames to and from all peers at once, added to the counts per peer
	parts      map[int][]node              // subtrees by worker, for Roster
	adding     *addition                   // for Roster, in a simulated fleet
	spans      []engine.Span               // summands of adding
	sizes      map[slicing][]int           // bytes of each worker's slice
	hosting    *Hosting                    // of Roster
	staging    []engine.Mat                // rows for received frames and partial sums of a collective
	used       int                         // rows of staging in use
	floats     []float32                   // buffers for one row that is encoded or decoded
	bytes      []byte
}

// NewComm returns the collectives of an epoch. The link may implement Teller or Crowd.
func NewComm(self int, epoch uint32, r Roster, workers []int, link Link, e engine.Engine, direct int) *Comm {
	teller, _ := link.(Teller)
	crowd, _ := link.(Crowd)
	if crowd != nil && !crowd.Crowded() {
		crowd = nil
	}
	return &Comm{
		Self:    self,
		Epoch:   epoch,
		Roster:  r,
		Workers: workers,
		Link:    link,
		Engine:  e,
		Ledger:  Ledger{},
		Direct:  direct,
		teller:  teller,
		crowd:   crowd,
		sent:    map[int]uint64{},
		seen:    map[int]uint64{},
	}
}

// Free releases the engine memory that the collectives allocated.
func (c *Comm) Free() {
	for _, m := range c.staging {
		c.Engine.Free(m)
	}
	c.staging = nil
}

// Continue makes c the successor of from, a Comm of the same epoch: c continues its sequence numbers. from must not be
// used afterwards.
func (c *Comm) Continue(from *Comm) {
	for _, w := range from.Workers { // c may have other workers
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

// scatter sends a frame to every other worker: frame(k) builds the frame for Workers[k], of bytes(k) bytes.
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

// collect receives a frame of bytes(k) bytes from every other worker Workers[k] and passes it to take(k). In a
// simulated fleet it calls take only for executed workers.
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

// exchanged announces to the simulator, if any, that this worker has sent all its frames of an exchange.
func (c *Comm) exchanged(edges []Edge, bytes int) {
	if c.teller != nil {
		c.teller.Sent(edges, bytes)
	}
}

// recv returns the next frame from a worker. It fails with a ProtocolError unless the frame has operation op and want
// bytes.
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

// inStep returns a ProtocolError unless a frame has the expected operation, sequence number and size.
func (c *Comm) inStep(from int, op Op, wantSeq uint64, want int, seq uint64, got string, p []byte) error {
	if seq != wantSeq || got != string(op) || len(p) != want {
		return &ProtocolError{From: from, Op: op, Got: Op(got), Seq: seq, WantSeq: wantSeq, Bytes: len(p), WantBytes: want}
	}
	return nil
}

// ProtocolError reports a frame other than the expected one. The cause is a programming error or a hostile peer, never
// a lost frame.
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

// waiting starts a timer and returns a function that stops it and adds the time to Waited.
func (c *Comm) waiting() func() {
	if c.Clock == nil {
		return func() {}
	}
	began := c.Clock()
	return func() { c.Waited += c.Clock() - began }
}

// watch calls Watch, if set, and returns the function to call at the end of the collective.
func (c *Comm) watch() func() {
	if c.Watch == nil {
		return func() {}
	}
	return c.Watch()
}

// phase is the next step of a collective that has begun: it waits for frames and may send more. No other collective may
// begin before the last phase has run, so that the frames of all workers arrive in one order. Computing between phases
// hides the transfer time.
type phase func(ctx context.Context) error

// phases are the phases of one collective, in order.
type Phases []phase

// run runs all phases in order and stops at the first error.
func (l Phases) Run(ctx context.Context) error {
	for _, t := range l {
		if err := t(ctx); err != nil {
			return err
		}
	}
	return nil
}

// then appends end to the last phase, so that it runs once all frames have arrived.
func (l Phases) Then(end phase) Phases {
	if len(l) == 0 {
		return Phases{end}
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

// AllGather sends one row per member to every worker. mine has a row for each member hosted here; all receives a row
// for each member of the roster, in roster order.
func (c *Comm) AllGather(ctx context.Context, op Op, mine, all engine.Host) error {
	todo, err := c.BeginAllGather(op, mine, all)
	if err != nil {
		return err
	}
	return todo.Run(ctx)
}

// BeginAllGather begins an AllGather. It reads mine before it returns; the last phase fills all.
func (c *Comm) BeginAllGather(op Op, mine, all engine.Host) (Phases, error) {
	defer c.watch()()
	if mine.Type != all.Type || mine.Cols != all.Cols || all.Rows != len(c.Roster.Members) {
		return nil, fmt.Errorf("%s: gather %dx%d %s into %dx%d %s of %d members",
			op, mine.Rows, mine.Cols, mine.Type, all.Rows, all.Cols, all.Type, len(c.Roster.Members))
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
	return Phases{func(ctx context.Context) error { return c.receiveAll(ctx, op, own, all) }}, nil
}

// allHost reports whether every worker hosts a member, so that each sends a frame to each.
func (c *Comm) allHost() bool { return len(c.host().Workers) == len(c.Workers) }

// place decodes p, the rows of a worker's members, into their rows of all.
func (c *Comm) place(all engine.Host, worker int, p []byte) {
	width := all.Cols * all.Type.Size()
	for i, m := range c.hosting.Of(worker) {
		engine.ReadRow(all, engine.Row(c.Roster.Rank(m)), p[i*width:])
	}
}

// receiveAll fills all with this worker's rows and the rows received from the others in an AllGather. In a simulated
// fleet the rows of workers that are not executed are zero.
func (c *Comm) receiveAll(ctx context.Context, op Op, own []byte, all engine.Host) error {
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
