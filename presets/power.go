package presets

import (
	"fmt"
	"math"
	"sort"
	"strconv"
)

// MostSeeds is the largest number of seeds in Finding.SeedsNeeded.
const MostSeeds = 1000

// SeedsText formats a number of seeds.
func SeedsText(n int) string {
	if n > MostSeeds {
		return fmt.Sprintf("over %d", MostSeeds)
	}
	return strconv.Itoa(n)
}

// power80 is the 80 % quantile of the normal distribution.
const power80 = 0.8416

// withSeeds returns the estimate of the mean for m seeds with the same mean and scatter; 0: for its own number of
// seeds.
func (s Sample) withSeeds(m int) Estimate {
	e := s.Estimate()
	if m == 0 {
		return e
	}
	e.Error *= math.Sqrt(float64(len(s)) / float64(m))
	e.Freedom = float64(m - 1)
	return e
}

// clear reports whether new samples with this expectation and error are decided with a probability of at least 80 %.
// Their t has a noncentral distribution, with f degrees of freedom and noncentrality d, which A&S 26.7.10 (Abramowitz
// and Stegun, Handbook of mathematical functions, 1964) approximates by a normal distribution:
//
//	P(t > needed) = Phi((d - needed (1 - 1/(4f))) / sqrt(1 + needed^2/(2f)))
func (q condition) clear() bool {
	needed, f := q.Needed(), q.Freedom
	return math.Abs(q.t()) >= needed*(1-1/(4*f))+power80*math.Sqrt(1+needed*needed/(2*f))
}

// seedsNeeded returns the number of seeds that decide the claim with a probability of 80 % if the measured values are
// the true ones: that contradict one condition, or confirm all of them. 0: unknown; MostSeeds+1: more than MostSeeds.
func (c Claim) seedsNeeded(s Sample, other map[string]Sample) int {
	if c.Accounting() || c.Slope != nil {
		return 0
	}
	return seedsNeeded(func(m int) []condition { return c.conditions(s, other, m) })
}

// seedsNeeded is [Claim.seedsNeeded] of conditions with m seeds.
func seedsNeeded(conditions func(m int) []condition) int {
	for _, q := range conditions(2) {
		if x := q.Value + q.Error; x != x || math.IsInf(x, 0) {
			return 0
		}
	}
	return 2 + sort.Search(MostSeeds-1, func(i int) bool {
		all := true
		for _, q := range conditions(2 + i) {
			if q.clear() && q.t() < 0 {
				return true
			}
			all = all && q.clear()
		}
		return all
	})
}
