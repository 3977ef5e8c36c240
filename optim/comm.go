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
	Ledger  Ledger              // payload sent by this worker
	Direct  int                 // collectives up to this many bytes go to everyone in one hop instead of two
	Watch   func() (end func()) // told of every collective, for a benchmark; may be nil

	sent, seen map[int]uint64 // sequence numbers are per pair: two workers may converse unseen by the others
	parts      map[int][]node
	bufs       [][]float32
	used       int
	free       [][]float32 // of bufs, given back within a collective
}

// NewComm readies the collectives of an epoch.
func NewComm(self int, epoch uint32, r Roster, workers []int, link Link, direct int) *Comm {
	return &Comm{Self: self, Epoch: epoch, Roster: r, Workers: workers, Link: link, Direct: direct,
		Ledger: Ledger{}, sent: map[int]uint64{}, seen: map[int]uint64{}}
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

// recv returns the next frame of the pair, which must be op's and of want bytes.
func (c *Comm) recv(ctx context.Context, from int, op Op, want int) ([]byte, error) {
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

// partsFor caches the subtrees for the roster of the epoch.
func (c *Comm) partsFor(r Roster, w int) []node {
	if !sameRoster(r, c.Roster) {
		return partsOf(r, w)
	}
	if c.parts == nil {
		c.parts = map[int][]node{}
	}
	p, ok := c.parts[w]
	if !ok {
		p = partsOf(r, w)
		c.parts[w] = p
	}
	return p
}

func sameRoster(a, b Roster) bool {
	return len(a.Members) == len(b.Members) && (len(a.Members) == 0 || &a.Members[0] == &b.Members[0] && &a.Owner[0] == &b.Owner[0])
}

// vector is scratch of n floats until the collective ends.
func (c *Comm) vector(n int) []float32 {
	if c.used == len(c.bufs) {
		c.bufs = append(c.bufs, nil)
	}
	if cap(c.bufs[c.used]) < n {
		c.bufs[c.used] = make([]float32, n)
	}
	c.used++
	return c.bufs[c.used-1][:n]
}

// spare is vectors of n floats until the collective ends.
type spare struct {
	c *Comm
	n int
}

func (s spare) take() []float32 {
	if last := len(s.c.free) - 1; last >= 0 && cap(s.c.free[last]) >= s.n {
		v := s.c.free[last][:s.n]
		s.c.free = s.c.free[:last]
		return v
	}
	return s.c.vector(s.n)
}

func (s spare) give(v []float32) { s.c.free = append(s.c.free, v) }

// watch tells Watch of a collective until what it returns is called.
func (c *Comm) watch() func() {
	if c.Watch == nil {
		return func() {}
	}
	return c.Watch()
}

// AllReduce sums one row of src per leaf of the roster into dst (1 x src.Cols), the same bits on every worker. src holds
// a row for each leaf hosted here, in order. With mean the sum is divided by the number of leaves.
func (c *Comm) AllReduce(ctx context.Context, op Op, leaves Roster, src, dst engine.Mat, mean bool) error {
	return c.reduce(ctx, op, leaves, src, dst, mean, Float32)
}

// reduce is AllReduce through a code.
func (c *Comm) reduce(ctx context.Context, op Op, leaves Roster, src, dst engine.Mat, mean bool, code Code) error {
	defer c.watch()()
	m, ws := src.Cols, c.Workers
	me := slices.Index(ws, c.Self)
	mine := leaves.Hosted(c.Self)
	if me < 0 || src.Rows != len(mine) || dst.Cols != m {
		return fmt.Errorf("%s: worker %d sums %d rows of %d into %d columns for %d leaves", op, c.Self, src.Rows, m, dst.Cols, len(mine))
	}
	c.used, c.free = 0, c.free[:0]
	row := func(n node) ([]float32, bool) {
		if n.level == 0 {
			if i, ok := slices.BinarySearch(mine, n.prefix); ok {
				return c.rounded(src.Row(engine.Row(i)), code)
			}
		}
		return nil, false
	}
	parts := c.partsFor(leaves, c.Self)
	known := make(map[node][]float32, len(parts)+len(ws))
	for _, n := range parts {
		known[n], _ = sumTree(leaves, n, row, spare{c, m}, code)
	}
	slice := func(k int) (int, int) { return code.cut(m, k, len(ws)) }
	direct := code.size(m) <= c.Direct
	if direct {
		slice = func(int) (int, int) { return 0, m }
	}
	for k, w := range ws {
		if w == c.Self || len(parts) == 0 {
			continue
		}
		lo, hi := slice(k)
		buf := make([]byte, 0, code.size(hi-lo)*len(parts))
		for _, n := range parts {
			buf = code.append(buf, known[n][lo:hi])
		}
		if err := c.send(w, op, buf); err != nil {
			return err
		}
	}
	lo, hi := slice(me)
	for n, v := range known {
		known[n] = v[lo:hi]
	}
	for _, w := range ws {
		theirs := c.partsFor(leaves, w)
		if w == c.Self || len(theirs) == 0 {
			continue
		}
		p, err := c.recv(ctx, w, op, code.size(hi-lo)*len(theirs))
		if err != nil {
			return err
		}
		for i, n := range theirs {
			v := c.vector(hi - lo)
			code.read(v, p[i*code.size(hi-lo):])
			known[n] = v
		}
	}
	total, _ := sumTree(leaves, rootOf(leaves), func(n node) ([]float32, bool) { return known[n], false }, spare{c, hi - lo}, code)
	out := dst.Row(0)[lo:hi]
	if d := float32(len(leaves.Members)); mean {
		for i, x := range total {
			out[i] = x / d
		}
	} else {
		copy(out, total)
	}
	code.round(out)
	if direct || len(ws) == 1 {
		return nil
	}
	return c.gather(ctx, op, dst, code)
}

// rounded is v as a code can write it; v itself is not touched. ours says that it is scratch.
func (c *Comm) rounded(v []float32, code Code) (out []float32, ours bool) {
	if code == Float32 {
		return v, false
	}
	out = spare{c, len(v)}.take()
	copy(out, v)
	code.round(out)
	return out, true
}

// Slice is the columns [lo, hi) of a vector of m that this worker computes in a sliced reduction.
func (c *Comm) Slice(m int) (lo, hi int) {
	return cut(m, slices.Index(c.Workers, c.Self), len(c.Workers))
}

// GatherSlices completes v (1 row), of which each worker holds its Slice.
func (c *Comm) GatherSlices(ctx context.Context, op Op, v engine.Mat) error {
	defer c.watch()()
	return c.gather(ctx, op, v, Float32)
}

func (c *Comm) gather(ctx context.Context, op Op, v engine.Mat, code Code) error {
	lo, hi := code.cut(v.Cols, slices.Index(c.Workers, c.Self), len(c.Workers))
	for _, w := range c.Workers {
		if w != c.Self {
			if err := c.send(w, op, code.append(nil, v.Row(0)[lo:hi])); err != nil {
				return err
			}
		}
	}
	for k, w := range c.Workers {
		if w != c.Self {
			a, b := code.cut(v.Cols, k, len(c.Workers))
			p, err := c.recv(ctx, w, op, code.size(b-a))
			if err != nil {
				return err
			}
			code.read(v.Row(0)[a:b], p)
		}
	}
	return nil
}

// AllGather brings a record per member to everybody: mine has a row for each member hosted here, all one for each member
// of the roster, in order.
func (c *Comm) AllGather(ctx context.Context, op Op, mine, all engine.Mat) error {
	defer c.watch()()
	if mine.Type != all.Type || mine.Cols != all.Cols || all.Rows != len(c.Roster.Members) {
		return fmt.Errorf("%s: gather %dx%d %s into %dx%d %s of %d members", op, mine.Rows, mine.Cols, mine.Type, all.Rows, all.Cols, all.Type, len(c.Roster.Members))
	}
	for _, w := range c.Workers {
		if w != c.Self && mine.Rows > 0 {
			if err := c.send(w, op, appendRows(nil, mine, 0, mine.Rows)); err != nil {
				return err
			}
		}
	}
	width := mine.Cols * mine.Type.Size()
	for _, w := range c.Workers {
		host := c.Roster.Hosted(w)
		if len(host) == 0 {
			continue
		}
		p := []byte(nil)
		if w == c.Self {
			p = appendRows(nil, mine, 0, mine.Rows)
		} else {
			var err error
			if p, err = c.recv(ctx, w, op, width*len(host)); err != nil {
				return err
			}
		}
		for i, m := range host {
			readRow(all, engine.Row(c.Roster.Rank(m)), p[i*width:])
		}
	}
	return nil
}

// Incoming lists the edges that end at a member hosted by worker w: their order is that of Move's dst rows.
func Incoming(edges []Edge, to Roster, w int) (in []Edge) {
	for _, e := range edges {
		if to.Of(e.To) == w {
			in = append(in, e)
		}
	}
	return
}

// Move sends rows along edges that every worker lists alike. src has a row for each member hosted here; row i of dst
// becomes the row of the source of this worker's i-th incoming edge. A row goes to a worker once, however many of its
// members want it; rows that stay on a worker cost nothing. dst must not share memory with src.
func (c *Comm) Move(ctx context.Context, op Op, edges []Edge, src, dst engine.Mat) error {
	return c.MoveBetween(ctx, op, c.Roster, c.Roster, edges, src, dst)
}

// MoveBetween is Move from one roster to another: src rows follow from, dst rows follow to.
func (c *Comm) MoveBetween(ctx context.Context, op Op, from, to Roster, edges []Edge, src, dst engine.Mat) error {
	defer c.watch()()
	mine := from.Hosted(c.Self)
	local := func(m Member) engine.Row {
		i, ok := slices.BinarySearch(mine, m)
		if !ok {
			return -1
		}
		return engine.Row(i)
	}
	type parcel struct {
		m Member
		w int
	}
	shipped := map[parcel]bool{}
	for _, e := range edges {
		a, b := from.Of(e.From), to.Of(e.To)
		if p := (parcel{e.From, b}); a == c.Self && b != c.Self && !shipped[p] {
			shipped[p] = true
			if err := c.send(b, op, appendRows(nil, src, int(local(e.From)), 1)); err != nil {
				return err
			}
		}
	}
	width, i := src.Cols*src.Type.Size(), engine.Row(0)
	if src.Rows == 0 {
		width = dst.Cols * dst.Type.Size()
	}
	got := map[Member][]byte{}
	for _, e := range edges {
		if to.Of(e.To) != c.Self {
			continue
		}
		if int(i) >= dst.Rows {
			return fmt.Errorf("%s: %d rows for more incoming edges", op, dst.Rows)
		}
		if a := from.Of(e.From); a == c.Self {
			if err := engine.CopyHost(engine.Span{Mat: dst, Row: i, Rows: 1, Hi: dst.Cols}, engine.Span{Mat: src, Row: local(e.From), Rows: 1, Hi: src.Cols}); err != nil {
				return err
			}
		} else {
			p, ok := got[e.From]
			if !ok {
				var err error
				if p, err = c.recv(ctx, a, op, width); err != nil {
					return err
				}
				got[e.From] = p
			}
			readRow(dst, i, p)
		}
		i++
	}
	return nil
}
