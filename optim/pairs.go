package optim

import (
	"context"
	"slices"

	"brood/models/engine"
	"brood/models/noise"
)

// Meetings draws count unordered pairs of members, uniform and independent, from the round's pairing stream.
func Meetings(key noise.Key, members []Member, count int) [][2]Member {
	n, out := len(members), make([][2]Member, count)
	for i := range out {
		a, b := key.Below(2*i, n), key.Below(2*i+1, n-1)
		if b >= a {
			b++
		}
		out[i] = [2]Member{members[a], members[b]}
	}
	return out
}

// Pairing draws a random matching: every member is in one pair, but for one that an odd number leaves alone.
func Pairing(key noise.Key, members []Member) [][2]Member {
	left, out := slices.Clone(members), make([][2]Member, len(members)/2)
	for i := range left { // Fisher and Yates: a keyed permutation of so few is not uniform
		j := i + key.Below(i, len(left)-i)
		left[i], left[j] = left[j], left[i]
	}
	for i := range out {
		out[i] = [2]Member{left[2*i], left[2*i+1]}
	}
	return out
}

// Waves groups an ordered list of meetings into sets of disjoint ones, by index: running the sets in order gives the
// same bits as running the list in order.
func Waves(meetings [][2]Member) (waves [][]int) {
	var last Member
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

// SeriesPartner is declared by an algorithm whose members meet in pairs, so that the workbench draws the meetings.
var SeriesPartner = Series{Name: "partner", Title: "partner", Kind: PairEdges,
	Doc: "whom the member met in the round, a point a meeting in their order, so that the last is whom it met last; its own id where it met nobody. Both who meet tell of it; of a push only who sends does"}

// PartnersOf returns the points of SeriesPartner for the members hosted here, in the order of the meetings, which are
// those of the whole population. With pushes, only the first member of a pair reports it. A pair of a member and itself
// is no meeting.
func (e *Env) PartnersOf(meetings [][2]Member, pushes bool) (out []Point) {
	met := make([][]Member, len(e.Mine))
	tell := func(m, partner Member) {
		if r := e.Row(m); r >= 0 && m != partner {
			met[r] = append(met[r], partner)
		}
	}
	here := reachOf(e.Mine)
	for _, p := range meetings {
		if !here.has(p[0]) && !here.has(p[1]) {
			continue
		}
		if tell(p[0], p[1]); !pushes {
			tell(p[1], p[0])
		}
	}
	for r, m := range e.Mine {
		if len(met[r]) == 0 {
			met[r] = []Member{m}
		}
		for _, p := range met[r] {
			out = append(out, Point{Member: m, Series: SeriesPartner.Name, Value: float64(p)})
		}
	}
	return out
}

// halve replaces x at the end of each incoming edge by its mean with the edge's row of peer. A member ends one edge at
// most.
func halve(e *Env, in []Edge, peer engine.Mat) (tasks []engine.Task) {
	x := e.Block(BlockX)
	for i, edge := range in {
		xr := x.Sub(e.Row(edge.To), 1)
		tasks = append(tasks, engine.Update{Rows: engine.Rows(1), Prog: []engine.Lin{Assign(xr, T(0.5, xr), T(0.5, peer.Sub(engine.Row(i), 1)))}})
	}
	return tasks
}

// average moves x along edges and halves. peer is scratch for a row for each hosted end.
func average(ctx context.Context, e *Env, op Op, edges []Edge, peer engine.Mat) error {
	in := e.incoming(edges)
	if err := e.Comm.Move(ctx, op, edges, e.Block(BlockX), peer.Sub(0, len(in))); err != nil {
		return err
	}
	return e.Engine.Do(ctx, halve(e, in, peer)...)
}

// eachMoveBytes is the payload of the recorded edges of an operation, each moved by itself.
func (s Shape) eachMoveBytes(op Op, width int) (b int64) {
	for _, e := range s.Edges {
		if e.Op == op && s.Roster.Of(e.From) != s.Roster.Of(e.To) {
			b += int64(width)
		}
	}
	return b
}
