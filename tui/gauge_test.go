package tui

import (
	"math"
	"strings"
	"testing"

	"brood/optim"
	"brood/optim/catalog"
	"brood/tui/cell"
	"brood/tui/panel"
)

func TestGaugePosition(t *testing.T) {
	for _, c := range []struct {
		k    optim.Knob
		x    float64
		want float64
	}{
		{optim.Knob{Max: 1}, 0.75, 0.75},
		{optim.Knob{Min: -1, Max: 1}, 0, 0.5},
		{optim.Knob{Min: 1, Max: 100, Scale: optim.Log}, 10, 0.5},
		{optim.Knob{Min: 1e-9, Max: 1e12, Scale: optim.Log}, 1e-9, 0},
		{optim.Knob{Max: 100, Scale: optim.Log}, 100, 1},
		{optim.Knob{Max: 100, Scale: optim.Log}, 0, 0},
		{optim.Knob{Max: 100, Scale: optim.Log}, 0.01, 0.5}, // of eight decades
		{optim.Knob{Min: 1, Max: 1 << 18, Integer: true}, 512, 0.5},
		{optim.Knob{Min: 3, Max: 3}, 3, 0},
		{optim.Knob{Max: 1e6, Integer: true}, 0, 0}, // elite and the like: whole numbers begin at 1
		{optim.Knob{Max: 1e6, Integer: true}, 1, 0},
		{optim.Knob{Max: 1e6, Integer: true}, 1000, 0.5},
		{optim.Knob{Max: 1e9, Integer: true}, 1e9, 1},
		{optim.Knob{Max: 1e9, Integer: true}, 1e3, 1. / 3},
		{optim.Knob{Max: 1e9}, 1e5, 0.5},
		{optim.Knob{Min: -1e9, Max: 1e9, Integer: true}, 0, 0.5}, // mirrored: a half for each sign
		{optim.Knob{Min: -1e9, Max: 1e9, Integer: true}, 1e9, 1},
		{optim.Knob{Min: -1e9, Max: 1e9, Integer: true}, 1e3, 2. / 3},
		{optim.Knob{Min: -1e9, Max: 1e9, Integer: true}, -1e3, 1. / 3},
		{optim.Knob{Min: -1e9, Max: 1e9, Integer: true}, -2e9, 0},
		{optim.Knob{Min: -1e8, Max: 1e4, Integer: true}, -1e4, 0.25}, // each half in its own decades
		{optim.Knob{Min: -1e8, Max: 1e4, Integer: true}, 1e2, 0.75},
		{optim.Knob{Min: -1e6, Max: 0, Integer: true}, -1000, 0.5},
		{optim.Knob{Min: -1e6, Max: 0, Integer: true}, 0, 1},
		{optim.Knob{Min: -1e6, Max: -1, Integer: true}, -1e6, 0},
		{optim.Knob{Min: -5e3, Max: 5e3}, 2500, 0.75}, // not so wide
		{optim.Knob{Max: 1e4}, 5e3, 0.5},
		{optim.Knob{Max: 1}, math.NaN(), 0},
		{optim.Knob{Max: 1}, 7, 1},
		{optim.Knob{Max: math.Inf(1)}, 7, 0},
	} {
		if got := panel.GaugePosition(c.k, c.x); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%g between %g and %g is at %g, want %g", c.x, c.k.Min, c.k.Max, got, c.want)
		}
	}
	for _, a := range catalog.All() { // the default of every knob has a position
		for _, k := range a.Knobs {
			if p := panel.GaugePosition(k, k.Default); !(p >= 0 && p <= 1) {
				t.Errorf("%s %s: its default is at %g", a.Name, k.Name, p)
			}
		}
	}
}

// TestDrawGauge checks that a number is at its position, that a choice lists the others, and that nothing is written
// outside.
func TestDrawGauge(t *testing.T) {
	draw := func(k optim.Knob, x float64, w int, ascii bool) string {
		g := cell.New(w+4, 1)
		panel.DrawGauge(g, 2, 0, w, k, x, cell.Median, ascii)
		return cell.Plainly(ascii).String(g)
	}
	for _, c := range []struct {
		k    optim.Knob
		x    float64
		want string
	}{
		{optim.Knob{Max: 1}, 0, "  ●──────────  "},
		{optim.Knob{Max: 1}, 0.5, "  ─────●─────  "},
		{optim.Knob{Max: 1}, 1, "  ──────────●  "},
		{optim.Knob{Choices: []string{"paper", "arxiv", "both"}}, 1, "  or 2 others  "},
		{optim.Knob{Choices: []string{"independent", "matching"}}, 1, "  or 1 other   "},
		{optim.Knob{Choices: []string{"one"}}, 0, "               "},
	} {
		if got := draw(c.k, c.x, 11, false); got != c.want {
			t.Errorf("drawn as %q, want %q", got, c.want)
		}
	}
	if got := draw(optim.Knob{Max: 1}, 0.5, 11, true); got != "  -----o-----  " {
		t.Errorf("in ASCII %q", got)
	}
	if got := draw(optim.Knob{Max: 1}, 0.5, 1, false); strings.TrimSpace(got) != "●" {
		t.Errorf("in one column %q", got)
	}
}
