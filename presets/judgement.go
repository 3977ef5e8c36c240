package presets

import (
	"math"
	"strings"
)

// Measured holds what the runs of a preset measured.
type Measured struct {
	Figures map[string][]float64 // by metric, one value for each seed; +Inf: missed the target
	Seconds float64              // mean of the runs
}

// Judgement compares one claim of a preset with the measured figures.
type Judgement struct {
	Preset    string
	Claim     Claim
	Published *float64 // for the form that ran (full or short); nil: the source has no number
	Measured  Estimate // Value is NaN if unknown
	Finding   Finding  // Verdict is "" if a preset of the claim was not measured
	Missing   []string // presets that the claim compares with and that have no measurement
	Seeds     int      // measured runs of the preset
	Missed    int      // number of these runs that missed the target of the metric
	Seconds   float64  // mean of the runs of the preset
}

// Judge judges every claim of the presets, in their order. measured is keyed by preset name. full states whether the
// runs had the full form.
func Judge(of []Preset, measured map[string]Measured, full bool) (out []Judgement) {
	for _, p := range of {
		for _, c := range p.Claims {
			x, others := Sample(measured[p.Name].Figures[c.Metric]), map[string]Sample{}
			j := Judgement{
				Preset:    p.Name,
				Claim:     c,
				Published: p.Published(c, full),
				Measured:  Estimate{Value: math.NaN(), Error: math.NaN()},
				Seeds:     len(x),
				Missed:    x.Missed(),
				Seconds:   measured[p.Name].Seconds,
			}
			for _, other := range c.Others() {
				if others[other] = measured[other].Figures[c.Metric]; len(others[other]) == 0 {
					j.Missing = append(j.Missing, other)
				}
			}
			if len(x) > 0 && (len(j.Missing) == 0 || c.Ratio == nil && c.Slope == nil) {
				j.Measured = c.Measured(x, others)
			}
			if len(x) > 0 && len(j.Missing) == 0 {
				j.Finding = c.Judge(x, others)
			}
			out = append(out, j)
		}
	}
	return out
}

// HasValue reports whether the claim has a measured value.
func (j Judgement) HasValue() bool { return j.Measured.Value == j.Measured.Value }

// Metric returns the metric of the claim with its unit, or as a slope or ratio.
func (j Judgement) Metric() string {
	switch c := j.Claim; {
	case c.Slope != nil:
		return "slope of " + c.Metric
	case c.Ratio != nil:
		return "ratio of " + c.Metric
	}
	return j.Claim.Metric + " " + Metrics[j.Claim.Metric]
}

// VerdictText returns the outcome. If the claim is undecided and too few seeds ran, the text includes the number of
// seeds that the claim asks for.
func (j Judgement) VerdictText() string {
	text := j.Outcome()
	if j.Finding.Verdict == Undecided && j.Seeds < j.Claim.Seeds {
		text += ": " + SeedsText(j.Claim.Seeds) + " seeds could decide it"
	}
	return text
}

// Outcome returns the verdict, or "not measured" with the presets that have no measurement.
func (j Judgement) Outcome() string {
	switch {
	case j.Finding.Verdict != "":
		return string(j.Finding.Verdict)
	case len(j.Missing) > 0 && j.Seeds > 0:
		return unmeasured + ": " + strings.Join(j.Missing, ", ")
	}
	return unmeasured
}

// Outcomes by which [Count] counts claims that hold, from the strongest evidence to the weakest.
const (
	InOrder  = "holds as an order"     // another preset is worse
	InMargin = "holds within a margin" // compared with other presets, with a margin that the author of the claim chose
	Bounded  = "holds by a bound"      // a constant bound: usually shows only that the preset trains
)

// unmeasured is the outcome of a claim without a measurement.
const unmeasured = "not measured"

// Outcomes are the keys of [Count], in the order of a table.
var Outcomes = []string{InOrder, InMargin, Bounded, string(Contradicts), string(Undecided), unmeasured,
	string(Accounting)}

// Count returns the number of claims by outcome.
func Count(claims []Judgement) map[string]int {
	counts := map[string]int{}
	for _, j := range claims {
		verdict := j.Outcome()
		switch {
		case strings.HasPrefix(verdict, unmeasured):
			verdict = unmeasured
		case verdict == string(Holds) && j.Claim.Below != "":
			verdict = InOrder
		case verdict == string(Holds) && len(j.Claim.Others()) > 0:
			verdict = InMargin
		case verdict == string(Holds):
			verdict = Bounded
		}
		counts[verdict]++
	}
	return counts
}
