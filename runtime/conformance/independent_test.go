package conformance

import (
	"context"
	"fmt"
	"testing"

	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
)

// TestIndependentSamplesAgainstNaive compares with Algorithm 1 of DarwiNN: P independent eps_i ~ N(0, I), fitness f_i
// of theta + sigma eps_i, g = 1/(P sigma) sum_i f_i eps_i with the raw fitness, theta += eta g. P may be odd. Bytes are
// those of P results, whichever worker computes the update.
func TestIndependentSamplesAgainstNaive(t *testing.T) {
	const P, sigma, eta = 7, 0.3, 0.2
	r := Rig{Algorithm: "openai-es", Members: P, Seed: 5}.With("batch", "6").With("antithetic",
		"off").With("shaping", "raw").
		With("optimiser", "sgd").With("momentum", "0").With("sigma", fmt.Sprint(sigma)).With("eta", fmt.Sprint(eta))
	toy, step, blocks := r.alone(t)
	M := toy.Layout().Params
	row, ctx := make([]float32, M), context.Background()
	toy.Init(r.Seed)(t.Context(), 0, row)
	theta := f64(row)
	env := &optim.Env{Seed: r.Seed, Data: toy, Roster: collective.Place(collective.IDs(P), []int{0})}
	for round := range uint64(4) {
		batch := make([]int32, 6)
		env.SharedBatch(batch, 6*round)
		g, key := make([]float64, M), noise.Key{Seed: r.Seed, Purpose: noise.Candidate, Round: round}
		for i := range engine.Member(P) {
			eps := engine.NewHost(1, M, engine.F32) // of a single candidate
			if err := toy.Do(ctx, engine.NoiseSum{
				Dst:     engine.All(ram.Of(eps)),
				Key:     key,
				IDs:     []engine.Member{i},
				Weights: []float32{1},
			}); err != nil {
				t.Fatal(err)
			}
			x := engine.NewHost(1, M, engine.F32)
			for j := range x.F {
				x.F[j] = float32(theta[j] + sigma*float64(eps.F[j]))
			}
			fitness := fitnessOf(t, toy, x, r.Seed, round, batch)
			for j := range g {
				g[j] += fitness * float64(eps.F[j]) / (P * sigma)
			}
		}
		for j := range theta {
			theta[j] += eta * g[j]
		}
		step(round + 1)
	}
	near(t, "theta", blocks()["x/shared"].F, theta, 2e-4)

	for _, distribution := range []string{"seed", "chromosome"} {
		hash := ""
		for _, workers := range []int{1, 3} {
			r := r.With("distribution", distribution)
			r.Workers, r.Rounds = workers, 5
			o := run(t, r)
			if hash == "" {
				hash = o.Hash()
			}
			sent, predicted := o.Bytes()
			want := int64(5 * 4 * P * (workers - 1))
			if o.Hash() != hash || sent["fitness"] != want || predicted["fitness"] != want {
				t.Errorf("%s on %d workers: sent %v, want %d of fitness; hash %s, on one %s", distribution, workers, sent, want,
					o.Hash(), hash)
			}
		}
	}
}

// fitnessOf returns minus the mean loss of a candidate, one row of parameters, on the mini-batch of a round.
func fitnessOf(t *testing.T, toy *Toy, x engine.Host, seed, round uint64, batch []int32) float64 {
	t.Helper()
	loss, n := make([]float64, 1), len(batch)
	if err := toy.Do(t.Context(), engine.Evaluate{
		X:       ram.Of(x),
		Rows:    engine.Rows(1),
		Batches: [][]int32{batch},
		Drawn:   []noise.Key{{Seed: seed, Purpose: noise.Order, Round: uint64(n) * round}},
		Loss:    loss,
		Correct: make([]int64, 1),
	}); err != nil {
		t.Fatal(err)
	}
	return -loss[0] / float64(n)
}
