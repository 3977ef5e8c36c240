package collective

import (
	"context"
	"slices"

	"brood/models/engine"
)

// Collectives over the link of a simulated fleet, which knows only the frame lengths of most workers: see [Crowd].

// Once returns the result of make, a value that is the same on every worker in a round, such as the pairings. make must
// not depend on the worker. what identifies the value within the round. In a simulated fleet one executed worker
// computes it for all, see [Oncer]. The result must not be modified.
func Once[T any](c *Comm, what string, round uint64, make func() T) T {
	of, ok := c.crowd.(Oncer)
	if !ok {
		return make()
	}
	type key struct {
		what  string
		epoch uint32
		round uint64
	}
	return of.Once(key{what, c.Epoch, round}, func() any { return make() }).(T)
}

// addition describes a sum over a roster to which every worker contributes.
type addition struct {
	parts []int    // number of subtrees that each worker contributes
	all   int      // number of subtrees in total
	tree  [][2]int // as [engine.Sum] takes it
}

// additionOf returns the addition over leaves in a simulated fleet. It returns nil if frames are sent one by one:
// without a crowd, or if a worker has no subtree. It caches the addition over the epoch's roster.
func (c *Comm) additionOf(leaves Roster, parts map[int][]node) *addition {
	if c.crowd == nil || len(parts) < len(c.Workers) {
		return nil
	}
	own := sameRoster(leaves, c.Roster)
	if own && c.adding != nil {
		return c.adding
	}
	a := &addition{parts: make([]int, len(c.Workers))}
	known := map[node]bool{}
	for k, w := range c.Workers {
		a.parts[k] = len(parts[w])
		for _, n := range parts[w] {
			known[n] = true
		}
	}
	a.all = len(known)
	_, a.tree = sumTree(leaves, rootOf(leaves), func(n node) bool { return known[n] })
	if own {
		c.adding = a
	}
	return a
}

// sendCrowd is sendParts in a simulated fleet, for a vector of m columns. It sends frames of zeros.
func (s reduction) sendCrowd(op Op, a *addition, direct bool, m int) error {
	mine, sizes := a.parts[slices.Index(s.c.Workers, s.c.Self)], s.c.sizesOf(m, s.code)
	size := func(k int) int { return sizes[k] * mine }
	if direct {
		all := s.code.Size(m) * mine
		size = func(int) int { return all }
	}
	return s.c.scatter(op, size, func(k int) ([]byte, error) { return make([]byte, size(k)), nil })
}

// sumCrowd receives and sums in a simulated fleet. It discards the received frames, since matrices have no storage, and
// issues the same Sum task as with real frames.
func (s reduction) sumCrowd(ctx context.Context, op Op, a *addition, dst engine.Span, div float32) error {
	c := s.c
	defer c.watch()()
	wide := s.code.Size(dst.Hi - dst.Lo)
	if err := c.collect(ctx, op, func(k int) int { return wide * a.parts[k] }, func(int, []byte) error { return nil }); err != nil {
		return err
	}
	row, err := c.stage(dst.Hi - dst.Lo)
	if err != nil {
		return err
	}
	if len(c.spans) > 0 && c.spans[0] != row {
		c.spans = c.spans[:0]
	}
	for len(c.spans) < a.all {
		c.spans = append(c.spans, row)
	}
	return c.Engine.Do(ctx, engine.Sum{Src: c.spans[:a.all], Dst: dst, Tree: a.tree, Div: div, Code: s.code})
}
