package presets

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Tuned states how the knobs of a preset were chosen.
type Tuned struct {
	By     string `toml:"by"`     // metric by which the settings were compared
	Trials int    `toml:"trials"` // number of settings that were tried
	Seeds  []int  `toml:"seeds"`  // seeds of the trials; nil: unknown
}

func (t Tuned) check() error {
	switch {
	case Metrics[t.By] == "":
		return fmt.Errorf("tuned has by = %q: choose one of %s", t.By, strings.Join(MetricNames(), ", "))
	case t.Trials < 1:
		return fmt.Errorf("tuned has trials = %d: give 1 or more, or leave tuned out", t.Trials)
	case slices.ContainsFunc(t.Seeds, func(seed int) bool { return seed < 1 }):
		return fmt.Errorf("tuned has seeds = %v: give numbers from 1", t.Seeds)
	}
	return nil
}

// Text returns the metric and the number of trials; a dash for nil.
func (t *Tuned) Text() string {
	if t == nil {
		return "–"
	}
	return fmt.Sprintf("%s, %d", t.By, t.Trials)
}

// costs are the quantities that the presets of an order should spend equally.
var costs = []struct{ metric, title string }{{"samples", "gradients"}, {"bytes", "bytes"}}

// equalCost is the relative difference up to which two budgets are called equal.
const equalCost = 0.05

// budget returns by what a preset was given more or less than its rival: "equal gradients and 0.12 × the bytes". It
// returns "" unless the metric measures quality, and for costs that one of them does not have.
func budget(metric string, a, b Measured) string {
	if !slices.ContainsFunc([]string{"test_", "validation_", "train_", "centre_"}, func(prefix string) bool {
		return strings.HasPrefix(metric, prefix)
	}) {
		return ""
	}
	var out []string
	for _, c := range costs {
		x, y := Sample(a.Figures[c.metric]).Mean(), Sample(b.Figures[c.metric]).Mean()
		switch r := x / y; {
		case !(x > 0 && y > 0):
		case math.Abs(r-1) <= equalCost:
			out = append(out, "equal "+c.title)
		default:
			out = append(out, fmt.Sprintf("%.2g × the %s", r, c.title))
		}
	}
	return strings.Join(out, " and ")
}

// TuningNotes returns what a reader must know of how two presets were tuned, and on which seeds: that one of them was
// tuned by the test set or on judged seeds, or with another number of trials. b is nil for a claim without a rival.
func TuningNotes(a, b *Tuned, judged Sample) (out []string) {
	for _, t := range []*Tuned{a, b} {
		if t == nil {
			continue
		}
		if text := "tuned by " + t.By; !Selects(t.By) && !slices.Contains(out, text) {
			out = append(out, text)
		}
		const own = "tuned on judged seeds"
		if !slices.Contains(out, own) && slices.ContainsFunc(t.Seeds, func(seed int) bool {
			_, ok := judged[seed]
			return ok
		}) {
			out = append(out, own)
		}
	}
	if a != nil && b != nil && a.Trials != b.Trials {
		out = append(out, fmt.Sprintf("tuned with %d trials against %d", a.Trials, b.Trials))
	}
	return out
}
