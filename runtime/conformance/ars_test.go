package conformance

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
)

// TestARSAgainstNaive compares with Algorithm 2 of Mania et al., V1-t, in float64: five directions in both signs, the
// best three of them by the larger of their two results, and a step divided by the standard deviation of these six
// results.
func TestARSAgainstNaive(t *testing.T) {
	const N, sigma, eta, b = 5, 0.3, 0.2, 3
	r := Rig{Algorithm: "ars", Members: 2 * N, Seed: 5}.With("batch", "6").With("top", "0.6").
		With("sigma", fmt.Sprint(sigma)).With("eta", fmt.Sprint(eta))
	toy, step, blocks := r.alone(t)
	M := toy.Layout().Params
	row, ctx := make([]float32, M), context.Background()
	toy.Init(r.Seed)(t.Context(), 0, row)
	theta := f64(row)
	env := &optim.Env{Seed: r.Seed, Data: toy, Roster: collective.Place(collective.IDs(2*N), []int{0})}
	for round := range uint64(4) {
		batch := make([]int32, 6)
		env.SharedBatch(batch, 6*round)
		key := noise.Key{Seed: r.Seed, Purpose: noise.Candidate, Round: round}
		type direction struct {
			eps    []float32
			result [2]float64
		}
		tried := make([]direction, N)
		for k := range tried {
			eps := engine.NewHost(1, M, engine.F32)
			if err := toy.Do(ctx, engine.NoiseSum{
				Dst:        engine.All(ram.Of(eps)),
				Key:        key,
				Antithetic: true,
				IDs:        []engine.Member{engine.Member(2 * k)},
				Weights:    []float32{1},
			}); err != nil {
				t.Fatal(err)
			}
			tried[k].eps = eps.F
			for way, sign := range []float64{sigma, -sigma} {
				x := engine.NewHost(1, M, engine.F32)
				for j := range x.F {
					x.F[j] = float32(theta[j] + sign*float64(eps.F[j]))
				}
				tried[k].result[way] = fitnessOf(t, toy, x, r.Seed, round, batch)
			}
		}
		slices.SortFunc(tried, func(a, b direction) int {
			if max(a.result[0], a.result[1]) > max(b.result[0], b.result[1]) {
				return -1
			}
			return 1
		})
		mean, variance := 0.0, 0.0
		for _, d := range tried[:b] {
			mean += (d.result[0] + d.result[1]) / (2 * b)
		}
		for _, d := range tried[:b] {
			variance += (math.Pow(d.result[0]-mean, 2) + math.Pow(d.result[1]-mean, 2)) / (2 * b)
		}
		for _, d := range tried[:b] {
			for j := range theta {
				theta[j] += eta / (b * math.Sqrt(variance)) * (d.result[0] - d.result[1]) * float64(d.eps[j])
			}
		}
		step(round + 1)
	}
	near(t, "theta", blocks()["x/shared"].F, theta, 1e-3)
}
