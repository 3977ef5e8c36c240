package collective

import (
	"math"
	"slices"
	"testing"

	"brood/models/engine"
)

// TestTreeAssociation: absent ids do not change the grouping of the others. treeSum covers all ids of a fixed space,
// while sumTree starts at the smallest subtree.
func TestTreeAssociation(t *testing.T) {
	differ := 0
	for set := 1; set < 1<<10; set++ {
		var members []engine.Member
		for id := range engine.Member(10) {
			if set>>id&1 == 1 {
				members = append(members, 3*id) // with gaps
			}
		}
		r := Roster{Members: members, Owner: make([]int, len(members))}
		src, sums := sumTree(r, rootOf(r), func(n node) bool { return n.level == 0 && slices.Contains(members, n.prefix) })
		var known []float32
		for _, n := range src {
			known = append(known, value(n.prefix, 0))
		}
		waiting, most := 0, 0 // sums that are not used yet, and their maximum
		for _, pair := range sums {
			for _, i := range pair {
				if i >= len(src) {
					waiting--
				}
			}
			waiting++
			most = max(most, waiting)
			known = append(known, known[pair[0]]+known[pair[1]])
		}
		got := known[len(known)-1:]
		if deep := int(rootOf(r).level); most > deep {
			t.Fatalf("%v: %d sums wait at a time, the tree is %d deep", members, most, deep)
		}
		want, _ := treeSum(members, 0, 64, 0)
		if math.Float32bits(got[0]) != math.Float32bits(want) {
			t.Fatalf("%v: %g, want %g", members, got[0], want)
		}
		if other, _ := rankSum(members, 0, 16); other != want {
			differ++
		}
	}
	if differ == 0 {
		t.Error("the test's values give equal sums in the tree of ids and in the tree of ranks")
	}
}

// rankSum sums in another tree, over positions instead of ids.
func rankSum(members []engine.Member, lo, size int) (sum float32, ok bool) {
	if size == 1 {
		if lo >= len(members) {
			return 0, false
		}
		return value(members[lo], 0), true
	}
	a, okA := rankSum(members, lo, size/2)
	b, okB := rankSum(members, lo+size/2, size/2)
	if okA && okB {
		return a + b, true
	}
	return a, okA
}

// TestParts: the parts of all workers cover every member once, contain only members of their worker, and are maximal.
func TestParts(t *testing.T) {
	placements([]engine.Member{0, 1, 2, 5, 6, 9}, 3, func(r Roster) {
		seen := map[engine.Member]int{}
		for _, w := range r.Workers() {
			parts := partsOf(r)[w]
			for _, n := range parts {
				lo, hi := n.under(r)
				for i := lo; i < hi; i++ {
					seen[r.Members[i]]++
					if r.Owner[i] != w {
						t.Fatalf("%s: %v of worker %d holds member %d", describeRoster(r), n, w, r.Members[i])
					}
				}
				if n == rootOf(r) {
					continue
				}
				up := node{n.level + 1, n.prefix / 2}
				if lo, hi := up.under(r); !slices.ContainsFunc(r.Owner[lo:hi], func(o int) bool { return o != w }) {
					t.Fatalf("%s: worker %d could send %v instead of %v", describeRoster(r), w, up, n)
				}
			}
		}
		for _, m := range r.Members {
			if seen[m] != 1 {
				t.Fatalf("%s: member %d is in %d parts", describeRoster(r), m, seen[m])
			}
		}
	})
}

// TestLargeIDs covers the ends of the id space.
func TestLargeIDs(t *testing.T) {
	top := engine.Member(math.MaxUint32 - 1)
	r := Roster{Members: []engine.Member{0, 1 << 31, top}, Owner: []int{0, 1, 2}}
	for i, m := range r.Members {
		parts := partsOf(r)[i]
		if len(parts) != 1 {
			t.Fatalf("member %d is in parts %v", m, parts)
		}
		if lo, hi := parts[0].under(r); lo != i || hi != i+1 {
			t.Errorf("part %v of member %d covers [%d, %d)", parts[0], m, lo, hi)
		}
	}
}
