package optim

import (
	"context"
	"slices"

	"brood/models/engine"
)

// What collectives do over a link that tells lengths alone from nearly all workers, see [Crowd].

// once is what every worker finds alike in a round, such as who meets whom: make works it out from nothing else, and
// what names it among all else of the round. Of a crowd one does so for all that are run, see [Oncer]. Nobody may
// change it.
func once[T any](c *Comm, what string, round uint64, make func() T) T {
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

// addition is the sum over a roster of which every worker has a part.
type addition struct {
	parts []int // of each of the workers
	all   int
	tree  [][2]int // as [engine.Sum] takes it
}

// additionOf is that of a crowd, nil where frames go one by one.
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

// tellCrowd is tell in a crowd, of a vector of m columns.
func (s reduction) tellCrowd(op Op, a *addition, direct bool, m int) error {
	mine, sizes := a.parts[slices.Index(s.c.Workers, s.c.Self)], s.c.sizesOf(m, s.code)
	size := func(k int) int { return sizes[k] * mine }
	if direct {
		all := s.code.Size(m) * mine
		size = func(int) int { return all }
	}
	return s.c.scatter(op, size, func(k int) ([]byte, error) { return make([]byte, size(k)), nil })
}

// sumCrowd hears and adds up in a crowd: what is heard has no place, and is added up as it would be.
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
