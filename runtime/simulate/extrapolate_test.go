package simulate_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"brood/models/longtest"
	"brood/optim/catalog"
	"brood/runtime/simulate"
)

// uneven returns a fleet over slow links in which stretches of computing vary by up to a factor of two.
func uneven(alg string, n int) simulate.Config {
	cfg := fleet(alg, n, n, nil)
	cfg.Rounds = 30
	cfg.Up, cfg.Down, cfg.PerByte, cfg.Hop, cfg.Control = 4e5, 5e5, 1e-9, 1e-4, 3*time.Millisecond
	cfg.Link = sameLink(simulate.Link{Rate: 2e5, Delay: 10 * time.Millisecond})
	cfg.Pace = func(_ int, uniform func() float64) float64 { return 0.05 + 0.05*uniform() }
	return cfg
}

// few has one algorithm of each kind; without BROOD_LONG only these are simulated.
var few = []string{"dp-sgd", "popsgd", "sgp", "openai-es"}

// TestExtrapolate: fleets of 4 and 16 workers predict the time of a round, the samples and the bytes of a fleet of 64.
// The bounds for ga, pesgd and hybrid-es are wider: with few workers, the elite or shifts of candidates are a large
// part of them. pb2 is omitted: it equals pbt here, but computes a Gaussian process on every worker.
func TestExtrapolate(t *testing.T) {
	wider := map[string]float64{"ga": 0.8, "hybrid-es": 0.6, "pesgd": 0.5, "bgd": 0.3}
	for _, a := range catalog.All() {
		if !a.Needs.Model() || a.Name == "pb2" || !longtest.On(longtest.Fleets) && !slices.Contains(few, a.Name) {
			continue
		}
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()
			cfg := uneven(a.Name, 64)
			cfg.Rounds = 10
			small, large := uneven(a.Name, 4), uneven(a.Name, 16)
			want, got := run(t, cfg), simulate.Extrapolate(cfg, run(t, small), run(t, large), 64)
			t.Logf("a round %.4g s, simulated %.4g (%+.1f%%), training %.3f of %.3f, bytes %.4g of %.4g, samples %d of %d",
				got.Seconds, want.Seconds,
				100*(got.Seconds/want.Seconds-1), got.Training, want.Training, got.Bytes, want.Bytes, got.Samples/got.Rounds,
				want.Samples/want.Rounds)
			within := cmp.Or(wider[a.Name], 0.2)
			near(t, "a round", got.Seconds, want.Seconds, within)
			near(t, "bytes", got.Bytes, want.Bytes, within)
			near(t, "samples", float64(got.Samples)/float64(got.Rounds), float64(want.Samples)/float64(want.Rounds), within)
		})
	}
}
