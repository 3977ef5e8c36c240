package host

import (
	"math"
	"testing"
	"time"

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
