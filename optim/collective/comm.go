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

// Ledger counts payload bytes by operation.
type Ledger map[Op]int64

// Add adds another ledger.
func (l Ledger) Add(o map[Op]int64) {
	for op, n := range o {
		if n != 0 {
			l[op] += n
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
	Engine  engine.Engine // owner of the matrices that the collectives read and write
	Ledger  Ledger        // payload sent by this worker
	Direct  int           // collectives of at most this many bytes take one hop instead of two
	Clock   func() int64  // nanoseconds; nil: waiting is not measured
	Waited  int64         // nanoseconds that this worker spent waiting for frames

	sent, seen map[int]uint64    // last sequence numbers per peer: a pair may exchange frames without the others
	parts      map[int][]node    // subtrees by worker, for Roster
	trees      *relays           // of Roster and Workers; nil: no two workers are on one machine
	groups     map[int][]node    // subtrees of a worker and those below it, for Roster
	byMachine  map[int][]node    // subtrees by first worker of a machine, for Roster
	sizes      map[slicing][]int // bytes of each worker's slice
	hosting    *Hosting          // of Roster
	staging    []engine.Mat      // rows for received frames and partial sums of a collective
	used       int               // rows of staging in use
	floats     []float32         // buffers for one row that is encoded or decoded
	bytes      []byte
}

// NewComm returns the collectives of an epoch.
func NewComm(self int, epoch uint32, r Roster, workers []int, link Link, e engine.Engine, direct int) *Comm {
	return &Comm{
		Self:    self,
		Epoch:   epoch,
		Roster:  r,
		Workers: workers,
		Link:    link,
		Engine:  e,
		Ledger:  Ledger{},
		Direct:  direct,
		sent:    map[int]uint64{},
		seen:    map[int]uint64{},
		trees:   relaysOf(r, workers),
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
	c.sent, c.seen = from.sent, from.seen
}

func (c *Comm) send(to int, op Op, p []byte) error {
	c.sent[to]++
	c.Ledger[op] += int64(len(p))
	if err := c.Link.Send(to, c.Epoch, c.sent[to], string(op), p); err != nil {
		return fmt.Errorf("%s: send to worker %d: %w", op, to, err)
	}
	return nil
}

// sendAll sends p to every other one of some workers.
func (c *Comm) sendAll(workers []int, op Op, p []byte) error {
	for _, w := range workers {
		if w == c.Self {
			continue
		}
		if err := c.send(w, op, slices.Clone(p)); err != nil {
			return err
		}
	}
	return nil
}

// recv returns the next frame from a worker. It fails with a ProtocolError unless the frame has operation op and want
// bytes.
func (c *Comm) recv(ctx context.Context, from int, op Op, want int) ([]byte, error) {
	defer c.waiting()()
	seq, got, p, err := c.Link.Recv(ctx, from, c.Epoch)
	if err != nil {
		return nil, fmt.Errorf("%s: receive from worker %d: %w", op, from, err)
	}
	c.seen[from]++
	return p, c.inStep(from, op, c.seen[from], want, seq, got, p)
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

// phase is the next step of a collective that has begun: it waits for frames and may send more. No other collective may
// begin before the last phase has run, so that the frames of all workers arrive in one order. Computing between phases
// hides the transfer time.
type phase func(ctx context.Context) error

// Phases are the steps of one collective, in order.
type Phases []phase

// Run runs all phases in order and stops at the first error.
func (l Phases) Run(ctx context.Context) error {
	for _, t := range l {
		if err := t(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Then appends end to the last phase, so that it runs once all frames have arrived.
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
	if mine.Type != all.Type || mine.Cols != all.Cols || all.Rows != len(c.Roster.Members) {
		return nil, fmt.Errorf("%s: gather %dx%d %s into %dx%d %s of %d members",
			op, mine.Rows, mine.Cols, mine.Type, all.Rows, all.Cols, all.Type, len(c.Roster.Members))
	}
	own, width := engine.AppendRows(nil, mine, 0, mine.Rows), all.Cols*all.Type.Size()
	place := func(worker int, p []byte) error {
		for i, m := range c.host().Of(worker) {
			engine.ReadRow(all, engine.Row(c.Roster.Rank(m)), p[i*width:])
		}
		return nil
	}
	todo, err := c.shareAll(op, width*all.Rows, own, func(worker int) int { return width * len(c.host().Of(worker)) },
		place)
	if err != nil {
		return nil, err
	}
	return todo.Then(func(context.Context) error { return place(c.Self, own) }), nil
}

// shareAll begins to send own to every other worker, and passes the shares of the others to take once the phases have
// run. A worker's share has size(worker) bytes, all of them together have total; without bytes there is no frame.
func (c *Comm) shareAll(op Op, total int, own []byte, size func(worker int) int,
	take func(worker int, p []byte) error) (Phases, error) {
	if len(c.Workers) == 1 {
		return nil, nil
	}
	if t := c.relays(total); t != nil {
		return c.relayShares(t, op, own, size, take)
	}
	if len(own) > 0 {
		if err := c.sendAll(c.Workers, op, own); err != nil {
			return nil, err
		}
	}
	return Phases{func(ctx context.Context) error {
		for _, w := range c.Workers {
			n := size(w)
			if w == c.Self || n == 0 {
				continue
			}
			p, err := c.recv(ctx, w, op, n)
			if err == nil {
				err = take(w, p)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}}, nil
}
