package collective

import (
	"cmp"
	"slices"

	"brood/models/engine"
)

// node is a node of the fixed reduction tree, a binary trie over the bits of member ids. It covers the ids with prefix
// == id>>level. Absent ids are skipped, so that the order of additions does not change when members join or leave, and
// a worker can add the subtrees it hosts before it sends: results do not depend on placement.
type node struct {
	level  uint
	prefix engine.Member
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

// under returns the range of r.Members that n covers.
func (n node) under(r Roster) (lo, hi int) {
	lo, _ = slices.BinarySearch(r.Members, n.prefix<<n.level)
	hi = len(r.Members)
	if last := (uint64(n.prefix)+1)<<n.level - 1; last < uint64(engine.None) {
		hi, _ = slices.BinarySearch(r.Members, engine.Member(last)+1)
	}
	return
}

// partsOf returns, for each worker, the maximal subtrees whose members it hosts all: the partial sums that it sends in
// a reduction.
func partsOf(r Roster) map[int][]node {
	parts := map[int][]node{}
	// walk returns the worker that hosts all members under n, which have ranks lo to hi. If several workers do, it adds
	// their parts.
	var walk func(n node, lo, hi int) (owner int, alone bool)
	walk = func(n node, lo, hi int) (int, bool) {
		if hi-lo == 1 {
			return r.Owner[lo], true
		}
		a, b := n.children()
		mid, _ := slices.BinarySearch(r.Members[lo:hi], b.prefix<<b.level)
		switch mid += lo; mid {
		case lo:
			return walk(b, lo, hi)
		case hi:
			return walk(a, lo, hi)
		}
		left, alone := walk(a, lo, mid)
		right, too := walk(b, mid, hi)
		if alone && too && left == right {
			return left, true
		}
		if alone {
			parts[left] = append(parts[left], a)
		}
		if too {
			parts[right] = append(parts[right], b)
		}
		return 0, false
	}
	if len(r.Members) > 0 {
		if w, alone := walk(rootOf(r), 0, len(r.Members)); alone {
			parts[w] = []node{rootOf(r)}
		}
	}
	for _, p := range parts {
		slices.SortFunc(p, func(a, b node) int { return cmp.Compare(a.prefix<<a.level, b.prefix<<b.level) })
	}
	return parts
}

// partsWithin returns the maximal subtrees whose members are all hosted by some workers, as if one worker hosted them.
func partsWithin(r Roster, workers []int) []node {
	const together = -1
	joined := Roster{Members: r.Members, Owner: slices.Clone(r.Owner)}
	for i, w := range r.Owner {
		if _, ok := slices.BinarySearch(workers, w); ok {
			joined.Owner[i] = together
		}
	}
	return partsOf(joined)[together]
}

// sumTree returns the additions that compute node n, as [engine.Sum] expects them: the known nodes as sources, and the
// sums in an order in which at most D sums wait for their second operand, D the depth of the tree. Both are empty for a
// node without members.
func sumTree(r Roster, n node, known func(node) bool) (src []node, sums [][2]int) {
	// The index of a sum follows the indices of all sources, whose number is not yet known: until then it is negative.
	var walk func(n node) (operand int, ok bool)
	walk = func(n node) (int, bool) {
		if known(n) {
			src = append(src, n)
			return len(src) - 1, true
		}
		if lo, hi := n.under(r); lo == hi || n.level == 0 {
			return 0, false
		}
		left, right := n.children()
		a, okA := walk(left)
		b, okB := walk(right)
		switch {
		case !okA:
			return b, okB
		case !okB:
			return a, true
		}
		sums = append(sums, [2]int{a, b})
		return -len(sums), true
	}
	walk(n)
	for j := range sums {
		for i, operand := range sums[j] {
			if operand < 0 {
				sums[j][i] = len(src) - 1 - operand
			}
		}
	}
	return src, sums
}
