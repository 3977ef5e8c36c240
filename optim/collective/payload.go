package collective

import "brood/models/engine"

// Exact payload of the collectives, summed over workers: the bytes that Comm sends, as functions of the roster alone.

// ReduceBytes returns the payload of [Comm.Reduce] of rows of cols elements, one per leaf, among the workers of a
// roster; direct is [Comm.Direct]. With one leaf on each of n workers and 4-byte elements it is 2(n-1)*4*cols,
// which is 2(n-1)/n*4*cols per worker, the cost of a ring. c, if not nil, is a Comm that caches the subtrees of the
// leaves.
func ReduceBytes(c *Comm, r, leaves Roster, cols int, code engine.Code, direct int) (b int64) {
	ws := r.Workers()
	n := int64(len(ws))
	if n < 2 {
		return 0
	}
	var parts map[int][]node
	if c != nil {
		parts = c.partsOf(leaves)
	} else {
		parts = partsOf(leaves)
	}
	slice, all := make([]int64, n), int64(0) // bytes of each worker's slice, and of all slices
	for k := range ws {
		lo, hi := code.Cut(cols, k, len(ws))
		slice[k] = int64(code.Size(hi - lo))
		all += slice[k]
	}
	for k, w := range ws {
		theirs := int64(len(parts[w]))
		if code.Size(cols) <= direct {
			b += int64(code.Size(cols)) * theirs * (n - 1)
			continue
		}
		b += slice[k]*(n-1) + theirs*(all-slice[k])
	}
	return b
}

// GatherSlicesBytes returns the payload of [Comm.GatherSlices] of cols floats.
func GatherSlicesBytes(r Roster, cols int) int64 { return int64(len(r.Workers())-1) * 4 * int64(cols) }

// AllGatherBytes returns the payload of [Comm.AllGather] of records of width bytes.
func AllGatherBytes(r Roster, width int) int64 {
	return int64(len(r.Workers())-1) * int64(len(r.Members)*width)
}

// MoveBytes returns the payload of one [Comm.Move] of rows of width bytes along edges.
func MoveBytes(r Roster, edges []Edge, width int) (b int64) {
	for range r.Crossings(edges) {
		b += int64(width)
	}
	return b
}
