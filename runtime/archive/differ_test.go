package archive

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"brood/optim/collective"
	"brood/runtime/event"
)

// TestMeanIsOfSeeds: runs with the same seed count as one sample.
func TestMeanIsOfSeeds(t *testing.T) {
	var runs []*Run
	for i, c := range []struct{ seed, rounds uint64 }{{1, 4}, {1, 8}, {2, 12}} {
		m := begin(c.seed, nil)
		m.rounds(c.rounds)
		runs = append(runs, m.run(t, fmt.Sprint(i)))
	}
	groups := Groups(runs)
	if len(groups) != 1 || groups[0].Seeds() != 2 {
		t.Fatalf("groups %v", groups)
	}
	mean, se, n := groups[0].Mean("train_loss") // 6 of seed 1, and 12
	if mean != 9 || math.Abs(se-3) > 1e-12 || n != 2 {
		t.Errorf("mean %v ± %v of %d, want 9 ± 3 of 2", mean, se, n)
	}
	if g := (Group{runs[:2]}); g.Seeds() != 1 {
		t.Errorf("%d seeds of two runs with one seed", g.Seeds())
	}
}

// TestMeanOfForks: the costs of a fork without its parent are omitted if other runs have costs from the start.
func TestMeanOfForks(t *testing.T) {
	parent, child := begin(1, nil), forked(1, true)
	parent.rounds(40)
	child.rounds(10)
	alone := forked(1, true)
	alone.out[0].Config.Seed = 2
	alone.rounds(10)
	c, a := child.run(t, "c"), alone.run(t, "a")
	Join([]*Run{c, a, parent.run(t, "p")})
	if mean, _, n := (Group{[]*Run{c, a}}).Mean("seconds"); mean != 15 || n != 1 {
		t.Errorf("%v s of %d, want 15 of 1", mean, n)
	}
	if mean, _, n := (Group{[]*Run{a}}).Mean("seconds"); mean != 5 || n != 1 {
		t.Errorf("%v s of %d, want 5 of 1", mean, n)
	}
}

// TestWorkersAreASetting: the time of a run depends on its workers, so the initial workers and later changes are
// settings.
func TestWorkersAreASetting(t *testing.T) {
	place := func(at uint64, workers ...int) event.Record {
		return event.Record{Plan: &event.Plan{At: at, From: event.Workers, Algorithm: "dp-sgd",
			New: collective.Place(collective.IDs(4), workers)}}
	}
	one, two, three := begin(1, nil), begin(2, nil), begin(3, nil)
	two.put(place(0, 0, 1)) // before the first round
	three.rounds(4)
	three.put(place(4, 0, 1, 2))
	var runs []*Run
	for i, m := range []*maker{one, two, three} {
		m.rounds(4)
		runs = append(runs, m.run(t, fmt.Sprint(i)))
	}
	if g := Groups(runs); len(g) != 3 {
		t.Errorf("%d settings, want 3", len(g))
	}
	d := Differences(runs)
	i := slices.IndexFunc(d, func(d Difference) bool { return d.Name == "workers" })
	if i < 0 || !slices.Equal(d[i].Values, []string{"1", "2", "1 → 3 @5"}) {
		t.Errorf("differences %v", d)
	}
}
