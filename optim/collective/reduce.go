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
	defer c.watch()()
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
	slice := func(k int) (int, int) { return code.Cut(m, k, len(ws)) }
	direct := code.Size(m) <= c.Direct
	if direct {
		slice = func(int) (int, int) { return 0, m }
	}
	lo, hi := slice(me)
	out := engine.Span{Mat: dst, Rows: 1, Lo: lo, Hi: hi}
	if err := s.sendParts(ctx, op, parts[c.Self], known, slice); err != nil {
		return nil, err
	}
	for n, v := range known {
		v.Lo, v.Hi = lo, hi
		known[n] = v
	}
	sum := func(ctx context.Context) error {
		defer c.watch()()
		if err := s.receiveParts(ctx, op, parts, known, hi-lo); err != nil {
			return err
		}
		return s.add(ctx, rootOf(leaves), known, out, div)
	}
	if direct {
		return Phases{sum}, nil
	}
	send := func(ctx context.Context) error {
		if err := sum(ctx); err != nil {
			return err
		}
		defer c.watch()()
		return c.sendSlice(ctx, op, dst, code)
	}
	receive := func(ctx context.Context) error {
		defer c.watch()()
		return c.receiveSlices(ctx, op, dst, code)
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

// sendParts sends every other worker its slice of the parts.
func (s reduction) sendParts(ctx context.Context, op Op, parts []node, known map[node]engine.Span,
	slice func(k int) (lo, hi int)) error {
	if len(parts) == 0 {
		return nil
	}
	var buf []byte
	from, to := -1, -1 // the columns in buf; in one hop all workers get the same columns
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

// receiveParts receives the parts of every other worker, wide columns each, and adds them to known.
func (s reduction) receiveParts(ctx context.Context, op Op, parts map[int][]node, known map[node]engine.Span,
	wide int) error {
	for _, w := range s.c.Workers {
		theirs := parts[w]
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
	defer c.watch()()
	return c.gather(ctx, op, v, engine.Float32)
}

func (c *Comm) gather(ctx context.Context, op Op, v engine.Mat, code engine.Code) error {
	if err := c.sendSlice(ctx, op, v, code); err != nil {
		return err
	}
	return c.receiveSlices(ctx, op, v, code)
}

// sliceOf returns the columns of v that worker Workers[k] computes.
func (c *Comm) sliceOf(v engine.Mat, k int, code engine.Code) engine.Span {
	lo, hi := code.Cut(v.Cols, k, len(c.Workers))
	return engine.Span{Mat: v, Rows: 1, Lo: lo, Hi: hi}
}

// sendSlice sends this worker's columns of v to every other worker.
func (c *Comm) sendSlice(ctx context.Context, op Op, v engine.Mat, code engine.Code) error {
	if len(c.Workers) < 2 {
		return nil
	}
	me := slices.Index(c.Workers, c.Self)
	mine, err := c.fetch(ctx, make([]byte, 0, c.sizesOf(v.Cols, code)[me]), c.sliceOf(v, me, code), code)
	if err != nil {
		return err
	}
	return c.scatter(op, func(int) ([]byte, error) { return slices.Clone(mine), nil })
}

// receiveSlices receives the columns of the other workers into v.
func (c *Comm) receiveSlices(ctx context.Context, op Op, v engine.Mat, code engine.Code) error {
	if len(c.Workers) < 2 {
		return nil
	}
	sizes := c.sizesOf(v.Cols, code)
	return c.collect(ctx, op, func(k int) int { return sizes[k] }, func(k int, p []byte) error {
		return c.put(ctx, c.sliceOf(v, k, code), p, code)
	})
}

// slicing identifies a partition of a vector of cols columns among all workers.
type slicing struct {
	cols int
	code engine.Code
}

// sizesOf returns the encoded size in bytes of each worker's slice of a vector of m columns. It caches the result.
func (c *Comm) sizesOf(m int, code engine.Code) []int {
	if c.sizes == nil {
		c.sizes = map[slicing][]int{}
	}
	key := slicing{m, code}
	if c.sizes[key] == nil {
		sizes := make([]int, len(c.Workers))
		for k := range sizes {
			lo, hi := code.Cut(m, k, len(sizes))
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
