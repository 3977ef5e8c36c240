package optim_test

import (
	"maps"
	"slices"
	"testing"

	"brood/models/engine"
	"brood/models/enginetest"
	"brood/models/native"
	"brood/optim"
	"brood/optim/averaging"
	"brood/optim/coupled"
	"brood/optim/gossip"
	"brood/optim/optimtest"
	"brood/optim/population"
)

// adaptive returns the algorithms that have the knob optimiser.
func adaptive() []*optim.Algorithm {
	return []*optim.Algorithm{averaging.DPSGD, averaging.LocalSGD, averaging.PAPA, gossip.SGP, gossip.ADPSGD,
		gossip.PopSGD, coupled.Elastic, coupled.EASGD, coupled.EntropySGD, coupled.Parle, population.PESGD, population.PBT,
		population.PB2, averaging.DiLoCo, gossip.NoLoCo, averaging.BGD}
}

// TestOptimisers compares steps of Adam and AdamW with the equations in float64. Weight decay is part of the gradient
// with Adam and not with AdamW.
func TestOptimisers(t *testing.T) {
	const b1, b2 = 0.8, 0.95
	for _, name := range []string{"adam", "adamw"} {
		t.Run(name, func(t *testing.T) {
			turned := optimtest.Set{"optimiser": map[string]float64{"adam": 1, "adamw": 2}[name], "eta": 0.02, "decay": 0.1,
				"beta1": b1, "beta2": b2, "batch": 4}
			of := func(x, m, v, g []float64, step int) {
				decay := 0.1
				if name == "adam" {
					g = slices.Clone(g)
					for j := range g {
						g[j] += 0.1 * x[j]
					}
					decay = 0
				}
				optimtest.AdamW(x, m, v, g, b1, b2, 0.02, decay, step)
			}

			p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, averaging.DPSGD, 3, turned)
			x, m := optimtest.StartRows(optimtest.Cols, 1)
			_, v := optimtest.StartRows(optimtest.Cols, 1)
			at := uint64(0)
			for step := range 6 {
				var gs [][]float64
				for range 3 {
					batch := make([]int32, 4)
					p.SharedBatch(batch, at)
					at += 4
					gs = append(gs, p.Bowl.Gradient(x[0], batch))
				}
				of(x[0], m[0], v[0], optimtest.Average(gs), step+1)
			}
			p.Rounds(6)
			p.Same(optim.BlockX, x[0])
			p.Same(optim.BlockM1, m[0])
			p.Same(optim.BlockV, v[0])
			if n := p.Record(optim.BlockT).U[0]; n != 6 {
				t.Errorf("the moments have seen %d steps", n)
			}

			turned["h"], turned["warmup"] = 3, 2
			p = optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, averaging.LocalSGD, 3, turned)
			x, m = optimtest.StartRows(optimtest.Cols, 3)
			_, v = optimtest.StartRows(optimtest.Cols, 3)
			next, steps := p.Streams(), 0
			for range 2 {
				steps++
				var gs [][]float64
				for a := range x {
					g := p.Bowl.Gradient(x[a], next(a))
					if name == "adam" { // decay is part of the mean gradient
						for j := range g {
							g[j] += 0.1 * x[a][j]
						}
					}
					gs = append(gs, g)
				}
				for a := range x {
					optimtest.AdamW(x[a], m[a], v[a], optimtest.Average(gs), b1, b2, 0.02,
						map[string]float64{"adamw": 0.1}[name], steps)
				}
			}
			for range 2 {
				for s := range 3 {
					for a := range x {
						of(x[a], m[a], v[a], p.Bowl.Gradient(x[a], next(a)), steps+s+1)
					}
				}
				steps += 3
				mean := optimtest.Average(x)
				for a := range x {
					copy(x[a], mean)
				}
			}
			p.Rounds(4)
			p.Same(optim.BlockX, x...)
			p.Same(optim.BlockM1, m...)
			p.Same(optim.BlockV, v...)
		})
	}
}

// matrices returns a bowl whose parameters are a wide matrix, a vector and a high matrix.
func matrices(t *testing.T) *optimtest.Bowl {
	t.Helper()
	b := optimtest.NewBowl(t, 22, optimtest.Samples)
	b.Layout.Tensors = []engine.Tensor{{Name: "w", Shape: []int{2, 4}, Len: 8, Cols: 4},
		{Name: "b", Shape: []int{2}, Lo: 8, Len: 2, Cols: 2}, {Name: "v", Shape: []int{6, 2}, Lo: 10, Len: 12, Cols: 2}}
	var err error
	if b.Vector, err = native.New(b.Layout, 1); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestMuon compares dp-sgd, DiLoCo (with Muon: MuLoCo), Elastic-SGD and Parle with their rules and naive Muon steps in
// float64.
func TestMuon(t *testing.T) {
	for _, lengths := range optim.KnobLengths.Choices {
		for _, last := range optim.KnobLast.Choices {
			t.Run(lengths+" "+last, func(t *testing.T) { muons(t, lengths, last) })
		}
	}
}

func muons(t *testing.T, lengths, last string) {
	const n = 3
	step := engine.Muon{
		Eta:    0.03,
		Mu:     0.7,
		WD:     0.1,
		Fixed:  lengths == "fixed",
		Hidden: last == "adamw",
		Share:  0.5,
		B1:     0.8,
		B2:     0.95,
		Eps:    1e-8,
	}
	knobs := func(eta, mu string, more optimtest.Set) optimtest.Set {
		s := optimtest.Set{"optimiser": "muon", "lengths": slices.Index(optim.KnobLengths.Choices, lengths),
			"last": slices.Index(optim.KnobLast.Choices, last), eta: 0.03, mu: 0.7, "decay": 0.1, "vectors": 0.5, "beta1": 0.8,
			"beta2": 0.95, "batch": 4}
		maps.Copy(s, more)
		return s
	}
	// of takes one naive step of a member.
	type state struct{ x, m, v []float64 }
	steps := 0
	of := func(b *optimtest.Bowl, w *state, g []float64) {
		enginetest.Muon64(&b.Layout, w.x, w.m, w.v, g, step, steps)
	}
	begin := func(count int) (out []*state) {
		x, m := optimtest.StartRows(22, count)
		_, v := optimtest.StartRows(22, count)
		steps = 0
		for a := range x {
			out = append(out, &state{x[a], m[a], v[a]})
		}
		return out
	}
	mean := func(ws []*state) []float64 {
		var rows [][]float64
		for _, w := range ws {
			rows = append(rows, w.x)
		}
		return optimtest.Average(rows)
	}
	near := func(p *optimtest.Population, block string, ws []*state) {
		t.Helper()
		for a, w := range ws {
			if far := optimtest.Distance(p.RowOf(block, a), w.x); !(far <= 1e-4) {
				t.Errorf("%s: %s of member %d is %g from the reference", p.Algorithm.Name, block, a, far)
			}
		}
	}

	b := matrices(t)
	p := b.Populate(t, averaging.DPSGD, n, knobs("eta", "momentum", nil))
	one, at := begin(1), uint64(0)
	for range 5 {
		var gs [][]float64
		for range n {
			batch := make([]int32, 4)
			p.SharedBatch(batch, at)
			at += 4
			gs = append(gs, b.Gradient(one[0].x, batch))
		}
		steps++
		of(b, one[0], optimtest.Average(gs))
	}
	p.Rounds(5)
	near(p, optim.BlockX, one)

	p = b.Populate(t, averaging.DiLoCo, n,
		knobs("eta_in", "momentum_in", optimtest.Set{"h": 3, "slice": 2, "eta": 0.6, "momentum": 0.5}))
	ws, next := begin(n), p.Streams()
	agreed, outer := begin(1)[0], make([]float64, 22)
	for range 2 {
		for range 3 {
			steps++
			for a, w := range ws {
				of(b, w, b.Gradient(w.x, next(a)))
			}
		}
		d := mean(ws)
		for j := range d {
			d[j] = agreed.x[j] - d[j]
		}
		optimtest.Nesterov(agreed.x, outer, d, 0.6, 0.5)
		for _, w := range ws {
			copy(w.x, agreed.x)
		}
	}
	p.Rounds(4)
	near(p, optim.BlockXBar, []*state{agreed})
	near(p, optim.BlockX, ws)

	p = b.Populate(t, coupled.Elastic, n, knobs("eta", "momentum", optimtest.Set{"rho": 2}))
	ws, next = begin(n), p.Streams()
	for range 5 {
		r := mean(ws)
		steps++
		for a, w := range ws {
			g := b.Gradient(w.x, next(a))
			for j := range g {
				g[j] += (w.x[j] - r[j]) / 2
			}
			of(b, w, g)
		}
	}
	p.Rounds(5)
	near(p, optim.BlockX, ws)

	p = b.Populate(t, coupled.Parle, n, knobs("eta_in", "momentum",
		optimtest.Set{"ell": 3, "eta": 0.4, "gamma": 2, "rho": 3, "alpha": 0.5, "inner": "zeroed"}))
	ws, next = begin(n), p.Streams()
	outers := make([][]float64, n)
	for cycle := range 2 {
		zs := make([][]float64, n)
		for a, w := range ws {
			if cycle == 0 {
				outers[a] = make([]float64, 22)
			}
			y := &state{slices.Clone(w.x), make([]float64, 22), make([]float64, 22)}
			z := slices.Clone(w.x)
			for s := range 3 {
				g := b.Gradient(y.x, next(a))
				for j := range g {
					g[j] += (y.x[j] - w.x[j]) / 2
				}
				steps = s + 1
				of(b, y, g)
				for j := range z {
					z[j] = 0.5*z[j] + 0.5*y.x[j]
				}
			}
			zs[a] = z
		}
		r := optimtest.Average(zs)
		for a, w := range ws {
			d := make([]float64, 22)
			for j := range d {
				d[j] = w.x[j] - zs[a][j] + (w.x[j]-r[j])/3
			}
			optimtest.Nesterov(w.x, outers[a], d, 0.4, 0.7)
		}
	}
	p.Rounds(2)
	near(p, optim.BlockX, ws)
}

// TestOptimiserBlocks: every algorithm with the knob optimiser has the default of older logs, and the blocks of the
// chosen optimiser only.
func TestOptimiserBlocks(t *testing.T) {
	names := func(a *optim.Algorithm, k optim.Values) (out []string) {
		for _, b := range a.Blocks(k, engine.Layout{Params: 3}) {
			out = append(out, b.Name)
		}
		return out
	}
	for _, a := range adaptive() {
		first, def := "sgd", a.Defaults()
		if a == averaging.DiLoCo || a == gossip.NoLoCo {
			first = "adamw"
		}
		if !def.Is("optimiser", first) {
			t.Errorf("%s: optimiser %s by default", a.Name, def.Choice("optimiser"))
		}
		adam := []string{optim.BlockM1, optim.BlockV, optim.BlockT}
		hidden := []string{optim.BlockHidden, optim.BlockHiddenV, optim.BlockHiddenT}
		for choice, want := range [][]string{{optim.BlockM}, adam, adam,
			{optim.BlockMuon, optim.BlockMuonV, optim.BlockMuonT}, hidden} {
			values := def.With("optimiser", float64(min(choice, 3))).With("last", float64(choice/4))
			for _, name := range append(hidden, optim.BlockM, optim.BlockM1, optim.BlockV, optim.BlockT, optim.BlockMuon,
				optim.BlockMuonV, optim.BlockMuonT) {
				if blocks := names(a, values); slices.Contains(blocks, name) != slices.Contains(want, name) {
					t.Errorf("%s: blocks %v with optimiser %d", a.Name, blocks, choice)
				}
			}
		}
	}
}
