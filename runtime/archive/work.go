package archive

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"brood/runtime/event"
)

// worked are the measures of work: those that do not depend on how an algorithm cuts it into rounds. What has none of
// them is measured by its rounds.
var worked = []struct {
	unit string
	of   func(event.Progress) float64
}{
	{"epochs", func(p event.Progress) float64 { return p.Epochs }},
	{"samples", func(p event.Progress) float64 { return float64(p.Samples) }},
	{"evaluations", func(p event.Progress) float64 { return float64(p.Evaluations) }},
}

// workTolerance is by which part the work of runs may differ that count as having done the same: a limit is overshot by
// less than a round.
const workTolerance = 0.01

// Unequal says why nobody is best by what the runs spent: they did not do the same work, nor met the same target. ""
// where they did. Runs that are not whole are left out, as [Best] does.
func Unequal(runs []*Run) string {
	runs = ranked(runs, "seconds")
	if len(runs) < 2 || metOne(runs) {
		return ""
	}
	some := false
	for _, w := range worked {
		lo, hi := extent(runs, w.of)
		if some = some || hi > 0; hi-lo > workTolerance*hi {
			return fmt.Sprintf("unequal work, %s to %s %s", short(lo), short(hi), w.unit)
		}
	}
	if lo, hi := extent(runs, func(p event.Progress) float64 { return float64(p.Rounds) }); !some && lo != hi {
		return fmt.Sprintf("unequal work, %s to %s rounds", short(lo), short(hi))
	}
	return ""
}

// Unlike says why nobody is best by a result: the runs predict other samples, or their losses are no one loss. "" where
// results are alike.
func Unlike(runs []*Run) string {
	of := func(what string, value func(*event.Config) string) string {
		first := ""
		for _, r := range runs {
			if x := value(r.View.Config); x != "" && first != "" && x != first {
				return what
			}
			first = cmp.Or(first, value(r.View.Config))
		}
		return ""
	}
	return cmp.Or(of("they are of different data", func(c *event.Config) string { return c.Digest }),
		of("they are of different losses", func(c *event.Config) string { return c.Score().Key }),
		of("they are of different losses", func(c *event.Config) string { return c.Loss })) // logs of before name none
}

// Tried says why nobody has the least training loss: some have that of candidates. "" where all have that of members.
func Tried(runs []*Run) string {
	if slices.ContainsFunc(runs, func(r *Run) bool { return r.candidates }) {
		return "it is of candidates, which are as far from the model as was set"
	}
	return ""
}

// metOne says whether all of them met the same target.
func metOne(runs []*Run) bool {
	for _, r := range runs {
		if r.Met == "" || r.Met != runs[0].Met {
			return false
		}
	}
	return true
}

func extent(runs []*Run, of func(event.Progress) float64) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, r := range runs {
		x := of(r.View.Progress)
		lo, hi = min(lo, x), max(hi, x)
	}
	return lo, hi
}

func short(x float64) string {
	if x >= 1000 {
		return strconv.FormatFloat(math.Round(x), 'f', -1, 64)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}
