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

// once has a machine leave after so long and be away for so long, once; all others stay.
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

// at are the seconds at which commits were made, by the rounds that they end.
func at(r simulate.Result) map[uint64]float64 {
	out := map[uint64]float64{}
	for i, c := range r.Commits {
		out[c.To] = r.At[i].Seconds()
	}
	return out
}

// TestChurnByHand: two workers have a member each, whose gradient takes a second, and one of them is gone after five
// and a half seconds.
func TestChurnByHand(t *testing.T) {
	for _, c := range []struct {
		what    string
		goodbye bool
		away    time.Duration
		want    map[uint64]float64 // when rounds are committed
		whole   float64            // share of the time, from the first commit on, in which both are there
	}{
		// Round 6 is half done. It is missed at 7.5; the other has both members then, at two seconds a round. It is back
		// at 16, where rounds 10 and 11 are granted, until 19.5; then both go on.
		{"it dies", false, 10500 * time.Millisecond, map[uint64]float64{5: 5, 6: 9.5, 9: 15.5, 11: 19.5, 12: 20.5, 13: 21.5}, 6 / 20.5},
		// Nobody waits for who says that it leaves. It is back at 16 too, where rounds 11 and 12 are granted.
		{"it leaves", true, 10500 * time.Millisecond, map[uint64]float64{5: 5, 6: 7.5, 7: 9.5, 10: 15.5, 11: 17.5, 12: 19.5, 13: 20.5}, 5 / 19.5},
		// It is let in once it was missed, where rounds 6 and 7 are granted.
		{"it dies and is back soon", false, time.Second, map[uint64]float64{5: 5, 6: 9.5, 7: 11.5, 8: 12.5, 9: 13.5}, 10 / 16.5},
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
			t.Errorf("%s: all are there for %g of the time, want %g", c.what, r.Whole, c.whole)
		}
	}
}

// TestChurnOfOne: a single worker takes all with it, after seven and a half seconds; it is back at 19.5. Where it died
// it goes on from the newest checkpoint, of round 4, and where it could say that it leaves, from round 7.
func TestChurnOfOne(t *testing.T) {
	for goodbye, want := range map[bool]map[uint64]float64{
		false: {4: 4, 5: 20.5, 6: 21.5, 12: 27.5},
		true:  {6: 6, 7: 7, 8: 20.5, 12: 24.5},
	} {
		cfg := fleet("dp-sgd", 1, 1, nil)
		cfg.Goodbye, cfg.Churn = goodbye, once(0, 7500*time.Millisecond, 12*time.Second)
		cfg.Core.SavePeriod = 4 * time.Second
		r := run(t, cfg)
		stands(t, r)
		lost := at(r)[8] - at(r)[7] // by who says that it leaves
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

// stands holds that each round behind the first commit is counted once, also those that were done again.
func stands(t *testing.T, r simulate.Result) {
	t.Helper()
	done := r.Commits[0].To
	for _, c := range r.Commits[1:] {
		if c.To-c.Rounds != done {
			t.Errorf("a commit of rounds %d to %d stands behind round %d", c.To-c.Rounds+1, c.To, done)
		}
		done = c.To
	}
	if rounds := done - r.Commits[0].To; r.Rounds != rounds {
		t.Errorf("%d rounds, and commits of %d", r.Rounds, rounds)
	}
}

// TestAllLeaveAtOnce: both workers die together, and the rounds that are done again are counted and sent once.
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
	stands(t, r)
	if r.Departures != 2 || r.Rounds != still.Rounds || r.Seconds <= still.Seconds {
		t.Errorf("%d departures, %d rounds of %g s, and %d of %g s where nobody leaves", r.Departures, r.Rounds, r.Seconds, still.Rounds, still.Seconds)
	}
	if !reflect.DeepEqual(r.Sent, r.Predicted) {
		t.Errorf("sent %v, predicted %v", r.Sent, r.Predicted)
	}
}

// TestTheGoneAreForgotten: a fleet does not hold on to the workers of all departures.
func TestTheGoneAreForgotten(t *testing.T) {
	cfg := fleet("dp-sgd", 3, 3, nil)
	cfg.Rounds, cfg.Churn = 400, mortal(30, 5)
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
				t.Errorf("of 30 workers, three of which live, %d are forgotten", n)
			}
		}
		return w, spent
	}
	run(t, cfg)
	if made < 30 {
		t.Errorf("%d workers", made)
	}
}

// TestNobodyLeaves: a fleet whose workers could leave but do not is the fleet without churn, to the last digit.
func TestNobodyLeaves(t *testing.T) {
	for _, alg := range []string{"dp-sgd", "parle", "sgp", "openai-es"} {
		cfg := fleet(alg, 6, 6, nil)
		cfg.Up, cfg.Down, cfg.PerByte, cfg.Hop, cfg.Control = 4e5, 5e5, 1e-9, 1e-4, 3*time.Millisecond
		cfg.Link = every(simulate.Link{Rate: 2e5, Delay: 10 * time.Millisecond, Jitter: 5 * time.Millisecond, Loss: 0.01})
		cfg.Pace = func(_ int, uniform func() float64) float64 { return 0.01 + 0.01*uniform() }
		want := run(t, cfg)
		cfg.Churn = once(-1, 0, 0)
		if got := run(t, cfg); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", alg, got, want)
		}
	}
}

// mortal has each machine stay and be away for so long on average.
func mortal(stays, away float64) func(int, func() float64) (time.Duration, time.Duration) {
	return func(_ int, uniform func() float64) (time.Duration, time.Duration) {
		drawn := func(mean float64) time.Duration { return time.Duration(-mean * math.Log(1-uniform()) * 1e9) }
		return drawn(stays), drawn(away)
	}
}

// TestChurnOfAll: algorithms go on in a fleet whose workers come and go, and rounds take longer; what is sent in those
// that are committed is what is predicted. Workers die or say that they leave, in turn.
func TestChurnOfAll(t *testing.T) {
	for _, a := range catalog.All() {
		// of others a minute of a fleet may be a hundred thousand rounds, of openai-es thousands
		if !slices.Contains(few, a.Name) || a == evolution.OpenAIES && !longtest.On(longtest.Fleets) {
			continue
		}
		for _, goodbye := range []bool{false, true} {
			if goodbye != (slices.Index(few, a.Name)%2 > 0) && !longtest.On(longtest.Fleets) {
				continue
			}
			cfg := fleet(a.Name, 4, 8, nil)
			cfg.Pace = func(int, func() float64) float64 { return 0.1 }
			cfg.Link = every(simulate.Link{Rate: 1e6, Delay: 5 * time.Millisecond})
			still := run(t, cfg)
			stays := max(10, 20*still.Seconds)
			cfg.Rounds = uint64(3 * stays / still.Seconds)
			cfg.Core.SavePeriod = 10 * time.Second
			cfg.Goodbye, cfg.Churn = goodbye, mortal(stays, stays/5)
			r := run(t, cfg)
			t.Logf("%s, goodbye %t: %.3g s a round of %.3g, %d departures in %d rounds", a.Name, goodbye, r.Seconds, still.Seconds, r.Departures, r.Rounds)
			slower := a.Needs&optim.Gradients == 0 || r.Seconds > still.Seconds // else nothing is computed here
			if r.Departures < 3 || !slower {
				t.Errorf("%s: %d departures, a round takes %g s and %g without them", a.Name, r.Departures, r.Seconds, still.Seconds)
			}
			if !reflect.DeepEqual(r.Sent, r.Predicted) {
				t.Errorf("%s: sent %v, predicted %v", a.Name, r.Sent, r.Predicted)
			}
		}
	}
}

// TestChurnIsAlike: a seed gives the same result on any number of cores.
func TestChurnIsAlike(t *testing.T) {
	longtest.Need(t, longtest.Fleets, "simulates every algorithm twice")
	simulated := func(seed uint64, cores int) simulate.Result {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
		cfg := fleet("sgp", 6, 12, nil)
		cfg.Seed, cfg.Rounds = seed, 25
		cfg.Up, cfg.Down, cfg.PerByte, cfg.Hop, cfg.Control = 4e5, 5e5, 1e-9, 1e-4, 3*time.Millisecond
		cfg.Link = every(simulate.Link{Rate: 2e5, Delay: 10 * time.Millisecond, Jitter: 5 * time.Millisecond, Loss: 0.01})
		cfg.Pace = func(_ int, uniform func() float64) float64 { return 0.5 + uniform() }
		cfg.Churn = mortal(60, 5)
		return run(t, cfg)
	}
	first := simulated(1, 1)
	if first.Departures == 0 {
		t.Fatal("nobody left")
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

// TestChurnRefuses: a fleet that never completes a round fails with ErrChurn.
func TestChurnRefuses(t *testing.T) {
	cfg := fleet("dp-sgd", 2, 2, nil)
	cfg.Churn = mortal(0.1, 0.1)
	if _, err := simulate.Run(t.Context(), cfg); !errors.Is(err, simulate.ErrChurn) {
		t.Error(err)
	}
}
