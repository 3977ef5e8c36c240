package host

import (
	"math"
	"testing"
	"time"

	"brood/optim/catalog"
	"brood/runtime/event"
	"brood/runtime/simulate"
)

// TestDeputiesProbe: a fleet that is outlined is probed and tested as one that is prepared, and where a few stand for
// all that takes as long.
func TestDeputiesProbe(t *testing.T) {
	for _, alg := range []string{"localsgd", "dp-sgd", "parle"} {
		o := Options{Algorithm: alg, Model: "mlp-small", Data: "glyphs", Members: 64, Seed: 1, Threads: 1, Workers: 1}
		simulated := func(ready func(Options) (*Job, error), deputies int) simulate.Result {
			j, err := ready(o)
			if err != nil {
				t.Fatal(err)
			}
			cfg := j.Simulated(64, Prices{Gradient: 1e-4, Score: 3e-5, Term: 1e-9, Digest: 1e-5})
			cfg.Rounds, cfg.Deputies = 24, deputies
			cfg.Link = func(int, int) simulate.Link { return simulate.Link{Rate: 1.25e6, Delay: 20 * time.Millisecond} }
			cfg.Pace = func(_ int, uniform func() float64) float64 { return 1 + uniform()/10 }
			r, err := simulate.Run(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		all, some := simulated(Prepare, 0), simulated(Outline, 8)
		t.Logf("%s: a round %.4g and %.4g s, p95 %.4g and %.4g s, bytes %.6g and %.6g", alg, all.Seconds, some.Seconds, all.P95, some.P95, all.Bytes, some.Bytes)
		if math.Abs(some.Seconds/all.Seconds-1) > 0.03 || math.Abs(some.P95/all.P95-1) > 0.03 || math.Abs(some.Bytes/all.Bytes-1) > 1e-4 {
			t.Errorf("%s: %+v, want %+v", alg, some, all)
		}
	}
}

// TestOutlineProbes: an outline, which rehearses few members where these lie on a line, is probed as often as if it had
// rehearsed all.
func TestOutlineProbes(t *testing.T) {
	for _, a := range catalog.All() {
		for _, members := range []int{301, 302} {
			for _, set := range [][]event.Setting{{{Knob: "batch", Expr: "40"}}, {{Knob: "elite", Expr: "200"}}} {
				o := Options{Algorithm: a.Name, Model: "mlp-small", Data: "glyphs", Members: members, Seed: 1, Threads: 1, Workers: 1, Set: set}
				all, err := prepared(o, func(j *Job, _ compute) error {
					j.hollow = true
					round, err := j.samples(0, 2)
					if err != nil {
						return err
					}
					r, err := j.rehearse()
					j.Config.Probe = period(round, r.probe.samples())
					return err
				})
				if err != nil {
					continue // not of so many members, this model or this knob
				}
				if few, err := Outline(o); err != nil || few.Config.Probe != all.Config.Probe || few.Members != members {
					t.Errorf("%s, %d members, %+v: every %d rounds (%v), want %d", a.Name, members, set, few.Config.Probe, err, all.Config.Probe)
				}
			}
		}
	}
}
