package engine

import "math"

// MostWhole is the largest magnitude of a parameter of a model of whole numbers.
const MostWhole = 127

// Whole returns the parameter x as used by a model of whole numbers: rounded to the nearest whole number, ties to even,
// and clamped to [-127, 127]. NaN becomes 0.
func Whole(x float32) int8 {
	switch r := math.RoundToEven(float64(x)); {
	case r > MostWhole:
		return MostWhole
	case r < -MostWhole:
		return -MostWhole
	case r == r:
		return int8(r)
	}
	return 0
}

// Nudge is an update step of whole numbers: each element of the 1-row X with |G| above Limit changes by 1 in the
// direction of the sign of G, clamped to [-127, 127]. Where G is NaN, X is unchanged.
type Nudge struct {
	X, G  Mat
	Limit float32
	Moved []float32 // out: one value, the fraction of elements with |G| above Limit
}

func (Nudge) task() {}
