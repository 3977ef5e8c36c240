package collective

import (
	"slices"

	"brood/models/engine"
)

// Exact payload of the collectives, summed over workers: the bytes that Comm sends, as functions of the roster alone.

// ReduceBytes returns the payload of [Comm.Reduce] of rows of cols elements, one per leaf, among the workers of a
// roster; direct is [Comm.Direct]. With one leaf on each of n workers and 4-byte elements it is 2(n-1)*4*cols,
// which is 2(n-1)/n*4*cols per worker, the cost of a ring. If c is a Comm of that roster, it caches the
// subtrees of the leaves; it may be nil.
func ReduceBytes(c *Comm, r, leaves Roster, cols int, code engine.Code, direct int) (b int64) {
	c = commOf(c, r, direct)
	ws, whole := c.Workers, int64(code.Size(cols))
	var parts map[int][]node
	if t := c.relays(code.Size(cols)); t != nil {
		for w, x := range t.of {
			if x.up != w { // it sends its group's parts and receives the sum
				b += whole * int64(len(c.groupParts(t, leaves, w))+1)
			}
		}
		ws, parts = t.first, c.machineParts(t, leaves)
	} else {
		parts = c.partsOf(leaves)
	}
	n := int64(len(ws))
	if n < 2 {
		return b
	}
	slice, all := make([]int64, n), int64(0) // bytes of each worker's slice, and of all slices
	for k := range ws {
		lo, hi := code.Cut(cols, k, len(ws))
		slice[k] = int64(code.Size(hi - lo))
		all += slice[k]
	}
	for k, w := range ws {
		theirs := int64(len(parts[w]))
		if whole <= int64(direct) {
			b += whole * theirs * (n - 1)
			continue
		}
		b += slice[k]*(n-1) + theirs*(all-slice[k])
	}
	return b
}

// GatherSlicesBytes returns the payload of [Comm.GatherSlices] of cols floats; c and direct are as in ReduceBytes.
func GatherSlicesBytes(c *Comm, r Roster, cols, direct int) int64 {
	c = commOf(c, r, direct)
	return sharedBytes(c, 4*cols, func(worker int) int {
		lo, hi := engine.Cut(cols, slices.Index(c.Workers, worker), len(c.Workers))
		return 4 * (hi - lo)
	})
}

// AllGatherBytes returns the payload of [Comm.AllGather] of records of width bytes; c and direct are as in ReduceBytes.
func AllGatherBytes(c *Comm, r Roster, width, direct int) int64 {
	rows := map[int]int{}
	for _, w := range r.Owner {
		rows[w]++
	}
	return sharedBytes(commOf(c, r, direct), width*len(r.Members), func(worker int) int { return width * rows[worker] })
}

// commOf returns c if it is a Comm of roster r, and else one that can only compute payloads.
func commOf(c *Comm, r Roster, direct int) *Comm {
	if c != nil && sameRoster(c.Roster, r) {
		return c
	}
	return NewComm(-1, 0, r, r.Workers(), nil, nil, direct)
}

// sharedBytes returns the payload of [Comm.shareAll].
func sharedBytes(c *Comm, total int, size func(worker int) int) (b int64) {
	t := c.relays(total)
	if t == nil {
		return int64(len(c.Workers)-1) * int64(total)
	}
	for w, x := range t.of {
		if x.up != w {
			b += int64(total)
			for _, g := range x.group {
				b += int64(size(g))
			}
		}
	}
	return b + int64(len(t.first)-1)*int64(total)
}

// MoveBytes returns the payload of one [Comm.Move] of rows of width bytes along edges.
func MoveBytes(r Roster, edges []Edge, width int) (b int64) {
	for range r.Crossings(edges) {
		b += int64(width)
	}
	return b
}
