package collective

import (
	"context"
	"slices"

	"brood/models/engine"
)

// Workers of one machine relay small collectives along a tree, so that n workers exchange 2(n-1) frames and not n(n-1).
// The first worker of each machine exchanges frames with those of the other machines. As sums follow the fixed tree of
// the members, the bits do not change.

// relays are the trees of a roster's machines.
type relays struct {
	of    map[int]relay // by worker
	first []int         // first worker of each machine, ascending
}

// relay is a worker's place in the tree of its machine.
type relay struct {
	up    int   // the worker above it; itself if it is the first of its machine
	below []int // the workers below it, in the order of their frames
	group []int // itself and all workers under it, ascending
}

// relaysOf returns the trees for collectives among some workers, ascending; nil if no two are on one machine, or if
// there are too few workers for a tree to send fewer frames.
func relaysOf(r Roster, workers []int) *relays {
	const fewest = 4
	if len(r.Machines) != len(r.Owner) || len(workers) < fewest {
		return nil
	}
	machine := make(map[int]int, len(workers))
	for i, w := range r.Owner {
		machine[w] = r.Machines[i]
	}
	on := map[int][]int{} // workers by machine
	t := &relays{of: make(map[int]relay, len(workers))}
	for _, w := range workers {
		m, ok := machine[w]
		if !ok {
			t.add([]int{w})
			continue
		}
		on[m] = append(on[m], w)
	}
	for _, ws := range on {
		t.add(ws)
	}
	if len(t.first) == len(workers) {
		return nil
	}
	slices.Sort(t.first)
	return t
}

// add adds the workers of a machine, as a binomial tree: worker i is below worker i without its lowest bit.
func (t *relays) add(ws []int) {
	for i, w := range ws {
		size := i & -i
		if i == 0 {
			size = len(ws)
		}
		x := relay{up: ws[i&(i-1)], group: ws[i:min(i+size, len(ws))]}
		for step := 1; step < size && i+step < len(ws); step *= 2 {
			x.below = append(x.below, ws[i+step])
		}
		t.of[w] = x
	}
	t.first = append(t.first, ws[0])
}

// atFirst returns the leaves at the first workers of the machines of their owners.
func (t *relays) atFirst(leaves Roster) Roster {
	first := make(map[int]int, len(t.of))
	for _, f := range t.first {
		for _, w := range t.of[f].group {
			first[w] = f
		}
	}
	out := Roster{Members: leaves.Members, Owner: make([]int, len(leaves.Owner))}
	for i, w := range leaves.Owner {
		out.Owner[i] = first[w]
	}
	return out
}

// relays returns the trees for a collective of this many bytes; nil if it is not relayed. It is relayed if each
// worker's share of the bytes is so small that the number of frames decides its time.
func (c *Comm) relays(bytes int) *relays {
	if bytes > 4*c.Direct*len(c.Workers) {
		return nil
	}
	return c.trees
}

// groupParts returns the maximal subtrees of the leaves that worker w and those below it host. It caches those of the
// epoch's roster.
func (c *Comm) groupParts(t *relays, leaves Roster, w int) []node {
	if !sameRoster(leaves, c.Roster) {
		return partsWithin(leaves, t.of[w].group)
	}
	if c.groups == nil {
		c.groups = map[int][]node{}
	}
	parts, ok := c.groups[w]
	if !ok {
		parts = partsWithin(leaves, t.of[w].group)
		c.groups[w] = parts
	}
	return parts
}

// machineParts returns the subtrees of the leaves by machine, under the machine's first worker. It caches those of the
// epoch's roster.
func (c *Comm) machineParts(t *relays, leaves Roster) map[int][]node {
	if !sameRoster(leaves, c.Roster) {
		return partsOf(t.atFirst(leaves))
	}
	if c.byMachine == nil {
		c.byMachine = partsOf(t.atFirst(leaves))
	}
	return c.byMachine
}

// relay is exchange along the trees. known has the subtrees that this worker hosts.
func (s reduction) relay(ctx context.Context, op Op, t *relays, known map[node]engine.Span, dst engine.Mat,
	div float32) (Phases, error) {
	c, me := s.c, t.of[s.c.Self]
	var rest Phases // among the first workers of the machines
	forward := func(ctx context.Context) error {
		if me.up == c.Self {
			parts := c.machineParts(t, s.leaves)
			err := s.sums(ctx, parts[c.Self], known, dst.Cols)
			if err == nil {
				rest, err = s.exchange(ctx, op, t.first, parts, known, dst, div)
			}
			return err
		}
		parts := c.groupParts(t, s.leaves, c.Self)
		if err := s.sums(ctx, parts, known, dst.Cols); err != nil || len(parts) == 0 {
			return err
		}
		frame := make([]byte, 0, s.code.Size(dst.Cols)*len(parts))
		for _, n := range parts {
			var err error
			if frame, err = c.fetch(ctx, frame, known[n], s.code); err != nil {
				return err
			}
		}
		return c.send(me.up, op, frame)
	}
	up := func(ctx context.Context) error {
		for _, w := range me.below {
			if err := s.receive(ctx, op, w, c.groupParts(t, s.leaves, w), known, dst.Cols); err != nil {
				return err
			}
		}
		return forward(ctx)
	}
	down := func(ctx context.Context) error {
		if err := rest.Run(ctx); err != nil {
			return err
		}
		var frame []byte
		var err error
		if me.up != c.Self {
			frame, err = c.recv(ctx, me.up, op, s.code.Size(dst.Cols))
		} else if len(me.below) > 0 {
			frame, err = c.fetch(ctx, nil, engine.All(dst), s.code)
		}
		if err != nil {
			return err
		}
		if err := c.sendAll(me.below, op, frame); err != nil || me.up == c.Self {
			return err
		}
		return c.put(ctx, engine.All(dst), frame, s.code)
	}
	if len(me.below) > 0 {
		return Phases{up, down}, nil
	}
	return Phases{down}, forward(ctx)
}

// relayShares is shareAll along the trees.
func (c *Comm) relayShares(t *relays, op Op, own []byte, size func(worker int) int,
	take func(worker int, p []byte) error) (Phases, error) {
	me, shares := t.of[c.Self], map[int][]byte{c.Self: own}
	// receive receives the shares of some workers in one frame.
	receive := func(ctx context.Context, from int, of []int) error {
		n := 0
		for _, w := range of {
			n += size(w)
		}
		if n == 0 {
			return nil
		}
		p, err := c.recv(ctx, from, op, n)
		if err != nil {
			return err
		}
		for _, w := range of {
			shares[w], p = p[:size(w)], p[size(w):]
		}
		return nil
	}
	// send sends the shares of some workers in one frame.
	send := func(to, of []int) error {
		var p []byte
		for _, w := range of {
			p = append(p, shares[w]...)
		}
		if len(p) == 0 {
			return nil
		}
		return c.sendAll(to, op, p)
	}
	forward := func() error {
		if me.up != c.Self {
			return send([]int{me.up}, me.group)
		}
		return send(t.first, me.group)
	}
	up := func(ctx context.Context) error {
		for _, w := range me.below {
			if err := receive(ctx, w, t.of[w].group); err != nil {
				return err
			}
		}
		return forward()
	}
	arrive := func(ctx context.Context) error {
		if me.up != c.Self {
			return receive(ctx, me.up, c.Workers)
		}
		for _, w := range t.first {
			if w == c.Self {
				continue
			}
			if err := receive(ctx, w, t.of[w].group); err != nil {
				return err
			}
		}
		return nil
	}
	down := func(ctx context.Context) error {
		if err := arrive(ctx); err != nil {
			return err
		}
		if err := send(me.below, c.Workers); err != nil {
			return err
		}
		for _, w := range c.Workers {
			if p := shares[w]; w != c.Self && len(p) > 0 {
				if err := take(w, p); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if len(me.below) > 0 {
		return Phases{up, down}, nil
	}
	return Phases{down}, forward()
}
