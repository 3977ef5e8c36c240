package host

import (
	"errors"
	"math"
	"testing"
	"time"

	"brood/models/longtest"
	"brood/optim/catalog"
	"brood/runtime/event"
	"brood/runtime/simulate"
)

// TestDeputiesProbe: a fleet that is outlined is probed and tested as one that is prepared, and where a few stand for
// all that takes as long.
func TestDeputiesProbe(t *testing.T) {
	for _, alg := range []string{"localsgd"} {
		o := Options{Algorithm: alg, Model: "mlp-small", Data: fewImages, Members: 24, Seed: 1, Threads: 1, Workers: 1}
		simulated := func(ready func(Options) (*Job, error), deputies int) simulate.Result {
			j, err := ready(o)
			if err != nil {
				t.Fatal(err)
			}
			cfg := j.Simulated(24, Prices{Gradient: 1e-4, Score: 3e-5, Term: 1e-9, Digest: 1e-5})
			cfg.Rounds, cfg.Deputies = 12, deputies
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

// TestOutlineProbes: an outline, which dry-runs few members where these lie on a line, counts the samples of a round
// and of a probe that a dry run of all counts, and is probed as often as these say. An algorithm has an even or an odd
// number of members, in turn, where it takes either. Without BROOD_LONG=conformance every fourth has another batch.
func TestOutlineProbes(t *testing.T) {
	compared := 0
	for i, a := range catalog.All() {
		for k, set := range []event.Setting{{Knob: "batch", Expr: "40"}, {Knob: "elite", Expr: "200"}, {Knob: "peers", Expr: "9"}} {
			if k == 0 && i%4 > 0 && !longtest.On(longtest.Conformance) {
				continue
			}
			for _, members := range []int{241 + (i+k)%2, 242 - (i+k)%2} {
				o := Options{Algorithm: a.Name, Model: "mlp-small", Data: fewImages, Members: members, Seed: 1, Threads: 1, Workers: 1, Set: []event.Setting{set}}
				var all, line [2]float64 // of a round and of a probe
				whole, err := prepared(o, func(j *Job, _ compute) (err error) {
					j.metaOnly = true
					for i, of := range []func(*Job) (float64, error){(*Job).roundSamples, (*Job).probeSamples} {
						if all[i], err = of(j); err != nil {
							return err
						}
						if line[i], err = j.extrapolate(of); err != nil {
							return err
						}
					}
					j.Config.Probe = period(all[0], all[1])
					return nil
				})
				if err != nil {
					continue // not of so many members, this model or this knob
				}
				compared++
				if line != all {
					t.Errorf("%s, %d members, %+v: samples of a round and of a probe are %v, want %v", a.Name, members, set, line, all)
				}
				if few, err := Outline(o); err != nil || few.Config.Probe != whole.Config.Probe || few.Members != members {
					t.Errorf("%s, %d members, %+v: every %d rounds (%v), want %d", a.Name, members, set, few.Config.Probe, err, whole.Config.Probe)
				}
				break
			}
		}
	}
	if compared < 10 {
		t.Errorf("%d outlines were compared, want 10 and more", compared)
	}
}

// TestOnALine: what small populations say stands for the whole one where they lie on a line, and else it is asked
// itself: such as where they cannot be dry-run, or chance says what they do.
func TestOnALine(t *testing.T) {
	for _, c := range []struct {
		name  string
		of    func(members int) (float64, error)
		whole bool // it is asked
	}{
		{"a line", func(n int) (float64, error) { return 7*float64(n) + 3, nil }, false},
		{"a curve", func(n int) (float64, error) { return float64(n * n), nil }, true},
		{"more members", func(n int) (float64, error) {
			if n < 200 {
				return 0, errors.New("give more members")
			}
			return 7 * float64(n), nil
		}, true},
	} {
		j, whole := &Job{Options: Options{Members: 1234}}, false
		got, err := j.extrapolate(func(j *Job) (float64, error) {
			whole = whole || j.Members == 1234
			return c.of(j.Members)
		})
		if want, _ := c.of(1234); got != want || err != nil || whole != c.whole {
			t.Errorf("%s: %g (%v), and the whole was asked: %t; want %g and %t", c.name, got, err, whole, want, c.whole)
		}
	}
}
