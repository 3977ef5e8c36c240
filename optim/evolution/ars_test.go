package evolution

import (
	"math"
	"slices"
	"testing"

	"brood/optim"
	"brood/optim/collective"
	"brood/optim/optimtest"
)

// ARS leaves out directions without two finite results.
func TestARSBest(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for name, c := range map[string]struct {
		fit       []float32
		top       float64
		best      []int
		deviation float64
	}{
		"the larger of two":  {[]float32{-3, -1, -2, -2, -9, 0}, 0.5, []int{0, 2}, math.Sqrt((0.0625 + 5.0625 + 33.0625 + 10.5625) / 4)},
		"at least one":       {[]float32{-3, -1, -2, -2}, 0, []int{0}, 1},
		"7 of 25":            {ascending(50), 0.28, []int{18, 19, 20, 21, 22, 23, 24}, math.Sqrt((14.0*14 - 1) / 12)},
		"equal":              {[]float32{-2, -2, -2, -2}, 1, []int{0, 1}, 0},
		"missing ranks last": {[]float32{nan, 5, -2, -4, -3, nan}, 0.4, []int{1}, 1},
		"all missing":        {[]float32{nan, 5, nan, nan}, 1, nil, 0},
		"beyond numbers":     {[]float32{-inf, -1, -2, -4}, 1, []int{1}, 1},
	} {
		best, deviation := arsBest(c.fit, c.top)
		if !slices.Equal(best, c.best) || math.Abs(deviation-c.deviation) > 1e-12 {
			t.Errorf("%s: %v, deviation %v, want %v, %v", name, best, deviation, c.best, c.deviation)
		}
	}
}

// TestARSPrefers: with seeds noise is regenerated for the directions that the step uses, not for all.
func TestARSPrefers(t *testing.T) {
	for top, want := range map[float64]string{0.5: "seed", 1: "chromosome"} {
		s := optim.Shape{Roster: collective.Place(collective.IDs(16), []int{0, 1}), K: optimtest.Set{"top": top}.Of(ARS)}
		if c := ars.Prefer(ars{}, s, optim.Rates{Noise: 6e9, Bytes: 4e9}); c[0].Expr != want {
			t.Errorf("of 8 directions with top %g, %q is preferred (%s), want %q", top, c[0].Expr, c[0].Why, want)
		}
	}
}

// ascending returns the numbers 0 to n-1.
func ascending(n int) (out []float32) {
	for i := range n {
		out = append(out, float32(i))
	}
	return out
}
