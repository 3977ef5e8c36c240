package collective

import (
	"context"
	"fmt"
	"slices"

	"brood/models/engine"
)

// AllReduce sums one row of src per leaf into dst (1 x src.Cols), with the same bits on every worker. src has a row for
// each leaf hosted here, in order. If mean is set, the sum is divided by the number of leaves. With a single worker no
// data leaves the engine.
func (c *Comm) AllReduce(ctx context.Context, op Op, leaves Roster, src, dst engine.Mat, mean bool) error {
	return c.Reduce(ctx, op, leaves, src, dst, mean, engine.Float32)
}

// Reduce is AllReduce with rows encoded by code in transit.
func (c *Comm) Reduce(ctx context.Context, op Op, leaves Roster, src, dst engine.Mat, mean bool,
	code engine.Code) error {
	todo, err := c.BeginReduce(ctx, op, leaves, src, dst, mean, code)
	if err != nil {
		return err
	}
	return todo.Run(ctx)
}

// BeginReduce begins a reduce. Until the last phase has run, src must not change and dst is undefined.
func (c *Comm) BeginReduce(ctx context.Context, op Op, leaves Roster, src, dst engine.Mat, mean bool,
	code engine.Code) (Phases, error) {
	m, ws := src.Cols, c.Workers
	me := slices.Index(ws, c.Self)
	mine := c.hosted(leaves)
	if me < 0 || src.Rows != len(mine) || dst.Cols != m {
		return nil, fmt.Errorf("%s: worker %d sums %d rows of %d into %d columns for %d leaves", op, c.Self, src.Rows, m,
			dst.Cols, len(mine))
	}
	c.used = 0
	s, div := reduction{c: c, leaves: leaves, code: code}, float32(0)
	if mean {
		div = float32(len(leaves.Members))
	}
	local := make(map[node]engine.Span, len(mine))
	for i, leaf := range mine {
		local[node{0, leaf}] = engine.RowOf(src, engine.Row(i))
	}
	if len(ws) == 1 {
		return nil, s.add(ctx, rootOf(leaves), local, engine.All(dst), div)
	}
	parts := c.partsOf(leaves)
	known, err := s.parts(ctx, parts[c.Self], local, m, len(ws))
	if err != nil {
		return nil, err
	}
	if t := c.relays(code.Size(m)); t != nil {
		return s.relay(ctx, op, t, known, dst, div)
	}
	return s.exchange(ctx, op, ws, parts, known, dst, div)
}

// exchange computes the sum among some workers, ascending, which host all leaves: each sends its parts, which are in
// known, and all of them have the sum in dst when the phases have run.
func (s reduction) exchange(ctx context.Context, op Op, ws []int, parts map[int][]node, known map[node]engine.Span,
	dst engine.Mat, div float32) (Phases, error) {
	c, m, code := s.c, dst.Cols, s.code
	if len(ws) == 1 {
		return nil, s.add(ctx, rootOf(s.leaves), known, engine.All(dst), div)
	}
	slice := func(k int) (int, int) { return code.Cut(m, k, len(ws)) }
	direct := code.Size(m) <= c.Direct
	if direct {
		slice = func(int) (int, int) { return 0, m }
	}
	lo, hi := slice(slices.Index(ws, c.Self))
	out := engine.Span{Mat: dst, Rows: 1, Lo: lo, Hi: hi}
	if err := s.sendParts(ctx, op, ws, parts[c.Self], known, slice); err != nil {
		return nil, err
	}
	for n, v := range known {
		v.Lo, v.Hi = v.Lo+lo, v.Lo+hi
		known[n] = v
	}
	sum := func(ctx context.Context) error {
		for _, w := range ws {
			if w != c.Self {
				if err := s.receive(ctx, op, w, parts[w], known, hi-lo); err != nil {
					return err
				}
			}
		}
		return s.add(ctx, rootOf(s.leaves), known, out, div)
	}
	if direct {
		return Phases{sum}, nil
	}
	send := func(ctx context.Context) error {
		if err := sum(ctx); err != nil {
			return err
		}
		return c.sendSlice(ctx, op, ws, dst, code)
	}
	receive := func(ctx context.Context) error {
		return c.receiveSlices(ctx, op, ws, dst, code)
	}
	return Phases{send, receive}, nil
}

// MeanOf writes the mean of some members' rows, which are all hosted here, into dst (1 row). Members ascend; rows[i] is
// the row of members[i]. It sums in the order of the fixed tree: for all members the result equals that of AllReduce
// with mean.
func (c *Comm) MeanOf(ctx context.Context, members []engine.Member, rows []engine.Span, dst engine.Mat) error {
	leaves, known := Roster{Members: members}, map[node]engine.Span{}
	for i, m := range members {
		known[node{0, m}] = rows[i]
	}
	s := reduction{c: c, leaves: leaves, code: engine.Float32}
	return s.add(ctx, rootOf(leaves), known, engine.All(dst), float32(len(members)))
}

// reduction is one call of reduce.
type reduction struct {
	c      *Comm
	leaves Roster
	code   engine.Code
}

// add writes the sum of the subtree of n into dst, from the rows in known, divided by div unless div is 0.
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

// parts sums the subtrees that are hosted here and returns a map with capacity for received more. With Float32 a
// subtree that is a single row is returned without a copy.
func (s reduction) parts(ctx context.Context, parts []node, local map[node]engine.Span, cols,
	received int) (map[node]engine.Span, error) {
	known := make(map[node]engine.Span, len(parts)+received)
	for _, n := range parts {
		var err error
		if row, ok := local[n]; ok && s.code == engine.Float32 {
			known[n] = row
		} else if known[n], err = s.staged(ctx, n, local, cols); err != nil {
			return nil, err
		}
	}
	return known, nil
}

// sums adds some subtrees to known, each the sum of rows in known.
func (s reduction) sums(ctx context.Context, parts []node, known map[node]engine.Span, cols int) error {
	for _, n := range parts {
		if _, ok := known[n]; ok {
			continue
		}
		row, err := s.staged(ctx, n, known, cols)
		if err != nil {
			return err
		}
		known[n] = row
	}
	return nil
}

// staged writes the sum of the subtree of n, from the rows in known, into a row that is valid until the next reduction.
func (s reduction) staged(ctx context.Context, n node, known map[node]engine.Span, cols int) (engine.Span, error) {
	row, err := s.c.stage(cols)
	if err == nil {
		err = s.add(ctx, n, known, row, 0)
	}
	return row, err
}

// sendParts sends every other one of ws its slice of the parts.
func (s reduction) sendParts(ctx context.Context, op Op, ws []int, parts []node, known map[node]engine.Span,
	slice func(k int) (lo, hi int)) error {
	if len(parts) == 0 {
		return nil
	}
	var buf []byte
	from, to := -1, -1 // the columns in buf; in one hop all workers get the same columns
	for k, w := range ws {
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

// receive receives the parts of another worker, wide columns each, and adds them to known. Without parts there is no
// frame.
func (s reduction) receive(ctx context.Context, op Op, from int, parts []node, known map[node]engine.Span,
	wide int) error {
	if len(parts) == 0 {
		return nil
	}
	size := s.code.Size(wide)
	p, err := s.c.recv(ctx, from, op, size*len(parts))
	if err != nil {
		return err
	}
	for i, n := range parts {
		row, err := s.c.stage(wide)
		if err == nil {
			err = s.c.put(ctx, row, p[i*size:(i+1)*size], s.code)
		}
		if err != nil {
			return err
		}
		known[n] = row
	}
	return nil
}

// fetch appends row, read from engine memory and encoded by code, to p.
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

// exact resizes the buffers floats and bytes to n float32 values.
func (c *Comm) exact(n int) {
	c.floats = slices.Grow(c.floats[:0], n)[:n]
	c.bytes = slices.Grow(c.bytes[:0], 4*n)[:4*n]
}

// put decodes p and writes it to row in engine memory.
func (c *Comm) put(ctx context.Context, row engine.Span, p []byte, code engine.Code) error {
	if code != engine.Float32 {
		c.exact(row.Hi - row.Lo)
		code.Read(c.floats, p)
		p = engine.AppendFloats(c.bytes[:0], c.floats)
	}
	return c.Engine.Write(ctx, row, p)
}

// Slice returns the columns [lo, hi) of a vector of m columns that this worker computes in a sliced reduction.
func (c *Comm) Slice(m int) (lo, hi int) {
	return engine.Cut(m, slices.Index(c.Workers, c.Self), len(c.Workers))
}

// GatherSlices is an all-gather: each worker has computed its Slice of v (1 row) and receives the others.
func (c *Comm) GatherSlices(ctx context.Context, op Op, v engine.Mat) error {
	todo, err := c.beginGatherSlices(ctx, op, v)
	if err != nil {
		return err
	}
	return todo.Run(ctx)
}

func (c *Comm) beginGatherSlices(ctx context.Context, op Op, v engine.Mat) (Phases, error) {
	at := func(worker int) engine.Span {
		return c.sliceOf(c.Workers, v, slices.Index(c.Workers, worker), engine.Float32)
	}
	mine, err := c.fetch(ctx, nil, at(c.Self), engine.Float32)
	if err != nil {
		return nil, err
	}
	return c.shareAll(op, 4*v.Cols, mine, func(worker int) int { return at(worker).Bytes() },
		func(worker int, p []byte) error { return c.put(ctx, at(worker), p, engine.Float32) })
}

// sliceOf returns the columns of v that ws[k] computes.
func (c *Comm) sliceOf(ws []int, v engine.Mat, k int, code engine.Code) engine.Span {
	lo, hi := code.Cut(v.Cols, k, len(ws))
	return engine.Span{Mat: v, Rows: 1, Lo: lo, Hi: hi}
}

// sendSlice sends this worker's columns of v to every other one of ws.
func (c *Comm) sendSlice(ctx context.Context, op Op, ws []int, v engine.Mat, code engine.Code) error {
	me := slices.Index(ws, c.Self)
	mine, err := c.fetch(ctx, make([]byte, 0, c.sizesOf(len(ws), v.Cols, code)[me]), c.sliceOf(ws, v, me, code), code)
	if err != nil {
		return err
	}
	return c.sendAll(ws, op, mine)
}

// receiveSlices receives the columns of the other workers of ws into v.
func (c *Comm) receiveSlices(ctx context.Context, op Op, ws []int, v engine.Mat, code engine.Code) error {
	sizes := c.sizesOf(len(ws), v.Cols, code)
	for k, w := range ws {
		if w == c.Self {
			continue
		}
		p, err := c.recv(ctx, w, op, sizes[k])
		if err == nil {
			err = c.put(ctx, c.sliceOf(ws, v, k, code), p, code)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// slicing identifies a partition of a vector of cols columns among some workers.
type slicing struct {
	workers, cols int
	code          engine.Code
}

// sizesOf returns the encoded size in bytes of each of n workers' slice of a vector of m columns. It caches the result.
func (c *Comm) sizesOf(n, m int, code engine.Code) []int {
	if c.sizes == nil {
		c.sizes = map[slicing][]int{}
	}
	key := slicing{n, m, code}
	if c.sizes[key] == nil {
		sizes := make([]int, n)
		for k := range sizes {
			lo, hi := code.Cut(m, k, n)
			sizes[k] = code.Size(hi - lo)
		}
		c.sizes[key] = sizes
	}
	return c.sizes[key]
}

// hosted returns the leaves that this worker hosts.
func (c *Comm) hosted(leaves Roster) []engine.Member {
	if !sameRoster(leaves, c.Roster) {
		return leaves.Hosted(c.Self)
	}
	return c.host().Of(c.Self)
}

// host returns the assignment of members to workers and caches it.
func (c *Comm) host() *Hosting {
	if c.hosting == nil {
		h := c.Roster.Hosting()
		c.hosting = &h
	}
	return c.hosting
}

// partsOf returns the subtrees of r by worker. It caches the subtrees of the epoch's roster.
func (c *Comm) partsOf(r Roster) map[int][]node {
	if !sameRoster(r, c.Roster) {
		return partsOf(r)
	}
	if c.parts == nil {
		c.parts = partsOf(r)
	}
	return c.parts
}

func sameRoster(a, b Roster) bool {
	return len(a.Members) == len(b.Members) &&
		(len(a.Members) == 0 || &a.Members[0] == &b.Members[0] && &a.Owner[0] == &b.Owner[0])
}

// stage returns a row of n columns, valid until the next reduction begins.
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
