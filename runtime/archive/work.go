package archive

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"brood/runtime/event"
)

// worked are the measures of work that do not depend on how an algorithm divides it into rounds. The work of runs
// without any of them is measured in rounds.
var worked = []struct {
	unit string
	of   func(event.Progress) float64
}{
	{"epochs", func(p event.Progress) float64 { return p.Epochs }},
	{"samples", func(p event.Progress) float64 { return float64(p.Samples) }},
	{"evaluations", func(p event.Progress) float64 { return float64(p.Evaluations) }},
}

// workTolerance is the relative difference up to which the work of runs counts as equal: runs overshoot a limit by less
// than a round.
const workTolerance = 0.01

// Unequal returns why the runs cannot be compared by seconds or bytes: they neither did the same work nor met the same
// target. It returns "" if they can. It omits runs that are not whole, as [Best] does.
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

// Unlike returns why the runs cannot be compared by a result: they predict different samples, or have different losses.
// It returns "" if they can.
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
		of("they are of different losses", func(c *event.Config) string { return c.Loss }))
}

// Tried returns why the runs cannot be compared by the training loss: some have that of candidates. It returns "" if
// all have that of members.
func Tried(runs []*Run) string {
	if slices.ContainsFunc(runs, func(r *Run) bool { return r.candidates }) {
		return "it is of candidates, which are as far from the model as was set"
	}
	return ""
}

// metOne reports whether all runs met the same target.
func metOne(runs []*Run) bool {
	for _, r := range runs {
		if r.Met == "" || r.Met != runs[0].Met {
			return false
		}
	}
	return true
}

// extent returns the least and the largest value over the runs.
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
