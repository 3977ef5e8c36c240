package optim

import (
	"math"
	"testing"

	"brood/models/engine"
	"brood/models/noise"
)

// Post-local SGD: warmup steps along the mean gradient, then h steps each and x <- mean x.
func TestLocalSGD(t *testing.T) {
	for _, slice := range []float64{32, 2} { // a cycle a round, and two rounds a cycle
		p := newBowl(t, cols, samples).populate(t, LocalSGD, 3, set{"h": 3, "warmup": 2, "slice": slice, "eta": 0.05, "momentum": 0.6, "batch": 4})
		x, m := twins(cols, 3)
		next := p.streams()
		for range 2 {
			var gs [][]float64
			for a := range x {
				gs = append(gs, p.bowl.gradient(x[a], next(a)))
			}
			for a := range x {
				nes(x[a], m[a], average64(gs), 0.05, 0.6)
			}
		}
		for range 3 {
			for a := range x {
				for range 3 {
					nes(x[a], m[a], p.bowl.gradient(x[a], next(a)), 0.05, 0.6)
				}
			}
			mean := average64(x)
			for a := range x {
				copy(x[a], mean)
			}
		}
		p.rounds(2 + 3*map[float64]int{32: 1, 2: 2}[slice])
		p.same(BlockX, x...)
		p.same(BlockM, m...)
	}
}

// The warm-up is counted in a block; a round's number plays no part.
func TestWarmupIsCounted(t *testing.T) {
	p := newBowl(t, cols, samples).populate(t, LocalSGD, 3, set{"h": 2, "warmup": 3, "batch": 4})
	p.round = 1000
	for i, want := range []Op{"gradient", "gradient", "gradient", "average", "average"} {
		if b := LocalSGD.Bytes(Shape{Roster: Place(IDs(3), []int{0, 1, 2}), Layout: p.Layout, K: p.k, Phase: p.Shape(p.k).Phase, Warm: p.Shape(p.k).Warm}); len(b) != 1 || b[want] == 0 {
			t.Errorf("round %d predicts %v, want %s", i, b, want)
		}
		p.rounds(1)
	}
}

// Averaging every step is data-parallel SGD on the same mini-batches: averaging is linear, momentum included.
func TestLocalSGDOfOneStepIsDataParallel(t *testing.T) {
	b := newBowl(t, cols, samples)
	local := b.populate(t, LocalSGD, 4, set{"h": 1, "eta": 0.05, "momentum": 0.8, "batch": 4})
	parallel := b.populate(t, LocalSGD, 4, set{"warmup": 1e9, "eta": 0.05, "momentum": 0.8, "batch": 4})
	local.rounds(12)
	parallel.rounds(12)
	if far := distance(local.centre(), parallel.centre()); far > 1e-5 {
		t.Errorf("the centres are %g apart", far)
	}
	if far := distance(local.row(BlockM, 0), parallel.row(BlockM, 0)); far < 1e-3 {
		t.Errorf("momenta are %g apart: these are the same runs, not two forms of one", far)
	}
}

// adam64 is step t, counted from 1, of AdamW with decoupled decay.
func adam64(x, m, v, g []float64, b1, b2, eta, decay float64, t int) {
	for j := range g {
		m[j] = b1*m[j] + (1-b1)*g[j]
		v[j] = b2*v[j] + (1-b2)*g[j]*g[j]
		mh, vh := m[j]/(1-math.Pow(b1, float64(t))), v[j]/(1-math.Pow(b2, float64(t)))
		x[j] -= eta*decay*x[j] + eta*mh/(math.Sqrt(vh)+1e-8)
	}
}

// DiLoCo, algorithm 1: h AdamW steps, d = mean (xbar - x), xbar -= eta*Nes(mx, d); AdamW with bias correction and
// decoupled decay (Loshchilov & Hutter), its state kept over cycles.
func TestDiLoCo(t *testing.T) {
	for _, slice := range []float64{32, 2} {
		p := newBowl(t, cols, samples).populate(t, DiLoCo, 3, set{"h": 4, "slice": slice, "eta": 0.5, "eta_in": 0.01, "momentum": 0.8, "decay": 0.1, "batch": 4})
		x, m := twins(cols, 3)
		_, v := twins(cols, 3)
		xbar, mx, next, T := start64(), make([]float64, cols), p.streams(), 0
		for range 3 {
			for step := range 4 {
				for a := range x {
					adam64(x[a], m[a], v[a], p.bowl.gradient(x[a], next(a)), 0.9, 0.999, 0.01, 0.1, T+step+1)
				}
			}
			T += 4
			mean, d := average64(x), make([]float64, cols)
			for j := range d {
				d[j] = xbar[j] - mean[j]
			}
			nes(xbar, mx, d, 0.5, 0.8)
			for a := range x {
				copy(x[a], xbar)
			}
		}
		p.rounds(3 * map[float64]int{32: 1, 2: 2}[slice])
		p.same(BlockXBar, xbar)
		p.same(BlockX, x...)
	}
}

// NoLoCo, section 3: h AdamW steps, then a random matching; a replica's outer step is of its own model, from the means
// over its pair. One whom an odd number leaves alone is its own pair.
func TestNoLoCo(t *testing.T) {
	for _, c := range []struct {
		n            int
		slice, gamma float64
	}{{4, 32, 0.5}, {4, 2, 0.5}, {4, 32, 0.3}, {5, 32, 0.9}} {
		p := newBowl(t, cols, samples).populate(t, NoLoCo, c.n, set{"h": 4, "slice": c.slice, "eta": 0.5, "gamma": c.gamma, "eta_in": 0.01, "momentum": 0.4, "decay": 0.1, "batch": 4})
		each := map[float64]int{32: 1, 2: 2}[c.slice]
		x, m := twins(cols, c.n)
		begun, v := twins(cols, c.n)
		_, outer := twins(cols, c.n)
		next, met := p.streams(), map[[2]Member]bool{}
		for cycle := range 3 {
			for step := range 4 {
				for a := range x {
					adam64(x[a], m[a], v[a], p.bowl.gradient(x[a], next(a)), 0.9, 0.999, 0.01, 0.1, 4*cycle+step+1)
				}
			}
			partner := make([]int, c.n)
			for a := range partner {
				partner[a] = a
			}
			for _, pair := range Pairing(noise.Key{Seed: p.Seed, Purpose: noise.Pair, Round: uint64((cycle+1)*each - 1)}, p.Roster.Members) {
				met[pair] = true
				partner[pair[0]], partner[pair[1]] = int(pair[1]), int(pair[0])
			}
			far, was := twins(cols, c.n)
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
		p.rounds(3 * each)
		p.same(BlockX, x...)
		p.same(BlockBegun, begun...)
		p.same(BlockMX, outer...)
		if len(met) < 3 {
			t.Errorf("%d members met in %d pairs over three cycles", c.n, len(met))
		}
	}
}

// A pairing is a matching, and over many rounds every pair is as likely as any other.
func TestPairing(t *testing.T) {
	for _, n := range []int{2, 3, 6, 7} {
		counts, rounds := map[[2]Member]int{}, 3000
		for round := range rounds {
			seen := map[Member]bool{}
			pairs := Pairing(noise.Key{Purpose: noise.Pair, Round: uint64(round)}, IDs(n))
			for _, p := range pairs {
				if seen[p[0]] || seen[p[1]] || p[0] == p[1] {
					t.Fatalf("%d members: %v is no matching", n, pairs)
				}
				seen[p[0]], seen[p[1]] = true, true
				counts[[2]Member{min(p[0], p[1]), max(p[0], p[1])}]++
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

// PAPA, algorithm 1: h steps each, then keep of oneself and the rest of the mean.
func TestPAPA(t *testing.T) {
	for _, slice := range []float64{32, 2} {
		p := newBowl(t, cols, samples).populate(t, PAPA, 3, set{"h": 4, "slice": slice, "keep": 0.7, "eta": 0.05, "momentum": 0.6, "start": 1, "batch": 4})
		x, m := twins(cols, 3)
		next := p.streams()
		for range 3 {
			for a := range x {
				for range 4 {
					nes(x[a], m[a], p.bowl.gradient(x[a], next(a)), 0.05, 0.6)
				}
			}
			mean := average64(x)
			for a := range x {
				for j := range mean {
					x[a][j] = 0.7*x[a][j] + 0.3*mean[j]
				}
			}
		}
		p.rounds(3 * map[float64]int{32: 1, 2: 2}[slice])
		p.same(BlockX, x...)
		p.same(BlockM, m...)
	}
}

// To keep nothing is LocalSGD, bit for bit; to keep all is to train alone.
func TestPAPAReduces(t *testing.T) {
	b := newBowl(t, cols, samples)
	none := b.populate(t, PAPA, 3, set{"h": 4, "keep": 0, "start": 1, "batch": 4})
	local := b.populate(t, LocalSGD, 3, set{"h": 4, "batch": 4})
	all := b.populate(t, PAPA, 3, set{"h": 4, "keep": 1, "start": 1, "batch": 4})
	alone := b.populate(t, LocalSGD, 3, set{"h": 1000, "slice": 4, "batch": 4})
	for _, p := range []*population{none, local, all, alone} {
		p.rounds(3)
	}
	for a := range 3 {
		if far := distance(none.row(BlockX, a), local.row(BlockX, a)); far > 1e-6 {
			t.Errorf("member %d keeps nothing, and is %g from LocalSGD", a, far)
		}
		if far := distance(all.row(BlockX, a), alone.row(BlockX, a)); far > 1e-6 {
			t.Errorf("member %d keeps all, and is %g from training alone", a, far)
		}
	}
}

// eta 1 and momentum 0 agree on the mean of the replicas.
func TestDiLoCoOfRateOneAverages(t *testing.T) {
	b := newBowl(t, cols, samples)
	p := b.populate(t, DiLoCo, 3, set{"h": 5, "eta": 1, "momentum": 0, "batch": 4})
	// does not couple in its first round
	alone := b.populate(t, DiLoCo, 3, set{"h": 6, "slice": 5, "eta": 1, "momentum": 0, "batch": 4})
	p.rounds(1)
	alone.rounds(1)
	if far := distance(p.centre(), average64([][]float64{alone.row(BlockX, 0), alone.row(BlockX, 1), alone.row(BlockX, 2)})); far > 1e-6 {
		t.Errorf("the centre is %g from the mean of replicas that go on", far)
	}
}

// Gradient descent on the whole set: g = 1/N sum_i grad f_i(x), m = mu*m + g, x -= eta*(g + mu*m), however it is cut.
func TestBGD(t *testing.T) {
	for _, k := range []set{{"groups": 1, "batch": 40}, {"groups": 3, "batch": 4}, {"groups": 7, "batch": 1, "slice": 2}, {"groups": 20, "batch": 100}} {
		k["eta"], k["momentum"], k["decay"], k["clip"] = 0.2, 0.5, 0.01, 3
		p := newBowl(t, cols, samples).populate(t, BGD, 3, k)
		x, m := start64(), make([]float64, cols)
		for range 3 {
			g := p.bowl.gradient(x, p.bowl.Train())
			var norm float64
			for _, v := range g {
				norm += v * v
			}
			for j := range g {
				g[j] = g[j]*min(1, 3/math.Sqrt(norm)) + 0.01*x[j]
			}
			nes(x, m, g, 0.2, 0.5)
		}
		var steps, done int64
		for steps < 3 {
			rep := p.rounds(1)
			steps, done = steps+rep.Steps, done+rep.Samples
		}
		p.same(BlockX, x)
		if done != 3*samples {
			t.Errorf("%s: %d samples in three passes of %d", describe(k), done, samples)
		}
	}
}

// Adam and AdamW follow the gradient of the whole set; weight decay of the first is part of it, and that of the second
// is not.
func TestBGDAdapts(t *testing.T) {
	for choice, name := range []string{1: "adam", 2: "adamw"} {
		if name == "" {
			continue
		}
		p := newBowl(t, cols, samples).populate(t, BGD, 3, set{"groups": 3, "batch": 4, "optimiser": float64(choice), "eta": 0.02, "decay": 0.1})
		x, m, v := start64(), make([]float64, cols), make([]float64, cols)
		for step := range 3 {
			g, decay := p.bowl.gradient(x, p.bowl.Train()), 0.1
			if name == "adam" {
				for j := range g {
					g[j] += 0.1 * x[j]
				}
				decay = 0
			}
			adam64(x, m, v, g, 0.9, 0.999, 0.02, decay, step+1)
		}
		for steps := int64(0); steps < 3; {
			steps += p.rounds(1).Steps
		}
		p.same(BlockX, x)
		p.same(BlockV, v)
	}
}

// The shards are the leaves of the sum: the bits do not depend on the members, and a pass survives a change of their
// number.
func TestBGDIgnoresMembers(t *testing.T) {
	b := newBowl(t, cols, samples)
	k := set{"groups": 8, "batch": 1, "slice": 2}
	want := b.populate(t, BGD, 1, k)
	want.rounds(10)
	for _, n := range []int{2, 3, 5, 11} {
		p := b.populate(t, BGD, 4, k)
		p.rounds(4) // in the middle of a pass
		q := b.populate(t, BGD, n, k)
		q.Blocks, q.Records = p.Blocks, p.Records
		q.rounds(6)
		for j, v := range flat(q.Block(BlockX)) {
			if v != flat(want.Block(BlockX))[j] {
				t.Fatalf("%d members: element %d is %v, of one member %v", n, j, v, flat(want.Block(BlockX))[j])
			}
		}
	}
}

// Local entropy's limits on a quadratic without noise. z is where the inner steps settle: the proximal point
// prox_{gamma f}(x), for which Entropy-SGD's x - z is gamma times the gradient of the Moreau envelope; and variant
// paper with xbar held settles where z = prox_{(gamma+rho) f}(xbar). prox_{c f}(x) = (x + c*a*e)/(1 + c*a), e the mean
// target.
func TestProximalLimit(t *testing.T) {
	b := newBowl(t, cols, samples)
	b.e = b.e[:1]
	prox := func(x []float64, c float64) []float64 {
		out := make([]float64, cols)
		for j := range out {
			out[j] = (x[j] + c*b.a[j]*b.e[0][j]) / (1 + c*b.a[j])
		}
		return out
	}
	const gamma, rho = 2, 3
	p := b.populate(t, EntropySGD, 1, set{"ell": 800, "slice": 800, "eta": 1, "eta_in": 0.05, "momentum": 0, "thermal": 0, "gamma": gamma, "batch": 1})
	p.rounds(1)
	p.same(BlockX, prox(start64(), gamma))

	q := b.populate(t, Parle, 1, set{"variant": "paper", "ell": 100, "slice": 100, "eta": 0.05, "momentum": 0, "gamma": gamma, "rho": rho, "batch": 1})
	held := engine.NewHost(1, cols, engine.F32)
	copy(held.F, flat(q.Block(BlockXBar)))
	for range 60 {
		q.rounds(1)
		copy(flat(q.Block(BlockXBar)), held.F)
	}
	q.same(BlockZ, prox(start64(), gamma+rho))
	if far := distance(q.row(BlockZ, 0), prox(start64(), gamma)); far < 1e-2 {
		t.Errorf("the limit is not sharp: prox of gamma alone is %g away", far)
	}
}

// Reductions, each with its mapping of knobs.
func TestReductions(t *testing.T) {
	b := newBowl(t, cols, samples)
	base := func(more set) set {
		v := set{"batch": 4, "momentum": 0}
		for name, x := range more {
			v[name] = x
		}
		return v
	}
	rows := func(p *population) (out [][]float64) {
		for m := range p.Block(BlockX).Rows {
			out = append(out, p.row(BlockX, m))
		}
		return out
	}
	run := func(a *Algorithm, n, rounds int, k set) [][]float64 {
		p := b.populate(t, a, n, base(k))
		p.rounds(rounds)
		return rows(p)
	}
	sgd := func(n, rounds int, eta, mu float64) [][]float64 { // n independent ones
		return run(LocalSGD, n, 1, set{"h": float64(rounds) + 1, "slice": float64(rounds), "eta": eta, "momentum": mu})
	}
	check := func(what string, got, want [][]float64, holds bool) {
		t.Helper()
		var far float64
		for m := range want {
			far = max(far, distance(got[m], want[m]))
		}
		if holds != (far <= 2e-6) || !holds && far < 1e-3 {
			t.Errorf("%s: %g distance, should hold: %v", what, far, holds)
		}
	}
	loose := set{"ell": 1, "alpha": 0, "thermal": 0, "eta": 0.5, "eta_in": 0.1, "gamma": 1e12, "rho": 1e12}
	check("Elastic-SGD, rho -> infinity: n SGDs", run(Elastic, 3, 8, set{"rho": 1e12, "eta": 0.05, "momentum": 0.9}), sgd(3, 8, 0.05, 0.9), true)
	check("Elastic-SGD of one: SGD for any rho", run(Elastic, 1, 8, set{"rho": 0.5, "eta": 0.05, "momentum": 0.9}), sgd(1, 8, 0.05, 0.9), true)
	check("Elastic-SGD, rho 1: not n SGDs", run(Elastic, 3, 8, set{"rho": 1, "eta": 0.05}), sgd(3, 8, 0.05, 0), false)
	entropy := set{"ell": 1, "alpha": 0, "thermal": 0, "eta": 0.5, "eta_in": 0.1}
	check("Entropy-SGD, ell 1, alpha 0: SGD for any gamma", run(EntropySGD, 1, 8, entropy), sgd(1, 8, 0.05, 0), true)
	check("Parle arxiv, all loose: n SGDs", run(Parle, 3, 8, loose), sgd(3, 8, 0.05, 0), true)
	free := set{"ell": 5, "eta": 0.5, "eta_in": 0.1, "gamma": 3, "thermal": 0.1, "momentum": 0.7, "inner": "zeroed"}
	one := run(EntropySGD, 1, 4, free)
	free["rho"] = 1e12
	check("Parle arxiv, rho -> infinity, inner zeroed: Entropy-SGD", run(Parle, 3, 4, free)[:1], one, true)
	free["inner"] = "kept"
	check("Parle arxiv with its momentum kept: not Entropy-SGD", run(Parle, 3, 4, free)[:1], one, false)
	tight := set{"ell": 1, "alpha": 0, "eta": 0.5, "eta_in": 0.1, "rho": 2}
	check("Parle arxiv, ell 1, alpha 0: not Elastic-SGD, its mean is over z", run(Parle, 3, 8, tight), run(Elastic, 3, 8, set{"eta": 0.05, "rho": 0.2}), false)
	loose["variant"] = "paper"
	still := run(Parle, 3, 8, set{"variant": "paper", "ell": 1, "alpha": 0, "eta": 0.05, "gamma": 1e12, "rho": 1})
	x, _ := twins(cols, 3)
	check("Parle paper, gamma -> infinity: x never moves", still, x, true)
	check("Parle paper, gamma -> infinity: not n SGDs", still, sgd(3, 8, 0.05, 0), false)
	check("Parle paper, all loose: not n SGDs", run(Parle, 3, 8, loose), sgd(3, 8, 0.05, 0), false)
}
