package coordinator

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"brood/models/engine"
	"brood/runtime/event"
	"brood/runtime/message"
)

// rowSums are digests of all rows: of the shared ones, as in claim, and of members, at the offsets of epochs.from.
type rowSums struct {
	shared  string
	members [][32]byte
}

// sharedSums joins the digests of the shared rows as a claim has them.
func sharedSums(d message.Digests, shared int) string {
	var sums []byte
	for _, x := range d[:shared] {
		sums = append(sums, x.Sum[:]...)
	}
	return string(sums)
}

// checkRows checks the rows that workers hold for a plan whose epoch compares frames, before the plan takes effect:
// against the committed ones if the plan moves rows and changes none, shared rows against each other, and copies at
// mirrors. ok is false if another plan is made instead.
func (c *Coordinator) checkRows(p *message.Plan) (fx []Effect, ok bool) {
	if !p.Witness {
		return nil, true
	}
	if c.accusation != nil {
		if fx = c.decide(); len(fx) > 0 {
			return fx, false
		}
	}
	hosts := p.New.Workers()
	names, shared := c.rowsOf(p)
	for _, w := range hosts {
		if held := c.ready[w].Held; held == nil || !sameNames(held.Digests, names(w)) {
			return c.evict(Lost{w, "it does not report the rows of the plan"}), false
		}
	}
	if fx, ok = c.checkCarried(p, hosts); !ok {
		return fx, false
	}
	if fx, ok = c.checkShared(p, hosts, shared); !ok {
		return fx, false
	}
	if mirrors := p.New.Mirrors(); p.Mirror && len(hosts) > 1 {
		for _, w := range hosts {
			mirror := mirrors.Of(p.New.Hosted(w)[0])
			copies := c.ready[mirror].Held.Mirrored.Map()
			for _, x := range c.ready[w].Held.Digests[shared:] {
				if copies[x.Row] != x.Sum {
					what := fmt.Sprintf("the copy of row %s after round %d", x.Row, c.committed)
					return c.suspect(what, c.newPair(w, mirror)), false
				}
			}
		}
	}
	return nil, true
}

// rowsOf returns a function with the rows of each host of a plan, in the order of reports, and the number of shared
// ones.
func (c *Coordinator) rowsOf(p *message.Plan) (of func(worker int) []string, shared int) {
	blocks := c.planBlocks(p.Plan)
	sorted := slices.Sorted(maps.Keys(blocks))
	var first []string
	for _, b := range sorted {
		if blocks[b] {
			first = append(first, b+"/shared")
		}
	}
	return func(worker int) []string {
		return append(slices.Clone(first), rowNames(blocks, sorted, p.New.Hosted(worker))...)
	}, len(first)
}

// rowNames lists the rows of members in the order of reports. blocks are the blocks, sorted their names.
func rowNames(blocks map[string]bool, sorted []string, members []engine.Member) (names []string) {
	for _, b := range sorted {
		for _, m := range members {
			if !blocks[b] {
				names = append(names, b+"/"+strconv.Itoa(int(m)))
			}
		}
	}
	return names
}

func sameNames(d message.Digests, names []string) bool {
	return slices.EqualFunc(d, names, func(x message.Digest, name string) bool { return x.Row == name })
}

// checkCarried compares the rows that workers hold for a plan with the committed ones, if the plan moves rows and
// changes none.
func (c *Coordinator) checkCarried(p *message.Plan, hosts []int) (fx []Effect, ok bool) {
	if c.known == nil || !c.movesOnly(p) {
		return nil, true
	}
	want := map[string][32]byte{}
	for i, name := range c.shared {
		want[name] = [32]byte([]byte(c.known.shared[32*i:]))
	}
	for place, names := range c.names {
		for i, name := range names {
			want[name] = c.known.members[c.from[place]+i]
		}
	}
	sources := p.Sources()
	for _, w := range hosts {
		for _, x := range c.ready[w].Held.Digests {
			if sum, known := want[x.Row]; !known || sum == x.Sum {
				continue
			}
			from := sources.Workers()[0]
			if m, member := rowMember(x); member {
				from = sources.Of(m)
			} else if slices.Contains(sources.Workers(), w) {
				from = w
			}
			what := fmt.Sprintf("row %s after round %d", x.Row, c.committed)
			if from == w {
				return c.evict(Lost{w, "it changed " + what}), false
			}
			return c.suspect(what, c.newPair(from, w)), false
		}
	}
	return nil, true
}

// movesOnly reports whether a plan moves rows between workers and changes none.
func (c *Coordinator) movesOnly(p *message.Plan) bool {
	if p.From != event.Workers || p.OldAlg != p.Algorithm || len(p.Lost) > 0 ||
		!slices.Equal(p.Old.Members, p.New.Members) {
		return false
	}
	alg, err := c.cfg.Lookup(p.Algorithm)
	if err != nil {
		return false
	}
	differ, err := c.structural(alg, p.Before, p.Timeline)
	return !differ && err == nil
}

// checkShared compares the shared rows of all hosts. Rows from a seed or a file, and rows that a plan only moves,
// depend on no other worker, so that a minority that differs is wrong, or received wrong rows when it joined. Otherwise
// nobody can be named, and the run pauses.
func (c *Coordinator) checkShared(p *message.Plan, hosts []int, shared int) (fx []Effect, ok bool) {
	count := map[string]int{}
	most := ""
	for _, w := range hosts {
		sums := sharedSums(c.ready[w].Held.Digests, shared)
		if count[sums]++; count[sums] > count[most] {
			most = sums
		}
	}
	if len(count) <= 1 {
		return nil, true
	}
	var differ []int
	for _, w := range hosts {
		if sharedSums(c.ready[w].Held.Digests, shared) != most {
			differ = append(differ, w)
		}
	}
	if p.From == event.Workers && !c.movesOnly(p) || 2*count[most] <= len(hosts) {
		return c.pauseDisagree(hosts, fmt.Sprintf("hold different shared rows for the plan after round %d", p.At)), false
	}
	var out []Lost
	for _, w := range differ {
		if survivors := p.Sources().Workers(); p.From == event.Workers && !slices.Contains(survivors, w) {
			return c.suspect(fmt.Sprintf("the shared rows after round %d", p.At), c.newPair(survivors[0], w)), false
		}
		out = append(out, Lost{w, fmt.Sprintf("its shared rows after round %d differ from those of all others", p.At)})
	}
	return c.evict(out...), false
}

// beginEpoch takes the rows that the workers of a new epoch reported as those of the committed round.
func (c *Coordinator) beginEpoch(p *message.Plan) {
	ready := c.ready
	c.compares, c.ready, c.known = p.Witness, nil, nil
	if !p.Witness {
		return
	}
	c.known = &rowSums{}
	for _, w := range c.hosting.Workers {
		d := ready[w].Held.Digests
		c.known.shared = sharedSums(d, len(c.shared))
		for _, x := range d[len(c.shared):] {
			c.known.members = append(c.known.members, x.Sum)
		}
	}
}

// rowMember returns the member whose row a digest is of; ok is false for a shared row.
func rowMember(x message.Digest) (m engine.Member, ok bool) {
	_, of := x.Parts()
	n, err := strconv.ParseUint(of, 10, 32)
	return engine.Member(n), err == nil
}
