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
	var lists [][]Setting
	for _, r := range runs {
		lists = append(lists, r.Settings)
	}
	for _, x := range differing(lists) {
		d := Difference{Name: x.name}
		for _, r := range runs {
			d.Values = append(d.Values, r.Value(x.name))
		}
		out = append(out, d)
	}
	return out
}

// difference is a setting in which runs differ.
type difference struct {
	name  string
	runs  int    // that have it
	value string // [Setting.same] of the first of them
	other bool   // another run has another value
	set   bool   // by some user
}

// differing returns the settings of [Differences] of the runs with these settings.
func differing(lists [][]Setting) []difference {
	var names []string
	found := map[string]*difference{}
	for _, list := range lists {
		before := "" // the setting before in this list
		for _, s := range list {
			d := found[s.Name]
			if d == nil {
				d = &difference{name: s.Name, value: s.same()}
				found[s.Name] = d
				names = slices.Insert(names, slices.Index(names, before)+1, s.Name)
			}
			d.runs, d.set, d.other = d.runs+1, d.set || !s.Default, d.other || s.same() != d.value
			before = s.Name
		}
	}
	var out []difference
	for _, n := range names {
		if d := found[n]; d.other || d.set && d.runs < len(lists) {
			out = append(out, *d)
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
				key.WriteString(s.Name + "\x00" + s.same() + "\x00")
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
var Metrics = append(scores(), []Metric{
	{"mean_fitness", "mean fitness", true}, {"train_loss", "train loss", false}, {"seconds", "seconds", false},
	{"samples_per_s", "samples/s", true}, {"bytes", "sent", false},
}...)

// scores returns the metrics of the test set, each followed by that of the validation samples.
func scores() (out []Metric) {
	for _, s := range event.TestScores {
		out = append(out, Metric{s.Key, s.Heading(), s.More})
		switch s.Key {
		case event.KeyTestR2, event.KeyTestFitness, event.KeyTestLoss: // not measured, or shown by another metric
		default:
			v := s.OnValidation()
			out = append(out, Metric{v.Key, v.Heading(), v.More})
		}
	}
	return out
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
