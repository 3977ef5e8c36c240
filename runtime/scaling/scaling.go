// Package scaling turns recorded runs on fleets of several sizes into what they say of scaling: the time of a round,
// its efficiency beside a single worker, and the time and bytes to a target; as rows and as plots. It reads sessions
// and draws; it starts nothing and knows no screen. It imports the runtime.
package scaling

import (
	"errors"
	"io"
	"math"
	"slices"

	"brood/runtime/event"
	"brood/runtime/session"
)

// Warm are the rounds at the beginning of a run that do not count: connections and caches come up.
const Warm = 2

// Least is how many commits a figure rests on at least.
const Least = 3

// TooLate is how many percent late the workers of a run may be that a figure is of.
const TooLate = 5

// Key says which runs of a plan something is of: they differ in their seed alone.
type Key struct {
	Curve   string
	Link    string // a rate, "" without a limit
	Workers int
	Members int
}

// Figures are what runs came to that differ in their seed alone, most often one. Times are of the slowest worker. A
// commit is of one round, or of a few that are short.
type Figures struct {
	Runs       int     // seeds
	Rounds     int     // all of a run; of several the median, as that of Seconds and Sent
	Commits    int     // that count, of all runs; below [Least] there is no time of a round
	Round      float64 // seconds, median over these commits
	Low        float64 // quartiles
	High       float64
	Within     float64 // of a run: by what share of their median its quartiles are apart; of several the median
	Bytes      float64 // payload that all workers send a round, mean
	Seconds    float64 // of all rounds
	Sent       float64 // payload of all rounds, of all workers
	Met        bool    // they ended by their target, all of them
	Waited     float64 // share of that time in which a worker waits for others' frames, mean over workers; NaN: unknown
	WaitedMost float64 // the largest such share of a run
	Late       int     // percent by which computing took longer than it was due, on the worker that missed its pace most
}

// Read is the commits of the session in dir.
func Read(dir string) (all []event.Commit, err error) {
	r, err := session.OpenReader(dir)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if rec.Commit != nil {
			all = append(all, *rec.Commit)
		}
	}
}

// Run is one of a plan.
type Run struct {
	Commits []event.Commit
	Met     bool // it ended by its target
	Late    int  // percent, as of [Figures]
}

// Of is what runs came to that differ in their seed alone: what counts of a round is of the commits of all.
func Of(runs ...Run) Figures {
	f := Figures{Runs: len(runs), Waited: math.NaN(), WaitedMost: math.NaN()}
	var rounds, within, numbers, seconds, sent []float64
	var nanos, waited int64
	var worst float64
	f.Met = len(runs) > 0
	for _, r := range runs {
		f.Met, f.Late = f.Met && r.Met, max(f.Late, r.Late)
		n, took, bytes := 0, 0.0, 0.0
		var own []float64
		var of, waits int64 // of the commits that count
		for _, c := range r.Commits {
			for _, b := range c.Sent {
				bytes += float64(b)
			}
			n, took = n+int(c.Rounds), took+float64(c.Nanos)/1e9
			if c.Rounds > 0 && c.To-c.Rounds >= Warm {
				own = append(own, float64(c.Nanos)/1e9/float64(c.Rounds))
				of, waits = of+c.Nanos, waits+c.Waited
			}
		}
		if rounds = append(rounds, own...); len(own) >= Least {
			slices.Sort(own)
			within = append(within, (quantile(own, .75)-quantile(own, .25))/quantile(own, .5))
		}
		numbers, seconds, sent = append(numbers, float64(n)), append(seconds, took), append(sent, bytes)
		nanos, waited, worst = nanos+of, waited+waits, max(worst, float64(waits)/float64(max(1, of)))
	}
	if all := sum(numbers); all > 0 {
		f.Bytes = sum(sent) / all
	}
	f.Within = median(within)
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

// median of values, which it sorts; 0 of none.
func median(all []float64) float64 {
	if slices.Sort(all); len(all) == 0 {
		return 0
	}
	return quantile(all, .5)
}

// quantile of sorted values, between neighbours in proportion.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[i]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}
