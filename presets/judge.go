package presets

import "math"

// Verdict is the result of comparing samples with a claim.
type Verdict string

const (
	Holds       Verdict = "holds"
	Contradicts Verdict = "contradicts"
	// the measured value is less than Needed standard errors from a bound, or there is a single seed
	Undecided  Verdict = "not decided"
	Accounting Verdict = "accounting" // the count equals its formula, which is no evidence
)

// Finding is the verdict on a claim with the condition that determines it: the one with the worst verdict or the least
// evidence.
type Finding struct {
	Verdict Verdict
	// T is the distance between the measured and the stated value in standard errors; negative if the condition is
	// violated, infinite without scatter, NaN for a slope.
	T       float64
	Needed  float64 // distance that decides the claim
	Freedom float64 // degrees of freedom
	Test    Test
	// P is the two-sided p-value of the condition that determines the verdict; NaN for counts, slopes and single seeds.
	P float64
	// Holm and BH are P adjusted for all claims of a table, see [Adjust]; NaN if the claim is not among them.
	Holm, BH float64
	// SeedsNeeded is the number of seeds, 2 or more, that decide the claim with a probability of 80 % if the measured
	// values are the true ones. MostSeeds+1 means more. It is 0 (unknown) for accounting, slopes, single seeds and
	// missed targets.
	SeedsNeeded int
}

// Test is the statistical test of a condition.
type Test string

const (
	Paired Test = "paired t" // differences between runs with equal seeds, which share batches and initialisation
	Welch  Test = "Welch"    // fewer than two seeds are common: the samples are taken as independent
	OneT   Test = "t"        // one sample, compared with a number
)

// Measured returns the quantity of the claim: the mean of a sample, its ratio to the mean of another one, or a slope
// over several.
func (c Claim) Measured(s Sample, other map[string]Sample) Estimate {
	switch {
	case c.Ratio != nil:
		r, _ := over(s, other[c.Of], 0)
		return r
	case c.Slope == nil:
		return s.Estimate()
	}
	least := 0.0
	if c.Least != "" {
		least = other[c.Least].Mean()
	}
	var x, y []float64
	for _, name := range c.Over {
		p, err := Load(name)
		if err != nil {
			return Estimate{math.NaN(), math.NaN(), math.NaN()}
		}
		for _, v := range other[name].Values() {
			x, y = append(x, math.Log(float64(p.Options.Members))), append(y, math.Log(v-least))
		}
	}
	return slope(x, y)
}

// condition is a quantity that must not be negative and, if order is set, not 0.
type condition struct {
	Estimate
	test  Test
	order bool
}

func atLeast(e Estimate, test Test, bound float64) condition {
	e.Value -= bound
	return condition{Estimate: e, test: test}
}

func atMost(e Estimate, test Test, bound float64) condition {
	e.Value = bound - e.Value
	return condition{Estimate: e, test: test}
}

// t returns the quantity in standard errors; infinite if its error is 0.
func (q condition) t() float64 {
	switch {
	case q.Error != 0:
		return q.Value / q.Error
	case q.Value < 0 || q.order && q.Value == 0:
		return math.Inf(-1)
	}
	return math.Inf(1)
}

// p returns the two-sided p-value of the quantity being 0; NaN for a count and for a single seed.
func (q condition) p() float64 {
	if t := math.Abs(q.t()); q.test != "" && q.Freedom > 0 && t == t {
		return 2 * q.student().Survival(t)
	}
	return math.NaN()
}

// conditions returns the conditions of the claim on a sample and those of other presets, with their scatter and, if
// seeds is not 0, for that number of seeds in place of the number that ran; none for a slope.
func (c Claim) conditions(s Sample, other map[string]Sample, seeds int) (out []condition) {
	switch {
	case c.Ratio != nil:
		r, test := over(s, other[c.Of], seeds)
		slack := math.Abs(*c.Ratio) * c.tolerance()
		return []condition{atLeast(r, test, *c.Ratio-slack), atMost(r, test, *c.Ratio+slack)}
	case c.Below != "":
		d, test := minus(other[c.Below], s, seeds)
		return []condition{{d, test, true}}
	case c.Near != "":
		d, test := minus(s, other[c.Near], seeds)
		return []condition{atMost(d, test, c.Margin)}
	}
	m := s.withSeeds(seeds)
	if c.AtMost != nil {
		out = append(out, atMost(m, OneT, *c.AtMost))
	}
	if c.AtLeast != nil {
		out = append(out, atLeast(m, OneT, *c.AtLeast))
	}
	return out
}

// Judge compares a sample with the claim; other has the samples of the presets in the claim. A bound, an order or a
// distance is decided at 95 % by Student's t distribution; all conditions of a claim must hold. Presets are compared in
// pairs of equal seeds, or as independent samples if fewer than two seeds are common. A slope holds if the 95 %
// interval contains the stated value, and is undecided if half the interval exceeds a quarter of the stated value.
// Counts (accounting) are compared exactly.
func (c Claim) Judge(s Sample, other map[string]Sample) Finding {
	f := c.judge(s, other)
	f.SeedsNeeded = c.seedsNeeded(s, other)
	return f
}

// judge is Judge without SeedsNeeded.
func (c Claim) judge(s Sample, other map[string]Sample) Finding {
	if c.Slope != nil {
		return c.judgeSlope(c.Measured(s, other))
	}
	var worst Finding
	for i, q := range c.conditions(s, other, 0) {
		if c.Accounting() {
			q.Error, q.Freedom, q.test = 0, math.Inf(1), ""
		}
		f := Finding{
			Verdict: Undecided,
			T:       q.t(),
			Needed:  q.Needed(),
			Freedom: q.Freedom,
			Test:    q.test,
			P:       q.p(),
			Holm:    math.NaN(),
			BH:      math.NaN(),
		}
		switch {
		case q.Value != q.Value, f.T < 0 && -f.T >= f.Needed:
			f.Verdict = Contradicts
		case f.T >= f.Needed && c.Accounting():
			f.Verdict = Accounting
		case f.T >= f.Needed:
			f.Verdict = Holds
		}
		if i == 0 || f.worse(worst) {
			worst = f
		}
	}
	return worst
}

// worse reports whether f determines the verdict of a claim rather than g.
func (f Finding) worse(g Finding) bool {
	rank := map[Verdict]int{Contradicts: 2, Undecided: 1}
	if rank[f.Verdict] != rank[g.Verdict] {
		return rank[f.Verdict] > rank[g.Verdict]
	}
	return f.T/f.Needed < g.T/g.Needed
}

func (c Claim) judgeSlope(m Estimate) Finding {
	nan := math.NaN()
	f := Finding{Verdict: Contradicts, T: nan, Needed: m.Needed(), Freedom: m.Freedom, P: nan, Holm: nan, BH: nan}
	switch half := f.Needed * m.Error; {
	case !(half <= math.Abs(*c.Slope)/4):
		f.Verdict = Undecided
	case math.Abs(m.Value-*c.Slope) <= half:
		f.Verdict = Holds
	}
	return f
}
