package gossip

import (
	"context"
	"math"
	"slices"
	"testing"

	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/averaging"
	"brood/optim/collective"
	"brood/optim/coupled"
	"brood/optim/optimtest"
)

// TestSGP compares with algorithm 1 and the mass of the source: z = x/w; a step at z; x = w*z; push p*(x, w) to the
// peers at hops 2^a, where a advances by one a round. Weights start unequal here, as after departures.
func TestSGP(t *testing.T) {
	for _, peers := range []int{1, 2} {
		for _, n := range []int{2, 5, 8} {
			if peers > len(sgpHops(n)) {
				continue
			}
			p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, SGP, n,
				optimtest.Set{"peers": float64(peers), "eta": 0.05, "momentum": 0.6, "batch": 4})
			z, m := optimtest.StartRows(optimtest.Cols, n)
			w, next := make([]float64, n), p.Streams()
			for i := range w {
				w[i] = 0.5 + float64(i%3)
				p.Record(optim.BlockW).F[i] = float32(w[i])
			}
			for round := range 7 {
				share := 1 / float64(peers+1)
				newW, x := make([]float64, n), make([][]float64, n)
				for i := range x {
					x[i] = make([]float64, optimtest.Cols)
				}
				send := func(from, to int) {
					newW[to] += share * w[from]
					for j := range x[to] {
						x[to][j] += share * w[from] * z[from][j]
					}
				}
				for i := range z {
					optimtest.Nesterov(z[i], m[i], p.Bowl.Gradient(z[i], next(i)), 0.05, 0.6)
				}
				for i := range z {
					send(i, i)
					for a := range peers {
						send(i, (i+1<<((round+a)%len(sgpHops(n))))%n)
					}
				}
				w = newW
				for i := range z {
					for j := range z[i] {
						z[i][j] = x[i][j] / w[i]
					}
				}
			}
			p.Rounds(7)
			p.Same(optim.BlockX, z...)
			if far := optimtest.Distance(optimtest.Doubles(p.Record(optim.BlockW).F), w); far > 1e-5 {
				t.Errorf("n = %d, %d peers: weights are %g from the reference", n, peers, far)
			}
		}
	}
}

// TestNoLoCoBound: without gradients the squared distances of replicas fall below the bound of gamma and grow above it,
// for two replicas, and in the mean of many.
func TestNoLoCoBound(t *testing.T) {
	for n, bound := range map[int]float64{2: 2 * 1.3, 300: 2 * (1 - 0.3*0.3) / (1 + 0.3 - 0.3*300/299)} {
		for _, share := range []float64{0.9, 1.1} {
			gamma := share * bound
			p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, NoLoCo, n,
				optimtest.Set{"gamma": gamma, "momentum": 0.3, "eta_in": 0, "h": 1, "batch": 1})
			scatter(p)
			for m := range n {
				copy(optimtest.RowOf(p.Block(optim.BlockBegun), engine.Row(m)),
					optimtest.RowOf(p.Block(optim.BlockX), engine.Row(m)))
			}
			distances := func() (v float64) {
				centre := p.CentreOf()
				for m := range n {
					d := optimtest.RMSDistance(p.RowOf(optim.BlockX, m), centre)
					v += d * d
				}
				return v
			}
			p.Rounds(5)
			before := distances()
			p.Rounds(40)
			if after := distances(); after > before != (share > 1) {
				t.Errorf("%d replicas, gamma %g: the squared distances go from %g to %g", n, gamma, before, after)
			}
			if err := NoLoCo.Check(p.Shape(p.Knobs)); err == nil != (share < 1) {
				t.Errorf("%d replicas, gamma %g: %v", n, gamma, err)
			}
		}
	}
}

// scatter gives each member a different x.
func scatter(p *optimtest.Population) {
	for i := range optimtest.Flat(p.Block(optim.BlockX)) {
		optimtest.Flat(p.Block(optim.BlockX))[i] = noise.Key{Seed: p.Seed, Purpose: noise.Init}.Gauss(i)
	}
}

// Without gradients SGP is push-sum: the sum of the masses is conserved, all models converge to their mean, and weights
// stay one, since every in-degree equals the out-degree. Members that leave transfer their mass.
func TestSGPConservesTheMean(t *testing.T) {
	for _, n := range []int{2, 3, 6, 8, 13} {
		p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, SGP, n,
			optimtest.Set{"eta": 0, "batch": 1, "peers": min(2, float64(len(sgpHops(n))))})
		scatter(p)
		mean := p.CentreOf()
		p.Rounds(60)
		for m := range n {
			if far := optimtest.Distance(p.RowOf(optim.BlockX, m), mean); far > 1e-5 {
				t.Errorf("n = %d: member %d is %g from the mean", n, m, far)
			}
			if w := p.Record(optim.BlockW).F[m]; math.Abs(float64(w)-1) > 1e-5 {
				t.Errorf("n = %d: the weight of member %d is %v", n, m, w)
			}
		}
		if far := optimtest.Distance(p.CentreOf(), mean); far > 1e-5 {
			t.Errorf("n = %d: the centre moved by %g", n, far)
		}
	}
	p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, SGP, 7, optimtest.Set{"eta": 0, "batch": 1})
	scatter(p)
	mean := p.CentreOf()
	if err := p.Algorithm.Program.(optim.Leaver).Leave(context.Background(), p.Env, p.Knobs,
		[]engine.Member{2, 3, 6}); err != nil {
		t.Fatal(err)
	}
	// 6 transfers to 0; 2 and 3 to 4
	if w := optimtest.Doubles(p.Record(optim.BlockW).F); optimtest.Distance(w, []float64{2, 1, 0, 0, 3, 1, 0}) != 0 {
		t.Errorf("weights after three left: %v", w)
	}
	if far := optimtest.Distance(p.CentreOf(), mean); far > 1e-6 {
		t.Errorf("the centre moved by %g when three left", far)
	}
}

// TestADPSGD compares with algorithm 1 event by event: a gradient computed at the pulled copy and applied to the
// current x; meetings average.
func TestADPSGD(t *testing.T) {
	for _, n := range []int{2, 5} {
		p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, ADPSGD, n,
			optimtest.Set{"gossip": 1.5, "eta": 0.05, "momentum": 0.6, "batch": 4})
		x, m := optimtest.StartRows(optimtest.Cols, n)
		pull, _ := optimtest.StartRows(optimtest.Cols, n)
		next, stale, far := p.Streams(), 0, map[engine.Member]float64{}
		for round := range 6 {
			clear(far)
			for _, ev := range adPSGDEvents(p.Rand(noise.Pair, uint64(round), 0), p.Roster.Members, 1.5) {
				i, j := ev[0], ev[1]
				if i == j {
					if optimtest.Distance(x[i], pull[i]) > 0 {
						stale++
					}
					far[i] = optimtest.RMSDistance(x[i], pull[i])
					optimtest.Nesterov(x[i], m[i], p.Bowl.Gradient(pull[i], next(int(i))), 0.05, 0.6)
					copy(pull[i], x[i])
					continue
				}
				if i%2 != 1 || j%2 != 0 {
					t.Errorf("member %d started a meeting with %d: active members are odd, passive ones even", i, j)
				}
				mean := optimtest.Average([][]float64{x[i], x[j]})
				copy(x[i], mean)
				copy(x[j], mean)
			}
		}
		p.Rounds(5)
		p.Probe(true)
		p.Rounds(1)
		p.Same(optim.BlockX, x...)
		p.Same(optim.BlockPull, pull...)
		for _, point := range p.Looks() {
			want, some := far[point.Member]
			if delete(far, point.Member); point.Series == "staleness" && (!some || math.Abs(point.Value-want) > 1e-6) {
				t.Errorf("%d members: the gradient of member %d is %g stale, the reference's %g", n, point.Member,
					point.Value, want)
			}
		}
		if len(far) > 0 {
			t.Errorf("%d members: no staleness is reported for the gradients of %v", n, far)
		}
		if stale == 0 {
			t.Error("no gradient was stale")
		}
	}
}

// TestPopSGD compares meeting by meeting, in all modes and with both distributions of steps.
func TestPopSGD(t *testing.T) {
	for _, mode := range []string{"blocking", "non-blocking", "one-sided"} {
		for _, steps := range []string{"fixed", "geometric"} {
			const n, h = 5, 3
			p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, PopSGD, n,
				optimtest.Set{"mode": mode, "steps": steps, "h": h, "eta": 0.05, "momentum": 0.6, "batch": 4})
			x, m := optimtest.StartRows(optimtest.Cols, n)
			shown, _ := optimtest.StartRows(optimtest.Cols, n)
			next, count := p.Streams(), 2
			if mode == "one-sided" {
				count = n
			}
			for round := range 6 {
				meetings := Meetings(p.Rand(noise.Pair, uint64(round), 0), p.Roster.Members, count)
				wave := map[int]int{}
				for w, is := range Waves(meetings) {
					for _, i := range is {
						wave[i] = w
					}
				}
				for at, meeting := range meetings {
					i, j := meeting[0], meeting[1]
					takes := func(a engine.Member) {
						for range popSGDSteps(p.Rand(noise.Pair, uint64(round), a), p.Knobs, wave[at]) {
							optimtest.Nesterov(x[a], m[a], p.Bowl.Gradient(x[a], next(int(a))), 0.05, 0.6)
						}
					}
					takes(i)
					switch mode {
					case "blocking":
						takes(j)
						mean := optimtest.Average([][]float64{x[i], x[j]})
						copy(x[i], mean)
						copy(x[j], mean)
					case "one-sided":
						copy(x[i], optimtest.Average([][]float64{x[i], shown[j]}))
						copy(shown[i], x[i])
					default:
						takes(j)
						xi, xj := optimtest.Average([][]float64{x[i], shown[j]}), optimtest.Average([][]float64{x[j], shown[i]})
						copy(x[i], xi)
						copy(x[j], xj)
						copy(shown[i], xi)
						copy(shown[j], xj)
					}
				}
			}
			p.Rounds(6)
			p.Same(optim.BlockX, x...)
			if mode != "blocking" {
				p.Same(optim.BlockShown, shown...)
			}
		}
	}
}

// Blocking meetings conserve the mean; the other modes do not.
func TestPopSGDMean(t *testing.T) {
	for mode, conserves := range map[string]bool{"blocking": true, "non-blocking": false, "one-sided": false} {
		p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, PopSGD, 6,
			optimtest.Set{"mode": mode, "eta": 0, "batch": 1})
		scatter(p)
		before := p.CentreOf()
		p.Rounds(5)
		if far := optimtest.Distance(p.CentreOf(), before); conserves != (far < 1e-6) {
			t.Errorf("mode %s moved the mean by %g", mode, far)
		}
	}
}

// Geometric step counts have mean h and are memoryless: P(s > 2h) = (1-1/h)^2h.
func TestGeometricSteps(t *testing.T) {
	const h, draws = 4, 40000
	k, sum, long := optimtest.Set{"h": h, "steps": "geometric"}.Of(PopSGD), 0, 0
	for i := range uint64(draws) {
		s := popSGDSteps(noise.Key{Purpose: noise.Pair, Round: i}, k, 0)
		if sum += s; s > 2*h {
			long++
		}
	}
	tail := math.Pow(1-1.0/h, 2*h)
	if mean, se := float64(sum)/draws, math.Sqrt(h*(h-1.0)/draws); math.Abs(mean-h) > 4*se {
		t.Errorf("mean %.3f, want %d ± %.3f", mean, h, 4*se)
	}
	if share, se := float64(long)/draws, math.Sqrt(tail*(1-tail)/draws); math.Abs(share-tail) > 4*se {
		t.Errorf("%.4f take more than 2h steps, want %.4f ± %.4f", share, tail, 4*se)
	}
}

// With pure noise of variance s^2 as gradient the variance of PopSGD between members converges to E[Gamma] =
// h*eta^2*s^2*(n-1)*(1-2/n) per coordinate.
func TestStationaryVariance(t *testing.T) {
	const n, h, eta, many, rounds = 8, 2, 0.5, 128, 600
	b := optimtest.NewBowl(t, many, 4096)
	b.Flat = true
	var s2 float64
	mean := optimtest.Average(b.E)
	for _, e := range b.E {
		for j := range e {
			e[j] -= mean[j]
			s2 += e[j] * e[j] / many / 4096
		}
	}
	p := b.Populate(t, PopSGD, n, optimtest.Set{"h": h, "eta": eta, "momentum": 0, "batch": 1})
	p.Rounds(100)
	var sum float64
	for range rounds {
		p.Rounds(1)
		x := make([][]float64, n)
		for a := range x {
			x[a] = p.RowOf(optim.BlockX, a)
		}
		centre := optimtest.Average(x)
		for a := range x {
			for j := range centre {
				d := x[a][j] - centre[j]
				sum += d * d / many / rounds
			}
		}
	}
	law := h * eta * eta * s2 * (n - 1) * (1 - 2.0/n)
	t.Logf("Gamma a coordinate %.4f, law %.4f", sum, law)
	if math.Abs(sum/law-1) > 0.02 {
		t.Errorf("spread settles at %.4f, the law says %.4f", sum, law)
	}
}

// TestMeanEstimation: member i has one sample e_i and the loss ||x - e_i||^2/2. With every gossip method all members
// converge to the mean of the e_i as the learning rate decreases.
func TestMeanEstimation(t *testing.T) {
	for _, a := range []*optim.Algorithm{PopSGD, SGP, DPSGD, ADPSGD, coupled.Elastic, averaging.LocalSGD} {
		const n = 8
		b := optimtest.NewBowl(t, optimtest.Cols, n)
		for j := range b.A {
			b.A[j] = 1
		}
		k := optimtest.Set{"parts": "disjoint", "batch": 1, "momentum": 0}
		p := b.Populate(t, a, n, k)
		for _, eta := range []float64{0.1, 0.01, 0.004} {
			p.Knobs = p.Knobs.With("eta", eta)
			p.Rounds(int(5 / eta))
		}
		var worst float64
		for m := range n {
			worst = max(worst, optimtest.Distance(p.RowOf(optim.BlockX, m), optimtest.Average(b.E)))
		}
		t.Logf("%s: at most %.4f from the mean", a.Name, worst)
		if a != coupled.Elastic && worst > 0.05 { // elastic replicas stay apart by design
			t.Errorf("%s: a member is %.4f from the mean", a.Name, worst)
		}
		if far := optimtest.Distance(p.CentreOf(), optimtest.Average(b.E)); far > 0.05 {
			t.Errorf("%s: the centre is %.4f from the mean", a.Name, far)
		}
	}
}

// If an algorithm draws its edges, the value that Bytes expects without them is the mean over rounds.
func TestExpectedBytes(t *testing.T) {
	for _, c := range []struct {
		a *optim.Algorithm
		k optimtest.Set
	}{
		{PopSGD, optimtest.Set{}}, {PopSGD, optimtest.Set{"mode": "one-sided"}},
		{PopSGD, optimtest.Set{"pairing": "matching"}},
		{PopSGD, optimtest.Set{"pairing": "matching", "mode": "one-sided"}},
		{PopSGD, optimtest.Set{"code": "lattice8", "cell": 1}}, {ADPSGD, optimtest.Set{"gossip": 2}},
		{coupled.EASGD, optimtest.Set{"tau": 3}},
	} {
		c.k["batch"] = 1
		p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, c.a, 7, c.k)
		s := optim.Shape{Roster: collective.Roster{Members: collective.IDs(7), Owner: []int{0, 0, 0, 1, 1, 2, 2}},
			Layout: p.Layout, K: p.Knobs}
		const rounds = 700
		want, got := collective.Ledger{}, collective.Ledger{}
		want.Add(c.a.Bytes(s))
		s.Drawn = true
		for range rounds {
			s.Edges = p.Rounds(1).Edges
			got.Add(c.a.Bytes(s))
		}
		for op, n := range want {
			if mean := float64(got[op]) / rounds; math.Abs(mean/float64(n)-1) > 0.05 {
				t.Errorf("%s %s: %s takes %.1f bytes a round, %d are expected", c.a.Name, optimtest.Describe(c.k), op, mean, n)
			}
		}
	}
}

// Without gradients one meeting of PopSGD multiplies the expected spread of independent members by 1 - 1/(n-1); three
// members have one meeting a round. A matching of n members, n even, multiplies it by (n-2)/(2(n-1)). With lattice
// codes this holds if the cell is small relative to the spread.
func TestContractionOfARound(t *testing.T) {
	for _, c := range []struct {
		n             int
		pairing, code string
		law, slack    float64
	}{
		{3, "independent", "float32", 1 - 1.0/2, 0},
		{3, "independent", "lattice8", 1 - 1.0/2, 1e-3},
		{6, "matching", "float32", 4.0 / 10, 0},
		{6, "matching", "lattice8", 4.0 / 10, 1e-3},
	} {
		const seeds = 3000
		n := c.n
		b := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples)
		p := b.Populate(t, PopSGD, n, optimtest.Set{"eta": 0, "batch": 1, "code": c.code, "cell": 0.05,
			"pairing": c.pairing})
		gamma := func() (sum float64) {
			centre := p.CentreOf()
			for m := range n {
				for j, v := range p.RowOf(optim.BlockX, m) {
					sum += (v - centre[j]) * (v - centre[j])
				}
			}
			return sum
		}
		var sum, square float64
		for seed := range uint64(seeds) {
			p.Seed = seed
			scatter(p)
			before := gamma()
			p.Rounds(1)
			q := gamma() / before
			sum, square = sum+q/seeds, square+q*q/seeds
		}
		if se := math.Sqrt((square - sum*sum) / seeds); math.Abs(sum-c.law) > 4*se+c.slack {
			t.Errorf("%+v: a round leaves %.4f ± %.4f of the spread", c, sum, se)
		}
	}
}

// The longest chain of independent pairs grows by min_l (2 e^l - 1)/l = 4.311 meetings a round as n grows, by less in a
// small population, and by one with a matching.
func TestChainsOfMeetings(t *testing.T) {
	chain := func(k optim.Values, n, rounds int) float64 {
		depth := make([]int, n)
		for r := range uint64(rounds) {
			meetings, _ := popSGDMeetings(noise.Key{Purpose: noise.Pair, Round: r}, k, collective.IDs(n))
			for _, m := range meetings {
				d := max(depth[m[0]], depth[m[1]]) + 1
				depth[m[0]], depth[m[1]] = d, d
			}
		}
		return float64(slices.Max(depth)) / float64(rounds)
	}
	independent := optimtest.Set{}.Of(PopSGD)
	if small, large := chain(independent, 16, 400), chain(independent, 20000, 60); small < 2 || small > 3.2 ||
		large < 3.8 || large > 4.4 {
		t.Errorf("independent pairs: %.2f meetings a round of 16 members, %.2f of 20,000", small, large)
	}
	if d := chain(optimtest.Set{"pairing": "matching"}.Of(PopSGD), 64, 50); d != 1 {
		t.Errorf("matchings: the longest chain grows by %.2f a round", d)
	}
}
