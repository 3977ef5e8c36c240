package conformance

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
)

// TestEGGAgainstNaive compares with the rule in whole numbers: candidates by rounding, signs, their exact sum, and
// steps of one where the sum exceeds the limit. Every element must be equal, whichever worker computes the update.
func TestEGGAgainstNaive(t *testing.T) {
	const pairs, sigma, threshold = 6, 2.5, 0.75
	for _, distribution := range []string{"seed", "chromosome"} {
		r := Rig{Algorithm: "egg", Members: 2 * pairs, Seed: 5}.With("batch", "6").With("sigma", fmt.Sprint(sigma)).
			With("threshold", fmt.Sprint(threshold)).With("distribution", distribution)
		toy, step, blocks := r.alone(t)
		M := toy.Layout().Params
		theta, moved := make([]float32, M), 0
		toy.Init(r.Seed)(t.Context(), 0, theta)
		env := &optim.Env{Seed: r.Seed, Data: toy, Roster: collective.Place(collective.IDs(2*pairs), []int{0})}
		for round := range uint64(5) {
			batch := make([]int32, 6)
			env.SharedBatch(batch, 6*round)
			sums, uneven := make([]int64, M), 0
			for k := range uint32(pairs) {
				v := eggNoiseOf(toy.Layout(), noise.Key{Seed: r.Seed, Purpose: noise.Candidate, Round: round, Member: k})
				var result [2]float64
				for way, sign := range []float32{1, -1} {
					x := engine.NewHost(1, M, engine.F32)
					for j := range x.F {
						eps := float32(v[j]) * noise.IntegerScale
						x.F[j] = theta[j] + sign*float32(engine.Whole(float32(sigma*eps)))
					}
					result[way] = fitnessOf(t, toy, x, r.Seed, round, batch)
				}
				if result[0] == result[1] {
					continue
				}
				uneven++
				for j, n := range v {
					if result[0] > result[1] {
						sums[j] += int64(n)
					} else {
						sums[j] -= int64(n)
					}
				}
			}
			if uneven == 0 {
				t.Fatal("all pairs are equal, so the test checks nothing")
			}
			for j, s := range sums {
				if z := float64(s) * float64(noise.IntegerScale) / math.Sqrt(float64(uneven)); math.Abs(z) > threshold {
					theta[j] += float32(math.Copysign(1, z))
					moved++
				}
			}
			step(round + 1)
		}
		if got := blocks()["x/shared"].F; !slices.Equal(got, theta) || moved < M {
			t.Errorf("%s: %v after %d steps, want %v", distribution, got, moved, theta)
		}
	}
}

// eggNoiseOf returns the whole-number noise of a key, element by element in the order of engine.Noise.
func eggNoiseOf(l engine.Layout, key noise.Key) []int8 {
	out := make([]int8, l.Params)
	for i, t := range l.Tensors {
		key.Stream = uint32(i)
		s, wide := key.Schedule(), (t.Cols+noise.Tile-1)/noise.Tile
		for e := range t.Len {
			var tile [noise.Tile]int8
			s.Integers(&tile, key, uint32(e/t.Cols*wide+e%t.Cols/noise.Tile))
			out[t.Lo+e] = tile[e%t.Cols%noise.Tile]
		}
	}
	return out
}
