package presets

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Claim is what a preset tests, stated beforehand: a number that its source published, and what the preset's own, usually shorter, form
// must show: an interval, or an ordering against another preset of the same study.
type Claim struct {
	Source    string   `toml:"source"`    // table, figure or section of the paper
	Metric    string   `toml:"metric"`    // see Metrics
	Published *float64 `toml:"published"` // in the metric's unit, by the full form; nil where the source has a curve or an order only
	AtMost    *float64 `toml:"at_most"`
	AtLeast   *float64 `toml:"at_least"`
	Below     string   `toml:"below"` // a preset whose mean is higher
	Ratio     *float64 `toml:"ratio"` // of this preset's mean to Of's, within 1%
	Of        string   `toml:"of"`    // a preset
}

// Metrics are what a claim may be about, with their units.
var Metrics = map[string]string{
	"test_error":       "%",         // of the centre, at the end
	"train_loss":       "nats",      // of the last mini-batches, mean over members
	"bytes_per_sample": "B",         // payload sent by all workers, divided by the samples that all members have seen
	"bytes_per_eval":   "B",         // the same, divided by evaluated candidates
	"samples_per_s":    "samples/s", // on this machine
	"epochs":           "epochs",    // that were done: with a target, what it took to meet it
	"seconds":          "s",         // the same on this machine, at work
	"centre_loss":      "nats",      // on validation samples, the last probe
	"centre_advance":   "nats",      // mean validation loss of the members less the centre's: above 0 the centre is the better model
}

// Others are the presets that a claim compares with.
func (c Claim) Others() (out []string) {
	for _, name := range []string{c.Below, c.Of} {
		if name != "" {
			out = append(out, name)
		}
	}
	return out
}

func (c Claim) check() error {
	switch {
	case c.Source == "":
		return fmt.Errorf("a claim on %s names no source: a table, a figure or a section", c.Metric)
	case Metrics[c.Metric] == "":
		return fmt.Errorf("a claim is on %q: choose one of %s", c.Metric, strings.Join(MetricNames(), ", "))
	case (c.Ratio == nil) != (c.Of == ""):
		return fmt.Errorf("a claim on %s needs both ratio and of, or neither", c.Metric)
	case c.AtMost == nil && c.AtLeast == nil && c.Below == "" && c.Ratio == nil:
		return fmt.Errorf("a claim on %s states nothing that could fail: give at_most, at_least, below, or ratio and of", c.Metric)
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

// Sample is a metric over several seeds.
type Sample []float64

// Mean of the sample.
func (s Sample) Mean() (m float64) {
	for _, x := range s {
		m += x / float64(len(s))
	}
	return m
}

// Error is the standard error of the mean; NaN of fewer than two.
func (s Sample) Error() float64 {
	m, v := s.Mean(), 0.0
	for _, x := range s {
		v += (x - m) * (x - m)
	}
	n := float64(len(s))
	return math.Sqrt(v / (n - 1) / n)
}

// Verdict is what a sample says of a claim.
type Verdict string

const (
	Holds       Verdict = "holds"
	Contradicts Verdict = "contradicts"
	Unseparated Verdict = "not separated" // the means are in order, or not, by less than two standard errors
)

// Judge compares a sample with the claim; other are the samples of the presets it names.
func (c Claim) Judge(s Sample, other map[string]Sample) Verdict {
	m := s.Mean()
	if c.AtMost != nil && !(m <= *c.AtMost) || c.AtLeast != nil && !(m >= *c.AtLeast) {
		return Contradicts
	}
	if c.Ratio != nil {
		if r := m / other[c.Of].Mean(); !(math.Abs(r / *c.Ratio - 1) <= 0.01) {
			return Contradicts
		}
	}
	if c.Below == "" {
		return Holds
	}
	o := other[c.Below]
	gap, se := o.Mean()-m, math.Hypot(s.Error(), o.Error())
	switch {
	case !(math.Abs(gap) >= 2*se): // also of one seed, which says nothing
		return Unseparated
	case gap > 0:
		return Holds
	}
	return Contradicts
}

// States says in words what must be shown.
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
	if c.Ratio != nil {
		out = append(out, fmt.Sprintf("%.4g of %s", *c.Ratio, c.Of))
	}
	return strings.Join(out, ", ")
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
