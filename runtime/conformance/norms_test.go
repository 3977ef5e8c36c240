package conformance

import (
	"slices"
	"testing"

	"brood/optim"
	"brood/optim/catalog"
	"brood/runtime/event"
)

// TestNormsEverywhere: the norms of gradients, and the other series of probes, do not depend on the placement of
// members. Measuring them does not change the state.
func TestNormsEverywhere(t *testing.T) {
	tested := 0
	for _, a := range catalog.All() {
		if a.Needs&optim.Gradients == 0 {
			continue
		}
		reported := func(workers int, probe uint64) (out []event.Points, hash string) {
			r := quick(Rig{Algorithm: a.Name, Members: 6, Workers: workers, Rounds: 12, Seed: 5, Probe: probe})
			for _, rec := range run(t, r).Log.Records {
				if p := rec.Points; p != nil && (p.Series == optim.SeriesGradient.Name || p.Series == "staleness") {
					out = append(out, *p)
				}
				if rec.Commit != nil {
					hash = rec.Commit.Hash
				}
			}
			return out, hash
		}
		want, hash := reported(1, 4)
		got, elsewhere := reported(3, 4)
		if !slices.EqualFunc(got, want, func(x, y event.Points) bool {
			return x.Round == y.Round && x.Series == y.Series && slices.Equal(x.Members, y.Members) &&
				slices.Equal(x.Values, y.Values)
		}) {
			t.Errorf("%s: three workers report %v, one reports %v", a.Name, got, want)
		}
		if _, bare := reported(1, 0); hash != bare || elsewhere != hash {
			t.Errorf("%s: state %s with probes, %s without, %s on three workers", a.Name, hash, bare, elsewhere)
		}
		if len(want) == 0 {
			t.Errorf("%s: no norms of gradients are reported", a.Name)
		}
		for _, p := range want {
			if slices.ContainsFunc(p.Values, func(x float64) bool { return !(x >= 0) || x == 0 && p.Series != "staleness" }) {
				t.Errorf("%s: round %d has %s %v", a.Name, p.Round, p.Series, p.Values)
			}
		}
		tested++
	}
	if tested < 10 {
		t.Errorf("only %d algorithms use gradients", tested)
	}
}
