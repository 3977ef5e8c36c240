package collective

import (
	"fmt"
	"iter"
	"slices"

	"brood/models/engine"
)

// Roster says who hosts which member in one membership epoch. Members ascend; Owner[i] hosts Members[i].
type Roster struct {
	Members []engine.Member
	Owner   []int // worker ids
}

// Rank is m's position among the members, -1 when it is absent.
func (r Roster) Rank(m engine.Member) int {
	return Find(r.Members, m)
}

// Find is where x is among numbers that ascend, -1 when it is absent. Most often they are those from 0 on.
func Find[T ~int | ~uint32](ascending []T, x T) int {
	if uint64(x) < uint64(len(ascending)) && ascending[x] == x {
		return int(x)
	}
	if i, ok := slices.BinarySearch(ascending, x); ok {
		return i
	}
	return -1
}

// rowAmong is the row of m where these members are hosted, which ascend; -1 where m is none of them.
func RowAmong(hosted []engine.Member, m engine.Member) engine.Row {
	if !reachOf(hosted).has(m) {
		return -1
	}
	return engine.Row(Find(hosted, m))
}

// Has says whether m is a member.
func (r Roster) Has(m engine.Member) bool { return r.Rank(m) >= 0 }

// Of is the worker that hosts m, which must be a member.
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

// Crossings are the workers that a row travels between along edges, each row once to each worker, in their order.
func (r Roster) Crossings(edges []Edge) iter.Seq2[int, int] {
	return func(yield func(from, to int) bool) {
		first := make([]int32, len(r.Members)) // the worker that a member's row goes to first, plus one
		further := map[uint64]bool{}           // likewise to others, by member and worker: few have any
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

// Hosting is a roster by its workers.
type Hosting struct {
	Workers []int             // that host a member, ascending
	of      [][]engine.Member // of each of them
}

// Hosting turns the roster round once, for whoever asks of many workers.
func (r Roster) Hosting() Hosting {
	h := Hosting{Workers: r.Workers()}
	h.of = make([][]engine.Member, len(h.Workers))
	for i, w := range r.Owner {
		k := h.Place(w)
		h.of[k] = append(h.of[k], r.Members[i])
	}
	return h
}

// Place is that of a worker among those that host a member, -1 when it hosts none.
func (h Hosting) Place(w int) int { return Find(h.Workers, w) }

// Of lists the members of worker w, ascending. The caller must not change it.
func (h Hosting) Of(w int) []engine.Member {
	if k := h.Place(w); k >= 0 {
		return h.of[k]
	}
	return nil
}

// Without is the roster less some members.
func (r Roster) Without(gone []engine.Member) (n Roster) {
	for i, m := range r.Members {
		if !slices.Contains(gone, m) {
			n.Members, n.Owner = append(n.Members, m), append(n.Owner, r.Owner[i])
		}
	}
	return n
}

// OnOne is the same population hosted by one worker: what verify and resume use.
func (r Roster) OnOne(w int) Roster {
	return Roster{r.Members, slices.Repeat([]int{w}, len(r.Members))}
}

// IDs are the members 0..n-1.
func IDs(n int) []engine.Member {
	out := make([]engine.Member, n)
	for i := range out {
		out[i] = engine.Member(i)
	}
	return out
}

// Place deals contiguous runs of members to workers, as even as can be. Contiguous ids share subtrees of the reduction,
// so a worker sends few parts.
func Place(members []engine.Member, workers []int) Roster {
	n, w := len(members), len(workers)
	r := Roster{Members: slices.Clone(members), Owner: make([]int, n)}
	for i := range n {
		r.Owner[i] = workers[min(i*w/max(n, 1), w-1)]
	}
	return r
}

// Validate says what is wrong with a roster that came from outside.
func (r Roster) Validate() error {
	if len(r.Members) != len(r.Owner) {
		return fmt.Errorf("roster: %d members but %d owners", len(r.Members), len(r.Owner))
	}
	for i := 1; i < len(r.Members); i++ {
		if r.Members[i-1] >= r.Members[i] {
			return fmt.Errorf("roster: member %d follows %d: members must ascend", r.Members[i], r.Members[i-1])
		}
	}
	return nil
}

// only is the roster of one member: one leaf of a reduction, which so becomes a broadcast.
func (r Roster) Only(m engine.Member) Roster {
	i := r.Rank(m)
	return Roster{Members: r.Members[i : i+1], Owner: r.Owner[i : i+1]}
}

// ShardsOf is the range of shards of the member of a rank: neighbours, so that a worker's sums share subtrees.
func (r Roster) ShardsOf(rank, groups int) (lo, hi int) {
	return engine.Cut(groups, rank, len(r.Members))
}

// shards is the roster whose leaves are shards 0..groups-1, each where its member is.
func (r Roster) Shards(groups int) Roster {
	out := Roster{Members: IDs(groups), Owner: make([]int, groups)}
	for rank, owner := range r.Owner {
		for lo, hi := r.ShardsOf(rank, groups); lo < hi; lo++ {
			out.Owner[lo] = owner
		}
	}
	return out
}
