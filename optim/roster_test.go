package optim

import (
	"slices"
	"testing"
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
	r := Roster{[]Member{1, 4, 6, 11}, []int{7, 2, 7, 5}}
	if !slices.Equal(r.Workers(), []int{2, 5, 7}) || !slices.Equal(r.Hosted(7), []Member{1, 6}) || r.Hosted(3) != nil {
		t.Errorf("workers %v host %v", r.Workers(), r.Hosted(7))
	}
	if r.Rank(6) != 2 || r.Rank(5) != -1 || r.Of(11) != 5 || r.Has(0) {
		t.Error("ranks or owners are wrong")
	}
	left := r.Without([]Member{4, 11, 99})
	if !slices.Equal(left.Members, []Member{1, 6}) || !slices.Equal(left.Owner, []int{7, 7}) || len(r.Members) != 4 {
		t.Errorf("without 4 and 11: %v", left)
	}
	one := r.OnOne(3)
	if !slices.Equal(one.Members, r.Members) || !slices.Equal(one.Workers(), []int{3}) {
		t.Errorf("on one: %v", one)
	}
	for _, bad := range []Roster{{[]Member{1}, nil}, {[]Member{2, 1}, []int{0, 0}}, {[]Member{1, 1}, []int{0, 0}}} {
		if bad.Validate() == nil {
			t.Errorf("%v is admitted", bad)
		}
	}
}
