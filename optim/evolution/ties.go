package evolution

import "brood/optim"

// knobTies selects the weights of equal results in an algorithm that weighs results by rank.
var knobTies = optim.Knob{Name: "ties", Title: "equal results", Doc: "what equal results weigh: each the mean of the weights of their places, or each the weight of its own place, by their order in the population", Choices: []string{"order", "mean"}, Max: 1, Default: 1}

// shares reports whether equal results weigh the same.
func sharesWeights(v optim.Values) bool { return v.Is("ties", "mean") }

// share replaces the weights of places, best first, by their mean wherever the results at these places are equal. order
// lists the results by place, and places beyond the weights weigh nothing. Weights that are equal already keep their
// bits, and so do all where no results are equal. It returns weights, extended to all places where a mean reaches beyond.
func share(weights []float64, order []int, equal func(a, b int) bool) []float64 {
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

// equalIn is the equality of results for [share]: two that are missing are equal.
func equalIn(fit []float32) func(a, b int) bool {
	return func(a, b int) bool { return fit[a] == fit[b] || fit[a] != fit[a] && fit[b] != fit[b] }
}

// allEqual reports whether no result differs from another one.
func allEqual(order []int, equal func(a, b int) bool) bool {
	return len(order) > 0 && equal(order[0], order[len(order)-1])
}

// effective is mu_w, 1/sum w^2 of weights that sum to one.
func effective(weights []float64) float64 {
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
		places = share(places, order, equalIn(fit))
	}
	for pos, i := range order {
		u[i] = 0.5 - float32(places[pos])/float32(len(fit)-1)
	}
	return u
}
