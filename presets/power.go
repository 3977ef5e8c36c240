package presets

import (
	"fmt"
	"math"
	"sort"
	"strconv"
)

// MostSeeds is how many seeds a claim may take for their number to be told.
const MostSeeds = 1000

// SeedsText is a number of seeds as it is told.
func SeedsText(n int) string {
	if n > MostSeeds {
		return fmt.Sprintf("over %d", MostSeeds)
	}
	return strconv.Itoa(n)
}

// power80 is the quantile of the normal distribution that 80 % lie below.
const power80 = 0.8416

// by is the mean as m seeds would know it that scatter as these do.
func (s Sample) by(m int) Estimate {
	e := s.Estimate()
	e.Error *= math.Sqrt(float64(len(s)) / float64(m))
	e.Freedom = float64(m - 1)
	return e
}

// clear says that the quantity is so many standard errors from 0 that new samples, with it as their expectation, are
// decided with a chance of 80 %. Their t has the noncentral distribution, which A&S 26.7.10 (Abramowitz and Stegun,
// Handbook of mathematical functions, 1964) takes for normal, with f degrees of freedom and noncentrality d:
//
//	P(t > needed) = Phi((d - needed (1 - 1/(4f))) / sqrt(1 + needed^2/(2f)))
func (q condition) clear() bool {
	needed, f := q.Needed(), q.Freedom
	return math.Abs(q.t()) >= needed*(1-1/(4*f))+power80*math.Sqrt(1+needed*needed/(2*f))
}

// takes is by how many seeds the claim would be decided with a chance of 80 %, were all as it was measured: against it
// in a condition that is missed, else for it in the one that takes the most. 0 is not known; above MostSeeds is more.
func (c Claim) takes(s Sample, other map[string]Sample) int {
	if c.Accounting() || c.Slope != nil {
		return 0
	}
	by := func(m int) []condition {
		return c.conditions(s.by(m), func(name string) Estimate { return other[name].by(m) })
	}
	for _, q := range by(2) {
		if x := q.Value + q.Error; x != x || math.IsInf(x, 0) {
			return 0
		}
	}
	return 2 + sort.Search(MostSeeds-1, func(i int) bool {
		all := true
		for _, q := range by(2 + i) {
			if q.clear() && q.t() < 0 {
				return true
			}
			all = all && q.clear()
		}
		return all
	})
}
