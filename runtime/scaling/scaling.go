// Package scaling computes figures of scaling from recorded runs on fleets of several sizes: the time of a round, its
// efficiency compared with a single worker, and the time and bytes to a target, as rows and as plots. It reads sessions
// and draws SVG; it starts no runs and draws on no screen. It imports packages of runtime.
package scaling

import (
	"math"
	"slices"

	"brood/runtime/event"
	"brood/runtime/session"
)

// Warm is the number of ignored rounds at the beginning of a run: warm-up of connections and caches.
const Warm = 2

// Least is the least number of commits for a figure.
const Least = 3

// TooLate is the largest lateness of the workers of a run, in percent, with which its figures are valid.
const TooLate = 5

// Key identifies a kind of run of a plan. Its runs differ only in their seeds.
type Key struct {
	Curve   string
	Link    string // a rate, "" without a limit
	Workers int
	Members int
}

// Figures holds the measurements of runs that differ only in their seeds; most kinds have one run. Times are those of
// the slowest worker. A commit covers one round, or several short ones.
type Figures struct {
	Runs       int     // number of runs
	Rounds     int     // rounds of a run; as Seconds and Sent, the median over runs
	Commits    int     // counted commits of all runs; with fewer than [Least] there is no round time
	Round      float64 // seconds per round, median over these commits
	Low        float64 // quartiles of Round
	High       float64
	Bytes      float64 // payload of all workers per round, mean
	Seconds    float64 // of all rounds
	Sent       float64 // payload of all workers in all rounds
	Met        bool    // all runs met their target
	Waited     float64 // share of the counted time in which workers wait for frames, mean over workers; NaN: unknown
	WaitedMost float64 // largest such share of a run
	Late       int     // lateness of the latest worker: how much longer computing took than planned, in percent
}

// Read returns the commits of the session in dir.
func Read(dir string) (all []event.Commit, err error) {
	for rec, err := range session.Records(dir) {
		if err != nil {
			return nil, err
		}
		if rec.Commit != nil {
			all = append(all, *rec.Commit)
		}
	}
	return all, nil
}

// Run is a run of a plan.
type Run struct {
	Commits []event.Commit
	Met     bool // it met its target
	Late    int  // percent, see [Figures]
}

// Of returns the figures of runs that differ only in their seeds. Round times are over the commits of all runs.
func Of(runs ...Run) Figures {
	f := Figures{Runs: len(runs), Waited: math.NaN(), WaitedMost: math.NaN()}
	var rounds, numbers, seconds, sent []float64
	var nanos, waited int64
	var worst float64
	f.Met = len(runs) > 0
	for _, r := range runs {
		f.Met, f.Late = f.Met && r.Met, max(f.Late, r.Late)
		n, took, bytes := 0, 0.0, 0.0
		var of, waits int64 // nanoseconds of the counted commits: in total, and spent waiting
		for _, c := range r.Commits {
			for _, b := range c.Sent {
				bytes += float64(b)
			}
			n, took = n+int(c.Rounds), took+float64(c.Nanos)/1e9
			if c.Rounds > 0 && c.To-c.Rounds >= Warm {
				rounds = append(rounds, float64(c.Nanos)/1e9/float64(c.Rounds))
				of, waits = of+c.Nanos, waits+c.Waited
			}
		}
		numbers, seconds, sent = append(numbers, float64(n)), append(seconds, took), append(sent, bytes)
		nanos, waited, worst = nanos+of, waited+waits, max(worst, float64(waits)/float64(max(1, of)))
	}
	if all := sum(numbers); all > 0 {
		f.Bytes = sum(sent) / all
	}
	f.Rounds, f.Seconds, f.Sent = int(median(numbers)), median(seconds), median(sent)
	if f.Commits = len(rounds); f.Commits < Least {
		return f
	}
	if waited > 0 {
		f.Waited, f.WaitedMost = float64(waited)/float64(nanos), worst
	}
	slices.Sort(rounds)
	f.Low, f.Round, f.High = quantile(rounds, .25), quantile(rounds, .5), quantile(rounds, .75)
	return f
}

func sum(all []float64) (s float64) {
	for _, x := range all {
		s += x
	}
	return s
}

// median returns the median of values, which it sorts; 0 for none.
func median(all []float64) float64 {
	if slices.Sort(all); len(all) == 0 {
		return 0
	}
	return quantile(all, .5)
}

// quantile returns a quantile of sorted values by linear interpolation.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[i]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}
