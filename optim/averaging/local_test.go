package averaging

import (
	"context"
	"maps"
	"math"
	"testing"

	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
	"brood/optim/coupled"
	"brood/optim/gossip"
	"brood/optim/optimtest"
)

// TestLocalSGD: warmup steps along the mean gradient, then cycles of h local steps followed by x <- mean x.
func TestLocalSGD(t *testing.T) {
	for _, slice := range []float64{32, 2} { // a cycle a round, and two rounds a cycle
		p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, LocalSGD, 3,
			optimtest.Set{"h": 3, "warmup": 2, "slice": slice, "eta": 0.05, "momentum": 0.6, "batch": 4})
		x, m := optimtest.StartRows(optimtest.Cols, 3)
		next := p.Streams()
		for range 2 {
			var gs [][]float64
			for a := range x {
				gs = append(gs, p.Bowl.Gradient(x[a], next(a)))
			}
			for a := range x {
				optimtest.Nesterov(x[a], m[a], optimtest.Average(gs), 0.05, 0.6)
			}
		}
		for range 3 {
			for a := range x {
				for range 3 {
					optimtest.Nesterov(x[a], m[a], p.Bowl.Gradient(x[a], next(a)), 0.05, 0.6)
				}
			}
			mean := optimtest.Average(x)
			for a := range x {
				copy(x[a], mean)
			}
		}
		p.Rounds(2 + 3*map[float64]int{32: 1, 2: 2}[slice])
		p.Same(optim.BlockX, x...)
		p.Same(optim.BlockM, m...)
	}
}

// The warm-up is counted in a block and does not depend on the number of the round.
func TestWarmupIsCounted(t *testing.T) {
	p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, LocalSGD, 3,
		optimtest.Set{"h": 2, "warmup": 3, "batch": 4})
	p.Next = 1000
	for i, want := range []collective.Op{"gradient", "gradient", "gradient", "average", "average"} {
		if b := LocalSGD.Bytes(optim.Shape{
			Roster: collective.Place(collective.IDs(3), []int{0, 1, 2}),
			Layout: p.Layout,
			K:      p.Knobs,
			Phase:  p.Shape(p.Knobs).Phase,
			Warm:   p.Shape(p.Knobs).Warm,
		}); len(b) != 1 || b[want] == 0 {
			t.Errorf("round %d predicts %v, want %s", i, b, want)
		}
		p.Rounds(1)
	}
}

// Averaging after every step equals data-parallel SGD on the same mini-batches, momentum included, since averaging is
// linear.
func TestLocalSGDOfOneStepIsDataParallel(t *testing.T) {
	b := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples)
	local := b.Populate(t, LocalSGD, 4, optimtest.Set{"h": 1, "eta": 0.05, "momentum": 0.8, "batch": 4})
	parallel := b.Populate(t, LocalSGD, 4, optimtest.Set{"warmup": 1e9, "eta": 0.05, "momentum": 0.8, "batch": 4})
	local.Rounds(12)
	parallel.Rounds(12)
	if far := optimtest.Distance(local.CentreOf(), parallel.CentreOf()); far > 1e-5 {
		t.Errorf("the centres are %g apart", far)
	}
	if far := optimtest.Distance(local.RowOf(optim.BlockM, 0), parallel.RowOf(optim.BlockM, 0)); far < 1e-3 {
		t.Errorf("momenta are %g apart: these are the same runs, not two forms of one", far)
	}
}

// TestDiLoCo compares with algorithm 1: h AdamW steps, d = mean (xbar - x), xbar -= eta*Nes(mx, d). AdamW has bias
// correction and decoupled decay (Loshchilov & Hutter) and keeps its state between cycles.
func TestDiLoCo(t *testing.T) {
	for _, slice := range []float64{32, 2} {
		p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, DiLoCo, 3,
			optimtest.Set{"h": 4, "slice": slice, "eta": 0.5, "eta_in": 0.01, "momentum": 0.8, "decay": 0.1, "batch": 4})
		x, m := optimtest.StartRows(optimtest.Cols, 3)
		_, v := optimtest.StartRows(optimtest.Cols, 3)
		xbar, mx, next, T := optimtest.StartRow(), make([]float64, optimtest.Cols), p.Streams(), 0
		for range 3 {
			for step := range 4 {
				for a := range x {
					optimtest.AdamW(x[a], m[a], v[a], p.Bowl.Gradient(x[a], next(a)), 0.9, 0.999, 0.01, 0.1, T+step+1)
				}
			}
			T += 4
			mean, d := optimtest.Average(x), make([]float64, optimtest.Cols)
			for j := range d {
				d[j] = xbar[j] - mean[j]
			}
			optimtest.Nesterov(xbar, mx, d, 0.5, 0.8)
			for a := range x {
				copy(x[a], xbar)
			}
		}
		p.Rounds(3 * map[float64]int{32: 1, 2: 2}[slice])
		p.Same(optim.BlockXBar, xbar)
		p.Same(optim.BlockX, x...)
	}
}

// TestNoLoCo compares with section 3: h AdamW steps, then a random matching. Each replica takes an outer step of its
// own model along the means over its pair. With an odd number of members the unmatched one forms a pair with itself.
func TestNoLoCo(t *testing.T) {
	for _, c := range []struct {
		n            int
		slice, gamma float64
	}{{4, 32, 0.5}, {4, 2, 0.5}, {4, 32, 0.3}, {5, 32, 0.9}} {
		p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, gossip.NoLoCo, c.n,
			optimtest.Set{"h": 4, "slice": c.slice, "eta": 0.5, "gamma": c.gamma, "eta_in": 0.01, "momentum": 0.4, "decay": 0.1,
				"batch": 4})
		each := map[float64]int{32: 1, 2: 2}[c.slice]
		x, m := optimtest.StartRows(optimtest.Cols, c.n)
		begun, v := optimtest.StartRows(optimtest.Cols, c.n)
		_, outer := optimtest.StartRows(optimtest.Cols, c.n)
		next, met := p.Streams(), map[[2]engine.Member]bool{}
		for cycle := range 3 {
			for step := range 4 {
				for a := range x {
					optimtest.AdamW(x[a], m[a], v[a], p.Bowl.Gradient(x[a], next(a)), 0.9, 0.999, 0.01, 0.1, 4*cycle+step+1)
				}
			}
			partner := make([]int, c.n)
			for a := range partner {
				partner[a] = a
			}
			for _, pair := range gossip.Pairing(noise.Key{Seed: p.Seed, Purpose: noise.Pair, Round: uint64((cycle+1)*each - 1)},
				p.Roster.Members) {
				met[pair] = true
				partner[pair[0]], partner[pair[1]] = int(pair[1]), int(pair[0])
			}
			far, was := optimtest.StartRows(optimtest.Cols, c.n)
			for a, b := range partner {
				for j := range far[a] {
					far[a][j] = (x[a][j] - begun[a][j] + x[b][j] - begun[b][j]) / 2
					was[a][j] = (begun[a][j] + begun[b][j]) / 2
				}
			}
			for a := range x {
				for j := range x[a] {
					outer[a][j] = 0.4*outer[a][j] + 0.5*far[a][j] + c.gamma*(was[a][j]-begun[a][j])
				}
			}
			for a := range x {
				for j := range x[a] {
					begun[a][j] += outer[a][j]
					x[a][j] = begun[a][j]
				}
			}
		}
		p.Rounds(3 * each)
		p.Same(optim.BlockX, x...)
		p.Same(optim.BlockBegun, begun...)
		p.Same(optim.BlockMX, outer...)
		if len(met) < 3 {
			t.Errorf("%d members met in %d pairs over three cycles", c.n, len(met))
		}
	}
}

// Every pairing is a matching, and over many rounds all pairs are equally likely.
func TestPairing(t *testing.T) {
	for _, n := range []int{2, 3, 6, 7} {
		counts, rounds := map[[2]engine.Member]int{}, 3000
		for round := range rounds {
			seen := map[engine.Member]bool{}
			pairs := gossip.Pairing(noise.Key{Purpose: noise.Pair, Round: uint64(round)}, collective.IDs(n))
			for _, p := range pairs {
				if seen[p[0]] || seen[p[1]] || p[0] == p[1] {
					t.Fatalf("%d members: %v is no matching", n, pairs)
				}
				seen[p[0]], seen[p[1]] = true, true
				counts[[2]engine.Member{min(p[0], p[1]), max(p[0], p[1])}]++
			}
			if len(pairs) != n/2 {
				t.Fatalf("%d members in %d pairs", n, len(pairs))
			}
		}
		all := n * (n - 1) / 2
		want := float64(rounds*(n/2)) / float64(all)
		for p, got := range counts {
			if sd := math.Sqrt(want); math.Abs(float64(got)-want) > 5*sd+1 {
				t.Errorf("of %d members %v met %d times, want %.0f", n, p, got, want)
			}
		}
		if len(counts) != all {
			t.Errorf("of %d members %d pairs ever met, want %d", n, len(counts), all)
		}
	}
}

// TestPAPA compares with algorithm 1: h local steps, then x <- keep*x + (1-keep)*mean.
func TestPAPA(t *testing.T) {
	for _, slice := range []float64{32, 2} {
		p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, PAPA, 3,
			optimtest.Set{"h": 4, "slice": slice, "keep": 0.7, "eta": 0.05, "momentum": 0.6, "start": 1, "batch": 4})
		x, m := optimtest.StartRows(optimtest.Cols, 3)
		next := p.Streams()
		for range 3 {
			for a := range x {
				for range 4 {
					optimtest.Nesterov(x[a], m[a], p.Bowl.Gradient(x[a], next(a)), 0.05, 0.6)
				}
			}
			mean := optimtest.Average(x)
			for a := range x {
				for j := range mean {
					x[a][j] = 0.7*x[a][j] + 0.3*mean[j]
				}
			}
		}
		p.Rounds(3 * map[float64]int{32: 1, 2: 2}[slice])
		p.Same(optim.BlockX, x...)
		p.Same(optim.BlockM, m...)
	}
}

// With keep 0 PAPA equals LocalSGD bit for bit; with keep 1 every member trains independently.
func TestPAPAReduces(t *testing.T) {
	b := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples)
	none := b.Populate(t, PAPA, 3, optimtest.Set{"h": 4, "keep": 0, "start": 1, "batch": 4})
	local := b.Populate(t, LocalSGD, 3, optimtest.Set{"h": 4, "batch": 4})
	all := b.Populate(t, PAPA, 3, optimtest.Set{"h": 4, "keep": 1, "start": 1, "batch": 4})
	alone := b.Populate(t, LocalSGD, 3, optimtest.Set{"h": 1000, "slice": 4, "batch": 4})
	for _, p := range []*optimtest.Population{none, local, all, alone} {
		p.Rounds(3)
	}
	for a := range 3 {
		if far := optimtest.Distance(none.RowOf(optim.BlockX, a), local.RowOf(optim.BlockX, a)); far > 1e-6 {
			t.Errorf("member %d keeps nothing, and is %g from LocalSGD", a, far)
		}
		if far := optimtest.Distance(all.RowOf(optim.BlockX, a), alone.RowOf(optim.BlockX, a)); far > 1e-6 {
			t.Errorf("member %d keeps all, and is %g from training alone", a, far)
		}
	}
}

// With eta 1 and momentum 0 the outer step sets the mean of the replicas.
func TestDiLoCoOfRateOneAverages(t *testing.T) {
	b := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples)
	p := b.Populate(t, DiLoCo, 3, optimtest.Set{"h": 5, "eta": 1, "momentum": 0, "batch": 4})
	// the first round of a cycle that takes two rounds has no communication
	alone := b.Populate(t, DiLoCo, 3, optimtest.Set{"h": 6, "slice": 5, "eta": 1, "momentum": 0, "batch": 4})
	p.Rounds(1)
	alone.Rounds(1)
	if far := optimtest.Distance(p.CentreOf(),
		optimtest.Average([][]float64{alone.RowOf(optim.BlockX, 0), alone.RowOf(optim.BlockX, 1),
			alone.RowOf(optim.BlockX, 2)})); far > 1e-6 {
		t.Errorf("the centre is %g from the mean of replicas that go on", far)
	}
}

// Gradient descent on the whole set: g = 1/N sum_i grad f_i(x), m = mu*m + g, x -= eta*(g + mu*m), for every division
// into groups, batches and rounds.
func TestBGD(t *testing.T) {
	for _, k := range []optimtest.Set{{"groups": 1, "batch": 40}, {"groups": 3, "batch": 4},
		{"groups": 7, "batch": 1, "slice": 2}, {"groups": 20, "batch": 100}} {
		k["eta"], k["momentum"], k["decay"], k["clip"] = 0.2, 0.5, 0.01, 3
		p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, BGD, 3, k)
		x, m := optimtest.StartRow(), make([]float64, optimtest.Cols)
		for range 3 {
			g := p.Bowl.Gradient(x, p.Bowl.Train())
			var norm float64
			for _, v := range g {
				norm += v * v
			}
			for j := range g {
				g[j] = g[j]*min(1, 3/math.Sqrt(norm)) + 0.01*x[j]
			}
			optimtest.Nesterov(x, m, g, 0.2, 0.5)
		}
		var steps, done int64
		for steps < 3 {
			rep := p.Rounds(1)
			steps, done = steps+rep.Steps, done+rep.Samples
		}
		p.Same(optim.BlockX, x)
		if done != 3*optimtest.Samples {
			t.Errorf("%s: %d samples in three passes of %d", optimtest.Describe(k), done, optimtest.Samples)
		}
	}
}

// Adam and AdamW use the gradient of the whole set. Weight decay is part of the gradient with Adam and not with AdamW.
func TestBGDAdapts(t *testing.T) {
	for choice, name := range []string{1: "adam", 2: "adamw"} {
		if name == "" {
			continue
		}
		p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, BGD, 3,
			optimtest.Set{"groups": 3, "batch": 4, "optimiser": float64(choice), "eta": 0.02, "decay": 0.1})
		x, m, v := optimtest.StartRow(), make([]float64, optimtest.Cols), make([]float64, optimtest.Cols)
		for step := range 3 {
			g, decay := p.Bowl.Gradient(x, p.Bowl.Train()), 0.1
			if name == "adam" {
				for j := range g {
					g[j] += 0.1 * x[j]
				}
				decay = 0
			}
			optimtest.AdamW(x, m, v, g, 0.9, 0.999, 0.02, decay, step+1)
		}
		for steps := int64(0); steps < 3; {
			steps += p.Rounds(1).Steps
		}
		p.Same(optim.BlockX, x)
		p.Same(optim.BlockV, v)
	}
}

// The sum is over shards: its bits do not depend on the number of members, and a pass continues after a change of that
// number.
func TestBGDIgnoresMembers(t *testing.T) {
	b := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples)
	k := optimtest.Set{"groups": 8, "batch": 1, "slice": 2}
	want := b.Populate(t, BGD, 1, k)
	want.Rounds(10)
	for _, n := range []int{2, 3, 5, 11} {
		p := b.Populate(t, BGD, 4, k)
		p.Rounds(4) // in the middle of a pass
		q := b.Populate(t, BGD, n, k)
		q.Blocks, q.Records = p.Blocks, p.Records
		q.Rounds(6)
		for j, v := range optimtest.Flat(q.Block(optim.BlockX)) {
			if v != optimtest.Flat(want.Block(optim.BlockX))[j] {
				t.Fatalf("%d members: element %d is %v, of one member %v", n, j, v, optimtest.Flat(want.Block(optim.BlockX))[j])
			}
		}
	}
}

// Limits of local entropy on a quadratic without noise. The inner steps converge to z, the proximal point prox_{gamma
// f}(x): then x - z in Entropy-SGD is gamma times the gradient of the Moreau envelope. With variant paper and xbar
// constant, they converge to z = prox_{(gamma+rho) f}(xbar). prox_{c f}(x) = (x + c*a*e)/(1 + c*a), where e is the mean
// target.
func TestProximalLimit(t *testing.T) {
	b := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples)
	b.E = b.E[:1]
	prox := func(x []float64, c float64) []float64 {
		out := make([]float64, optimtest.Cols)
		for j := range out {
			out[j] = (x[j] + c*b.A[j]*b.E[0][j]) / (1 + c*b.A[j])
		}
		return out
	}
	const gamma, rho = 2, 3
	p := b.Populate(t, coupled.EntropySGD, 1,
		optimtest.Set{"ell": 800, "slice": 800, "eta": 1, "eta_in": 0.05, "momentum": 0, "thermal": 0, "gamma": gamma,
			"batch": 1})
	p.Rounds(1)
	p.Same(optim.BlockX, prox(optimtest.StartRow(), gamma))

	q := b.Populate(t, coupled.Parle, 1, optimtest.Set{"variant": "paper", "ell": 100, "slice": 100, "eta": 0.05,
		"momentum": 0, "gamma": gamma, "rho": rho, "batch": 1})
	held := engine.NewHost(1, optimtest.Cols, engine.F32)
	copy(held.F, optimtest.Flat(q.Block(optim.BlockXBar)))
	for range 60 {
		q.Rounds(1)
		copy(optimtest.Flat(q.Block(optim.BlockXBar)), held.F)
	}
	q.Same(optim.BlockZ, prox(optimtest.StartRow(), gamma+rho))
	if far := optimtest.Distance(q.RowOf(optim.BlockZ, 0), prox(optimtest.StartRow(), gamma)); far < 1e-2 {
		t.Errorf("the limit is not sharp: prox of gamma alone is %g away", far)
	}
}

// TestReductions compares algorithms that equal each other for some values of their knobs.
func TestReductions(t *testing.T) {
	b := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples)
	base := func(more optimtest.Set) optimtest.Set {
		v := optimtest.Set{"batch": 4, "momentum": 0}
		maps.Copy(v, more)
		return v
	}
	rows := func(p *optimtest.Population) (out [][]float64) {
		for m := range p.Block(optim.BlockX).Rows {
			out = append(out, p.RowOf(optim.BlockX, m))
		}
		return out
	}
	run := func(a *optim.Algorithm, n, rounds int, k optimtest.Set) [][]float64 {
		p := b.Populate(t, a, n, base(k))
		p.Rounds(rounds)
		return rows(p)
	}
	sgd := func(n, rounds int, eta, mu float64) [][]float64 { // n independent runs
		return run(LocalSGD, n, 1, optimtest.Set{"h": float64(rounds) + 1, "slice": float64(rounds), "eta": eta,
			"momentum": mu})
	}
	check := func(what string, got, want [][]float64, holds bool) {
		t.Helper()
		var far float64
		for m := range want {
			far = max(far, optimtest.Distance(got[m], want[m]))
		}
		if holds != (far <= 2e-6) || !holds && far < 1e-3 {
			t.Errorf("%s: %g distance, should hold: %v", what, far, holds)
		}
	}
	loose := optimtest.Set{"ell": 1, "alpha": 0, "thermal": 0, "eta": 0.5, "eta_in": 0.1, "gamma": 1e12, "rho": 1e12}
	check("Elastic-SGD, rho -> infinity: n SGDs",
		run(coupled.Elastic, 3, 8, optimtest.Set{"rho": 1e12, "eta": 0.05, "momentum": 0.9}), sgd(3, 8, 0.05, 0.9), true)
	check("Elastic-SGD of one: SGD for any rho",
		run(coupled.Elastic, 1, 8, optimtest.Set{"rho": 0.5, "eta": 0.05, "momentum": 0.9}), sgd(1, 8, 0.05, 0.9), true)
	check("Elastic-SGD, rho 1: not n SGDs", run(coupled.Elastic, 3, 8, optimtest.Set{"rho": 1, "eta": 0.05}),
		sgd(3, 8, 0.05, 0), false)
	entropy := optimtest.Set{"ell": 1, "alpha": 0, "thermal": 0, "eta": 0.5, "eta_in": 0.1}
	check("Entropy-SGD, ell 1, alpha 0: SGD for any gamma", run(coupled.EntropySGD, 1, 8, entropy),
		sgd(1, 8, 0.05, 0), true)
	check("Parle arxiv, all loose: n SGDs", run(coupled.Parle, 3, 8, loose), sgd(3, 8, 0.05, 0), true)
	free := optimtest.Set{"ell": 5, "eta": 0.5, "eta_in": 0.1, "gamma": 3, "thermal": 0.1, "momentum": 0.7,
		"inner": "zeroed"}
	one := run(coupled.EntropySGD, 1, 4, free)
	free["rho"] = 1e12
	check("Parle arxiv, rho -> infinity, inner zeroed: Entropy-SGD", run(coupled.Parle, 3, 4, free)[:1], one, true)
	free["inner"] = "kept"
	check("Parle arxiv with its momentum kept: not Entropy-SGD", run(coupled.Parle, 3, 4, free)[:1], one, false)
	tight := optimtest.Set{"ell": 1, "alpha": 0, "eta": 0.5, "eta_in": 0.1, "rho": 2}
	check("Parle arxiv, ell 1, alpha 0: not Elastic-SGD, its mean is over z", run(coupled.Parle, 3, 8, tight),
		run(coupled.Elastic, 3, 8, optimtest.Set{"eta": 0.05, "rho": 0.2}), false)
	loose["variant"] = "paper"
	still := run(coupled.Parle, 3, 8,
		optimtest.Set{"variant": "paper", "ell": 1, "alpha": 0, "eta": 0.05, "gamma": 1e12, "rho": 1})
	x, _ := optimtest.StartRows(optimtest.Cols, 3)
	check("Parle paper, gamma -> infinity: x never moves", still, x, true)
	check("Parle paper, gamma -> infinity: not n SGDs", still, sgd(3, 8, 0.05, 0), false)
	check("Parle paper, all loose: not n SGDs", run(coupled.Parle, 3, 8, loose), sgd(3, 8, 0.05, 0), false)
}

// Error feedback loses no rounding error: the mean received over many messages is the mean sent.
func TestErrorFeedback(t *testing.T) {
	const cols, rounds = 70, 400
	b, r := optimtest.NewBowl(t, cols, 1), collective.Place(collective.IDs(1), []int{0})
	lost := engine.NewHost(1, cols, engine.F32)
	e := &optim.Env{
		Roster: r,
		Mine:   r.Members,
		Comm:   collective.NewComm(0, 1, r, []int{0}, nil, b, 0),
		Engine: b,
		Blocks: map[string]engine.Mat{optim.BlockResidual: ram.Of(lost)},
	}
	e.Layout.Params = cols
	src, dst := engine.NewHost(1, cols, engine.F32), engine.NewHost(1, cols, engine.F32)
	for i := range src.F {
		src.F[i] = float32(math.Sin(float64(7*i))) + 0.003
	}
	src.F[7], src.F[69] = 100, -9 // with these in the block, the other values are smaller than one step of the code
	var sum [cols]float64
	for range rounds {
		e.Recycle()
		if err := e.AllReduceMean(context.Background(), optimtest.Set{"wire": "int8"}.Of(DPSGD), "sum", ram.Of(src),
			ram.Of(dst)); err != nil {
			t.Fatal(err)
		}
		for j, x := range dst.F {
			sum[j] += float64(x)
		}
	}
	for j, x := range src.F {
		if got := sum[j]/rounds - float64(x); math.Abs(got) > 2.0/rounds {
			t.Errorf("column %d: mean %g, sent %g", j, sum[j]/rounds, x)
		}
	}
}
