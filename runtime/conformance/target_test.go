package conformance

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"brood/runtime/coordinator"
	"brood/runtime/event"
)

// best returns the maximum of a series, by round.
func best(o *Outcome, series string) map[uint64]float64 {
	out := map[uint64]float64{}
	for _, r := range o.Log.Records {
		if p := r.Points; p != nil && p.Series == series {
			out[p.Round] = slices.Max(p.Values)
		}
	}
	return out
}

// TestTargetOfFitness: a run ends after the round in which the best fitness of the population on validation samples
// first reaches the target, for any number of workers, and its log records that. The target is compared with the
// algorithm's own fitness if that is of validation samples, otherwise with that of a probe: of the members, or of the
// centre if there are no members or their fitness is of training samples.
func TestTargetOfFitness(t *testing.T) {
	for algorithm, source := range map[string]string{"pesgd": "fitness", "pbt": "fitness", "pb2": "fitness",
		"parle": "fitness", "popsgd": "fitness",
		"ga": "centre.loss", "openai-es": "centre.loss", "snes": "centre.loss", "hybrid-es": "centre.loss",
		"dp-sgd": "centre.loss"} {
		t.Run(algorithm, func(t *testing.T) {
			r := quick(Rig{Algorithm: algorithm, Members: 6, Workers: 2, Rounds: 60, Seed: 4, Probe: 5})
			if algorithm == "pesgd" || algorithm == "pbt" || algorithm == "pb2" {
				r = r.With("period", "0.06")
			}
			without := best(run(t, r), event.SeriesJudged)
			if len(without) > 0 {
				t.Errorf("without a target the log has %d points of %s", len(without), event.SeriesJudged)
			}
			r.Target = "fitness=0" // which is never reached
			o := run(t, r)
			judged, of := best(o, event.SeriesJudged), best(o, source)
			if len(judged) < 5 {
				t.Fatalf("%d points of the target", len(judged))
			}
			for round, x := range judged {
				want := of[round]
				if source == event.SeriesCentre {
					want = -want
				}
				if x != want {
					t.Errorf("after round %d the target is compared with %v, but %s is %v", round, x, source, of[round])
				}
			}
			rounds := slices.Sorted(func(yield func(uint64) bool) {
				for round := range judged {
					if !yield(round) {
						return
					}
				}
			})
			at, first := rounds[len(rounds)/2], uint64(0)
			for _, round := range rounds {
				if judged[round] >= judged[at] {
					first = round
					break
				}
			}
			r.Target = "fitness=" + strconv.FormatFloat(judged[at], 'g', -1, 64)
			hash := ""
			for _, workers := range []int{1, 3} {
				r.Workers = workers
				o := run(t, r)
				if got := o.Last().To; got != first || !strings.Contains(o.Exit.Reason, "fitness = ") {
					t.Errorf("%s on %d workers ended after round %d (%s), want %d", r.Target, workers, got, o.Exit.Reason, first)
				}
				if hash == "" {
					hash = o.Hash()
				}
				if o.Hash() != hash {
					t.Errorf("on %d workers the hash differs", workers)
				}
				goal := coordinator.Goal{Limit: event.Limit{Target: r.Target}}
				for _, rec := range o.Log.Records {
					goal.Take(rec)
				}
				if !goal.Reached() {
					t.Error("the log does not record that the target is met")
				}
			}
		})
	}
}

// TestTargetsOfFitness: invalid targets are rejected, and a missing result meets no target.
func TestTargetsOfFitness(t *testing.T) {
	for text, want := range map[string]string{"fitness=": "write loss=0.1", "fitness=NaN": "would never be met",
		"fitness=Inf":   "finite",
		"test_error=-1": "from 0 on", "fitness=-0.5": ""} {
		if _, _, err := coordinator.Target(text); (err == nil) != (want == "") ||
			err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for text, want := range map[string]string{"fitness=0.1": "give a number up to 0", "loss=-1": "from 0 on",
		"test_loss=-1": "from 0 on", "loss=0": ""} {
		if err := coordinator.Within(text, false); (err == nil) != (want == "") ||
			err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
		if err := coordinator.Within(text, true); err != nil {
			t.Errorf("%s of an objective: %v", text, err)
		}
	}
	above := event.Limit{Target: "fitness=300"}
	if coordinator.Met(above, coordinator.Fitness, 300) == "" || coordinator.Met(above, coordinator.Fitness, 299) != "" {
		t.Error("fitness=300 must be met exactly from 300 on")
	}
	l := event.Limit{Target: "fitness=-0.5"}
	for value, met := range map[float64]bool{-0.5: true, -0.4: true, -0.6: false, math.Inf(-1): false} {
		if got := coordinator.Met(l, coordinator.Fitness, value); (got != "") != met {
			t.Errorf("fitness %g: %q", value, got)
		}
	}
	if coordinator.Met(l, coordinator.Fitness, math.NaN()) != "" || coordinator.Met(l, coordinator.Loss, -1) != "" {
		t.Error("a missing fitness, or a loss, meets a target of fitness")
	}
	goal := coordinator.Goal{Limit: l}
	goal.Take(event.Record{Points: &event.Points{Series: event.SeriesJudged, Values: []float64{math.NaN(), -0.45, -0.7}}})
	if goal.Met == "" {
		t.Error("the target is not met by one good member")
	}
}
