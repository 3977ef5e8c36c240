package tui

import (
	"testing"

	"brood/optim"
	"brood/optim/coupled"
	"brood/runtime/view/sourcetest"
	"brood/tui/panel"
)

// TestSeriesNames checks that a series has the title that its algorithm or the runtime declares, and the inverse of a
// knob the name of the knob.
func TestSeriesNames(t *testing.T) {
	for ascii, inverse := range map[bool]string{false: "1/γ", true: "1/gamma"} {
		d := open(t, 120, 36, sourcetest.Run(3, 20), func(o *panel.Options) {
			o.ASCII, o.Algorithms = ascii,
				[]*optim.Algorithm{coupled.Parle}
		})
		for name, want := range map[string]string{"gamma.inverse": inverse, optim.SeriesGradient.Name: "gradient norm",
			"loss": "training loss", "of nobody": "of nobody"} {
			if got := d.SeriesName(name); got != want {
				t.Errorf("%s is called %q, want %q", name, got, want)
			}
		}
		if got := d.SeriesTitle("gamma.inverse"); got != inverse {
			t.Errorf("the chart is called %q, want %q", got, inverse)
		}
	}
}
