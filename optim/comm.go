package optim

import (
	"context"
	"fmt"

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

	teller     Teller         // the link, if it is one
	sent, seen map[int]uint64 // sequence numbers are per pair: two workers may converse unseen by the others
	parts      map[int][]node // by worker, of the roster
	hosting    *Hosting       // of the roster
	staging    []engine.Mat   // rows for what was received or added up within a collective
	used       int
	floats     []float32 // of a row on its way through a code
	bytes      []byte
}

// NewComm readies the collectives of an epoch.
func NewComm(self int, epoch uint32, r Roster, workers []int, link Link, e Engine, direct int) *Comm {
	teller, _ := link.(Teller)
	return &Comm{teller: teller, Self: self, Epoch: epoch, Roster: r, Workers: workers, Link: link, Engine: e, Direct: direct,
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
func (c *Comm) Continue(from *Comm) { c.sent, c.seen = from.sent, from.seen }

func (c *Comm) send(to int, op Op, p []byte) error {
	c.sent[to]++
	c.Ledger[op] += int64(len(p))
	if err := c.Link.Send(to, c.Epoch, c.sent[to], string(op), p); err != nil {
		return fmt.Errorf("%s: send to worker %d: %w", op, to, err)
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
		c.teller.Expect(c.seen[from]+1, string(op), want)
	}
	seq, got, p, err := c.Link.Recv(ctx, from, c.Epoch)
	if err != nil {
		return nil, fmt.Errorf("%s: receive from worker %d: %w", op, from, err)
	}
	c.seen[from]++
	if seq != c.seen[from] || got != string(op) || len(p) != want {
		return nil, &ProtocolError{From: from, Op: op, Got: Op(got), Seq: seq, WantSeq: c.seen[from], Bytes: len(p), WantBytes: want}
	}
	return p, nil
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

// watch tells Watch of a collective until what it returns is called.
func (c *Comm) watch() func() {
	if c.Watch == nil {
		return func() {}
	}
	return c.Watch()
}

// turn is what a worker does next for a collective that it has begun: it waits for others, and may send more. Until the
// last one no other collective may begin, so that all workers' frames come in one order; computing in between hides the
// time that frames take.
type turn func(ctx context.Context) error

// take takes all turns, one after the other.
func take(ctx context.Context, turns []turn) error {
	for _, t := range turns {
		if err := t(ctx); err != nil {
			return err
		}
	}
	return nil
}

// then has the last of the turns end with what is to be done once all of it is here.
func then(turns []turn, end turn) []turn {
	if len(turns) == 0 {
		return []turn{end}
	}
	last := turns[len(turns)-1]
	turns[len(turns)-1] = func(ctx context.Context) error {
		if err := last(ctx); err != nil {
			return err
		}
		return end(ctx)
	}
	return turns
}

// AllGather brings a record per member to everybody: mine has a row for each member hosted here, all one for each
// member of the roster, in order.
func (c *Comm) AllGather(ctx context.Context, op Op, mine, all engine.Host) error {
	turns, err := c.beginAllGather(op, mine, all)
	if err != nil {
		return err
	}
	return take(ctx, turns)
}

// beginAllGather begins an AllGather; mine is read before it returns, and all is filled by the last turn.
func (c *Comm) beginAllGather(op Op, mine, all engine.Host) ([]turn, error) {
	defer c.watch()()
	if mine.Type != all.Type || mine.Cols != all.Cols || all.Rows != len(c.Roster.Members) {
		return nil, fmt.Errorf("%s: gather %dx%d %s into %dx%d %s of %d members", op, mine.Rows, mine.Cols, mine.Type, all.Rows, all.Cols, all.Type, len(c.Roster.Members))
	}
	for _, w := range c.Workers {
		if w != c.Self && mine.Rows > 0 {
			if err := c.send(w, op, engine.AppendRows(nil, mine, 0, mine.Rows)); err != nil {
				return nil, err
			}
		}
	}
	c.exchanged(nil, 0)
	own := engine.AppendRows(nil, mine, 0, mine.Rows)
	return []turn{func(ctx context.Context) error { return c.hearAll(ctx, op, own, all) }}, nil
}

// hearAll fills all from what the others have sent in an AllGather, and from one's own rows.
func (c *Comm) hearAll(ctx context.Context, op Op, own []byte, all engine.Host) error {
	defer c.watch()()
	if c.hosting == nil {
		h := c.Roster.Hosting()
		c.hosting = &h
	}
	width := all.Cols * all.Type.Size()
	for _, w := range c.Workers {
		host := c.hosting.Of(w)
		if len(host) == 0 {
			continue
		}
		p := own
		if w != c.Self {
			var err error
			if p, err = c.recv(ctx, w, op, width*len(host)); err != nil {
				return err
			}
		}
		for i, m := range host {
			engine.ReadRow(all, engine.Row(c.Roster.Rank(m)), p[i*width:])
		}
	}
	return nil
}
