package averaging

import (
	"math"
	"testing"

	"brood/models/noise"
	"brood/optim"
	"brood/optim/optimtest"
)

// norm returns the Euclidean length of v.
func norm(v []float64) (length float64) {
	for _, x := range v {
		length += x * x
	}
	return math.Sqrt(length)
}

// weighted returns the sum of rows, each times its weight, divided by the sum of all weights.
func weighted(rows [][]float64, weights []float64) []float64 {
	out, sum := make([]float64, len(rows[0])), 0.0
	for _, w := range weights {
		sum += w
	}
	for a, row := range rows {
		for j, x := range row {
			out[j] += x * weights[a] / sum
		}
	}
	return out
}

// rda64 is the radial-directional average: the weighted mean of the lengths, along the weighted mean of the directions.
func rda64(rows [][]float64, weights []float64) []float64 {
	var units, lengths [][]float64
	for _, row := range rows {
		unit := make([]float64, len(row))
		for j, x := range row {
			unit[j] = x / norm(row)
		}
		units, lengths = append(units, unit), append(lengths, []float64{norm(row)})
	}
	out := weighted(units, weights)
	scale := weighted(lengths, weights)[0] / norm(out)
	for j := range out {
		out[j] *= scale
	}
	return out
}

// TestDecoupledDiLoCo compares with the source tick by tick, naively in float64: a learner that is up takes a step when
// its clock reaches the next one; a fragment that is due is merged from the learners that are up, by their steps since
// they received it, unless they are fewer than the quorum. All learners continue from the merged fragment, down or not.
func TestDecoupledDiLoCo(t *testing.T) {
	for _, c := range []struct {
		n, h, fragments, slice, quorum int
		slowest, down                  float64
		merge                          string
	}{
		{3, 6, 3, 32, 1, 0.4, 0.3, "rda"},
		{4, 5, 2, 2, 3, 0.5, 0.3, "mean"},
		{5, 7, 4, 1, 1, 0.1, 0.5, "rda"},
		{2, 4, 1, 32, 2, 1, 0.4, "rda"},
		{1, 4, 2, 32, 1, 0.5, 0.2, "mean"},
	} {
		const cycles = 6
		p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, DecoupledDiLoCo, c.n, optimtest.Set{
			"h": c.h, "fragments": c.fragments, "slice": c.slice, "quorum": c.quorum, "slowest": c.slowest, "down": c.down,
			"merge": c.merge, "eta": 0.4, "eta_in": 0.01, "momentum": 0.6, "decay": 0.1, "batch": 4})
		x, m := optimtest.StartRows(optimtest.Cols, c.n)
		_, v := optimtest.StartRows(optimtest.Cols, c.n)
		xbar, mx, next := optimtest.StartRow(), make([]float64, optimtest.Cols), p.Streams()
		taken, clock, since := make([]int, c.n), make([]float64, c.n), make([][]float64, c.n)
		for a := range since {
			since[a] = make([]float64, c.fragments)
		}
		total, merged, waited := 0, 0, 0
		for tick := range cycles * c.h {
			var up []int
			for a := range c.n {
				if tick%c.h == 0 {
					clock[a] = 0
				}
				before := math.Floor(clock[a])
				clock[a] = (1 - (1-c.slowest)*float64(a)/float64(max(1, c.n-1))) * float64(tick%c.h+1)
				key := noise.Key{Seed: p.Seed, Purpose: noise.Pair, Round: uint64(tick / c.h), Member: uint32(a)}
				if float64(key.Uniform(0)) < c.down {
					continue
				}
				if up = append(up, a); math.Floor(clock[a]) == before {
					continue
				}
				total, taken[a] = total+1, taken[a]+1
				optimtest.AdamW(x[a], m[a], v[a], p.Bowl.Gradient(x[a], next(a)), 0.9, 0.999, 0.01, 0.1, taken[a])
				for q := range since[a] {
					since[a][q]++
				}
			}
			for q := range c.fragments {
				if tick%c.h+1 != c.h*(q+1)/c.fragments {
					continue
				}
				if len(up) < c.quorum {
					waited++
					continue
				}
				lo, hi := optimtest.Cols*q/c.fragments, optimtest.Cols*(q+1)/c.fragments
				var changes [][]float64
				var weights []float64
				for _, a := range up {
					if since[a][q] == 0 {
						continue
					}
					d := make([]float64, hi-lo)
					for j := range d {
						d[j] = xbar[lo+j] - x[a][lo+j]
					}
					changes, weights = append(changes, d), append(weights, since[a][q])
				}
				if len(changes) == 0 {
					continue
				}
				merge := weighted
				if c.merge == "rda" {
					merge = rda64
				}
				optimtest.Nesterov(xbar[lo:hi], mx[lo:hi], merge(changes, weights), 0.4, 0.6)
				merged++
				for a := range x {
					copy(x[a][lo:hi], xbar[lo:hi])
					since[a][q] = 0
				}
			}
		}
		steps := int64(0)
		for range cycles * DecoupledDiLoCo.Cycle(p.Shape(p.Knobs)) {
			steps += p.Rounds(1).Steps
		}
		if steps != int64(total) || merged == 0 || c.quorum > 1 && waited == 0 {
			t.Errorf("%+v: %d steps, want %d; %d merges, and %d without a quorum", c, steps, total, merged, waited)
		}
		p.Same(optim.BlockXBar, xbar)
		p.Same(optim.BlockX, x...)
		p.Same(optim.BlockMX, mx)
		for a := range since {
			for q, want := range since[a] {
				if got := p.Record(optim.BlockSince).URow(p.Row(p.Mine[a]))[q]; float64(got) != want {
					t.Errorf("%+v: learner %d has %d steps since fragment %d, want %g", c, a, got, q, want)
				}
			}
		}
	}
}

// Learners at full speed without failures, merged by mean, are Streaming DiLoCo without a delay and a mix.
func TestDecoupledDiLoCoWithoutFailuresIsStreaming(t *testing.T) {
	b := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples)
	k := optimtest.Set{"h": 6, "fragments": 3, "eta": 0.5, "eta_in": 0.01, "momentum": 0.8, "batch": 4}
	streams := b.Populate(t, StreamingDiLoCo, 3, optimtest.Merge(k, optimtest.Set{"delay": 0, "alpha": 0}))
	decoupled := b.Populate(t, DecoupledDiLoCo, 3,
		optimtest.Merge(k, optimtest.Set{"slowest": 1, "down": 0, "merge": "mean"}))
	streams.Rounds(12)
	decoupled.Rounds(12)
	decoupled.Same(optim.BlockXBar, streams.RowOf(optim.BlockXBar, 0))
	decoupled.Same(optim.BlockX, streams.RowOf(optim.BlockX, 0), streams.RowOf(optim.BlockX, 1),
		streams.RowOf(optim.BlockX, 2))
}
