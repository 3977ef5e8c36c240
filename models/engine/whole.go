package engine

import "math"

// MostWhole is the largest magnitude of a parameter of a model of whole numbers.
const MostWhole = 127

// Whole is how a model of whole numbers reads a parameter: the nearest whole number, ties to even, in [-127, 127]. What
// is no number is 0.
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

// Nudge steps whole numbers: an element of X (1 row) whose G lies beyond Limit moves by one towards the sign of G, and
// stays in [-127, 127]. Where G is not a number X stays.
type Nudge struct {
	X, G  Mat
	Limit float32
	Moved []float32 // out: the share of the elements whose G lies beyond Limit; one
}

func (Nudge) task() {}
