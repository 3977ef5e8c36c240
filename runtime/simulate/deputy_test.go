package simulate_test

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	"brood/models/longtest"
	"brood/optim/catalog"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/simulate"
	"brood/runtime/worker"
)

// uneven is a fleet over slow links whose stretches of computing take up to twice as long as they should.
func uneven(alg string, n int) simulate.Config {
	cfg := fleet(alg, n, n, nil)
	cfg.Rounds = 30
	cfg.Up, cfg.Down, cfg.PerByte, cfg.Hop, cfg.Control = 4e5, 5e5, 1e-9, 1e-4, 3*time.Millisecond
	cfg.Link = every(simulate.Link{Rate: 2e5, Delay: 10 * time.Millisecond})
	cfg.Pace = func(_ int, uniform func() float64) float64 { return 0.05 + 0.05*uniform() }
	return cfg
}

// few are algorithms of every kind that are simulated without BROOD_LONG.
var few = []string{"dp-sgd", "popsgd", "sgp", "pesgd", "openai-es"}

// TestDeputies: of every algorithm with workers that are alike, rounds of a fleet of which some workers are simulated
// take as long as where all are, and as many bytes are sent. Of ad-psgd chance says who computes, which nobody knows of
// those who are not simulated.
func TestDeputies(t *testing.T) {
	longtest.Need(t, longtest.Fleets, "simulates every algorithm twice")
	within := map[string]float64{"ad-psgd": 0.08}
	for _, a := range catalog.All() {
		if !a.Needs.Model() || slices.Contains([]string{"easgd", "bgd", "wash"}, a.Name) {
			continue // of which no deputies are told of: decision 57
		}
		if !longtest.On(longtest.Fleets) && !slices.Contains(few, a.Name) {
			continue // some of them take seconds
		}
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()
			cfg := uneven(a.Name, 24)
			if a.Name == "streaming-diloco" {
				cfg.Core.Edits = []event.Edit{{Algorithm: a.Name, Knob: "overlap", Expr: "on", By: "test"}, {Algorithm: a.Name, Knob: "delay", Expr: "7", By: "test"}}
			}
			all := run(t, cfg)
			cfg.Deputies = 8
			some := run(t, cfg)
			t.Logf("a round %.4g s of %.4g (%+.2f%%), training %.3f of %.3f", some.Seconds, all.Seconds, 100*(some.Seconds/all.Seconds-1), some.Training, all.Training)
			near(t, "a round", some.Seconds, all.Seconds, cmp.Or(within[a.Name], 0.04))
			near(t, "training", some.Training, all.Training, 0.1)
			near(t, "bytes", some.Bytes, all.Bytes, 1e-9)
			if !reflect.DeepEqual(some.Sent, all.Sent) || math.Abs(some.Epochs-all.Epochs) > 1e-9 || some.Samples != all.Samples {
				t.Errorf("sent %v, want %v, %d samples and %d", some.Sent, all.Sent, some.Samples, all.Samples)
			}
		})
	}
}

// TestDeputiesAreAlike: a seed gives the same result on any number of cores.
func TestDeputiesAreAlike(t *testing.T) {
	simulated := func(cores int) simulate.Result {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
		cfg := uneven("sgp", 40)
		cfg.Deputies = 8
		cfg.Link = every(simulate.Link{Rate: 2e5, Delay: 10 * time.Millisecond, Jitter: 5 * time.Millisecond, Loss: 0.01})
		return run(t, cfg)
	}
	first := simulated(1)
	for range 2 {
		if got := simulated(4); !reflect.DeepEqual(got, first) {
			t.Fatalf("two runs of one seed: %+v and %+v", got, first)
		}
	}
}

// TestSlowestOfMany: all wait for the slowest of a fleet, whether or not it is simulated: of a thousand workers that
// take one to two seconds one takes nearly two.
func TestSlowestOfMany(t *testing.T) {
	cfg := fleet("dp-sgd", 1000, 1000, nil)
	cfg.Deputies = 8
	cfg.Pace = func(_ int, uniform func() float64) float64 { return 1 + uniform() }
	if r := run(t, cfg); r.Seconds < 1.99 || r.Seconds > 2 {
		t.Errorf("a round takes %g s", r.Seconds)
	}
}

// TestOneOfTen: where one deputy stands for ten workers, narrow cards whose queues are as long as the fleet cost what
// they do, and so do members that workers have unequally many of.
func TestOneOfTen(t *testing.T) {
	for _, c := range []struct {
		members  int
		up, down float64
		within   float64
	}{{80, 4e5, 0, 0.02}, {80, 4e5, 4e5, 0.001}, {80, 0, 4e5, 0.001}, {120, 4e5, 4e5, 0.03}} {
		cfg := uneven("dp-sgd", 80)
		cfg.Core.Members, cfg.Core.Tests = c.members, 3000
		cfg.Rounds, cfg.Up, cfg.Down = 6, c.up, c.down
		cfg.Pace = func(int, func() float64) float64 { return 0.05 }
		all := run(t, cfg)
		cfg.Deputies = 8
		some := run(t, cfg)
		t.Logf("%+v: %.4g s of %.4g (%+.2f%%)", c, some.Seconds, all.Seconds, 100*(some.Seconds/all.Seconds-1))
		near(t, fmt.Sprintf("%+v", c), some.Seconds, all.Seconds, c.within)
		near(t, "bytes", some.Bytes, all.Bytes, 1e-9)
	}
}

// TestAlone: a worker that is told to be slow stands for itself, so that what the others do is not taken from it.
func TestAlone(t *testing.T) {
	cfg := fleet("dp-sgd", 40, 40, nil)
	cfg.Pace = func(w int, _ func() float64) float64 { return 1 + 9*float64(w/39) }
	all := run(t, cfg)
	cfg.Deputies, cfg.Alone = 8, []int{39}
	some := run(t, cfg)
	near(t, "a round", some.Seconds, all.Seconds, 1e-3)
	near(t, "training", some.Training, all.Training, 1e-3)
}

// single is a link of which no crowd is known.
type single struct{ collective.Teller }

// TestCrowdIsOneByOne: what deputies send and receive at once leaves and arrives as if it went frame by frame.
func TestCrowdIsOneByOne(t *testing.T) {
	longtest.Need(t, longtest.Fleets, "simulates every algorithm twice")
	slow := simulate.Link{Rate: 2e5, Delay: 10 * time.Millisecond}
	lossy := simulate.Link{Rate: 2e5, Delay: 10 * time.Millisecond, Jitter: 5 * time.Millisecond, Loss: 0.01}
	measured := simulate.Link{Line: &simulate.Line{Bytes: []float64{0, 1e6}, Seconds: []float64{.05, 10.05}, Processor: []float64{0, 2}}}
	for _, c := range []struct {
		alg      string
		members  int
		set      map[string]string
		link     simulate.Link
		up, down float64
	}{
		{"dp-sgd", 40, nil, slow, 4e5, 5e5},
		{"dp-sgd", 56, map[string]string{"wire": "int8"}, lossy, 0, 5e5},
		{"dp-sgd", 40, map[string]string{"wire": "bf16"}, measured, 0, 0},
		{"localsgd", 40, nil, lossy, 4e5, 0},
		{"popsgd", 40, nil, lossy, 4e5, 5e5},
		{"sgp", 40, nil, slow, 0, 0},
		{"ga", 120, nil, lossy, 0, 5e5},
		{"openai-es", 160, nil, lossy, 4e5, 5e5},
		{"sparseloco", 40, nil, slow, 4e5, 5e5},
	} {
		cfg := fleet(c.alg, 40, c.members, c.set)
		cfg.Rounds = 6
		cfg.Deputies, cfg.Up, cfg.Down, cfg.PerByte, cfg.Hop, cfg.Control = 8, c.up, c.down, 1e-9, 1e-4, 3*time.Millisecond
		cfg.Owed, cfg.Crowded, cfg.Link = 2, 1.5, every(c.link)
		cfg.Pace = func(_ int, uniform func() float64) float64 { return 0.05 + 0.05*uniform() }
		at := run(t, cfg)
		cfg.OneLink = true
		if once := run(t, cfg); !reflect.DeepEqual(at, once) {
			t.Errorf("%s over %+v: asked once %+v, of each frame %+v", c.alg, c.link, once, at)
		}
		made := cfg.Worker
		cfg.Worker = func(id int, link collective.Link, clock func() int64) (*worker.Worker, func() float64) {
			return made(id, single{link.(collective.Teller)}, clock)
		}
		if one := run(t, cfg); !reflect.DeepEqual(at, one) {
			t.Errorf("%s over %+v: at once %+v, one by one %+v", c.alg, c.link, at, one)
		}
	}
}

// TestDeputiesWhoAreAll: where a deputy stands for nobody the fleet is simulated whole.
func TestDeputiesWhoAreAll(t *testing.T) {
	cfg := fleet("dp-sgd", 3, 3, nil)
	all := run(t, cfg)
	cfg.Deputies = 2
	if some := run(t, cfg); !reflect.DeepEqual(some, all) {
		t.Errorf("%+v, want %+v", some, all)
	}
}
