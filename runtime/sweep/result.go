package sweep

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// Result holds the results of the runs of one setting, over its seeds.
type Result struct {
	Point    []string
	Label    string
	Rung     int                        // of Halving, see [Trial]
	Out      bool                       // see [Trial]
	Figures  map[string]map[int]float64 // by metric and seed: values of the finished runs
	Seconds  float64                    // mean training time of the finished runs
	Seeds    int                        // number of runs of the setting
	Done     int                        // finished runs
	Diverged int
	Missed   int // finished runs that did not meet their target
}

// Results returns the results of the settings with these metrics, in the order in which the settings were added.
func (b *Batch) Results(metrics ...string) (out []Result) {
	label := ""
	b.Each(func(t *Trial) {
		if len(out) == 0 || t.Label != label {
			label, out = t.Label, append(out, Result{
				Point:   t.Point,
				Label:   t.Label,
				Rung:    t.Rung,
				Out:     t.Out,
				Figures: map[string]map[int]float64{},
			})
		}
		out[len(out)-1].add(t, metrics)
	})
	for i := range out {
		out[i].Seconds /= float64(max(1, out[i].Done))
	}
	return out
}

func (r *Result) add(t *Trial, metrics []string) {
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
			if r.Figures[name] == nil {
				r.Figures[name] = map[int]float64{}
			}
			r.Figures[name][t.Seed] = x
		}
	}
	if t.Missed() {
		r.Missed++
	}
}

// TargetMetric is the default metric by which runs with a target are sorted: the epochs until they met it.
const TargetMetric = "epochs"

// NeedsTarget reports whether a metric is defined only for runs with a target. It is +Inf for a run that missed it.
func NeedsTarget(metric string) bool { return metric == TargetMetric || metric == "node_samples" }

// Sort sorts the settings by the mean of a metric, best first; larger is better if more is set. Settings with a
// diverged run, or with a missed target for a metric that [NeedsTarget], follow the others. Settings without a number
// come last. Among the others, those of a later rung of Halving come first.
func Sort(all []Result, metric string, more bool) {
	class := func(r Result) int {
		switch {
		case len(r.Numbers(metric)) == 0:
			return 2
		case r.Diverged > 0, NeedsTarget(metric) && r.Missed > 0:
			return 1
		}
		return 0
	}
	slices.SortStableFunc(all, func(a, b Result) int {
		x, y := mean(a.Numbers(metric)), mean(b.Numbers(metric))
		if more {
			x, y = y, x
		}
		return cmp.Or(cmp.Compare(class(a), class(b)), cmp.Compare(b.Rung, a.Rung), cmp.Compare(x, y))
	})
}

// Numbers returns the values of a metric by seed without NaN and, for a metric that [NeedsTarget], without +Inf.
func (r Result) Numbers(metric string) map[int]float64 {
	out := maps.Clone(r.Figures[metric])
	maps.DeleteFunc(out, func(_ int, x float64) bool { return x != x || NeedsTarget(metric) && math.IsInf(x, 1) })
	return out
}

func mean(of map[int]float64) (m float64) {
	for _, seed := range slices.Sorted(maps.Keys(of)) {
		m += of[seed] / float64(len(of))
	}
	return m
}
