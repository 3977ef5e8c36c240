package presets

import (
	"cmp"
	"slices"
)

// Level is the significance level of every verdict.
const Level = 0.05

// Adjust sets the adjusted p-values of the claims with a p-value, over all of them together: by Holm (1979), which
// bounds the probability of any false decision, and by Benjamini and Hochberg (1995), which bounds the expected share
// of false decisions. Checks and counts are no hypotheses and are not among them.
func Adjust(all []Judgement) {
	var of []*Finding
	for i := range all {
		if f := &all[i].Finding; !all[i].Check && f.Verdict != "" && f.P == f.P {
			of = append(of, f)
		}
	}
	slices.SortStableFunc(of, func(a, b *Finding) int { return cmp.Compare(a.P, b.P) })
	n, most, least := len(of), 0.0, 1.0
	for i, f := range of { // Holm: the running maximum of (n - i) p
		most = max(most, min(1, float64(n-i)*f.P))
		f.Holm = most
	}
	for i, f := range slices.Backward(of) { // Benjamini and Hochberg: the running minimum of n p / (i + 1), from the end
		least = min(least, float64(n)*f.P/float64(i+1))
		f.BH = least
	}
}
