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
	// SeedsNeeded is the number of seeds, 2 or more, that decide the claim with a probability of 80 % if the measured
	// values are the true ones. MostSeeds+1 means more. It is 0 (unknown) for accounting, slopes, single seeds and
	// missed targets.
	SeedsNeeded int
}

// Measured returns the quantity of the claim: the mean of a sample, its ratio to the mean of another one, or a slope
// over several.
func (c Claim) Measured(s Sample, other map[string]Sample) Estimate {
	switch {
	case c.Ratio != nil:
		return s.Estimate().Over(other[c.Of].Estimate())
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
		for _, v := range other[name] {
			x, y = append(x, math.Log(float64(p.Options.Members))), append(y, math.Log(v-least))
		}
	}
	return slope(x, y)
}

// condition is a quantity that must not be negative and, if order is set, not 0.
type condition struct {
	Estimate
	order bool
}

func atLeast(e Estimate, bound float64) condition { e.Value -= bound; return condition{Estimate: e} }
func atMost(e Estimate, bound float64) condition {
	e.Value = bound - e.Value
	return condition{Estimate: e}
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

// conditions returns the conditions of the claim on the mean m and the means of other presets; none for a slope.
func (c Claim) conditions(m Estimate, of func(preset string) Estimate) (out []condition) {
	if c.Ratio != nil {
		m = m.Over(of(c.Of))
		slack := math.Abs(*c.Ratio) * c.tolerance()
		out = append(out, atLeast(m, *c.Ratio-slack), atMost(m, *c.Ratio+slack))
	}
	if c.AtMost != nil {
		out = append(out, atMost(m, *c.AtMost))
	}
	if c.AtLeast != nil {
		out = append(out, atLeast(m, *c.AtLeast))
	}
	if c.Below != "" {
		out = append(out, condition{of(c.Below).Minus(m), true})
	}
	if c.Near != "" {
		out = append(out, atMost(m.Minus(of(c.Near)), c.Margin))
	}
	return out
}

// Judge compares a sample with the claim; other has the samples of the presets in the claim. A bound, an order or a
// distance is decided at 95 % by Student's t distribution, for differences with Welch's degrees of freedom; all
// conditions of a claim must hold. A slope holds if the 95 % interval contains the stated value, and is undecided if
// half the interval exceeds a quarter of the stated value. Counts (accounting) are compared exactly.
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
	mean := func(name string) Estimate { return other[name].Estimate() }
	for i, q := range c.conditions(s.Estimate(), mean) {
		if c.Accounting() {
			q.Error, q.Freedom = 0, math.Inf(1)
		}
		f := Finding{Verdict: Undecided, T: q.t(), Needed: q.Needed(), Freedom: q.Freedom}
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
	f := Finding{Verdict: Contradicts, T: math.NaN(), Needed: m.Needed(), Freedom: m.Freedom}
	switch half := f.Needed * m.Error; {
	case !(half <= math.Abs(*c.Slope)/4):
		f.Verdict = Undecided
	case math.Abs(m.Value-*c.Slope) <= half:
		f.Verdict = Holds
	}
	return f
}
