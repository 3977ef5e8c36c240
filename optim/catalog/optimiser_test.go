package catalog

import (
	"testing"

	"brood/optim"
)

// TestOptimiserKnob: an algorithm that takes gradients has the knob optimiser or states why it has none.
func TestOptimiserKnob(t *testing.T) {
	for _, a := range All() {
		_, has := a.Knob("optimiser")
		if asks := a.Needs&optim.Gradients != 0; asks && has == (a.NoOptimiser != "") || !asks && a.NoOptimiser != "" {
			t.Errorf("%s: knob optimiser: %t, NoOptimiser: %q", a.Name, has, a.NoOptimiser)
		}
	}
}
