package presets

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"brood/models/usererr"
)

// Claim is a hypothesis of a preset, stated before its runs: the number that its source published, and conditions on
// the results of the preset, whose form is usually shorter than the source's: an interval, or an order, a distance or a
// ratio compared with another preset of the study, or a slope over several. It states one of them.
type Claim struct {
	Source string `toml:"source"` // table, figure or section of the paper
	Metric string `toml:"metric"` // see Metrics
	// metric, ratio or slope of the full form; nil if the source has only a curve or an order
	Published *float64 `toml:"published"`
	AtMost    *float64 `toml:"at_most"`
	AtLeast   *float64 `toml:"at_least"`
	Below     string   `toml:"below"`  // a preset with a higher mean
	Near      string   `toml:"near"`   // a preset whose mean is at most Margin lower, or higher
	Margin    float64  `toml:"margin"` // in the unit of the metric
	Ratio     *float64 `toml:"ratio"`  // mean of this preset divided by the mean of Of
	Of        string   `toml:"of"`     // a preset
	Within    float64  `toml:"within"` // relative tolerance of Ratio; 0 means 1 %
	Own       bool     `toml:"own"`    // the condition is not one of the source: a check, see IsCheck
	// number of seeds that decide the claim with a probability of 80 %, estimated from an earlier run; MostSeeds+1
	// means more; 0: not stated
	Seeds int `toml:"seeds"`

	// A law over presets that differ in members: Slope is the exponent b of metric - least ~ members^b.
	Slope *float64 `toml:"slope"`
	Over  []string `toml:"over"`  // the presets
	Least string   `toml:"least"` // a preset that measures the least possible value of the metric; "": it is 0
}

// Metrics lists the metrics of claims with their units.
var Metrics = map[string]string{
	"test_error":         "%",         // of the final centre
	"test_bits":          "bits",      // text: loss of the final centre in bits per byte
	"test_fitness":       "fitness",   // objective: of the final centre on the test seeds
	"test_hamming":       "%",         // multi-label: share of wrong labels of the final centre
	"test_rmse":          "RMSE",      // regression: of the final centre, in the unit of the target
	"test_r2":            "R2",        // regression: of the final centre
	"test_loss":          "nats",      // of the final centre; a squared distance if the loss of the model is one
	"validation_error":   "%",         // of the centre on the validation samples, at the last test
	"validation_bits":    "bits",      // the same of a text
	"validation_rmse":    "RMSE",      // the same of a regression
	"validation_hamming": "%",         // the same of a multi-label model
	"validation_loss":    "nats",      // the loss of the centre on the validation samples, at the last test
	"train_loss":         "nats",      // of the last mini-batches, mean over members
	"train_error":        "%",         // of the centre on training samples, if the run ends by its rounds or epochs
	"spread":             "RMS",       // distance of the members to the centre, mean at the last probe
	"samples":            "samples",   // that all members have seen; those that a candidate was evaluated on count too
	"bytes":              "B",         // payload sent by all workers
	"bytes_per_sample":   "B",         // payload sent by all workers, divided by the samples that all members have seen
	"bytes_per_eval":     "B",         // the same, divided by evaluated candidates
	"samples_per_s":      "samples/s", // on this machine
	// epochs of the run; with a target, until it was met, +Inf for a run that missed it
	"epochs": "epochs",
	// samples of each member until the target was met; +Inf for a run that missed it; undefined without a target
	"node_samples": "samples",
	"seconds":      "s",     // of the run on this machine, with its evaluations
	"memory":       "steps", // mean of the series memory, in units of the memory of a full gradient step
	"diversity":    "RMS",   // mean of the series diversity
	"centre_loss":  "nats",  // on validation samples, at the last probe
	// mean validation loss of the members minus that of the centre; positive if the centre is better
	"centre_advance": "nats",
}

// Selects reports whether settings may be selected by a metric. Metrics on the test set are for the final report only.
func Selects(metric string) bool { return !strings.HasPrefix(metric, "test_") }

// MoreIsBetter reports whether larger values of a metric are better.
func MoreIsBetter(metric string) bool {
	return metric == "samples_per_s" || metric == "test_r2" || metric == "test_fitness" || metric == "centre_advance"
}

// Others returns the presets that a claim compares with.
func (c Claim) Others() (out []string) {
	for _, name := range append([]string{c.Below, c.Near, c.Of, c.Least}, c.Over...) {
		if name != "" {
			out = append(out, name)
		}
	}
	return out
}

// Accounting reports whether the metric follows from a formula and the knobs: bytes, and memory in steps. A count that
// equals its formula is no evidence for a method.
func (c Claim) Accounting() bool { return c.Metric == "memory" || strings.HasPrefix(c.Metric, "bytes") }

// IsCheck reports whether the claim is a check: a condition of our own, which the source does not state. These are
// bounds other than the published number, margins of a quarter of the baseline or more, and claims marked as own.
// baseline is the mean of the preset Near; NaN if unknown. Counts are none.
func (c Claim) IsCheck(baseline float64) bool {
	if c.Accounting() {
		return false
	}
	bound := func(x *float64) bool { return x != nil && (c.Published == nil || *x != *c.Published) }
	return c.Own || bound(c.AtMost) || bound(c.AtLeast) || c.Near != "" && c.Margin >= math.Abs(baseline)/4
}

func (c Claim) check() error {
	kinds := 0
	for _, given := range []bool{c.AtMost != nil || c.AtLeast != nil, c.Below != "", c.Near != "", c.Ratio != nil,
		c.Slope != nil} {
		if given {
			kinds++
		}
	}
	switch {
	case c.Source == "":
		return fmt.Errorf("a claim on %s has no source: name a table, a figure or a section", c.Metric)
	case Metrics[c.Metric] == "":
		return fmt.Errorf("a claim has the unknown metric %q: choose one of %s", c.Metric, strings.Join(MetricNames(),
			", "))
	case (c.Ratio == nil) != (c.Of == ""):
		return fmt.Errorf("a claim on %s needs both ratio and of, or neither", c.Metric)
	case (c.Near == "") != !(c.Margin > 0):
		return fmt.Errorf("a claim on %s needs both near and a margin above 0, or neither", c.Metric)
	case (c.Slope == nil) != (len(c.Over) < 3):
		return fmt.Errorf("a claim on %s needs both slope and over, with three presets or more, or neither", c.Metric)
	case kinds > 1:
		return fmt.Errorf("a claim on %s has several conditions: state an interval, an order, a margin, a ratio or a "+
			"slope, and the others in separate claims", c.Metric)
	case kinds == 0:
		return fmt.Errorf("a claim on %s has no condition: give at_most, at_least, below, near and margin, ratio and "+
			"of, or slope and over", c.Metric)
	case c.Seeds != 0 && c.Seeds < 2:
		return fmt.Errorf("a claim on %s has seeds = %d: give 2 or more, or leave seeds out",
			c.Metric, c.Seeds)
	case c.Seeds != 0 && c.Accounting():
		return fmt.Errorf("a claim on %s does not depend on seeds: leave seeds out", c.Metric)
	}
	return nil
}

// MetricNames returns the names of Metrics, sorted.
func MetricNames() (out []string) {
	for name := range Metrics {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func (c Claim) tolerance() float64 { return cmp.Or(c.Within, 0.01) }

// States describes the conditions of the claim, and the number of seeds that could decide it.
func (c Claim) States() string {
	var out []string
	if c.AtMost != nil {
		out = append(out, fmt.Sprintf("at most %g", *c.AtMost))
	}
	if c.AtLeast != nil {
		out = append(out, fmt.Sprintf("at least %g", *c.AtLeast))
	}
	if c.Below != "" {
		out = append(out, "below "+c.Below)
	}
	if c.Near != "" {
		out = append(out, fmt.Sprintf("at most %g above %s", c.Margin, c.Near))
	}
	if c.Ratio != nil {
		text := fmt.Sprintf("%.4g of %s", *c.Ratio, c.Of)
		if c.Within != 0 {
			text += fmt.Sprintf(" within %g %%", 100*c.Within)
		}
		out = append(out, text)
	}
	if c.Slope != nil {
		what := c.Metric
		if c.Least != "" {
			what += " less that of " + c.Least
		}
		out = append(out, fmt.Sprintf("%s goes as members to the power %g, over %s to %s", what, *c.Slope, c.Over[0],
			c.Over[len(c.Over)-1]))
	}
	if c.Seeds > 0 {
		out = append(out, "by "+SeedsText(c.Seeds)+" seeds")
	}
	return strings.Join(out, ", ")
}

// Own returns the presets of a study for a preset file of the user: the file, and the presets that its claims compare
// it with.
func Own(path string) ([]string, error) {
	p, err := Load(path)
	if err != nil {
		return nil, err
	}
	if len(p.Claims) == 0 {
		return nil, usererr.Errorf("preset %s has no claims: add [[claims]], as in `brood presets show "+
			"quickstart`", path)
	}
	out := []string{path}
	for _, c := range p.Claims {
		for _, name := range c.Others() {
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out, nil
}

// Studies returns the presets of each study, sorted by name, with the presets that their claims compare with.
func Studies() (map[string][]string, error) {
	out := map[string][]string{}
	for _, name := range List() {
		p, err := Load(name)
		if err != nil {
			return nil, err
		}
		if p.Study == "" {
			continue
		}
		out[p.Study] = append(out[p.Study], name)
		for _, c := range p.Claims {
			out[p.Study] = append(out[p.Study], c.Others()...)
		}
	}
	for study, names := range out {
		slices.Sort(names)
		out[study] = slices.Compact(names)
	}
	return out, nil
}
