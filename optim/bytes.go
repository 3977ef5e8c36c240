package optim

import (
	"brood/models/engine"
	"brood/optim/collective"
)

// AllReduceBytes returns the payload of Comm.AllReduce of cols floats over these leaves among the shape's workers.
func (s Shape) AllReduceBytes(leaves collective.Roster, cols int) int64 {
	return collective.ReduceBytes(s.comm, s.Roster, leaves, cols, engine.Float32, s.Direct)
}

// AllReduceMeanBytes returns the payload of [Env.AllReduceMean].
func (s Shape) AllReduceMeanBytes() int64 {
	return collective.ReduceBytes(s.comm, s.Roster, s.Roster, s.Layout.Params, wire(s.K), s.Direct)
}

// GatherSlicesBytes returns the payload of Comm.GatherSlices of cols floats.
func (s Shape) GatherSlicesBytes(cols int) int64 {
	return collective.GatherSlicesBytes(s.comm, s.Roster, cols, s.Direct)
}

// AllGatherBytes returns the payload of Comm.AllGather of records of width bytes.
func (s Shape) AllGatherBytes(width int) int64 {
	return collective.AllGatherBytes(s.comm, s.Roster, width, s.Direct)
}

// MoveBytes returns the payload of one Comm.Move of rows of width bytes along edges.
func (s Shape) MoveBytes(edges []collective.Edge, width int) int64 {
	return collective.MoveBytes(s.Roster, edges, width)
}
