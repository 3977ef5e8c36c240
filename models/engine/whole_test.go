package engine_test

import (
	"math"
	"testing"

	"brood/models/engine"
)

// TestWhole: rounds to nearest, ties to even, limits to 127, and converts NaN to 0.
func TestWhole(t *testing.T) {
	for x, want := range map[float32]int8{0: 0, 0.5: 0, 1.5: 2, -0.5: 0, -1.5: -2, 2.49: 2, -2.51: -3, 126.5: 126,
		127.4: 127, 127.5: 127, 1e30: 127, -127.6: -127, -1e30: -127,
		float32(math.Inf(1)): 127, float32(math.Inf(-1)): -127} {
		if got := engine.Whole(x); got != want {
			t.Errorf("%v is read as %d, want %d", x, got, want)
		}
	}
	if got := engine.Whole(float32(math.NaN())); got != 0 {
		t.Errorf("a value that is NaN is read as %d", got)
	}
}
