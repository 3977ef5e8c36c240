package host

import (
	"testing"
	"time"

	"brood/runtime/simulate"
)

// BenchmarkSimulated times one round of the largest fleet that is simulated without sampling, with its share of probes
// and tests.
func BenchmarkSimulated(b *testing.B) {
	for _, alg := range []string{"dp-sgd", "localsgd", "popsgd", "openai-es"} {
		b.Run(alg, func(b *testing.B) {
			const workers = 256
			j, err := Prepare(Options{
				Algorithm: alg,
				Model:     "mlp-small",
				Data:      "glyphs",
				Members:   workers,
				Seed:      1,
				Threads:   1,
				Workers:   1,
			})
			if err != nil {
				b.Fatal(err)
			}
			cfg := j.Simulated(workers, Prices{
				Gradient:  1e-4,
				Score:     3e-5,
				Candidate: 3e-5,
				Normal:    1e-5,
				Term:      1e-9,
				Digest:    1e-5,
			})
			cfg.Rounds = 8
			cfg.Link = func(int, int) simulate.Link { return simulate.Link{Rate: 1.25e6, Delay: 20 * time.Millisecond} }
			cfg.Pace = func(_ int, uniform func() float64) float64 { return 1 + uniform()/10 }
			rounds := uint64(0)
			for b.Loop() {
				r, err := simulate.Run(b.Context(), cfg)
				if err != nil {
					b.Fatal(err)
				}
				rounds += r.Rounds
			}
			b.ReportMetric(1e3*b.Elapsed().Seconds()/float64(rounds), "ms/round")
		})
	}
}
