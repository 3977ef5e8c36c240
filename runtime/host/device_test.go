package host

import (
	"slices"
	"testing"

	"brood/runtime/option"
)

// TestDriversAreNamed: what --device may name is what there is, in one order, and each is an engine by the environment.
func TestDriversAreNamed(t *testing.T) {
	var names, made []string
	for _, d := range drivers {
		names = append(names, d.Name())
	}
	for _, m := range engines {
		if m.device {
			made = append(made, m.name)
		}
	}
	if !slices.Equal(names, option.Drivers) || !slices.Equal(made, option.Drivers) {
		t.Errorf("drivers %v, engines on devices %v, options %v", names, made, option.Drivers)
	}
}
