package simulate_test

import (
	"errors"
	"math"
	"reflect"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"brood/models/longtest"
	"brood/optim"
	"brood/optim/catalog"
	"brood/optim/collective"
	"brood/optim/evolution"
	"brood/runtime/simulate"
	"brood/runtime/worker"
)

// once lets one machine leave once, after a time and for a time; all others stay.
func once(which int, stays, away time.Duration) func(int, func() float64) (time.Duration, time.Duration) {
	gone := false
	return func(machine int, _ func() float64) (time.Duration, time.Duration) {
		if machine != which || gone {
			return 1e6 * time.Hour, 0
		}
		gone = true
		return stays, away
	}
}

// at returns the times of the commits in seconds, by their last round.
func at(r simulate.Result) map[uint64]float64 {
	out := map[uint64]float64{}
	for i, c := range r.Commits {
		out[c.To] = r.At[i].Seconds()
	}
	return out
}

// TestChurnByHand: two workers have one member each, whose gradient takes a second. One of them leaves after 5.5
// seconds.
func TestChurnByHand(t *testing.T) {
	for _, c := range []struct {
		what    string
		goodbye bool
		away    time.Duration
		want    map[uint64]float64 // commit times in seconds, by round
		whole   float64            // share of the time after the first commit in which both are present
	}{
		// Round 6 is half done. The death is detected at 7.5 s; then the other worker has both members, at 2 s per round. The
		// machine returns at 16 s, when rounds 10 and 11 are granted until 19.5 s; then both workers continue.
		{"it dies", false, 10500 * time.Millisecond, map[uint64]float64{5: 5, 6: 9.5, 9: 15.5, 11: 19.5, 12: 20.5, 13: 21.5}, 6 / 20.5},
		// The core does not wait for a worker that announces its leave. The machine returns at 16 s, when rounds 11 and 12
		// are granted.
		{"it leaves", true, 10500 * time.Millisecond, map[uint64]float64{5: 5, 6: 7.5, 7: 9.5, 10: 15.5, 11: 17.5, 12: 19.5, 13: 20.5}, 5 / 19.5},
		// The new worker is admitted after the death is detected, when rounds 6 and 7 are granted.
		{"it dies and returns", false, time.Second, map[uint64]float64{5: 5, 6: 9.5, 7: 11.5, 8: 12.5, 9: 13.5}, 10 / 16.5},
	} {
		cfg := fleet("dp-sgd", 2, 2, nil)
		cfg.Rounds, cfg.Goodbye, cfg.Churn = 13, c.goodbye, once(1, 5500*time.Millisecond, c.away)
		r := run(t, cfg)
		for to, want := range c.want {
			if got := at(r)[to]; math.Abs(got-want) > 1e-6 {
				t.Errorf("%s: round %d is committed at %g s, want %g: %v", c.what, to, got, want, at(r))
			}
		}
		if r.Departures != 1 {
			t.Errorf("%s: %d departures", c.what, r.Departures)
		}
		if math.Abs(r.Whole-c.whole) > 1e-6 {
			t.Errorf("%s: all are present for %g of the time, want %g", c.what, r.Whole, c.whole)
		}
	}
}

// TestChurnOfOne: a single worker leaves after 7.5 seconds and returns at 19.5. If it died, the run continues from the
// newest checkpoint, of round 4; if it announced its leave, from round 7.
func TestChurnOfOne(t *testing.T) {
	for goodbye, want := range map[bool]map[uint64]float64{
		false: {4: 4, 5: 20.5, 6: 21.5, 12: 27.5},
		true:  {6: 6, 7: 7, 8: 20.5, 12: 24.5},
	} {
		cfg := fleet("dp-sgd", 1, 1, nil)
		cfg.Goodbye, cfg.Churn = goodbye, once(0, 7500*time.Millisecond, 12*time.Second)
		cfg.Core.SavePeriod = 4 * time.Second
		r := run(t, cfg)
		checkCommits(t, r)
		lost := at(r)[8] - at(r)[7] // of a worker that announces its leave
		if !goodbye {
			lost = at(r)[5] - at(r)[4]
		}
		if math.Abs(r.P95-lost) > 1e-6 {
			t.Errorf("goodbye %t: the longest of eleven rounds takes %g s, want %g", goodbye, r.P95, lost)
		}
		for to, want := range want {
			if got := at(r)[to]; math.Abs(got-want) > 1e-6 {
				t.Errorf("goodbye %t: round %d is last committed at %g s, want %g: %v", goodbye, to, got, want, at(r))
			}
		}
	}
}

// checkCommits checks that each round after the first commit is counted once, also repeated ones.
func checkCommits(t *testing.T, r simulate.Result) {
	t.Helper()
	done := r.Commits[0].To
	for _, c := range r.Commits[1:] {
		if c.To-c.Rounds != done {
			t.Errorf("a commit of rounds %d to %d follows round %d", c.To-c.Rounds+1, c.To, done)
		}
		done = c.To
	}
	if rounds := done - r.Commits[0].To; r.Rounds != rounds {
		t.Errorf("%d rounds, but commits of %d", r.Rounds, rounds)
	}
}

// TestAllLeaveAtOnce: both workers die together, and repeated rounds are counted and sent once.
func TestAllLeaveAtOnce(t *testing.T) {
	cfg := fleet("dp-sgd", 2, 2, nil)
	still := run(t, cfg)
	first := [2]bool{true, true}
	cfg.Churn = func(machine int, _ func() float64) (time.Duration, time.Duration) {
		if !first[machine] {
			return 1e6 * time.Hour, 0
		}
		first[machine] = false
		return 7500 * time.Millisecond, 12 * time.Second
	}
	cfg.Core.SavePeriod = 4 * time.Second
	r := run(t, cfg)
	checkCommits(t, r)
	if r.Departures != 2 || r.Rounds != still.Rounds || r.Seconds <= still.Seconds {
		t.Errorf("%d departures, %d rounds of %g s, and %d of %g s without churn", r.Departures, r.Rounds, r.Seconds,
			still.Rounds, still.Seconds)
	}
	if !reflect.DeepEqual(r.Sent, r.Predicted) {
		t.Errorf("sent %v, predicted %v", r.Sent, r.Predicted)
	}
}

// TestEndedWorkersAreFreed: a fleet does not retain the workers of all departures.
func TestEndedWorkersAreFreed(t *testing.T) {
	cfg := fleet("dp-sgd", 3, 3, nil)
	cfg.Rounds, cfg.Churn = 400, randomChurn(30, 5)
	var freed atomic.Int64
	made, make := 0, cfg.Worker
	cfg.Worker = func(id int, link collective.Link, clock func() int64) (*worker.Worker, func() float64) {
		w, spent := make(id, link, clock)
		runtime.AddCleanup(w, func(*atomic.Int64) { freed.Add(1) }, &freed)
		if made++; made == 30 {
			for until := time.Now().Add(10 * time.Second); freed.Load() < 20 && time.Now().Before(until); {
				runtime.GC()
				time.Sleep(time.Millisecond)
			}
			if n := freed.Load(); n < 20 {
				t.Errorf("of 30 workers, three of which are alive, %d are freed", n)
			}
		}
		return w, spent
	}
	run(t, cfg)
	if made < 30 {
		t.Errorf("%d workers", made)
	}
}

// TestNobodyLeaves: with churn that never happens, the result equals that without churn exactly.
func TestNobodyLeaves(t *testing.T) {
	for _, alg := range []string{"dp-sgd", "parle", "sgp", "openai-es"} {
		cfg := fleet(alg, 6, 6, nil)
		cfg.Up, cfg.Down, cfg.PerByte, cfg.Hop, cfg.Control = 4e5, 5e5, 1e-9, 1e-4, 3*time.Millisecond
		cfg.Link = sameLink(simulate.Link{Rate: 2e5, Delay: 10 * time.Millisecond, Jitter: 5 * time.Millisecond, Loss: 0.01})
		cfg.Pace = func(_ int, uniform func() float64) float64 { return 0.01 + 0.01*uniform() }
		want := run(t, cfg)
		cfg.Churn = once(-1, 0, 0)
		if got := run(t, cfg); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", alg, got, want)
		}
	}
}

// randomChurn draws exponential times for which each machine stays and is away, with these means in seconds.
func randomChurn(stays, away float64) func(int, func() float64) (time.Duration, time.Duration) {
	return func(_ int, uniform func() float64) (time.Duration, time.Duration) {
		drawn := func(mean float64) time.Duration { return time.Duration(-mean * math.Log(1-uniform()) * 1e9) }
		return drawn(stays), drawn(away)
	}
}

// TestChurnOfAll: algorithms continue in a fleet with churn, and rounds take longer. The bytes of committed rounds are
// as predicted. Workers die or announce their leave, in turn.
func TestChurnOfAll(t *testing.T) {
	for _, a := range catalog.All() {
		// for other algorithms the simulated time would be a hundred thousand rounds, for openai-es thousands
		if !slices.Contains(few, a.Name) || a == evolution.OpenAIES && !longtest.On(longtest.Fleets) {
			continue
		}
		for _, goodbye := range []bool{false, true} {
			if goodbye != (slices.Index(few, a.Name)%2 > 0) && !longtest.On(longtest.Fleets) {
				continue
			}
			cfg := fleet(a.Name, 4, 8, nil)
			cfg.Pace = func(int, func() float64) float64 { return 0.1 }
			cfg.Link = sameLink(simulate.Link{Rate: 1e6, Delay: 5 * time.Millisecond})
			still := run(t, cfg)
			stays := max(10, 20*still.Seconds)
			cfg.Rounds = uint64(3 * stays / still.Seconds)
			cfg.Core.SavePeriod = 10 * time.Second
			cfg.Goodbye, cfg.Churn = goodbye, randomChurn(stays, stays/5)
			r := run(t, cfg)
			t.Logf("%s, goodbye %t: %.3g s per round, %.3g without churn, %d departures in %d rounds", a.Name, goodbye,
				r.Seconds, still.Seconds, r.Departures, r.Rounds)
			slower := a.Needs&optim.Gradients == 0 || r.Seconds > still.Seconds // otherwise this fleet computes nothing
			if r.Departures < 3 || !slower {
				t.Errorf("%s: %d departures, a round takes %g s and %g without them", a.Name, r.Departures, r.Seconds,
					still.Seconds)
			}
			if !reflect.DeepEqual(r.Sent, r.Predicted) {
				t.Errorf("%s: sent %v, predicted %v", a.Name, r.Sent, r.Predicted)
			}
		}
	}
}

// TestChurnIsDeterministic: a seed gives the same result on any number of cores.
func TestChurnIsDeterministic(t *testing.T) {
	longtest.Need(t, longtest.Fleets, "simulates every algorithm twice")
	simulated := func(seed uint64, cores int) simulate.Result {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
		cfg := fleet("sgp", 6, 12, nil)
		cfg.Seed, cfg.Rounds = seed, 25
		cfg.Up, cfg.Down, cfg.PerByte, cfg.Hop, cfg.Control = 4e5, 5e5, 1e-9, 1e-4, 3*time.Millisecond
		cfg.Link = sameLink(simulate.Link{Rate: 2e5, Delay: 10 * time.Millisecond, Jitter: 5 * time.Millisecond, Loss: 0.01})
		cfg.Pace = func(_ int, uniform func() float64) float64 { return 0.5 + uniform() }
		cfg.Churn = randomChurn(60, 5)
		return run(t, cfg)
	}
	first := simulated(1, 1)
	if first.Departures == 0 {
		t.Fatal("no worker left")
	}
	for range 2 {
		if got := simulated(1, 4); !reflect.DeepEqual(got, first) {
			t.Fatalf("two runs of one seed: %+v and %+v", got, first)
		}
	}
	if simulated(2, 4).Seconds == first.Seconds {
		t.Error("another seed gives the same time")
	}
}

// TestChurnRefuses: the simulation of a fleet that never completes a round returns ErrChurn.
func TestChurnRefuses(t *testing.T) {
	cfg := fleet("dp-sgd", 2, 2, nil)
	cfg.Churn = randomChurn(0.1, 0.1)
	if _, err := simulate.Run(t.Context(), cfg); !errors.Is(err, simulate.ErrChurn) {
		t.Error(err)
	}
}
