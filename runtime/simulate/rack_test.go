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

// pairs are racks of two workers each.
func pairs(r simulate.Racks) *simulate.Racks {
	r.Of = func(machine int) int { return machine / 2 }
	return &r
}

// TestRacksByHand: a frame goes from each of four workers to each other one, with its part of a slice, and one back
// with the sum. The two of a rack share its way out, and its way in, which four frames pass each time.
func TestRacksByHand(t *testing.T) {
	const frame = params + 64. // a slice of a quarter of the parameters, and its header
	for _, c := range []struct {
		what  string
		racks simulate.Racks
		want  float64
	}{
		{"nothing is shared", simulate.Racks{}, 1},
		{"a way out", simulate.Racks{Up: 1e5}, 1 + 2*4*frame/1e5},
		{"a way in", simulate.Racks{Down: 1e5}, 1 + 2*4*frame/1e5},
		{"both: what comes out goes in meanwhile", simulate.Racks{Up: 1e5, Down: 1e5}, 1 + 2*4*frame/1e5},
		{"a way in that is slower", simulate.Racks{Up: 1e5, Down: 5e4}, 1 + 2*4*frame/5e4},
		{"far apart", simulate.Racks{Delay: 250 * time.Millisecond}, 1 + 2*.25},
	} {
		cfg := fleet("dp-sgd", 4, 4, nil)
		cfg.Racks = pairs(c.racks)
		r := run(t, cfg)
		near(t, c.what, r.At[0].Seconds(), c.want, 1e-6)
		near(t, c.what+": the payload", r.Bytes, 2*4*params*3, 1e-6)
	}
	// A worker's own card, of which two of three frames leave the rack, and the way out: the last of them waits for both.
	cfg := fleet("dp-sgd", 4, 4, nil)
	cfg.Up, cfg.Racks = 1e6, pairs(simulate.Racks{Up: 1e5})
	if s := run(t, cfg).At[0].Seconds(); s <= 1+2*4*frame/1e5 || s > 1+2*(4*frame/1e5+3*frame/1e6) {
		t.Errorf("a card and a way out: %g s", s)
	}
}

// TestRacksInOrderOfTime: what reaches a shared way first passes first, whoever ran first. Worker 1 computes for three
// seconds and the others for one. The frames of worker 0 have passed by then; those of worker 1 take two turns, and the
// sums of both, which they have a millisecond later, four more.
func TestRacksInOrderOfTime(t *testing.T) {
	const turn = (params + 64.) / 1e5
	for _, cores := range []int{1, 4} {
		func() {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
			for range 2 {
				cfg := fleet("dp-sgd", 4, 4, nil)
				cfg.Racks, cfg.Link = pairs(simulate.Racks{Up: 1e5}), every(simulate.Link{Delay: time.Millisecond})
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

// TestRacksOfAll: a fleet in one rack, or in racks whose ways have no limit, is the fleet without racks; where the
// ways are narrow a round takes longer, the same bytes are sent, and a seed gives the same times on any number of
// cores, also where workers come and go.
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
			cfg.Link = every(simulate.Link{Rate: 2e5, Delay: 10 * time.Millisecond})
			cfg.Pace = func(_ int, uniform func() float64) float64 { return 0.01 + 0.01*uniform() }
			if churn {
				cfg.Churn, cfg.Core.SavePeriod = mortal(20+20*first.Seconds, 2), 10*time.Second
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
			t.Errorf("%s: a round takes %g s, and %g without racks; sent %v and %v", a.Name, first.Seconds, alone.Seconds, first.Sent, alone.Sent)
		}
		if got := simulated(narrow, 4, false); !reflect.DeepEqual(got, first) {
			t.Errorf("%s: two runs of one seed: %+v and %+v", a.Name, got, first)
		}
		if one, four := simulated(narrow, 1, true), simulated(narrow, 4, true); !reflect.DeepEqual(one, four) {
			t.Errorf("%s with churn: two runs of one seed: %+v and %+v", a.Name, one, four)
		}
	}
}
