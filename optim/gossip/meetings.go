package gossip

import (
	"context"

	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
)

// Meetings draws count pairs of different members, uniform and independent. key is the pairing key of the round.
// members must have at least two elements.
func Meetings(key noise.Key, members []engine.Member, count int) [][2]engine.Member {
	n, out := len(members), make([][2]engine.Member, count)
	for i := range out {
		a, b := key.Below(2*i, n), key.Below(2*i+1, n-1)
		if b >= a {
			b++
		}
		out[i] = [2]engine.Member{members[a], members[b]}
	}
	return out
}

// Pairing draws a uniform random matching: every member is in exactly one pair, except one if their number is odd.
func Pairing(key noise.Key, members []engine.Member) [][2]engine.Member {
	order, out := key.Shuffle(len(members)), make([][2]engine.Member, len(members)/2)
	for i := range out {
		out[i] = [2]engine.Member{members[order[2*i]], members[order[2*i+1]]}
	}
	return out
}

// Waves groups an ordered list of meetings, by index, into sets of disjoint meetings that may run concurrently. Running
// the sets in order gives the same bits as running the list in order.
func Waves(meetings [][2]engine.Member) (waves [][]int) {
	var last engine.Member
	for _, m := range meetings {
		last = max(last, m[0], m[1])
	}
	next := make([]int, last+1) // first wave in which the member is free
	for i, m := range meetings {
		w := max(next[m[0]], next[m[1]])
		next[m[0]], next[m[1]] = w+1, w+1
		if w == len(waves) {
			waves = append(waves, nil)
		}
		waves[w] = append(waves[w], i)
	}
	return waves
}

// averageTasks returns the tasks that replace x at the end of the i-th incoming edge by its mean with row i of peer. A
// member may be the end of at most one edge.
func averageTasks(e *optim.Env, in []collective.Edge, peer engine.Mat) (tasks []engine.Task) {
	x := e.Block(optim.BlockX)
	for i, edge := range in {
		xr := x.Sub(e.Row(edge.To), 1)
		mean := optim.Assign(xr, optim.T(0.5, xr), optim.T(0.5, peer.Sub(engine.Row(i), 1)))
		tasks = append(tasks, optim.Update(1, mean))
	}
	return tasks
}

// average moves rows of x along edges and replaces x at the end of each edge by the mean of both ends. peer is scratch
// with a row for each edge that ends at a hosted member.
func average(ctx context.Context, e *optim.Env, op collective.Op, edges []collective.Edge, peer engine.Mat) error {
	in := e.Incoming(edges)
	if err := e.Comm.Move(ctx, op, edges, e.Block(optim.BlockX), peer.Sub(0, len(in))); err != nil {
		return err
	}
	return e.Engine.Do(ctx, averageTasks(e, in, peer)...)
}

// edgeBytes returns the payload of the drawn edges of an operation, width bytes for each edge between different
// workers. It fits operations that move at most one row of a member per Move; compare Shape.MoveBytes.
func edgeBytes(s optim.Shape, op collective.Op, width int) (b int64) {
	for _, e := range s.Edges {
		if e.Op == op && s.Roster.Of(e.From) != s.Roster.Of(e.To) {
			b += int64(width)
		}
	}
	return b
}
