package presets

import "math"

// Verdict is what samples say of a claim.
type Verdict string

const (
	Holds       Verdict = "holds"
	Contradicts Verdict = "contradicts"
	// a bound is less than Needed standard errors away, on whichever side; so is all of a single seed
	Undecided  Verdict = "not decided"
	Accounting Verdict = "accounting" // what was counted is what the formula says, which is no evidence
)

// Finding is a verdict with the condition that carries it: of all that a claim states, the one that is known least
// clearly.
type Finding struct {
	Verdict Verdict
	// standard errors between measured and stated, below 0 on the wrong side; infinite where nothing scatters, NaN of a
	// slope
	T       float64
	Needed  float64 // by how many it is decided
	Freedom float64 // degrees of freedom
	// Takes is by how many seeds, 2 or more, the claim would be decided with a chance of 80 %, were its true quantities
	// what was measured: MostSeeds+1 is more than that; 0 is not known, of what is counted, of slopes, of single seeds
	// and where a target was missed.
	Takes int
}

// Measured is what the claim is about: the mean of a sample, its ratio to another's, or the slope over those that it
// names.
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

// condition is a quantity that shall not be below 0, nor, in an order, equal to it.
type condition struct {
	Estimate
	order bool
}

func atLeast(e Estimate, bound float64) condition { e.Value -= bound; return condition{Estimate: e} }
func atMost(e Estimate, bound float64) condition {
	e.Value = bound - e.Value
	return condition{Estimate: e}
}

// t is how many standard errors the quantity is above 0: infinitely many where nothing scatters.
func (q condition) t() float64 {
	switch {
	case q.Error != 0:
		return q.Value / q.Error
	case q.Value < 0 || q.order && q.Value == 0:
		return math.Inf(-1)
	}
	return math.Inf(1)
}

// conditions are what the claim states of the mean and those of other presets; nothing of a slope.
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

// Judge compares a sample with the claim; other are the samples of the presets that it names. A bound, an order or a
// distance holds or is contradicted when it is decided at 95 % by Student's t, in an order with Welch's degrees of
// freedom; all that a claim states must hold. A slope holds when what is stated lies within the interval of 95 %, and
// decides nothing when half of that is more than a quarter of it. What is counted is compared as it is.
func (c Claim) Judge(s Sample, other map[string]Sample) Finding {
	f := c.judge(s, other)
	f.Takes = c.takes(s, other)
	return f
}

// judge leaves out how many seeds it takes.
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

// worse says that a claim's verdict is f's sooner than g's.
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
