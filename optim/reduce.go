package optim

import (
	"context"
	"fmt"
	"slices"

	"brood/models/engine"
)

// AllReduce sums one row of src per leaf of the roster into dst (1 x src.Cols), the same bits on every worker. src
// holds a row for each leaf hosted here, in order. With mean the sum is divided by the number of leaves. Alone, nothing
// leaves the engine.
func (c *Comm) AllReduce(ctx context.Context, op Op, leaves Roster, src, dst engine.Mat, mean bool) error {
	return c.reduce(ctx, op, leaves, src, dst, mean, engine.Float32)
}

// reduce is AllReduce through a code.
func (c *Comm) reduce(ctx context.Context, op Op, leaves Roster, src, dst engine.Mat, mean bool, code engine.Code) error {
	todo, err := c.beginReduce(ctx, op, leaves, src, dst, mean, code)
	if err != nil {
		return err
	}
	return todo.take(ctx)
}

// beginReduce begins a reduce: src may not change, and dst is not there, until the last leg is taken.
func (c *Comm) beginReduce(ctx context.Context, op Op, leaves Roster, src, dst engine.Mat, mean bool, code engine.Code) (legs, error) {
	defer c.watch()()
	m, ws := src.Cols, c.Workers
	me := slices.Index(ws, c.Self)
	mine := c.hosted(leaves)
	if me < 0 || src.Rows != len(mine) || dst.Cols != m {
		return nil, fmt.Errorf("%s: worker %d sums %d rows of %d into %d columns for %d leaves", op, c.Self, src.Rows, m, dst.Cols, len(mine))
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
	a, heard := c.additionOf(leaves, parts), 0
	if a == nil {
		heard = len(ws)
	}
	known, err := s.parts(ctx, parts[c.Self], local, m, heard)
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
	var sum leg
	if a != nil {
		if err := s.tellCrowd(op, a, direct, m); err != nil {
			return nil, err
		}
		sum = func(ctx context.Context) error { return s.sumCrowd(ctx, op, a, out, div) }
	} else {
		if err := s.tell(ctx, op, parts[c.Self], known, slice); err != nil {
			return nil, err
		}
		for n, v := range known {
			v.Lo, v.Hi = lo, hi
			known[n] = v
		}
		sum = func(ctx context.Context) error {
			defer c.watch()()
			if err := s.hear(ctx, op, parts, known, hi-lo); err != nil {
				return err
			}
			return s.add(ctx, rootOf(leaves), known, out, div)
		}
	}
	c.exchanged(nil, 0)
	if direct {
		return legs{sum}, nil
	}
	tell := func(ctx context.Context) error {
		if err := sum(ctx); err != nil {
			return err
		}
		defer c.watch()()
		return c.tellSlice(ctx, op, dst, code)
	}
	hear := func(ctx context.Context) error {
		defer c.watch()()
		return c.hearSlices(ctx, op, dst, code)
	}
	return legs{tell, hear}, nil
}

// MeanOf writes the mean of the rows of x of some members, ascending and all hosted here, into dst. The order is that
// of the fixed tree: of all members it is the mean that AllReduce gives.
func (e *Env) MeanOf(ctx context.Context, x engine.Mat, members []Member, dst engine.Mat) error {
	leaves, known := Roster{Members: members}, map[node]engine.Span{}
	for _, m := range members {
		known[node{0, m}] = engine.RowOf(x, e.Row(m))
	}
	s := reduction{c: e.Comm, leaves: leaves, code: engine.Float32}
	return s.add(ctx, rootOf(leaves), known, engine.All(dst), float32(len(members)))
}

// reduction is one call of reduce.
type reduction struct {
	c      *Comm
	leaves Roster
	code   engine.Code
}

// add writes the sum of node n into dst, from rows that are known, over div where that is not 0.
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

// parts adds up the subtrees that are hosted here, and leaves room for those that are heard. One that is an exact row
// needs no sum.
func (s reduction) parts(ctx context.Context, parts []node, local map[node]engine.Span, cols, heard int) (map[node]engine.Span, error) {
	known := make(map[node]engine.Span, len(parts)+heard)
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
func (s reduction) hear(ctx context.Context, op Op, parts map[int][]node, known map[node]engine.Span, wide int) error {
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
	if err := c.tellSlice(ctx, op, v, code); err != nil {
		return err
	}
	return c.hearSlices(ctx, op, v, code)
}

// sliceOf is the columns of v that the k-th worker computes.
func (c *Comm) sliceOf(v engine.Mat, k int, code engine.Code) engine.Span {
	lo, hi := code.Cut(v.Cols, k, len(c.Workers))
	return engine.Span{Mat: v, Rows: 1, Lo: lo, Hi: hi}
}

// tellSlice sends this worker's columns of v to every other.
func (c *Comm) tellSlice(ctx context.Context, op Op, v engine.Mat, code engine.Code) error {
	if len(c.Workers) < 2 {
		return nil
	}
	me := slices.Index(c.Workers, c.Self)
	size := c.sizesOf(v.Cols, code)[me]
	mine := make([]byte, 0, size)
	if c.crowd == nil {
		var err error
		if mine, err = c.fetch(ctx, mine, c.sliceOf(v, me, code), code); err != nil {
			return err
		}
	}
	if err := c.scatter(op, func(int) int { return size }, func(int) ([]byte, error) { return slices.Clone(mine[:size]), nil }); err != nil {
		return err
	}
	c.exchanged(nil, 0)
	return nil
}

// hearSlices completes v by the others' columns.
func (c *Comm) hearSlices(ctx context.Context, op Op, v engine.Mat, code engine.Code) error {
	if len(c.Workers) < 2 {
		return nil
	}
	sizes := c.sizesOf(v.Cols, code)
	return c.collect(ctx, op, func(k int) int { return sizes[k] }, func(k int, p []byte) error {
		if c.crowd != nil {
			return nil
		}
		return c.put(ctx, c.sliceOf(v, k, code), p, code)
	})
}

// slicing is how a vector is dealt out to all workers.
type slicing struct {
	cols int
	code engine.Code
}

// sizesOf are the bytes of the slices of a vector of m columns.
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

// hosted are the leaves that this worker hosts.
func (c *Comm) hosted(leaves Roster) []Member {
	if !sameRoster(leaves, c.Roster) {
		return leaves.Hosted(c.Self)
	}
	return c.host().Of(c.Self)
}

// host caches who hosts whom.
func (c *Comm) host() *Hosting {
	if c.hosting == nil {
		h := c.Roster.Hosting()
		c.hosting = &h
	}
	return c.hosting
}

// partsOf caches the subtrees for the roster of the epoch.
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
