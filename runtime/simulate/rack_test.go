package simulate_test

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	"brood/models/longtest"
	"brood/optim/catalog"
	"brood/runtime/simulate"
)

// pairs returns racks of two workers each.
func pairs(r simulate.Racks) *simulate.Racks {
	r.Of = func(machine int) int { return machine / 2 }
	return &r
}

// TestRacksByHand: each of four workers sends a frame with a part of a slice to each other worker, and a frame with the
// sum back. The two workers of a rack share its uplink and its downlink, each of which passes four frames each time.
func TestRacksByHand(t *testing.T) {
	const frame = params + 64. // a slice of a quarter of the parameters, and its header
	for _, c := range []struct {
		what  string
		racks simulate.Racks
		want  float64
	}{
		{"no shared links", simulate.Racks{}, 1},
		{"an uplink", simulate.Racks{Up: 1e5}, 1 + 2*4*frame/1e5},
		{"a downlink", simulate.Racks{Down: 1e5}, 1 + 2*4*frame/1e5},
		{"both, in parallel", simulate.Racks{Up: 1e5, Down: 1e5}, 1 + 2*4*frame/1e5},
		{"a slower downlink", simulate.Racks{Up: 1e5, Down: 5e4}, 1 + 2*4*frame/5e4},
		{"far apart", simulate.Racks{Delay: 250 * time.Millisecond}, 1 + 2*.25},
	} {
		cfg := fleet("dp-sgd", 4, 4, nil)
		cfg.Racks = pairs(c.racks)
		r := run(t, cfg)
		near(t, c.what, r.At[0].Seconds(), c.want, 1e-6)
		near(t, c.what+": the payload", r.Bytes, 2*4*params*3, 1e-6)
	}
	// With a network card for each worker, two of three frames leave the rack, and the last of them waits for the card and
	// the uplink.
	cfg := fleet("dp-sgd", 4, 4, nil)
	cfg.Up, cfg.Racks = 1e6, pairs(simulate.Racks{Up: 1e5})
	if s := run(t, cfg).At[0].Seconds(); s <= 1+2*4*frame/1e5 || s > 1+2*(4*frame/1e5+3*frame/1e6) {
		t.Errorf("a card and an uplink: %g s", s)
	}
}

// TestRacksInOrderOfTime: frames pass a shared link in the order in which they reach it, whichever worker was simulated
// first. Worker 1 computes for three seconds and the others for one. The frames of worker 0 have passed by then; those
// of worker 1 take two turns, and the sums of both, which they have a millisecond later, four more.
func TestRacksInOrderOfTime(t *testing.T) {
	const turn = (params + 64.) / 1e5
	for _, cores := range []int{1, 4} {
		func() {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
			for range 2 {
				cfg := fleet("dp-sgd", 4, 4, nil)
				cfg.Racks, cfg.Link = pairs(simulate.Racks{Up: 1e5}), sameLink(simulate.Link{Delay: time.Millisecond})
				cfg.Pace = func(machine int, _ func() float64) float64 {
					if machine == 1 {
						return 3
					}
					return 1
				}
				r := run(t, cfg)
				near(t, fmt.Sprintf("the first commit on %d cores", cores), r.At[0].Seconds(), 3+6*turn+.001, 1e-6)
			}
		}()
	}
}

// TestRacksOfAll: a fleet in one rack, or in racks without limits, has the result of a fleet without racks. With narrow
// links a round takes longer and sends the same bytes, and a seed gives the same times on any number of cores, also
// with churn.
func TestRacksOfAll(t *testing.T) {
	for _, a := range catalog.All() {
		if !a.Needs.Model() || !longtest.On(longtest.Fleets) && !slices.Contains(few, a.Name) {
			continue
		}
		var first simulate.Result
		simulated := func(racks *simulate.Racks, cores int, churn bool) simulate.Result {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
			cfg := fleet(a.Name, 4, 4, nil)
			cfg.Racks, cfg.Rounds = racks, 6
			cfg.Up, cfg.Down, cfg.PerByte, cfg.Hop, cfg.Control = 4e5, 5e5, 1e-9, 1e-4, 3*time.Millisecond
			cfg.Link = sameLink(simulate.Link{Rate: 2e5, Delay: 10 * time.Millisecond})
			cfg.Pace = func(_ int, uniform func() float64) float64 { return 0.01 + 0.01*uniform() }
			if churn {
				cfg.Churn, cfg.Core.SavePeriod = randomChurn(20+20*first.Seconds, 2), 10*time.Second
			}
			return run(t, cfg)
		}
		alone := simulated(nil, 4, false)
		for _, racks := range []*simulate.Racks{{Of: func(int) int { return 0 }, Up: 1, Down: 1}, pairs(simulate.Racks{})} {
			if got := simulated(racks, 4, false); !reflect.DeepEqual(got, alone) {
				t.Errorf("%s: %+v, want %+v", a.Name, got, alone)
			}
		}
		narrow := pairs(simulate.Racks{Up: 5e4, Down: 1e5, Delay: time.Millisecond})
		first = simulated(narrow, 1, false)
		if first.Seconds <= alone.Seconds || !reflect.DeepEqual(first.Sent, alone.Sent) {
			t.Errorf("%s: a round takes %g s, and %g without racks; sent %v and %v", a.Name, first.Seconds, alone.Seconds,
				first.Sent, alone.Sent)
		}
		if got := simulated(narrow, 4, false); !reflect.DeepEqual(got, first) {
			t.Errorf("%s: two runs with the same seed: %+v and %+v", a.Name, got, first)
		}
		if one, four := simulated(narrow, 1, true), simulated(narrow, 4, true); !reflect.DeepEqual(one, four) {
			t.Errorf("%s with churn: two runs with the same seed: %+v and %+v", a.Name, one, four)
		}
	}
}
