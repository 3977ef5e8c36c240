package protocol

import (
	"math"
	"sort"
)

// Random variates for the simulation by counts. They use only sums, products, quotients and square roots, each rounded
// separately, so that every platform draws the same values. The relative error of probabilities is about 1e-13.

// maxUrnSample is the largest sample size for which the hypergeometric is drawn one element at a time.
const maxUrnSample = 12

// hypergeometric draws the number of good elements in a sample of m without replacement from `all` elements, of which
// `good` are good.
func (r *source) hypergeometric(all, good, m uint64) uint64 {
	switch {
	case m == 0 || good == 0:
		return 0
	case good == all:
		return m
	case m > all-m:
		return good - r.hypergeometric(all, good, all-m)
	case good > all-good:
		return m - r.hypergeometric(all, all-good, m)
	case good < m: // symmetric in the two
		good, m = m, good
	}
	if m > maxUrnSample {
		return r.ratioOfUniforms(all, good, m)
	}
	left := good
	for i := range m {
		if r.below(all-i) < left {
			left--
		}
	}
	return good - left
}

// ratioOfUniforms draws the hypergeometric by Stadlober's rejection (1990, algorithm HRUE; the constants are
// 2 sqrt(2/e) and 3 - 2 sqrt(3/e)). It requires 2m <= all and 2*good <= all. The ratio of a probability to that of the
// mode is a product over the values between the two. Its factors are at most 1, so that most rejections end early.
func (r *source) ratioOfUniforms(all, good, m uint64) uint64 {
	n, k, s := float64(all), float64(good), float64(m)
	p := k / n
	mean := float64(s * p) // conversions prevent fused multiply-add
	variance := mean * (1 - p) * (n - s) / (n - 1)
	width := float64(1.7155277699214135*math.Sqrt(variance+0.5)) + 0.8989161620588988
	mode := uint64((s + 1) * (k + 1) / (n + 2))
	end := min(float64(min(m, good)+1), math.Floor(mean+0.5+float64(16*math.Sqrt(variance+0.5))))
	for {
		u, v := r.unit(), r.unit()
		x := mean + 0.5 + float64(width*(v-0.5))/u
		if x < 0 || x >= end {
			continue
		}
		if at := uint64(x); likelyAs(n, k, s, mode, at, u*u) {
			return at
		}
	}
}

// likelyAs reports whether P(at)/P(mode) >= least for the hypergeometric of n elements, k good ones and sample size s.
func likelyAs(n, k, s float64, mode, at uint64, least float64) bool {
	ratio := 1.0
	for x := mode; x < at && ratio >= least; x++ {
		f := float64(x)
		ratio *= (k - f) * (s - f) / ((f + 1) * (n - k - s + f + 1))
	}
	for x := mode; x > at && ratio >= least; x-- {
		f := float64(x)
		ratio *= f * (n - k - s + f) / ((k - f + 1) * (s - f + 1))
	}
	return ratio >= least
}

// multivariateHypergeometric draws m agents without replacement from count, whose sum is `all`, and writes the
// number of drawn agents of each state to dst.
func (r *source) multivariateHypergeometric(count []uint64, all, m uint64, dst []uint64) {
	for s, c := range count {
		dst[s] = r.hypergeometric(all, c, m)
		all, m = all-c, m-dst[s]
	}
}

// nullMeetings draws the number of failures before the first success of probability w/all, at most limit. The binary
// digits of a geometric variable are independent: digit i is 1 with odds q^(2^i) to 1, q = 1 - w/all.
func (r *source) nullMeetings(w, all, limit uint64) (g uint64) {
	e := float64(w) / float64(all) // 1 - q^(2^i)
	for i := 0; e < 1 && i < 64; i++ {
		if r.unit() < (1-e)/(2-e) {
			if g += 1 << i; i == 63 || g >= limit || 1<<i >= limit {
				return limit
			}
		}
		e = float64(e * (2 - e))
	}
	return g
}

// disjoint returns a table whose element t is the probability that the first t meetings of n agents share no agent. It
// ends where the probability is at most 1e-19 or fewer than 2 agents are left.
func disjoint(n uint64) []float64 {
	out := []float64{1}
	f := float64(n)
	for p, free := 1.0, f; free >= 2 && p > 1e-19; free -= 2 {
		p *= free * (free - 1) / (f * (f - 1))
		out = append(out, p)
	}
	return out
}

// untilCollision draws the number of meetings before the first that shares an agent with an earlier one. disjoint is
// the result of the function disjoint.
func (r *source) untilCollision(disjoint []float64) uint64 {
	u := r.unit()
	return uint64(sort.Search(len(disjoint), func(t int) bool { return disjoint[t] <= u }) - 1)
}
