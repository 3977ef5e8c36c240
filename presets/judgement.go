package presets

import (
	"cmp"
	"math"
	"strings"
)

// Measured holds what the runs of a preset measured.
type Measured struct {
	Figures map[string]map[int]float64 // by metric and seed; +Inf: missed the target
	Seconds float64                    // mean of the runs
}

// Judgement compares one claim of a preset with the measured figures.
type Judgement struct {
	Preset    string
	Claim     Claim
	Check     bool     // the condition is our own, see [Claim.IsCheck]
	Budget    string   // costs of the preset relative to its rival; "": no rival, or another metric than quality
	Notes     []string // how the presets were tuned, if that weakens the verdict
	Tuned     *Tuned
	Published *float64 // for the form that ran (full or short); nil: the source has no number
	Measured  Estimate // Value is NaN if unknown
	Finding   Finding  // Verdict is "" if a preset of the claim was not measured
	Missing   []string // presets that the claim compares with and that have no measurement
	Seeds     int      // measured runs of the preset
	Missed    int      // number of these runs that missed the target of the metric
	Seconds   float64  // mean of the runs of the preset
}

// Judge judges every claim of the presets, in their order, and adjusts their p-values over all of them. measured is
// keyed by preset name. full states whether the runs had the full form.
func Judge(of []Preset, measured map[string]Measured, full bool) (out []Judgement) {
	for _, p := range of {
		for _, c := range p.Claims {
			x, others := Sample(measured[p.Name].Figures[c.Metric]), map[string]Sample{}
			j := Judgement{
				Preset:    p.Name,
				Claim:     c,
				Check:     c.IsCheck(Sample(measured[c.Near].Figures[c.Metric]).Mean()),
				Tuned:     p.Tuned,
				Published: p.Published(c, full),
				Measured:  Estimate{Value: math.NaN(), Error: math.NaN()},
				Seeds:     len(x),
				Missed:    x.Missed(),
				Seconds:   measured[p.Name].Seconds,
			}
			var rival *Tuned
			if name := cmp.Or(c.Below, c.Near); name != "" {
				j.Budget = budget(c.Metric, measured[p.Name], measured[name])
				if other, err := Load(name); err == nil {
					rival = other.Tuned
				}
			}
			if !c.Accounting() {
				j.Notes = TuningNotes(p.Tuned, rival, x)
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
	Adjust(out)
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

// VerdictText returns the outcome with the budget of the comparison and how the presets were tuned. If the claim is
// undecided and too few seeds ran, the text includes the number of seeds that the claim asks for.
func (j Judgement) VerdictText() string {
	text := j.Outcome()
	if j.Finding.Verdict == Undecided && j.Seeds < j.Claim.Seeds {
		text += ": " + SeedsText(j.Claim.Seeds) + " seeds could decide it"
	}
	if j.Finding.Verdict == "" {
		return text
	}
	notes := j.Notes
	if j.Budget != "" {
		notes = append([]string{"at " + j.Budget}, notes...)
	}
	return strings.Join(append([]string{text}, notes...), "; ")
}

// Outcomes of checks, in place of verdicts on claims.
const (
	checkMet       = "check met"
	checkMissed    = "check missed"
	checkUndecided = "check not decided"
)

// Outcome returns the verdict, the outcome of a check, or "not measured" with the presets that have no measurement.
func (j Judgement) Outcome() string {
	switch v := j.Finding.Verdict; {
	case v == "" && len(j.Missing) > 0 && j.Seeds > 0:
		return unmeasured + ": " + strings.Join(j.Missing, ", ")
	case v == "":
		return unmeasured
	case j.Check:
		return map[Verdict]string{Holds: checkMet, Contradicts: checkMissed, Undecided: checkUndecided}[v]
	default:
		return string(v)
	}
}

// Outcomes by which [Count] counts claims that hold.
const (
	InOrder  = "holds as an order"     // another preset is worse
	InMargin = "holds within a margin" // compared with other presets, or with a bound of the source
)

// unmeasured is the outcome of a claim without a measurement.
const unmeasured = "not measured"

// Outcomes are the keys of [Count], in the order of a table.
var Outcomes = []string{InOrder, InMargin, string(Contradicts), string(Undecided), unmeasured, string(Accounting),
	checkMet, checkMissed, checkUndecided}

// Count returns the number of claims and checks by outcome.
func Count(claims []Judgement) map[string]int {
	counts := map[string]int{}
	for _, j := range claims {
		verdict := j.Outcome()
		switch {
		case strings.HasPrefix(verdict, unmeasured):
			verdict = unmeasured
		case verdict == string(Holds) && j.Claim.Below != "":
			verdict = InOrder
		case verdict == string(Holds):
			verdict = InMargin
		}
		counts[verdict]++
	}
	return counts
}

// Decided returns the number of claims with a p-value that are decided: at the level of each, and after the adjustments
// of [Adjust].
func Decided(claims []Judgement) (alone, holm, bh int) {
	count := func(n *int, p float64) {
		if p <= Level {
			*n++
		}
	}
	for _, j := range claims {
		if f := j.Finding; f.BH == f.BH && f.Verdict != "" {
			count(&alone, f.P)
			count(&holm, f.Holm)
			count(&bh, f.BH)
		}
	}
	return alone, holm, bh
}
