package report

import (
	"cmp"
	"math"
	"slices"
)

// Lowest returns the classes that occur or are predicted, in ascending order of F1.
func (r *Report) Lowest() []ClassScore {
	classes := slices.DeleteFunc(slices.Clone(r.Classes), func(c ClassScore) bool { return math.IsNaN(c.F1) })
	slices.SortStableFunc(classes, func(a, b ClassScore) int { return cmp.Compare(a.F1, b.F1) })
	return classes
}

// Mistaken returns the pairs of different classes that were confused, in descending order of samples.
func (r *Report) Mistaken() []Confused {
	pairs := slices.DeleteFunc(slices.Clone(r.Confusion), func(c Confused) bool { return c.Is == c.As })
	slices.SortStableFunc(pairs, func(a, b Confused) int { return cmp.Compare(b.Samples, a.Samples) })
	return pairs
}

// LeastExplained returns the indices of the outputs in ascending order of R2; outputs without R2 (NaN) come last.
func (r *Report) LeastExplained() []int {
	order := make([]int, len(r.Outputs))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := r.Outputs[a].R2, r.Outputs[b].R2
		if x != x || y != y {
			return -cmp.Compare(x, y) // cmp.Compare orders NaN first
		}
		return cmp.Compare(x, y)
	})
	return order
}
