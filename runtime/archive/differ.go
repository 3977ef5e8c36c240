package archive

import (
	"math"
	"slices"
	"strings"

	"brood/runtime/event"
)

// Difference is a setting in which runs differ, with its value in each of them: "" where a run has none of that name.
type Difference struct {
	Name   string
	Values []string
}

// Differences are the settings in which the runs are not all alike, in the order in which runs list them. A knob that
// only some of their algorithms have is none where those all have it at one default.
func Differences(runs []*Run) (out []Difference) {
	var names []string
	for _, r := range runs {
		at := 0 // where the names of this run go on in the list
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
		d, told, values := Difference{Name: n}, false, map[string]bool{}
		for _, r := range runs {
			x := r.setting(n)
			d.Values = append(d.Values, x.Value)
			if x.Name != "" {
				told, values[x.Value] = told || !x.Default, true
			}
		}
		if !told && len(values) < 2 {
			continue
		}
		if slices.ContainsFunc(d.Values, func(v string) bool { return v != d.Values[0] }) {
			out = append(out, d)
		}
	}
	return out
}

// Group are runs of one setting: they differ in their seeds, or in nothing.
type Group struct{ Runs []*Run }

// Seeds is how many seeds the runs of the group have.
func (g Group) Seeds() int {
	seeds := map[string]bool{}
	for _, r := range g.Runs {
		seeds[r.Value(Seed)] = true
	}
	return len(seeds)
}

// Groups are the runs by setting, in the order of their first ones.
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

// Mean is the mean of a metric over the n seeds of the group that have it, and its standard error; that is NaN for one
// seed. Runs of one seed count as one, which is their mean. Where some runs are whole, what others spent is left out.
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
	Title string // over a column of figures
	More  bool   // is better
}

// Metrics are those of a comparison, in the order of its columns.
var Metrics = []Metric{
	{event.KeyTestBits, "test bits a byte", false}, {event.KeyTestError, "test error %", false},
	{event.KeyTestHamming, "test Hamming %", false}, {event.KeyTestRMSE, "test RMSE", false}, {event.KeyTestR2, "test R2",
		true},
	{event.KeyTestFitness, "test fitness", true}, {"mean_fitness", "mean fitness", true}, {event.KeyTestLoss, "test loss",
		false},
	{"train_loss", "train loss", false}, {"seconds", "seconds", false}, {"samples_per_s", "samples/s", true}, {"bytes",
		"sent", false},
}

// Best are the runs that no other one beats by a metric: none where fewer than two of them have it, and none where all
// of those are equal. A run that is not whole is not compared by what it spent, nor one that sent nothing by its bytes:
// all its members shared a worker, which is no merit of what was set. Nobody spent least where the runs are [Unequal],
// nobody has the best result where they are [Unlike], and nobody the least training loss where they are [Tried].
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
