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

// Key says which run of a plan something is of.
type Key struct {
	Curve   string
	Link    string // a rate, "" without a limit
	Workers int
	Members int
}

// Figures are what a run came to. Times are of the slowest worker. A commit is of one round, or of a few that are
// short.
type Figures struct {
	Rounds  int     // all of them
	Commits int     // that count; below [Least] there is no time of a round
	Round   float64 // seconds, median over these commits
	Low     float64 // quartiles
	High    float64
	Bytes   float64 // payload that all workers send a round, mean
	Seconds float64 // of all rounds
	Sent    float64 // payload of all rounds, of all workers
	Met     bool    // it ended by its target
	Waited  float64 // share of that time in which a worker waits for others' frames, mean over workers; NaN: not counted
	Late    int     // percent by which computing took longer than it was due, on the worker that missed its pace most
}

// Read is what the session in dir came to; no rounds where it has none that count.
func Read(dir string) (Figures, error) {
	r, err := session.OpenReader(dir)
	if err != nil {
		return Figures{}, err
	}
	defer r.Close()
	var all []event.Commit
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			return Of(all), nil
		}
		if err != nil {
			return Figures{}, err
		}
		if rec.Commit != nil {
			all = append(all, *rec.Commit)
		}
	}
}

// Of is what a run came to by its commits.
func Of(all []event.Commit) (f Figures) {
	var rounds []float64
	f.Waited = math.NaN()
	var nanos, waited int64
	for _, c := range all {
		for _, n := range c.Sent {
			f.Sent += float64(n)
		}
		f.Rounds += int(c.Rounds)
		f.Seconds += float64(c.Nanos) / 1e9
		if c.Rounds > 0 && c.To-c.Rounds >= Warm {
			rounds = append(rounds, float64(c.Nanos)/1e9/float64(c.Rounds))
			nanos, waited = nanos+c.Nanos, waited+c.Waited
		}
	}
	if f.Rounds > 0 {
		f.Bytes = f.Sent / float64(f.Rounds)
	}
	if f.Commits = len(rounds); f.Commits < Least {
		return f
	}
	if waited > 0 {
		f.Waited = float64(waited) / float64(nanos)
	}
	slices.Sort(rounds)
	f.Low, f.Round, f.High = quantile(rounds, .25), quantile(rounds, .5), quantile(rounds, .75)
	return f
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
