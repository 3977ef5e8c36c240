package conformance

import (
	"context"
	"slices"
	"testing"

	"brood/optim"
	"brood/optim/catalog"
	"brood/runtime/event"
	"brood/runtime/view"
)

// partners returns the recorded points of the series partner.
func partners(o *Outcome) (out []event.Points) {
	for _, r := range o.Log.Records {
		if r.Points != nil && r.Points.Series == view.Partner {
			out = append(out, *r.Points)
		}
	}
	return out
}

// TestPartnersEverywhere: the recorded partners do not depend on the placement of members, also through a stop and a
// resume on other workers.
func TestPartnersEverywhere(t *testing.T) {
	tested := 0
	for _, a := range catalog.All() {
		if !slices.ContainsFunc(a.Series, func(s optim.Series) bool { return s.Name == view.Partner }) {
			if a.Needs&optim.Pairs != 0 {
				t.Errorf("%s pairs its members but does not report partners", a.Name)
			}
			continue
		}
		tested++
		// more points than insertion sort is used for
		base := quick(Rig{Algorithm: a.Name, Members: 21, Workers: 1, Rounds: 12, Seed: 5})
		want := partners(run(t, base))
		if len(want) != 12 {
			t.Fatalf("%s: partners in %d rounds, want 12", a.Name, len(want))
		}
		same := func(how string, got []event.Points) {
			if !slices.EqualFunc(got, want, func(x, y event.Points) bool {
				return x.Round == y.Round && slices.Equal(x.Members, y.Members) && slices.Equal(x.Values, y.Values)
			}) {
				t.Errorf("%s, %s: other partners than on one worker:\n%v\n%v", a.Name, how, got, want)
			}
		}
		for _, p := range want {
			if ids := slices.Compact(slices.Clone(p.Members)); !slices.IsSorted(ids) || len(ids) != 21 {
				t.Errorf("%s: partners of %v", a.Name, p.Members)
			}
		}
		several := base
		several.Workers = 3
		same("three workers", partners(run(t, several)))
		several.Workers, several.JoinAfter = 2, 3
		same("a third worker joining", partners(run(t, several)))

		half := base
		half.Workers, half.Rounds, half.Store = 2, 6, &Memory{}
		first := run(t, half)
		rest := base
		rest.Workers, rest.Resume, rest.Store = 3, first.Checkpoint(), half.Store
		rest.Epoch = rest.Resume.Epoch
		o, err := rest.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		same("resumed", append(partners(first), partners(o)...))
	}
	if tested < 3 {
		t.Errorf("only %d algorithms report partners", tested)
	}
}
