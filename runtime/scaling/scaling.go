// Package scaling turns recorded runs on fleets of several sizes into what they say of scaling: the time of a round,
// its efficiency beside a single worker, and the time and bytes to a target; as rows and as plots. It reads sessions
// and draws; it starts nothing and knows no screen. It imports the runtime.
package scaling

import (
	"errors"
	"io"
	"slices"

	"brood/runtime/event"
	"brood/runtime/session"
)

// Warm are the rounds at the beginning of a run that do not count: connections and caches come up.
const Warm = 2

// Key says which run of a plan something is of.
type Key struct {
	Curve   string
	Link    string // a rate, "" without a limit
	Workers int
	Members int
}

// Figures are what a run came to. Times are of the slowest worker; the last rounds, with which the test on the whole
// test set comes, take as long as the median of the others.
type Figures struct {
	Rounds  int     // all of them
	Round   float64 // seconds, median over those that count
	Low     float64 // quartiles
	High    float64
	Bytes   float64 // payload that all workers send a round, mean
	Seconds float64 // of all rounds
	Sent    float64 // payload of all rounds, of all workers
	Met     bool    // it ended by its target
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
			return figures(all), nil
		}
		if err != nil {
			return Figures{}, err
		}
		if rec.Commit != nil {
			all = append(all, *rec.Commit)
		}
	}
}

// figures are those of a run by its commits, of which the last ends it.
func figures(all []event.Commit) (f Figures) {
	var rounds []float64
	for i, c := range all {
		for _, n := range c.Sent {
			f.Sent += float64(n)
		}
		f.Rounds += int(c.Rounds)
		if i == len(all)-1 {
			break
		}
		f.Seconds += float64(c.Nanos) / 1e9
		if c.To <= Warm {
			continue
		}
		for range c.Rounds {
			rounds = append(rounds, float64(c.Nanos)/1e9/float64(c.Rounds))
		}
	}
	if len(rounds) == 0 {
		return Figures{}
	}
	slices.Sort(rounds)
	f.Low, f.Round, f.High = quantile(rounds, .25), quantile(rounds, .5), quantile(rounds, .75)
	f.Seconds += float64(all[len(all)-1].Rounds) * f.Round
	f.Bytes = f.Sent / float64(f.Rounds)
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
