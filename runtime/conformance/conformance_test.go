package conformance

import (
	"testing"

	"brood/optim/catalog"
)

// TestConformance runs the suite for every algorithm of the catalog.
func TestConformance(t *testing.T) {
	names := map[string]bool{}
	for _, a := range catalog.All() {
		if names[a.Name] {
			t.Errorf("two algorithms have the name %s", a.Name)
		}
		names[a.Name] = true
		t.Run(a.Name, func(t *testing.T) {
			Suite(t, a, quick(Rig{Algorithm: a.Name, Rounds: 12}))
		})
	}
}
