package collective

import (
	"slices"
	"testing"

	"brood/models/engine"
	"brood/models/noise"
)

func TestPlace(t *testing.T) {
	for n := 1; n <= 9; n++ {
		for w := 1; w <= 5; w++ {
			workers := ints(w)
			r := Place(IDs(n), workers)
			if err := r.Validate(); err != nil {
				t.Fatal(err)
			}
			least, most := n, 0
			for _, id := range workers {
				h := len(r.Hosted(id))
				least, most = min(least, h), max(most, h)
			}
			if !slices.IsSorted(r.Owner) || most-least > 1 {
				t.Errorf("%d members on %d workers: %v", n, w, r.Owner)
			}
		}
	}
}

func TestRoster(t *testing.T) {
	r := Roster{Members: []engine.Member{1, 4, 6, 11}, Owner: []int{7, 2, 7, 5}}
	if !slices.Equal(r.Workers(), []int{2, 5, 7}) || !slices.Equal(r.Hosted(7), []engine.Member{1, 6}) ||
		r.Hosted(3) != nil {
		t.Errorf("workers %v host %v", r.Workers(), r.Hosted(7))
	}
	if r.Rank(6) != 2 || r.Rank(5) != -1 || r.Of(11) != 5 || r.Has(0) {
		t.Error("ranks or owners are wrong")
	}
	left := r.Without([]engine.Member{4, 11, 99})
	if !slices.Equal(left.Members, []engine.Member{1, 6}) || !slices.Equal(left.Owner, []int{7, 7}) ||
		len(r.Members) != 4 {
		t.Errorf("without 4 and 11: %v", left)
	}
	one := r.OnOne(3)
	if !slices.Equal(one.Members, r.Members) || !slices.Equal(one.Workers(), []int{3}) {
		t.Errorf("on one: %v", one)
	}
	for _, bad := range []Roster{
		{Members: []engine.Member{1}},
		{Members: []engine.Member{2, 1}, Owner: []int{0, 0}},
		{Members: []engine.Member{1, 1}, Owner: []int{0, 0}},
		{Members: []engine.Member{1, 2}, Owner: []int{0, 1}, Machines: []int{0}},
		{Members: []engine.Member{1, 2}, Owner: []int{0, 0}, Machines: []int{0, 1}},
	} {
		if bad.Validate() == nil {
			t.Errorf("%v is admitted", bad)
		}
	}
}

// TestCrossings compares with a naive search for each crossing in a list.
func TestCrossings(t *testing.T) {
	r := Roster{Members: []engine.Member{1, 4, 6, 11, 12}, Owner: []int{7, 2, 7, 5, 9}}
	type crossing struct {
		of       engine.Member
		from, to int
	}
	key := noise.Key{Purpose: noise.Pair}
	for n := range 40 {
		var edges []Edge
		var want, got [][2]int
		var seen []crossing
		for i := range n {
			e := Edge{r.Members[key.Below(80*n+2*i, 5)], r.Members[key.Below(80*n+2*i+1, 5)], "x"}
			edges = append(edges, e)
			if c := (crossing{e.From, r.Of(e.From), r.Of(e.To)}); c.from != c.to && !slices.Contains(seen, c) {
				seen, want = append(seen, c), append(want, [2]int{c.from, c.to})
			}
		}
		for from, to := range r.Crossings(edges) {
			got = append(got, [2]int{from, to})
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v: %v travel, and not %v", edges, got, want)
		}
	}
}
