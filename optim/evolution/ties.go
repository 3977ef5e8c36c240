package evolution

import "brood/optim"

// knobTies selects the weights of equal results in algorithms that weight results by rank.
var knobTies = optim.Knob{
	Name:    "ties",
	Title:   "equal results",
	Doc:     "weight of equal results: each the weight of its rank, ordered by index, or the mean of these weights",
	Choices: []string{"order", "mean"},
	Default: 1,
}

// sharesTies reports whether equal results have equal weights.
func sharesTies(v optim.Values) bool { return v.Is("ties", "mean") }

// shareTiedWeights replaces the weights of equal results by their mean. weights are by rank, best first, and order has
// the index of the result of each rank; ranks beyond len(weights) have weight 0. Weights that are already equal and
// weights of distinct results keep their bits. shareTiedWeights modifies and returns weights, extended if a group of
// equal results reaches beyond its end.
func shareTiedWeights(weights []float64, order []int, equal func(a, b int) bool) []float64 {
	given := len(weights)
	for lo, hi := 0, 0; lo < given; lo = hi {
		sum, even := 0.0, true
		for hi = lo; hi < len(order) && equal(order[lo], order[hi]); hi++ {
			w := 0.0
			if hi < given {
				w = weights[hi]
			}
			sum, even = sum+w, even && w == weights[lo]
		}
		if even {
			continue
		}
		for len(weights) < hi {
			weights = append(weights, 0)
		}
		for i := lo; i < hi; i++ {
			weights[i] = sum / float64(hi-lo)
		}
	}
	return weights
}

// equalIn returns the equality of results for [shareTiedWeights]. Two missing (NaN) results are equal.
func equalIn(fit []float32) func(a, b int) bool {
	return func(a, b int) bool { return fit[a] == fit[b] || fit[a] != fit[a] && fit[b] != fit[b] }
}

// allEqual reports whether all results are equal. It is false if there are none.
func allEqual(order []int, equal func(a, b int) bool) bool {
	return len(order) > 0 && equal(order[0], order[len(order)-1])
}

// effectiveSize returns mu_w = 1/sum w^2 of weights that sum to one.
func effectiveSize(weights []float64) float64 {
	squares := 0.0
	for _, w := range weights {
		squares += float64(w * w)
	}
	return 1 / squares
}

// CentredRanks maps fitness to utilities in [-0.5, 0.5] by rank over all results: (P-1-position)/(P-1) - 0.5, 0 for a
// population of one. If shared is set, equal results share their mean rank; else they rank by index. NaN (missing)
// ranks last.
func CentredRanks(fit []float32, shared bool) []float32 {
	u := make([]float32, len(fit))
	if len(fit) < 2 {
		return u
	}
	order, places := optim.Order(fit), make([]float64, len(fit))
	for pos := range places {
		places[pos] = float64(pos)
	}
	if shared {
		places = shareTiedWeights(places, order, equalIn(fit))
	}
	for pos, i := range order {
		u[i] = 0.5 - float32(places[pos])/float32(len(fit)-1)
	}
	return u
}
