package protocol

import "context"

// Simulation by counts. Agents in the same state are indistinguishable, so the counts are a Markov chain. Two ways of
// advancing it preserve its distribution:
//
// Batch (Berenbrink, Hammer, Kaaser, Meyer, Penschuck, Tran: Simulating population protocols in sub-constant time per
// interaction, 2020). It first draws the number l of meetings, about sqrt(pi*n/8), before one shares an agent with an
// earlier one of the batch. The 2l agents of these meetings are a sample without replacement, whose states are
// hypergeometric; so is their pairing, drawn by states or, with many states, agent by agent. The meeting that shares an
// agent follows. A batch that would pass the end of the round is cut there, which is exact because meetings are
// independent.
//
// Jump. If most meetings change nothing, the number of meetings before the next change is geometric.
//
// The goal, once reached, stays reached (see goal). It is therefore checked only after a batch. If it holds then, the
// meetings of the batch are replayed in a random order, which the batch did not determine, to find the first meeting
// after which the goal holds.

// countSimulator simulates an execution of n agents by counts. It holds constants and scratch; the caller owns the
// counts.
type countSimulator struct {
	t          *Table
	n          uint64
	disjoint   []float64   // see the function disjoint
	jumpBelow  float64     // probability of a change in a meeting below which jumps are faster than batches
	saved      []uint64    // counts before the batch
	initiators []uint64    // initiators of the batch, by state
	responders []uint64    // responders of the batch, by state
	split      []uint64    // responders that meet initiators of one state, by state
	used       []uint64    // agents of the batch, by their state after it
	meetings   []pairCount // meetings of the batch
	oneByOne   bool        // pair the agents of a batch one by one, since there are more pairs of states than meetings
	order      []uint16    // responders of the batch in random order, if oneByOne
}

// pairCount is the number of meetings of one ordered pair of states in a batch.
type pairCount struct {
	pair
	times uint64
}

// jumpsPerBatch is the number of jumps that take about as long as a batch of many states. Both add up the weight of all
// pairs of states, so that it does not grow with them.
const jumpsPerBatch = 20

func newCountSimulator(t *Table, n uint64) *countSimulator {
	s := len(t.States)
	c := &countSimulator{t: t, n: n, disjoint: disjoint(n)}
	for _, v := range []*[]uint64{&c.saved, &c.initiators, &c.responders, &c.split, &c.used} {
		*v = make([]uint64, s)
	}
	mean := 0.0
	for _, p := range c.disjoint[1:] {
		mean += p
	}
	c.oneByOne = float64(s*s) > max(jumpsPerBatch, mean)
	c.jumpBelow = float64(min(s*s+s, jumpsPerBatch)) / mean
	return c
}

// run simulates up to left meetings, updates count, and stops when the goal is reached. It returns the number of
// meetings done. If no meeting can change a count, it returns left without simulating them.
func (c *countSimulator) run(
	ctx context.Context,
	count []uint64,
	left uint64,
	r *source,
) (done uint64, reached bool, err error) {
	if c.t.reached(count) {
		return 0, true, nil
	}
	all := c.n * (c.n - 1)
	for steps := 0; done < left; steps++ {
		if steps%cancelCheckInterval == 0 {
			if err := ctx.Err(); err != nil {
				return done, false, err
			}
		}
		w := c.t.weight(count)
		var n uint64
		switch {
		case w == 0:
			return left, false, nil
		case float64(w)/float64(all) < c.jumpBelow:
			n, reached = c.jump(count, w, left-done, r)
		default:
			n, reached = c.batch(count, left-done, r)
		}
		if done += n; reached {
			return done, true, nil
		}
	}
	return done, false, nil
}

// jump skips the meetings that change nothing and does the next one that changes a count. w is the weight of count.
func (c *countSimulator) jump(count []uint64, w, left uint64, r *source) (done uint64, reached bool) {
	n := r.nullMeetings(w, c.n*(c.n-1), left)
	if n >= left {
		return left, false
	}
	x := r.below(w)
	c.apply(count, c.effectivePair(count, x), 1)
	return n + 1, c.t.reached(count)
}

// effectivePair returns the states of pair x of the ordered pairs of agents whose meeting changes a count, sorted by
// their states.
func (c *countSimulator) effectivePair(count []uint64, x uint64) pair {
	a := uint16(0)
	for ; ; a++ {
		if count[a] == 0 {
			continue
		}
		pairs := count[a] * c.t.partners(a, count)
		if x < pairs {
			break
		}
		x -= pairs
	}
	for _, b := range c.t.effective[a] {
		pairs := count[a] * count[b]
		if a == b {
			pairs -= count[a]
		}
		if x < pairs {
			return pair{a, b}
		}
		x -= pairs
	}
	panic("protocol: the pair is beyond the weight of the counts")
}

// apply updates count by the given number of meetings of the ordered pair p.
func (c *countSimulator) apply(count []uint64, p pair, times uint64) {
	x, y := c.t.meet(p.a, p.b)
	count[p.a] -= times
	count[p.b] -= times
	count[x] += times
	count[y] += times
}

// batch does meetings of distinct agents, then the meeting that shares an agent with one of them. It does at most left
// meetings.
func (c *countSimulator) batch(count []uint64, left uint64, r *source) (done uint64, reached bool) {
	l := r.untilCollision(c.disjoint)
	collides := l < left
	l = min(l, left)
	copy(c.saved, count)
	c.meetDisjoint(count, l, r)
	if c.t.reached(count) {
		copy(count, c.saved)
		return c.replay(count, l, r), true
	}
	if !collides {
		return l, false
	}
	c.collide(count, 2*l, r)
	return l + 1, c.t.reached(count)
}

// meetDisjoint does l meetings of 2l distinct agents, and records them in meetings and used.
func (c *countSimulator) meetDisjoint(count []uint64, l uint64, r *source) {
	clear(c.used)
	c.meetings = c.meetings[:0]
	r.multivariateHypergeometric(count, c.n, l, c.initiators)
	for s := range count {
		count[s] -= c.initiators[s]
	}
	r.multivariateHypergeometric(count, c.n-l, l, c.responders)
	for s := range count {
		count[s] -= c.responders[s]
	}
	if c.oneByOne {
		c.pairOneByOne(r)
	} else {
		c.pairByStates(l, r)
	}
	for s := range count {
		count[s] += c.used[s]
	}
}

// pairByStates pairs the l initiators with the responders, state by state.
func (c *countSimulator) pairByStates(l uint64, r *source) {
	free := l
	for a, k := range c.initiators {
		if k == 0 {
			continue
		}
		r.multivariateHypergeometric(c.responders, free, k, c.split)
		free -= k
		for b, times := range c.split {
			if times == 0 {
				continue
			}
			c.responders[b] -= times
			c.record(pair{uint16(a), uint16(b)}, times)
		}
	}
}

// pairOneByOne pairs the initiators with the responders in a random order.
func (c *countSimulator) pairOneByOne(r *source) {
	c.order = c.order[:0]
	for b, k := range c.responders {
		for range k {
			c.order = append(c.order, uint16(b))
		}
	}
	left := c.order
	for a, k := range c.initiators {
		for range k {
			j := r.below(uint64(len(left)))
			left[0], left[j] = left[j], left[0]
			c.record(pair{uint16(a), left[0]}, 1)
			left = left[1:]
		}
	}
}

// record adds meetings of the pair p to the batch.
func (c *countSimulator) record(p pair, times uint64) {
	c.meetings = append(c.meetings, pairCount{p, times})
	x, y := c.t.meet(p.a, p.b)
	c.used[x] += times
	c.used[y] += times
}

// collide does a meeting of a uniform random ordered pair of which at least one agent is among the u agents of the
// batch.
func (c *countSimulator) collide(count []uint64, u uint64, r *source) {
	fresh := c.n - u
	both, one := u*(u-1), u*fresh
	x := r.below(both + 2*one)
	a := drawState(c.used, u, r)
	var p pair
	if x < both {
		c.used[a]--
		p = pair{a, drawState(c.used, u-1, r)}
	} else {
		for s := range count { // agents outside the batch
			c.split[s] = count[s] - c.used[s]
		}
		p = pair{a, drawState(c.split, fresh, r)}
		if x >= both+one {
			p = pair{p.b, p.a}
		}
	}
	c.apply(count, p, 1)
}

// drawState returns the state of an agent drawn uniformly from count, whose sum is n.
func drawState(count []uint64, n uint64, r *source) uint16 {
	x := r.below(n)
	for s, k := range count {
		if x < k {
			return uint16(s)
		}
		x -= k
	}
	return uint16(len(count) - 1)
}

// replay replays the batch in a random order up to the first meeting after which the goal holds, and returns the number
// of meetings replayed.
func (c *countSimulator) replay(count []uint64, l uint64, r *source) (done uint64) {
	order := make([]pair, 0, l)
	for _, m := range c.meetings {
		for range m.times {
			order = append(order, m.pair)
		}
	}
	for i := range order {
		j := i + int(r.below(uint64(len(order)-i)))
		order[i], order[j] = order[j], order[i]
		if c.apply(count, order[i], 1); c.t.reached(count) {
			return uint64(i) + 1
		}
	}
	return l
}
