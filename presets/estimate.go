package presets

import (
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Sample holds a metric by seed. A run that missed the target of the metric has +Inf.
type Sample map[int]float64

// Values returns the values in the order of their seeds.
func (s Sample) Values() (out []float64) {
	for _, seed := range slices.Sorted(maps.Keys(s)) {
		out = append(out, s[seed])
	}
	return out
}

// Mean returns the mean of the sample.
func (s Sample) Mean() float64 { return mean(s.Values()) }

func mean(all []float64) (m float64) {
	for i, x := range all { // the mean of equal numbers is exact
		m += (x - m) / float64(i+1)
	}
	return m
}

// Missed returns the number of runs that missed the target of the metric.
func (s Sample) Missed() (n int) {
	for _, x := range s {
		if math.IsInf(x, 1) {
			n++
		}
	}
	return n
}

// Estimate returns the mean with its standard error. If some runs missed their target, the mean is +Inf and the error
// NaN; if all of several runs did, the error is 0.
func (s Sample) Estimate() Estimate {
	switch n := s.Missed(); {
	case n > 1 && n == len(s):
		return Estimate{Value: math.Inf(1), Freedom: float64(n - 1)}
	case n > 0:
		return Estimate{Value: math.Inf(1), Error: math.NaN(), Freedom: float64(len(s) - 1)}
	}
	m, v := s.Mean(), 0.0
	for _, x := range s.Values() {
		v += (x - m) * (x - m)
	}
	n := float64(len(s))
	return Estimate{Value: m, Error: math.Sqrt(v / (n - 1) / n), Freedom: n - 1}
}

// Estimate is a quantity with its standard error: a mean over seeds, the difference or the ratio of two means, or a
// slope.
type Estimate struct {
	Value   float64
	Error   float64 // standard error, in the unit of Value; NaN for a single seed
	Freedom float64 // degrees of freedom of Error; +Inf if Error is 0
}

// Minus returns the difference of two independent estimates, with Welch's degrees of freedom. The error of the
// difference of two infinite values is NaN.
func (e Estimate) Minus(o Estimate) Estimate {
	if math.IsInf(e.Value, 1) && math.IsInf(o.Value, 1) {
		return Estimate{Value: 0, Error: math.NaN()}
	}
	return e.combined(e.Value-o.Value, 1, o, 1)
}

// Over returns the ratio of two independent estimates. Its error is a first-order approximation; it is NaN if o is 0 or
// if runs of o missed their target.
func (e Estimate) Over(o Estimate) Estimate {
	switch {
	case o.Value == 0:
		return Estimate{math.NaN(), math.NaN(), math.NaN()}
	case math.IsInf(o.Value, 1):
		return Estimate{Value: 0, Error: math.NaN()}
	}
	r := e.Value / o.Value
	return e.combined(r, 1/o.Value, o, r/o.Value)
}

// combined returns an estimate with the variance of a*e + b*o. Its degrees of freedom are by Welch and Satterthwaite:
// (u+v)^2 / (u^2/f + v^2/g) for variances u and v with f and g degrees of freedom.
func (e Estimate) combined(value, a float64, o Estimate, b float64) Estimate {
	u, v := math.Pow(a*e.Error, 2), math.Pow(b*o.Error, 2)
	out := Estimate{Value: value, Error: math.Sqrt(u + v), Freedom: math.Inf(1)}
	if u+v != 0 {
		out.Freedom = (u + v) * (u + v) / (share(u, e.Freedom) + share(v, o.Freedom))
	}
	return out
}

func share(variance, freedom float64) float64 {
	if variance == 0 { // freedom may be 0 too, for a single seed
		return 0
	}
	return variance * variance / freedom
}

// student returns the distribution of Student's t with the degrees of freedom of the estimate.
func (e Estimate) student() distuv.StudentsT {
	return distuv.StudentsT{Sigma: 1, Nu: min(e.Freedom, 1e6)}
}

// Needed returns the distance to a bound, in standard errors, that decides at 95 %: the two-sided quantile of Student's
// t distribution; +Inf for a single seed.
func (e Estimate) Needed() float64 {
	if !(e.Freedom > 0) {
		return math.Inf(1)
	}
	return e.student().Quantile(0.975)
}

// slope returns the slope of the least-squares line.
func slope(x, y []float64) Estimate {
	mx, my, sxx, sxy, rest := mean(x), mean(y), 0.0, 0.0, 0.0
	for i := range x {
		sxx += (x[i] - mx) * (x[i] - mx)
		sxy += (x[i] - mx) * (y[i] - my)
	}
	b := sxy / sxx
	for i := range x {
		r := y[i] - my - b*(x[i]-mx)
		rest += r * r
	}
	freedom := float64(len(x) - 2)
	return Estimate{Value: b, Error: math.Sqrt(rest / freedom / sxx), Freedom: freedom}
}
