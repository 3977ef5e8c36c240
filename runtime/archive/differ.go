package archive

import (
	"math"
	"slices"
	"strings"

	"brood/runtime/event"
)

// Difference is a setting in which runs differ, with its value in each run: "" if a run does not have the setting.
type Difference struct {
	Name   string
	Values []string
}

// Differences returns the settings in which the runs differ, in the order in which runs list them. A knob that only
// some of the algorithms have is not a difference if all of those have it at the same default.
func Differences(runs []*Run) (out []Difference) {
	var names []string
	for _, r := range runs {
		at := 0 // index in names of the next new name of this run
		for _, s := range r.Settings {
			if i := slices.Index(names, s.Name); i >= 0 {
				at = i + 1
				continue
			}
			names = slices.Insert(names, at, s.Name)
			at++
		}
	}
	for _, n := range names {
		d, set, values := Difference{Name: n}, false, map[string]bool{}
		for _, r := range runs {
			x := r.setting(n)
			d.Values = append(d.Values, x.Value)
			if x.Name != "" {
				set, values[x.Value] = set || !x.Default, true
			}
		}
		if !set && len(values) < 2 {
			continue
		}
		if slices.ContainsFunc(d.Values, func(v string) bool { return v != d.Values[0] }) {
			out = append(out, d)
		}
	}
	return out
}

// Group is a set of runs with the same settings but for the seed.
type Group struct{ Runs []*Run }

// Seeds returns the number of different seeds in the group.
func (g Group) Seeds() int {
	seeds := map[string]bool{}
	for _, r := range g.Runs {
		seeds[r.Value(Seed)] = true
	}
	return len(seeds)
}

// Groups returns the runs grouped by settings, in the order of the first run of each group.
func Groups(runs []*Run) (out []Group) {
	at := map[string]int{}
	for _, r := range runs {
		var key strings.Builder
		for _, s := range r.Settings {
			if s.Name != Seed {
				key.WriteString(s.Name + "\x00" + s.Value + "\x00")
			}
		}
		i, ok := at[key.String()]
		if !ok {
			i = len(out)
			at[key.String()], out = i, append(out, Group{})
		}
		out[i].Runs = append(out[i].Runs, r)
	}
	return out
}

// Mean returns the mean of a metric over the n seeds of the group that have it, and its standard error, which is NaN
// for one seed. Runs with the same seed count as one run with their mean. If some runs are whole (see [Run.Whole]), the
// others are omitted from the metrics seconds and bytes.
func (g Group) Mean(metric string) (mean, stderr float64, n int) {
	runs := ranked(g.Runs, metric)
	if len(runs) == 0 {
		runs = g.Runs
	}
	var seeds []string
	bySeed := map[string][]float64{}
	for _, r := range runs {
		if x, ok := r.Metric(metric); ok {
			seed := r.Value(Seed)
			if bySeed[seed] == nil {
				seeds = append(seeds, seed)
			}
			bySeed[seed] = append(bySeed[seed], x)
		}
	}
	var means []float64
	for _, s := range seeds {
		means = append(means, average(bySeed[s]))
	}
	n, mean = len(means), average(means)
	sum := 0.0
	for _, x := range means {
		sum += (x - mean) * (x - mean)
	}
	return mean, math.Sqrt(sum / float64(n-1) / float64(n)), n
}

func average(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}

// Metric is a figure by which runs are ranked.
type Metric struct {
	Name  string
	Title string // heading of a column
	More  bool   // larger is better
}

// Metrics are the metrics of a comparison, in the order of its columns.
var Metrics = []Metric{
	{event.KeyTestBits, "test bits a byte", false}, {event.KeyTestError, "test error %", false},
	{event.KeyTestHamming, "test Hamming %", false}, {event.KeyTestRMSE, "test RMSE", false}, {event.KeyTestR2, "test R2",
		true},
	{event.KeyTestFitness, "test fitness", true}, {"mean_fitness", "mean fitness", true}, {event.KeyTestLoss, "test loss",
		false},
	{"train_loss", "train loss", false}, {"seconds", "seconds", false}, {"samples_per_s", "samples/s", true}, {"bytes",
		"sent", false},
}

// Best returns the runs with the best value of a metric; none if fewer than two runs have the metric, or if all values
// are equal. The metrics seconds and bytes omit runs that are not whole, and bytes omits runs that sent nothing: all
// their members shared a worker, which is no merit of the settings. Best returns none for seconds and bytes if the runs
// are [Unequal], for results if they are [Unlike], and for the training loss if they are [Tried].
func Best(runs []*Run, m Metric) (out []*Run) {
	best, worst, had := math.Inf(1), math.Inf(-1), 0
	if slices.Contains(spent, m.Name) && Unequal(runs) != "" {
		return nil
	}
	if isResult := !slices.Contains(spent, m.Name) && m.Name != "samples_per_s"; isResult && Unlike(runs) != "" {
		return nil
	}
	if m.Name == "train_loss" && Tried(runs) != "" {
		return nil
	}
	runs = ranked(runs, m.Name)
	cost := func(r *Run) (float64, bool) {
		x, ok := r.Metric(m.Name)
		if m.More {
			x = -x
		}
		return x, ok && x == x && !(m.Name == "bytes" && x == 0)
	}
	for _, r := range runs {
		if x, ok := cost(r); ok {
			best, worst, had = min(best, x), max(worst, x), had+1
		}
	}
	if had < 2 || best == worst {
		return nil
	}
	for _, r := range runs {
		if x, ok := cost(r); ok && x == best {
			out = append(out, r)
		}
	}
	return out
}
