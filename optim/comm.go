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
	Engine  Engine              // whose matrices travel
	Ledger  Ledger              // payload sent by this worker
	Direct  int                 // collectives up to this many bytes go to everyone in one hop instead of two
	Watch   func() (end func()) // told of every collective, for a benchmark; may be nil

	sent, seen map[int]uint64 // sequence numbers are per pair: two workers may converse unseen by the others
	parts      map[int][]node
	staging    []engine.Mat // rows for what was received or added up within a collective
	used       int
	floats     []float32 // of a row on its way through a code
	bytes      []byte
}

// NewComm readies the collectives of an epoch.
func NewComm(self int, epoch uint32, r Roster, workers []int, link Link, e Engine, direct int) *Comm {
	return &Comm{Self: self, Epoch: epoch, Roster: r, Workers: workers, Link: link, Engine: e, Direct: direct,
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

// stage is a row of n columns until the collective ends.
func (c *Comm) stage(n int) (engine.Span, error) {
	if c.used == len(c.staging) {
		c.staging = append(c.staging, engine.Mat{})
	}
	m := &c.staging[c.used]
	if m.Cols < max(1, n) {
		if m.Cols > 0 {
			c.Engine.Free(*m)
		}
		fresh, err := c.Engine.Alloc(1, max(1, n))
		if err != nil {
			*m = engine.Mat{}
			return engine.Span{}, err
		}
		*m = fresh
	}
	c.used++
	return engine.Span{Mat: *m, Rows: 1, Hi: n}, nil
}

// watch tells Watch of a collective until what it returns is called.
func (c *Comm) watch() func() {
	if c.Watch == nil {
		return func() {}
	}
	return c.Watch()
}

// AllReduce sums one row of src per leaf of the roster into dst (1 x src.Cols), the same bits on every worker. src holds
// a row for each leaf hosted here, in order. With mean the sum is divided by the number of leaves. Alone, nothing leaves the engine.
func (c *Comm) AllReduce(ctx context.Context, op Op, leaves Roster, src, dst engine.Mat, mean bool) error {
	return c.reduce(ctx, op, leaves, src, dst, mean, engine.Float32)
}

// reduce is AllReduce through a code.
func (c *Comm) reduce(ctx context.Context, op Op, leaves Roster, src, dst engine.Mat, mean bool, code engine.Code) error {
	defer c.watch()()
	m, ws := src.Cols, c.Workers
	me := slices.Index(ws, c.Self)
	mine := leaves.Hosted(c.Self)
	if me < 0 || src.Rows != len(mine) || dst.Cols != m {
		return fmt.Errorf("%s: worker %d sums %d rows of %d into %d columns for %d leaves", op, c.Self, src.Rows, m, dst.Cols, len(mine))
	}
	c.used = 0
	s := reduction{c: c, leaves: leaves, code: code}
	if mean {
		s.div = float32(len(leaves.Members))
	}
	local := map[node]engine.Span{}
	for i, leaf := range mine {
		local[node{0, leaf}] = engine.RowOf(src, engine.Row(i))
	}
	if len(ws) == 1 {
		return s.add(ctx, rootOf(leaves), local, engine.All(dst), s.div)
	}
	parts := c.partsFor(leaves, c.Self)
	known, err := s.parts(ctx, parts, local, m)
	if err != nil {
		return err
	}
	slice := func(k int) (int, int) { return code.Cut(m, k, len(ws)) }
	direct := code.Size(m) <= c.Direct
	if direct {
		slice = func(int) (int, int) { return 0, m }
	}
	if err := s.tell(ctx, op, parts, known, slice); err != nil {
		return err
	}
	lo, hi := slice(me)
	for n, v := range known {
		v.Lo, v.Hi = lo, hi
		known[n] = v
	}
	if err := s.hear(ctx, op, known, hi-lo); err != nil {
		return err
	}
	if err := s.add(ctx, rootOf(leaves), known, engine.Span{Mat: dst, Rows: 1, Lo: lo, Hi: hi}, s.div); err != nil || direct {
		return err
	}
	return c.gather(ctx, op, dst, code)
}

// reduction is one call of reduce.
type reduction struct {
	c      *Comm
	leaves Roster
	code   engine.Code
	div    float32
}

// add writes the sum of node n into dst, from rows that are known.
func (s reduction) add(ctx context.Context, n node, known map[node]engine.Span, dst engine.Span, div float32) error {
	src, tree := sumTree(s.leaves, n, func(n node) bool { _, ok := known[n]; return ok })
	if len(src) == 0 {
		return nil
	}
	t := engine.Sum{Dst: dst, Tree: tree, Div: div, Code: s.code}
	for _, n := range src {
		t.Src = append(t.Src, known[n])
	}
	return s.c.Engine.Do(ctx, t)
}

// parts adds up the subtrees that are hosted here. One that is an exact row needs no sum.
func (s reduction) parts(ctx context.Context, parts []node, local map[node]engine.Span, cols int) (map[node]engine.Span, error) {
	known := make(map[node]engine.Span, len(parts)+len(s.c.Workers))
	for _, n := range parts {
		if row, ok := local[n]; ok && s.code == engine.Float32 {
			known[n] = row
			continue
		}
		row, err := s.c.stage(cols)
		if err == nil {
			err = s.add(ctx, n, local, row, 0)
		}
		if err != nil {
			return nil, err
		}
		known[n] = row
	}
	return known, nil
}

// tell sends every other worker its slice of the parts.
func (s reduction) tell(ctx context.Context, op Op, parts []node, known map[node]engine.Span, slice func(k int) (lo, hi int)) error {
	if len(parts) == 0 {
		return nil
	}
	var buf []byte
	from, to := -1, -1 // the columns that are in buf: of one hop, everybody gets the same
	for k, w := range s.c.Workers {
		if w == s.c.Self {
			continue
		}
		if lo, hi := slice(k); lo == from && hi == to {
			buf = slices.Clone(buf)
		} else {
			from, to, buf = lo, hi, make([]byte, 0, s.code.Size(hi-lo)*len(parts))
			for _, n := range parts {
				row := known[n]
				row.Lo, row.Hi = row.Lo+lo, row.Lo+hi
				var err error
				if buf, err = s.c.fetch(ctx, buf, row, s.code); err != nil {
					return err
				}
			}
		}
		if err := s.c.send(w, op, buf); err != nil {
			return err
		}
	}
	return nil
}

// hear adds every other worker's parts to those that are known, wide columns of each.
func (s reduction) hear(ctx context.Context, op Op, known map[node]engine.Span, wide int) error {
	for _, w := range s.c.Workers {
		theirs := s.c.partsFor(s.leaves, w)
		if w == s.c.Self || len(theirs) == 0 {
			continue
		}
		size := s.code.Size(wide)
		p, err := s.c.recv(ctx, w, op, size*len(theirs))
		if err != nil {
			return err
		}
		for i, n := range theirs {
			row, err := s.c.stage(wide)
			if err == nil {
				err = s.c.put(ctx, row, p[i*size:(i+1)*size], s.code)
			}
			if err != nil {
				return err
			}
			known[n] = row
		}
	}
	return nil
}

// fetch appends a row of the engine's as it travels.
func (c *Comm) fetch(ctx context.Context, p []byte, row engine.Span, code engine.Code) ([]byte, error) {
	if code == engine.Float32 {
		at := len(p)
		p = slices.Grow(p, row.Bytes())[:at+row.Bytes()]
		return p, c.Engine.Read(ctx, p[at:], row)
	}
	c.exact(row.Hi - row.Lo)
	if err := c.Engine.Read(ctx, c.bytes, row); err != nil {
		return p, err
	}
	engine.ReadFloats(c.floats, c.bytes)
	return code.Append(p, c.floats), nil
}

// exact readies room for n values on their way between a code and the engine.
func (c *Comm) exact(n int) {
	c.floats = slices.Grow(c.floats[:0], n)[:n]
	c.bytes = slices.Grow(c.bytes[:0], 4*n)[:4*n]
}

// put writes what travelled into a row of the engine's.
func (c *Comm) put(ctx context.Context, row engine.Span, p []byte, code engine.Code) error {
	if code != engine.Float32 {
		c.exact(row.Hi - row.Lo)
		code.Read(c.floats, p)
		p = engine.AppendFloats(c.bytes[:0], c.floats)
	}
	return c.Engine.Write(ctx, row, p)
}

// Slice is the columns [lo, hi) of a vector of m that this worker computes in a sliced reduction.
func (c *Comm) Slice(m int) (lo, hi int) {
	return engine.Cut(m, slices.Index(c.Workers, c.Self), len(c.Workers))
}

// GatherSlices completes v (1 row), of which each worker holds its Slice.
func (c *Comm) GatherSlices(ctx context.Context, op Op, v engine.Mat) error {
	defer c.watch()()
	return c.gather(ctx, op, v, engine.Float32)
}

func (c *Comm) gather(ctx context.Context, op Op, v engine.Mat, code engine.Code) error {
	slice := func(k int) engine.Span {
		lo, hi := code.Cut(v.Cols, k, len(c.Workers))
		return engine.Span{Mat: v, Rows: 1, Lo: lo, Hi: hi}
	}
	if len(c.Workers) > 1 {
		mine, err := c.fetch(ctx, nil, slice(slices.Index(c.Workers, c.Self)), code)
		if err != nil {
			return err
		}
		for _, w := range c.Workers {
			if w == c.Self {
				continue
			}
			if err := c.send(w, op, slices.Clone(mine)); err != nil {
				return err
			}
		}
	}
	for k, w := range c.Workers {
		if w == c.Self {
			continue
		}
		row := slice(k)
		p, err := c.recv(ctx, w, op, code.Size(row.Hi-row.Lo))
		if err == nil {
			err = c.put(ctx, row, p, code)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// AllGather brings a record per member to everybody: mine has a row for each member hosted here, all one for each member
// of the roster, in order.
func (c *Comm) AllGather(ctx context.Context, op Op, mine, all engine.Host) error {
	defer c.watch()()
	if mine.Type != all.Type || mine.Cols != all.Cols || all.Rows != len(c.Roster.Members) {
		return fmt.Errorf("%s: gather %dx%d %s into %dx%d %s of %d members", op, mine.Rows, mine.Cols, mine.Type, all.Rows, all.Cols, all.Type, len(c.Roster.Members))
	}
	for _, w := range c.Workers {
		if w != c.Self && mine.Rows > 0 {
			if err := c.send(w, op, engine.AppendRows(nil, mine, 0, mine.Rows)); err != nil {
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
			p = engine.AppendRows(nil, mine, 0, mine.Rows)
		} else {
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
	var stay []engine.Task
	m := mover{width: 4 * max(src.Cols, dst.Cols), rows: dst.Rows,
		fetch: func(r engine.Row) ([]byte, error) { return c.fetch(ctx, nil, engine.RowOf(src, r), engine.Float32) },
		put:   func(r engine.Row, p []byte) error { return c.Engine.Write(ctx, engine.RowOf(dst, r), p) },
		keep: func(to, from engine.Row) error {
			stay = append(stay, engine.Copy{Dst: engine.RowOf(dst, to), Src: engine.RowOf(src, from)})
			return nil
		}}
	if err := c.move(ctx, op, from, to, edges, m); err != nil {
		return err
	}
	return c.Engine.Do(ctx, stay...)
}

// MoveRecords is Move of rows of records.
func (c *Comm) MoveRecords(ctx context.Context, op Op, edges []Edge, src, dst engine.Host) error {
	return c.MoveRecordsBetween(ctx, op, c.Roster, c.Roster, edges, src, dst)
}

// MoveRecordsBetween is MoveBetween of rows of records.
func (c *Comm) MoveRecordsBetween(ctx context.Context, op Op, from, to Roster, edges []Edge, src, dst engine.Host) error {
	put := func(r engine.Row, p []byte) error { engine.ReadRow(dst, r, p); return nil }
	fetch := func(r engine.Row) ([]byte, error) { return engine.AppendRows(nil, src, r, 1), nil }
	m := mover{width: max(src.Cols, dst.Cols) * dst.Type.Size(), rows: dst.Rows, fetch: fetch, put: put,
		keep: func(to, from engine.Row) error { return put(to, engine.AppendRows(nil, src, from, 1)) }}
	if src.Rows > 0 && dst.Rows > 0 && src.Type != dst.Type {
		return fmt.Errorf("%s: rows of %s into rows of %s", op, src.Type, dst.Type)
	}
	return c.move(ctx, op, from, to, edges, m)
}

// mover is how rows of some kind are taken and given.
type mover struct {
	width, rows int // bytes of a row, and rows at the end of edges
	fetch       func(r engine.Row) ([]byte, error)
	put         func(r engine.Row, p []byte) error
	keep        func(to, from engine.Row) error // a row that stays on this worker
}

func (c *Comm) move(ctx context.Context, op Op, from, to Roster, edges []Edge, m mover) error {
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
			row, err := m.fetch(local(e.From))
			if err == nil {
				err = c.send(b, op, row)
			}
			if err != nil {
				return err
			}
		}
	}
	i, got := engine.Row(0), map[Member][]byte{}
	for _, e := range edges {
		if to.Of(e.To) != c.Self {
			continue
		}
		if int(i) >= m.rows {
			return fmt.Errorf("%s: %d rows for more incoming edges", op, m.rows)
		}
		var err error
		if a := from.Of(e.From); a == c.Self {
			err = m.keep(i, local(e.From))
		} else {
			p, ok := got[e.From]
			if !ok {
				if p, err = c.recv(ctx, a, op, m.width); err != nil {
					return err
				}
				got[e.From] = p
			}
			err = m.put(i, p)
		}
		if err != nil {
			return err
		}
		i++
	}
	return nil
}
