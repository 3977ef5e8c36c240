package protocol

import "context"

// The simulation by counts. Agents of one state cannot be told disjoint, so the counts are a Markov chain of their own,
// and two ways of advancing it leave its distribution as it is:
//
// A batch (Berenbrink, Hammer, Kaaser, Meyer, Penschuck, Tran: Simulating population protocols in sub-constant time per
// interaction, 2020): the number l of meetings before one has an agent in common with an earlier is drawn first, about
// sqrt(pi*n/8); their 2l agents are then a sample without replacement, whose states and pairing are hypergeometric; and
// then the one meeting that has an agent in common. A batch that would pass the end of the round is cut there: meetings
// have no memory.
//
// A jump: where most meetings change nothing, their number before the next that does is geometric.
//
// The goal, once reached, stays reached (see goal): it is looked for behind a batch, and if it holds there, the batch's
// meetings are put in a random order, which is all that the batch left open, to find the first after which it holds.

// crowd is what a simulation by counts of n agents needs besides the counts.
type crowd struct {
	t        *Table
	n        uint64
	disjoint []float64
	sparse   float64 // odds of a change in a meeting below which jumps take fewer draws than batches
	before   []uint64
	opens    []uint64 // agents of a batch that begin a meeting, by state
	answers  []uint64 // and those that answer
	split    []uint64 // of answers to one state
	used     []uint64 // agents of the batch as they are after it
	met      []meetings
}

// meetings of one pair of states in a batch.
type meetings struct {
	pair
	times uint64
}

func newCrowd(t *Table, n uint64) *crowd {
	s := len(t.States)
	c := &crowd{t: t, n: n, disjoint: disjoint(n)}
	for _, v := range []*[]uint64{&c.before, &c.opens, &c.answers, &c.split, &c.used} {
		*v = make([]uint64, s)
	}
	mean := 0.0
	for _, p := range c.disjoint[1:] {
		mean += p
	}
	c.sparse = float64(s*s+s) / mean
	return c
}

// run lets up to `left` pairs meet and stops when the goal is reached. It returns the meetings done.
func (c *crowd) run(ctx context.Context, count []uint64, left uint64, r *source) (done uint64, reached bool, err error) {
	if c.t.reached(count) {
		return 0, true, nil
	}
	all := c.n * (c.n - 1)
	for steps := 0; done < left; steps++ {
		if steps%patience == 0 {
			if err := ctx.Err(); err != nil {
				return done, false, err
			}
		}
		w := c.t.weight(count)
		var n uint64
		switch {
		case w == 0:
			return left, false, nil
		case float64(w)/float64(all) < c.sparse:
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

// jump passes over the meetings that change nothing and does the next that does.
func (c *crowd) jump(count []uint64, w, left uint64, r *source) (done uint64, reached bool) {
	n := r.nulls(w, c.n*(c.n-1), left)
	if n >= left {
		return left, false
	}
	x := r.below(w)
	for _, p := range c.t.effective {
		pairs := count[p.a] * count[p.b]
		if p.a == p.b {
			pairs -= count[p.a]
		}
		if x < pairs {
			c.apply(count, p, 1)
			break
		}
		x -= pairs
	}
	return n + 1, c.t.reached(count)
}

// apply does so many meetings of agents in these states.
func (c *crowd) apply(count []uint64, p pair, times uint64) {
	x, y := c.t.meet(p.a, p.b)
	count[p.a] -= times
	count[p.b] -= times
	count[x] += times
	count[y] += times
}

// batch does meetings of agents that are all different, and the one that ends this.
func (c *crowd) batch(count []uint64, left uint64, r *source) (done uint64, reached bool) {
	l := r.untilCommon(c.disjoint)
	common := l < left
	l = min(l, left)
	copy(c.before, count)
	c.different(count, l, r)
	if c.t.reached(count) {
		copy(count, c.before)
		return c.first(count, l, r), true
	}
	if !common {
		return l, false
	}
	c.common(count, 2*l, r)
	return l + 1, c.t.reached(count)
}

// different does l meetings of 2l different agents.
func (c *crowd) different(count []uint64, l uint64, r *source) {
	clear(c.used)
	c.met = c.met[:0]
	r.deal(count, c.n, l, c.opens)
	for s := range count {
		count[s] -= c.opens[s]
	}
	r.deal(count, c.n-l, l, c.answers)
	for s := range count {
		count[s] -= c.answers[s]
	}
	free := l
	for a, opens := range c.opens {
		if opens == 0 {
			continue
		}
		r.deal(c.answers, free, opens, c.split)
		free -= opens
		for b, times := range c.split {
			if times == 0 {
				continue
			}
			c.answers[b] -= times
			p := pair{uint16(a), uint16(b)}
			c.met = append(c.met, meetings{p, times})
			x, y := c.t.meet(p.a, p.b)
			c.used[x] += times
			c.used[y] += times
		}
	}
	for s := range count {
		count[s] += c.used[s]
	}
}

// common does a meeting of a uniform pair of which at least one is among the u used.
func (c *crowd) common(count []uint64, u uint64, r *source) {
	fresh := c.n - u
	both, one := u*(u-1), u*fresh
	x := r.below(both + 2*one)
	a := take(c.used, u, r)
	var p pair
	if x < both {
		c.used[a]--
		p = pair{a, take(c.used, u-1, r)}
	} else {
		for s := range count { // agents that were not used are the others
			c.split[s] = count[s] - c.used[s]
		}
		p = pair{a, take(c.split, fresh, r)}
		if x >= both+one {
			p = pair{p.b, p.a}
		}
	}
	c.apply(count, p, 1)
}

// take is the state of a uniform agent of those counted, of which there are n.
func take(count []uint64, n uint64, r *source) uint16 {
	x := r.below(n)
	for s, k := range count {
		if x < k {
			return uint16(s)
		}
		x -= k
	}
	return uint16(len(count) - 1)
}

// first does the batch again in a random order, to the meeting after which the goal holds.
func (c *crowd) first(count []uint64, l uint64, r *source) (done uint64) {
	order := make([]pair, 0, l)
	for _, m := range c.met {
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
