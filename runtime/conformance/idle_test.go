package conformance

import (
	"testing"

	"brood/optim"
	"brood/optim/catalog"
)

// TestIdleKnobs: a knob that screens fold because it has no effect has none: another value gives the same hash. Knobs
// that depend on another knob are tested with its default; those of optimisers also with Adam.
func TestIdleKnobs(t *testing.T) {
	folded := 0
	for _, a := range catalog.All() {
		set := []map[string]float64{nil}
		if k, ok := a.Knob("optimiser"); ok {
			adam, err := k.Parse("adam")
			if err != nil {
				t.Fatal(err)
			}
			set = append(set, map[string]float64{"optimiser": adam})
		}
		for _, with := range set {
			rig := quick(Rig{Algorithm: a.Name, Members: 4, Workers: 2, Rounds: 3, Seed: 2})
			for name, x := range with {
				k, _ := a.Knob(name)
				rig = rig.With(name, k.Format(x))
			}
			want := ""
			for _, k := range a.Knobs {
				v := a.Values(with)
				if !a.Idle(k, func(on optim.Knob) float64 { return v.Get(on.Name) }) {
					continue
				}
				if want == "" {
					o, err := rig.Run(t.Context())
					if err != nil {
						t.Fatalf("%s: %v", a.Name, err)
					}
					want = o.Hash()
				}
				folded++
				o, err := rig.With(k.Name, k.Format(another(k))).Run(t.Context())
				if err != nil {
					t.Fatalf("%s with another %s: %v", a.Name, k.Name, err)
				}
				if o.Hash() != want {
					t.Errorf("%s with %v: %s has no effect, but another value changes the state", a.Name, with, k.Name)
				}
			}
		}
	}
	if folded < 50 {
		t.Errorf("only %d knobs are folded", folded)
	}
}

// another returns a valid value of k other than its default.
func another(k optim.Knob) float64 {
	switch {
	case len(k.Choices) > 0:
		return float64((int(k.Default) + 1) % len(k.Choices))
	case k.Default/2 >= k.Min && k.Default > 0:
		return k.Default / 2
	}
	return k.Max
}
