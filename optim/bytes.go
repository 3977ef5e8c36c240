package optim

import "brood/models/engine"

// Exact payload of the collectives, summed over workers: what Comm sends, as functions of the shape alone.

// AllReduceBytes is the payload of Comm.AllReduce of cols floats over these leaves among the shape's workers. With one
// leaf on each of n workers it is 2(n-1)*4*cols, the 2(n-1)/n*4*cols a worker of the literature.
func (s Shape) AllReduceBytes(leaves Roster, cols int) int64 {
	return s.reduceBytes(leaves, cols, engine.Float32)
}

// AllReduceMeanBytes is the payload of Env.mean.
func (s Shape) AllReduceMeanBytes() int64 {
	return s.reduceBytes(s.Roster, s.Layout.Params, wire(s.K))
}

func (s Shape) reduceBytes(leaves Roster, cols int, code engine.Code) (b int64) {
	ws := s.Roster.Workers()
	n := int64(len(ws))
	if n < 2 {
		return 0
	}
	parts, slice, all := s.partsOf(leaves), make([]int64, n), int64(0) // all slices
	for k := range ws {
		lo, hi := code.Cut(cols, k, len(ws))
		slice[k] = int64(code.Size(hi - lo))
		all += slice[k]
	}
	for k, w := range ws {
		theirs := int64(len(parts[w]))
		if code.Size(cols) <= s.Direct {
			b += int64(code.Size(cols)) * theirs * (n - 1)
			continue
		}
		b += slice[k]*(n-1) + theirs*(all-slice[k])
	}
	return b
}

// partsOf are the subtrees of leaves, which collectives of the same roster have at hand.
func (s Shape) partsOf(leaves Roster) map[int][]node {
	if s.comm != nil {
		return s.comm.partsOf(leaves)
	}
	return partsOf(leaves)
}

// GatherSlicesBytes is the payload of Comm.GatherSlices of cols floats.
func (s Shape) GatherSlicesBytes(cols int) int64 {
	return int64(len(s.Roster.Workers())-1) * 4 * int64(cols)
}

// AllGatherBytes is the payload of Comm.AllGather of records of width bytes.
func (s Shape) AllGatherBytes(width int) int64 {
	return int64(len(s.Roster.Workers())-1) * int64(len(s.Roster.Members)*width)
}

// MoveBytes is the payload of one Comm.Move of rows of width bytes along edges.
func (s Shape) MoveBytes(edges []Edge, width int) (b int64) {
	for range s.Roster.Crossings(edges) {
		b += int64(width)
	}
	return b
}
