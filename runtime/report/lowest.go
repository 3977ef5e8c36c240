package report

import (
	"cmp"
	"math"
	"slices"
)

// Lowest are the classes that occur or are predicted, those of the lowest F1 first.
func (r *Report) Lowest() []ClassScore {
	classes := slices.DeleteFunc(slices.Clone(r.Classes), func(c ClassScore) bool { return math.IsNaN(c.F1) })
	slices.SortStableFunc(classes, func(a, b ClassScore) int { return cmp.Compare(a.F1, b.F1) })
	return classes
}

// Mistaken are the pairs of different classes of which the first is taken for the second, most samples first.
func (r *Report) Mistaken() []Confused {
	pairs := slices.DeleteFunc(slices.Clone(r.Confusion), func(c Confused) bool { return c.Is == c.As })
	slices.SortStableFunc(pairs, func(a, b Confused) int { return cmp.Compare(b.Samples, a.Samples) })
	return pairs
}

// LeastExplained are the places of the outputs, those of the lowest R2 first; those without one stand last.
func (r *Report) LeastExplained() []int {
	places := make([]int, len(r.Outputs))
	for k := range places {
		places[k] = k
	}
	slices.SortStableFunc(places, func(a, b int) int {
		x, y := r.Outputs[a].R2, r.Outputs[b].R2
		if x != x || y != y {
			return -cmp.Compare(x, y) // NaN compares as the least
		}
		return cmp.Compare(x, y)
	})
	return places
}
