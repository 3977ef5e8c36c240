package optim

// knobTies says what equal results weigh where an algorithm weighs results by rank. The default is what logs without an
// edit of the knob rely on.
var knobTies = Knob{Name: "ties", Title: "equal results", Doc: "what equal results weigh: each the mean of the weights of their places, or each the weight of its own place, by their order in the population", Choices: []string{"order", "mean"}, Max: 1, Begins: "mean", Follows: true}

// shares reports whether equal results weigh the same.
func (v Values) shares() bool { return v.Is("ties", "mean") }

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
