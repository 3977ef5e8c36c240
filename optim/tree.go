package optim

import (
	"slices"

	"brood/models/engine"
)

// The fixed reduction tree: a binary trie over the bits of member ids. A node covers the ids with prefix = id>>level. An
// absent id is passed over, so the association of a sum never changes when others join or leave, and a worker may add
// the subtrees it hosts before it sends: the bits do not depend on who hosts what.
type node struct {
	level  uint
	prefix Member
}

func rootOf(r Roster) node {
	var l uint
	if n := len(r.Members); n > 0 {
		for r.Members[n-1]>>l > 0 {
			l++
		}
	}
	return node{l, 0}
}

func (n node) children() (a, b node) {
	return node{n.level - 1, n.prefix * 2}, node{n.level - 1, n.prefix*2 + 1}
}

// under is the range of r.Members that n covers.
func (n node) under(r Roster) (lo, hi int) {
	lo, _ = slices.BinarySearch(r.Members, n.prefix<<n.level)
	hi = len(r.Members)
	if last := (uint64(n.prefix)+1)<<n.level - 1; last < uint64(engine.None) {
		hi, _ = slices.BinarySearch(r.Members, Member(last)+1)
	}
	return
}

// partsOf lists the maximal subtrees that worker w hosts alone: what it sends in a reduction.
func partsOf(r Roster, w int) []node {
	var walk func(n node) []node
	walk = func(n node) []node {
		lo, hi := n.under(r)
		mine := 0
		for i := lo; i < hi; i++ {
			if r.Owner[i] == w {
				mine++
			}
		}
		switch {
		case mine == 0:
			return nil
		case mine == hi-lo:
			return []node{n}
		}
		a, b := n.children()
		return append(walk(a), walk(b)...)
	}
	return walk(rootOf(r))
}

// lender gives scratch of one length and takes it back.
type lender interface {
	take() []float32
	give([]float32)
}

// sumTree adds known vectors up to n. leaf returns a vector or nil; one that is not ours must not be written, the others and
// the sum are from scratch. No more of those are in use at a time than the tree is deep. Every sum is rounded to what code can write.
func sumTree(r Roster, n node, leaf func(node) (v []float32, ours bool), scratch lender, code Code) (sum []float32, ours bool) {
	if v, ours := leaf(n); v != nil {
		return v, ours
	}
	if lo, hi := n.under(r); lo == hi || n.level == 0 {
		return nil, false
	}
	l, rt := n.children()
	a, ourA := sumTree(r, l, leaf, scratch, code)
	b, ourB := sumTree(r, rt, leaf, scratch, code)
	switch {
	case a == nil:
		return b, ourB
	case b == nil:
		return a, ourA
	}
	out := a
	switch {
	case ourA && ourB:
		defer scratch.give(b)
	case ourB:
		out = b
	case !ourA:
		out = scratch.take()
	}
	for i := range out {
		out[i] = a[i] + b[i]
	}
	code.round(out)
	return out, true
}

// cut is the k-th of w even slices of m columns. m need not divide by w.
func cut(m, k, w int) (lo, hi int) { return m * k / w, m * (k + 1) / w }
