package gossip

import (
	"context"
	"slices"

	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
)

// Meetings draws count unordered pairs of members, uniform and independent, from the round's pairing stream.
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

// Pairing draws a random matching: every member is in one pair, but for one that an odd number leaves alone.
func Pairing(key noise.Key, members []engine.Member) [][2]engine.Member {
	left, out := slices.Clone(members), make([][2]engine.Member, len(members)/2)
	for i := range left { // Fisher and Yates: a keyed permutation of so few is not uniform
		j := i + key.Below(i, len(left)-i)
		left[i], left[j] = left[j], left[i]
	}
	for i := range out {
		out[i] = [2]engine.Member{left[2*i], left[2*i+1]}
	}
	return out
}

// Waves groups an ordered list of meetings into sets of disjoint ones, by index: running the sets in order gives the
// same bits as running the list in order.
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

// halve replaces x at the end of each incoming edge by its mean with the edge's row of peer. A member ends one edge at
// most.
func halve(e *optim.Env, in []collective.Edge, peer engine.Mat) (tasks []engine.Task) {
	x := e.Block(optim.BlockX)
	for i, edge := range in {
		xr := x.Sub(e.Row(edge.To), 1)
		tasks = append(tasks, engine.Update{Rows: engine.Rows(1), Prog: []engine.Lin{optim.Assign(xr, optim.T(0.5, xr), optim.T(0.5, peer.Sub(engine.Row(i), 1)))}})
	}
	return tasks
}

// average moves x along edges and halves. peer is scratch for a row for each hosted end.
func average(ctx context.Context, e *optim.Env, op collective.Op, edges []collective.Edge, peer engine.Mat) error {
	in := e.Incoming(edges)
	if err := e.Comm.Move(ctx, op, edges, e.Block(optim.BlockX), peer.Sub(0, len(in))); err != nil {
		return err
	}
	return e.Engine.Do(ctx, halve(e, in, peer)...)
}

// eachMoveBytes is the payload of the recorded edges of an operation, each moved by itself.
func eachMoveBytes(s optim.Shape, op collective.Op, width int) (b int64) {
	for _, e := range s.Edges {
		if e.Op == op && s.Roster.Of(e.From) != s.Roster.Of(e.To) {
			b += int64(width)
		}
	}
	return b
}
