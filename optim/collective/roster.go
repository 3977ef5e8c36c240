package collective

import (
	"fmt"
	"iter"
	"slices"

	"brood/models/engine"
)

// Roster assigns the members of one membership epoch to workers. Members ascend; worker Owner[i] hosts Members[i].
type Roster struct {
	Members []engine.Member
	Owner   []int // worker ids
	// Machines[i] is the machine of worker Owner[i]; nil: no two workers share a machine. Derived rosters have
	// none.
	Machines []int `cbor:",omitempty"`
}

// On returns the roster with the machine of each worker, nil if no two of its workers are on one.
func (r Roster) On(machineOf func(worker int) int) Roster {
	r.Machines = make([]int, len(r.Owner))
	first, shared := map[int]int{}, false
	for i, w := range r.Owner {
		m := machineOf(w)
		if f, ok := first[m]; !ok {
			first[m] = w
		} else if f != w {
			shared = true
		}
		r.Machines[i] = m
	}
	if !shared {
		r.Machines = nil
	}
	return r
}

// Rank returns the position of m in Members, or -1 if it is absent.
func (r Roster) Rank(m engine.Member) int {
	return Find(r.Members, m)
}

// Find returns the index of x in an ascending slice, or -1 if it is absent. It is fastest if ascending[x] == x.
func Find[T ~int | ~uint32](ascending []T, x T) int {
	if uint64(x) < uint64(len(ascending)) && ascending[x] == x {
		return int(x)
	}
	if i, ok := slices.BinarySearch(ascending, x); ok {
		return i
	}
	return -1
}

// RowAmong returns the index of m in an ascending list of hosted members, its row in per-member blocks, or -1.
func RowAmong(hosted []engine.Member, m engine.Member) engine.Row {
	if !reachOf(hosted).has(m) {
		return -1
	}
	return engine.Row(Find(hosted, m))
}

// Has reports whether m is a member.
func (r Roster) Has(m engine.Member) bool { return r.Rank(m) >= 0 }

// Of returns the worker that hosts m, which must be a member.
func (r Roster) Of(m engine.Member) int { return r.Owner[r.Rank(m)] }

// Hosted lists the members of worker w, ascending: the rows of its per-member blocks.
func (r Roster) Hosted(w int) (out []engine.Member) {
	for i, m := range r.Members {
		if r.Owner[i] == w {
			out = append(out, m)
		}
	}
	return
}

// Crossings yields the sending and the receiving worker of each row that Comm.Move sends along edges, in order. A row
// is sent to a worker once, however many of its members receive it.
func (r Roster) Crossings(edges []Edge) iter.Seq2[int, int] {
	return func(yield func(from, to int) bool) {
		first := make([]int32, len(r.Members)) // first worker that receives a member's row, plus one; 0: none yet
		further := map[uint64]bool{}           // further workers, by member and worker: rare
		for _, e := range edges {
			rank := r.Rank(e.From)
			from, to := r.Owner[rank], r.Of(e.To)
			switch p := uint64(e.From)<<32 | uint64(to); {
			case from == to, first[rank] == int32(to+1), further[p]:
				continue
			case first[rank] == 0:
				first[rank] = int32(to + 1)
			default:
				further[p] = true
			}
			if !yield(from, to) {
				return
			}
		}
	}
}

// Workers lists the workers that host a member, ascending.
func (r Roster) Workers() []int {
	out := slices.Clone(r.Owner)
	slices.Sort(out)
	return slices.Compact(out)
}

// Hosting is a roster indexed by worker.
type Hosting struct {
	Workers []int             // workers that host a member, ascending
	of      [][]engine.Member // members of each of Workers
}

// Hosting returns the roster indexed by worker, for callers that need the members of many workers.
func (r Roster) Hosting() Hosting {
	h := Hosting{Workers: r.Workers()}
	h.of = make([][]engine.Member, len(h.Workers))
	for i, w := range r.Owner {
		k := h.Place(w)
		h.of[k] = append(h.of[k], r.Members[i])
	}
	return h
}

// Place returns the index of w in Workers, or -1 if it hosts no member.
func (h Hosting) Place(w int) int { return Find(h.Workers, w) }

// Of lists the members of worker w, ascending. The caller must not change it.
func (h Hosting) Of(w int) []engine.Member {
	if k := h.Place(w); k >= 0 {
		return h.of[k]
	}
	return nil
}

// Without returns the roster without the given members.
func (r Roster) Without(gone []engine.Member) (n Roster) {
	for i, m := range r.Members {
		if !slices.Contains(gone, m) {
			n.Members, n.Owner = append(n.Members, m), append(n.Owner, r.Owner[i])
		}
	}
	return n
}

// OnOne returns the same members, all hosted by worker w, as verify and resume need it.
func (r Roster) OnOne(w int) Roster {
	return Roster{Members: r.Members, Owner: slices.Repeat([]int{w}, len(r.Members))}
}

// Mirrors returns the same members, each at the worker that holds a copy of its rows in a run with mirrors: the worker
// after its own, in a ring of all workers that host members. It is empty if only one worker hosts members.
func (r Roster) Mirrors() Roster {
	ring := r.Workers()
	if len(ring) < 2 {
		return Roster{}
	}
	m := Roster{Members: r.Members, Owner: make([]int, len(r.Owner))}
	for i, w := range r.Owner {
		m.Owner[i] = ring[(Find(ring, w)+1)%len(ring)]
	}
	return m
}

// Moved returns the roster with some of its members at the workers that to places them at.
func (r Roster) Moved(some []engine.Member, to Roster) Roster {
	m := Roster{Members: r.Members, Owner: slices.Clone(r.Owner)}
	for _, id := range some {
		m.Owner[r.Rank(id)] = to.Of(id)
	}
	return m
}

// IDs returns the members 0 to n-1.
func IDs(n int) []engine.Member {
	out := make([]engine.Member, n)
	for i := range out {
		out[i] = engine.Member(i)
	}
	return out
}

// Place assigns contiguous ranges of members to workers, as evenly as possible. Contiguous ids share subtrees of the
// reduction, so that a worker sends few partial sums.
func Place(members []engine.Member, workers []int) Roster {
	n, w := len(members), len(workers)
	r := Roster{Members: slices.Clone(members), Owner: make([]int, n)}
	for i := range n {
		r.Owner[i] = workers[min(i*w/max(n, 1), w-1)]
	}
	return r
}

// Validate checks a roster that came from a peer or a file.
func (r Roster) Validate() error {
	if len(r.Members) != len(r.Owner) {
		return fmt.Errorf("roster: %d members but %d owners", len(r.Members), len(r.Owner))
	}
	if n := len(r.Machines); n > 0 && n != len(r.Members) {
		return fmt.Errorf("roster: %d members but %d machines", len(r.Members), n)
	}
	machine := map[int]int{}
	for i, m := range r.Machines {
		if known, ok := machine[r.Owner[i]]; ok && known != m {
			return fmt.Errorf("roster: worker %d is on machine %d and on %d", r.Owner[i], known, m)
		}
		machine[r.Owner[i]] = m
	}
	for i := 1; i < len(r.Members); i++ {
		if r.Members[i-1] >= r.Members[i] {
			return fmt.Errorf("roster: member %d follows %d: members must ascend", r.Members[i], r.Members[i-1])
		}
	}
	return nil
}

// Only returns the roster of a single member. A reduction over it is a broadcast of its row.
func (r Roster) Only(m engine.Member) Roster {
	i := r.Rank(m)
	return Roster{Members: r.Members[i : i+1], Owner: r.Owner[i : i+1]}
}

// ShardsOf returns the range of shards that the member of a rank computes. They are contiguous, so that the partial
// sums of a worker share subtrees.
func (r Roster) ShardsOf(rank, groups int) (lo, hi int) {
	return engine.Cut(groups, rank, len(r.Members))
}

// Shards returns the roster whose members are shards 0 to groups-1, each hosted by the worker of its member.
func (r Roster) Shards(groups int) Roster {
	out := Roster{Members: IDs(groups), Owner: make([]int, groups)}
	for rank, owner := range r.Owner {
		for lo, hi := r.ShardsOf(rank, groups); lo < hi; lo++ {
			out.Owner[lo] = owner
		}
	}
	return out
}
