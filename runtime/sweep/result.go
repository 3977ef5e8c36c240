package sweep

import (
	"cmp"
	"math"
	"slices"
)

// Result is what the runs of one setting came to, over its seeds.
type Result struct {
	Point    []string
	Figures  map[string][]float64 // of each metric, what the runs that are done came to, in the order of their seeds
	Seconds  float64              // mean of those runs
	Seeds    int                  // of the setting
	Done     int
	Diverged int
	Missed   int // ended without meeting their target
}

// Results are the settings in the order in which they were added, with these metrics.
func (b *Batch) Results(metrics ...string) (out []Result) {
	label := ""
	b.Each(func(t *Trial) {
		if len(out) == 0 || t.Label != label {
			label, out = t.Label, append(out, Result{Point: t.Point, Figures: map[string][]float64{}})
		}
		out[len(out)-1].take(t, metrics)
	})
	for i := range out {
		out[i].Seconds /= float64(max(1, out[i].Done))
	}
	return out
}

func (r *Result) take(t *Trial, metrics []string) {
	r.Seeds++
	if t.State == Diverged {
		r.Diverged++
	}
	if t.State != Done {
		return
	}
	r.Done++
	r.Seconds += t.Tally.Sum.Seconds
	for _, name := range metrics {
		if x, ok := t.Metric(name); ok {
			r.Figures[name] = append(r.Figures[name], x)
		}
	}
	if t.Missed() {
		r.Missed++
	}
}

// Aimed is the metric that runs with a target are sorted by: the epochs that it took to meet it.
const Aimed = "epochs"

// Aims says that a metric is about a target: that of a run which missed it is +Inf, and no figure to sort by.
func Aims(metric string) bool { return metric == Aimed || metric == "node_samples" }

// Sort puts the settings that are best by a metric first; less is better, or more. Settings of which a seed diverged,
// or, by a metric that [Aims], missed its target, come after those of which none did, and last those without a figure.
// What is not a number is no figure.
func Sort(all []Result, metric string, more bool) {
	class := func(r Result) int {
		switch {
		case len(r.Numbers(metric)) == 0:
			return 2
		case r.Diverged > 0, Aims(metric) && r.Missed > 0:
			return 1
		}
		return 0
	}
	slices.SortStableFunc(all, func(a, b Result) int {
		x, y := mean(a.Numbers(metric)), mean(b.Numbers(metric))
		if more {
			x, y = y, x
		}
		return cmp.Or(cmp.Compare(class(a), class(b)), cmp.Compare(x, y))
	})
}

// Numbers are the figures by which settings are sorted: those of the metric that are numbers, and by one that [Aims] of
// the runs that met their target.
func (r Result) Numbers(metric string) []float64 {
	return slices.DeleteFunc(slices.Clone(r.Figures[metric]),
		func(x float64) bool { return x != x || Aims(metric) && math.IsInf(x, 1) })
}

func mean(all []float64) (m float64) {
	for _, x := range all {
		m += x / float64(len(all))
	}
	return m
}
