package evolution

import (
	"context"
	"math"
	"slices"
	"testing"

	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
	"brood/optim/optimtest"
)

// TestHybridES: d and a step along it every r-th iteration. In the other iterations (with r = 1, in every one), the
// best of N*K steps along d + N(0, s^2), where s is relative to the root mean square of d or absolute, or the softmax
// mean of the best steps of the groups.
func TestHybridES(t *testing.T) {
	const groups, tries, n = 5, 3, 3
	for _, k := range []optimtest.Set{{"r": 1}, {"r": 2}, {"r": 3, "decay": 0.01}, {"r": 3, "unit": "absolute", "s": 0.7},
		{"r": 2, "combine": "softmax", "temperature": 0.1},
		{"r": 2, "shape": "laplace"}, {"r": 3, "shape": "student", "components": 0.4},
		{"r": 2, "components": 0.6, "combine": "softmax", "temperature": 0.5},
		{"r": 2, "optimiser": 1, "decay": 0.1}, {"r": 3, "optimiser": 2, "decay": 0.1, "shape": "laplace"},
		{"r": 1, "optimiser": 2, "beta1": 0.5}} {
		k = optimtest.Merge(optimtest.Set{"s": 2, "eta": 0.1, "batch": 3, "judges": 5, "groups": groups, "tries": tries}, k)
		p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, HybridES, n, k)
		x, d, at := optimtest.StartRow(), make([]float64, optimtest.Cols), uint64(0)
		m, v, steps := make([]float64, optimtest.Cols), make([]float64, optimtest.Cols), 0
		draw := func(n int) []int32 {
			b := make([]int32, n)
			p.SharedBatch(b, at)
			at += uint64(n)
			return b
		}
		for round := range 7 {
			full := round%p.Knobs.I("r") == 0
			if full {
				d = p.Bowl.Gradient(x, draw(3*n)) // the mean of n means
				decay := p.Knobs.Get("decay")
				if !p.Knobs.Is("optimiser", "adamw") {
					for j := range d {
						d[j] += decay * x[j]
					}
					decay = 0
				}
				if p.Knobs.Is("optimiser", "sgd") {
					for j := range d {
						x[j] -= 0.1 * d[j]
					}
				} else {
					was := slices.Clone(x)
					steps++
					optimtest.AdamW(x, m, v, d, p.Knobs.Get("beta1"), p.Knobs.Get("beta2"), 0.1, decay, steps)
					for j := range d {
						d[j] = (was[j] - x[j]) / 0.1
					}
				}
			}
			if full && p.Knobs.I("r") > 1 {
				continue
			}
			s := p.Knobs.Get("s")
			if p.Knobs.Is("unit", "gradient") {
				s *= norm64(d) / math.Sqrt(optimtest.Cols)
			}
			// the distributions of its mask and lengths are tested below
			tr, err := newHybridESCandidates(context.Background(), p.Env, p.Knobs, uint64(round))
			if err != nil {
				t.Fatal(err)
			}
			judges, step, cost := draw(5), make([][]float64, groups), make([]float64, groups)
			for g := range groups {
				cost[g] = math.Inf(1)
				for try := range tries {
					id := uint32(g*tries + try)
					eps := p.Normal(noise.Key{Seed: p.Seed, Purpose: noise.Direction, Round: uint64(round), Member: id})
					y := slices.Clone(x)
					for j := range y {
						shift := s * float64(tr.length(uint64(id))) * eps[j]
						if tr.mask.Rows > 0 {
							shift *= float64(optimtest.Flat(tr.mask)[j])
						}
						y[j] -= 0.1 * (d[j] - shift)
					}
					if c := p.Bowl.Loss(y, judges); c < cost[g] {
						cost[g], step[g] = c, y
					}
				}
			}
			w, total, low := make([]float64, groups), 0.0, slices.Min(cost)
			for g := range w {
				if p.Knobs.Is("combine", "softmax") {
					w[g] = math.Exp(-(cost[g] - low) / p.Knobs.Get("temperature"))
				} else if cost[g] == low {
					w[g] = 1
				}
				total += w[g]
			}
			clear(x)
			for g := range w {
				for j := range x {
					x[j] += w[g] / total * step[g][j]
				}
			}
		}
		p.Rounds(7)
		p.Same(optim.BlockX, x)
		p.Same(optim.BlockD, d)
		if got := p.Record(optim.BlockCursor).U[0]; got != at {
			t.Errorf("%s: %d samples drawn, the reference drew %d", optimtest.Describe(k), got, at)
		}
	}
}

func norm64(v []float64) float64 {
	var s float64
	for _, x := range v {
		s += x * x
	}
	return math.Sqrt(s)
}

// TestHybridCosts: the source reports 1/r of the bytes of gradient descent (50.0% and 33.3%) and a time-averaged
// memory of (1 + (r-1)/3)/r (66.7% and 55.6%). Seeds and costs are small relative to M parameters.
func TestHybridCosts(t *testing.T) {
	account := func(r float64) (bytes, memory float64) {
		p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, HybridES, 4,
			optimtest.Set{"r": r, "batch": 3, "judges": 5})
		for range int(r) {
			s := p.Shape(p.Knobs)
			s.Roster, s.Layout = collective.Place(collective.IDs(4), []int{0, 1, 2, 3}), engine.Layout{Params: 100_000}
			for _, b := range HybridES.Bytes(s) {
				bytes += float64(b) / r
			}
			for _, point := range p.Rounds(1).Points {
				if point.Series == "memory" {
					memory += point.Value / r
				}
			}
		}
		return bytes, memory
	}
	whole, one := account(1)
	if one != 1 {
		t.Errorf("memory of r = 1 is %g", one)
	}
	for r, percent := range map[float64][2]float64{2: {50.0, 66.7}, 3: {33.3, 55.6}} {
		bytes, memory := account(r)
		if b, m := 100*bytes/whole, 100*memory; math.Abs(b-percent[0]) > 0.1 || math.Abs(m-percent[1]) > 0.05 {
			t.Errorf("r = %g: %.2f%% of the bytes and %.2f%% of the memory, want %v", r, b, m, percent)
		}
	}
}

// Shifts of every shape have the same variance and different mean lengths. The mask keeps the share that the knob sets.
func TestShifts(t *testing.T) {
	p := optimtest.NewBowl(t, 1000, optimtest.Samples).Populate(t, HybridES, 2, optimtest.Set{"components": 0.3})
	var left float64
	for round := range uint64(20) {
		tr, err := newHybridESCandidates(context.Background(), p.Env, p.Knobs, round)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range optimtest.Flat(tr.mask) {
			left += float64(v) / 20000
		}
	}
	if math.Abs(left-0.3) > 0.015 {
		t.Errorf("%.4f of the components are shifted, want 0.3", left)
	}
	// Mean lengths: E sqrt(Exp(1)) = sqrt(pi)/2, and E 1/chi_3 = sqrt(2/pi).
	for shape, want := range map[string]float64{"laplace": math.Sqrt(math.Pi) / 2, "student": math.Sqrt(2 / math.Pi)} {
		tr := &hybridESCandidates{key: noise.Key{Purpose: noise.Direction}, shape: shape}
		var mean, square float64
		const n = 40000
		for id := range uint64(n) {
			l := float64(tr.length(id))
			mean, square = mean+l/n, square+l*l/n
		}
		// the variance of the square is infinite for student
		if math.Abs(mean-want) > 0.01 || shape == "laplace" && math.Abs(square-1) > 0.03 {
			t.Errorf("shape %s: lengths have mean %.4f, want %.4f, and mean square %.4f", shape, mean, want, square)
		}
	}
}

// A candidate with a cost that is not finite is never selected. If no cost is finite the parameters do not change.
func TestCandidatesThatFail(t *testing.T) {
	nan := float32(math.NaN())
	for _, combine := range []string{"argmin", "softmax"} {
		k := optimtest.Set{"combine": combine, "temperature": 1}.Of(HybridES)
		if w := hybridESWeights(k, []hybridESResult{{1, nan}, {2, 3}, {3, nan}}); !slices.Equal(w, []float32{0, 1, 0}) {
			t.Errorf("weights %v", w)
		}
		if w := hybridESWeights(k, []hybridESResult{{1, nan}, {2, nan}}); w != nil {
			t.Errorf("weights %v of nothing", w)
		}
	}
}
