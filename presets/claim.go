package presets

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"brood/models/usererr"
)

// Claim is what a preset tests, stated beforehand: a number that its source published, and what the preset's own,
// usually shorter, form must show: an interval, or an order, a distance or a ratio against another preset of the same
// study.
type Claim struct {
	Source string `toml:"source"` // table, figure or section of the paper
	Metric string `toml:"metric"` // see Metrics
	// by the full form: the metric, ratio or slope; nil where the source has a curve or an order only
	Published *float64 `toml:"published"`
	AtMost    *float64 `toml:"at_most"`
	AtLeast   *float64 `toml:"at_least"`
	Below     string   `toml:"below"`  // a preset whose mean is higher
	Near      string   `toml:"near"`   // a preset whose mean is lower by Margin at most, or higher
	Margin    float64  `toml:"margin"` // in the metric's unit
	Ratio     *float64 `toml:"ratio"`  // of this preset's mean to Of's
	Of        string   `toml:"of"`     // a preset
	Within    float64  `toml:"within"` // relative tolerance of Ratio; 0 is 1%
	// how many seeds could decide it, with a chance of 80 % by what an earlier run measured; MostSeeds+1 is more than
	// that; 0: not stated
	Seeds int `toml:"seeds"`

	// A law over presets that differ in members: Slope is the exponent b of metric - least ~ members^b.
	Slope *float64 `toml:"slope"`
	Over  []string `toml:"over"`  // the presets, this one or others
	Least string   `toml:"least"` // a preset that measures the metric's least possible value; "": it is 0
}

// Metrics are what a claim may be about, with their units.
var Metrics = map[string]string{
	"test_error":       "%",         // of the centre, at the end
	"test_bits":        "bits",      // of a text: loss of the centre at the end, in bits a byte
	"test_hamming":     "%",         // of several classes: labels that are wrong, of the centre at the end
	"test_rmse":        "RMSE",      // of a regression: of the centre at the end, in the target's unit
	"test_r2":          "R2",        // of a regression: of the centre at the end
	"test_loss":        "nats",      // of the centre, at the end; squared distance where that is the model's loss
	"train_loss":       "nats",      // of the last mini-batches, mean over members
	"train_error":      "%",         // of the centre on training samples, where the run ends by its rounds or epochs
	"spread":           "RMS",       // distance of the members to the centre, mean at the last probe
	"bytes":            "B",         // payload sent by all workers
	"bytes_per_sample": "B",         // payload sent by all workers, divided by the samples that all members have seen
	"bytes_per_eval":   "B",         // the same, divided by evaluated candidates
	"samples_per_s":    "samples/s", // on this machine
	// that were done: with a target, what it took to meet it, +Inf of a run that missed it
	"epochs": "epochs",
	// that each member had seen when the run met its target; +Inf of a run that missed it, none of one without a target
	"node_samples": "samples",
	"seconds":      "s",     // of the run on this machine, with its evaluations
	"memory":       "steps", // mean of the series memory: in units of a full gradient step's
	"diversity":    "RMS",   // mean of the series diversity
	"centre_loss":  "nats",  // on validation samples, the last probe
	// mean validation loss of the members less the centre's: above 0 the centre is the better model
	"centre_advance": "nats",
}

// Selects says whether settings may be chosen by a metric: what is measured on the test set is reported and selects
// nothing.
func Selects(metric string) bool { return !strings.HasPrefix(metric, "test_") }

// MoreIsBetter says whether the setting with more of a metric is the better one.
func MoreIsBetter(metric string) bool {
	return metric == "samples_per_s" || metric == "test_r2" || metric == "centre_advance"
}

// Others are the presets that a claim compares with.
func (c Claim) Others() (out []string) {
	for _, name := range append([]string{c.Below, c.Near, c.Of, c.Least}, c.Over...) {
		if name != "" {
			out = append(out, name)
		}
	}
	return out
}

// Accounting says that the metric is counted, and follows from a formula and the knobs: bytes, and memory in steps.
// What is counted as the formula says is no evidence for a method.
func (c Claim) Accounting() bool { return c.Metric == "memory" || strings.HasPrefix(c.Metric, "bytes") }

func (c Claim) check() error {
	switch {
	case c.Source == "":
		return fmt.Errorf("a claim on %s names no source: a table, a figure or a section", c.Metric)
	case Metrics[c.Metric] == "":
		return fmt.Errorf("a claim is on %q: choose one of %s", c.Metric, strings.Join(MetricNames(), ", "))
	case (c.Ratio == nil) != (c.Of == ""):
		return fmt.Errorf("a claim on %s needs both ratio and of, or neither", c.Metric)
	case (c.Near == "") != !(c.Margin > 0):
		return fmt.Errorf("a claim on %s needs both near and a margin above 0, or neither", c.Metric)
	case c.Ratio != nil && (c.AtMost != nil || c.AtLeast != nil || c.Below != "" || c.Near != ""):
		return fmt.Errorf("a claim on %s has a ratio: state what else it shall show in a claim of its own", c.Metric)
	case (c.Slope == nil) != (len(c.Over) < 3):
		return fmt.Errorf("a claim on %s needs both slope and over, with three presets or more, or neither", c.Metric)
	case c.Slope != nil && (c.AtMost != nil || c.AtLeast != nil || c.Below != "" || c.Near != "" || c.Ratio != nil):
		return fmt.Errorf("a claim on %s has a slope: state what else it shall show in a claim of its own", c.Metric)
	case c.AtMost == nil && c.AtLeast == nil && c.Below == "" && c.Near == "" && c.Ratio == nil && c.Slope == nil:
		return fmt.Errorf("a claim on %s states nothing that could fail: give at_most, at_least, below, near and margin, ratio and of, or slope and over", c.Metric)
	case c.Seeds != 0 && c.Seeds < 2:
		return fmt.Errorf("a claim on %s has seeds = %d: give 2 or more, since fewer decide nothing, or leave seeds out",
			c.Metric, c.Seeds)
	case c.Seeds != 0 && c.Accounting():
		return fmt.Errorf("a claim on %s is counted, which no number of seeds decides: leave seeds out", c.Metric)
	}
	return nil
}

// MetricNames are the names of Metrics, sorted.
func MetricNames() (out []string) {
	for name := range Metrics {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func (c Claim) tolerance() float64 { return cmp.Or(c.Within, 0.01) }

// States says in words what must be shown, and by how many seeds it could be.
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

// Own is the study of a person's own preset: the file, and the presets that its claims compare it with.
func Own(path string) ([]string, error) {
	p, err := Load(path)
	if err != nil {
		return nil, err
	}
	if len(p.Claims) == 0 {
		return nil, usererr.Errorf("preset %s claims nothing: add what it shall show as [[claims]], as in `brood presets show quickstart`", path)
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

// Studies are the sets that presets belong to, with their presets and those that these compare with, in order of name.
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
