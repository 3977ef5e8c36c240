package coupled

import (
	"math"
	"slices"
	"testing"

	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/averaging"
	"brood/optim/gossip"
	"brood/optim/optimtest"
)

// TestElastic compares with eq. 1 of Parle: r = mean x; x -= eta*Nes(m, grad f(x) + (x - r)/rho).
func TestElastic(t *testing.T) {
	p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, Elastic, 3,
		optimtest.Set{"rho": 2, "eta": 0.05, "momentum": 0.6, "batch": 4, "split": 0.5})
	x, m := optimtest.StartRows(optimtest.Cols, 3)
	next := p.Streams()
	for range 8 {
		r := optimtest.Average(x)
		for a := range x {
			g := p.Bowl.Gradient(x[a], next(a))
			for j := range g {
				g[j] += (x[a][j] - r[j]) / 2
			}
			optimtest.Nesterov(x[a], m[a], g, 0.05, 0.6)
		}
	}
	p.Rounds(8)
	p.Same(optim.BlockX, x...)
}

// TestEASGD compares with EASGD and EAMSGD (Zhang 2015, algorithms 1 and 2), turn by turn: e = alpha(x - c) if tau
// divides the member's clock, then a step along the gradient at x before that exchange.
func TestEASGD(t *testing.T) {
	for _, mu := range []float64{0, 0.9} {
		p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, EASGD, 4,
			optimtest.Set{"momentum": mu, "eta": 0.05, "tau": 2, "batch": 3})
		x, m := optimtest.StartRows(optimtest.Cols, 4)
		c, clock, next := optimtest.StartRow(), make([]uint64, 4), p.Streams()
		met := 0
		for round := range 9 {
			for _, turn := range easgdTurns(p.Rand(noise.Pair, uint64(round), 0), p.Roster.Members,
				append([]uint64(nil), clock...), 2) {
				a := turn.member
				g := p.Bowl.Gradient(x[a], next(int(a)))
				if clock[a]%2 == 0 {
					met++
					for j := range c {
						e := 0.9 / 4 * (x[a][j] - c[j])
						x[a][j] -= e
						c[j] += e
					}
				}
				optimtest.Nesterov(x[a], m[a], g, 0.05, mu)
				clock[a]++
			}
		}
		p.Rounds(9)
		p.Same(optim.BlockX, x...)
		p.Same(optim.BlockXBar, c)
		if met < 12 {
			t.Errorf("%d meetings in 36 turns with tau 2", met)
		}
	}
}

// cycle is the inner loop of local entropy as in algorithm 1 of Entropy-SGD, with steps by the given momentum. It
// changes y, z and m.
func cycle(p *optimtest.Population, x, y, z, m []float64, eta, mu float64,
	step func(x, buf, g []float64, eta, mu float64), next func() ([]float64, noise.Key)) {
	for range p.Knobs.I("ell") {
		g, key := next()
		eps := p.Normal(key)
		for j := range g {
			g[j] += (y[j] - x[j]) / p.Knobs.Get("gamma")
		}
		step(y, m, g, eta, mu)
		for j := range y {
			y[j] += eta * p.Knobs.Get("thermal") / math.Sqrt(0.5*eta) * eps[j]
			z[j] = p.Knobs.Get("alpha")*z[j] + (1-p.Knobs.Get("alpha"))*y[j]
		}
	}
}

// TestEntropySGD compares with algorithm 1, data-parallel: y = z = x, m = 0; ell Langevin steps; x -= eta*Nes(mx, x -
// z).
func TestEntropySGD(t *testing.T) {
	for _, slice := range []float64{32, 2} { // a cycle a round, and two rounds a cycle
		p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, EntropySGD, 3,
			optimtest.Set{"ell": 4, "slice": slice, "eta": 0.3, "eta_in": 0.05, "momentum": 0.6, "gamma": 5, "thermal": 0.1,
				"batch": 3})
		x, mx, at := optimtest.StartRow(), make([]float64, optimtest.Cols), uint64(0)
		for range 3 {
			y, z, m := append([]float64(nil), x...), append([]float64(nil), x...), make([]float64, optimtest.Cols)
			cycle(p, x, y, z, m, 0.05, 0.6, optimtest.Nesterov, func() ([]float64, noise.Key) {
				batch := make([]int32, 9)
				p.SharedBatch(batch, at)
				at += 9
				return p.Bowl.Gradient(y, batch), p.Rand(noise.Thermal, at, 0)
			})
			for j := range z {
				z[j] = x[j] - z[j]
			}
			optimtest.Nesterov(x, mx, z, 0.3, 0.6)
		}
		p.Rounds(3 * 4 / min(4, int(slice)))
		p.Same(optim.BlockX, x)
	}
}

// wholeSums is the momentum of Parle's MPI program: buf <- mu*buf + g; x <- x - eta*(g + buf).
func wholeSums(x, buf, g []float64, eta, mu float64) {
	for j := range x {
		buf[j] = mu*buf[j] + g[j]
		x[j] -= eta * (g[j] + buf[j])
	}
}

// TestParle: all variants, with thermal noise, on disjoint parts, in cycles of two rounds.
func TestParle(t *testing.T) {
	for _, variant := range []string{"paper", "arxiv", "code"} {
		for _, inner := range []string{"kept", "zeroed"} {
			p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, Parle, 3,
				optimtest.Set{"variant": variant, "inner": inner, "ell": 4, "slice": 2, "eta": 0.1, "eta_in": 0.05,
					"momentum": 0.6, "gamma": 5, "rho": 2, "thermal": 0.1, "batch": 3, "parts": "disjoint"})
			x, m := optimtest.StartRows(optimtest.Cols, 3)
			y, mx := optimtest.StartRows(optimtest.Cols, 3)
			z, _ := optimtest.StartRows(optimtest.Cols, 3)
			xbar, next, at := optimtest.StartRow(), p.Streams(), make([]uint64, 3)
			for range 3 {
				for a := range x {
					if inner == "zeroed" {
						clear(m[a])
					}
					eta, step := 0.1, optimtest.Nesterov
					switch variant {
					case "arxiv":
						eta = 0.05
						copy(y[a], x[a])
						copy(z[a], x[a])
					case "code":
						step = wholeSums
					}
					cycle(p, x[a], y[a], z[a], m[a], eta, 0.6, step, func() ([]float64, noise.Key) {
						at[a] += 3
						return p.Bowl.Gradient(y[a], next(a)), p.Rand(noise.Thermal, at[a], engine.Member(a))
					})
				}
				r := optimtest.Average(z)
				for a := range x {
					g := make([]float64, optimtest.Cols)
					for j := range g {
						if variant == "paper" { // eq. 5: tau = gamma/(rho + gamma)
							x[a][j] = (1-5.0/7)*z[a][j] + 5.0/7*xbar[j]
						} else {
							g[j] = (x[a][j] - z[a][j]) + (x[a][j]-r[j])/2
						}
					}
					switch variant {
					case "arxiv":
						optimtest.Nesterov(x[a], mx[a], g, 0.1, 0.6)
					case "code":
						wholeSums(y[a], mx[a], g, 0.1, 0.6)
						copy(x[a], y[a])
					}
				}
				xbar = optimtest.Average(x)
			}
			p.Rounds(6)
			p.Same(optim.BlockX, x...)
			if far := optimtest.Distance(p.CentreOf(), xbar); far > 1e-5 {
				t.Errorf("variant %v: the centre is %g from the reference", variant, far)
			}
		}
	}
}

// TestTwins: values of independent programs, which minimise (x - e)^2 summed over the pixels of MNIST by full batches.
// From seed 1, all models stay on the line between the start and the mean picture: at the share s of the way back to
// the start, the test loss is 557.242 + 456.509*s^2 + 9.961*s, the last two from two of arxiv's values.
func TestTwins(t *testing.T) {
	line := optimtest.NewBowl(t, 1, 1)
	line.A[0], line.E[0][0] = 2, 0
	parle := optimtest.Set{"momentum": 0.9, "ell": 10, "gamma": 5, "rho": 2, "eta": 0.02, "eta_in": 0.02}
	for _, c := range []struct {
		algorithm *optim.Algorithm
		set       optimtest.Set
		want      []float64
	}{
		{Parle, optimtest.Merge(parle, optimtest.Set{"variant": "arxiv", "eta": 0.3}), []float64{605.859, 608.184, 685.568}},
		{Parle, optimtest.Merge(parle, optimtest.Set{"variant": "paper"}), []float64{836.501, 685.398, 634.541}},
		{Parle, optimtest.Merge(parle, optimtest.Set{"variant": "code"}), []float64{571.425, 564.325, 560.5}},
		{EntropySGD, optimtest.Set{"momentum": 0.9, "momentum_out": 0, "pull": "outside", "thermal": 0, "ell": 20, "gamma": 5,
			"eta": 1, "eta_in": 0.05},
			[]float64{560.57, 557.313, 557.246, 557.242}},
	} {
		p := line.Populate(t, c.algorithm, 2, optimtest.Merge(c.set, optimtest.Set{"batch": 1}))
		for i, want := range c.want {
			p.Rounds(1)
			s := p.CentreOf()[0] / optimtest.Start(0)
			if got := 557.242 + 456.509*s*s + 9.961*s; math.Abs(got-want) > 0.003 {
				t.Errorf("%s %v, cycle %d: test loss %.3f, want %.3f", c.algorithm.Name, c.set["variant"], i+1, got, want)
			}
		}
	}
}

// TestCodeIsSGD: with ell 1, alpha 0, momentum 0 and rho -> infinity, Parle's variant code is SGD of rate
// 2*eta*(1 + 2*eta), for any gamma.
func TestCodeIsSGD(t *testing.T) {
	p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, Parle, 3,
		optimtest.Set{"variant": "code", "ell": 1, "alpha": 0, "momentum": 0, "rho": 1e12, "gamma": 3, "eta": 0.05,
			"batch": 4})
	x, m := optimtest.StartRows(optimtest.Cols, 3)
	next := p.Streams()
	for range 8 {
		for a := range x {
			optimtest.Nesterov(x[a], m[a], p.Bowl.Gradient(x[a], next(a)), 2*0.05*(1+2*0.05), 0)
		}
	}
	p.Rounds(8)
	p.Same(optim.BlockX, x...)
}

// With disjoint parts every sample belongs to exactly one member, for every n.
func TestDisjointParts(t *testing.T) {
	for _, n := range []int{1, 3, 7} {
		p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, Parle, n, optimtest.Set{"parts": "disjoint"})
		owner := map[int32]int{}
		for m := range n {
			p.Deal(p.Knobs)
			for _, id := range p.Stream(engine.Member(m), 0, p.Samples(engine.Member(m))) {
				if o, ok := owner[id]; ok {
					t.Errorf("n = %d: sample %d belongs to members %d and %d", n, id, o, m)
				}
				owner[id] = m
			}
		}
		if rep := p.Rounds(1); len(owner) != optimtest.Samples || rep.Pass.Of != optimtest.Samples {
			t.Errorf("n = %d: %d of %d samples belong to a member, a pass has %d", n, len(owner), optimtest.Samples, rep.Pass.Of)
		}
	}
}

// Each member clips its gradient, g <- g*min(1, clip/||g||), before weight decay is added. The norm is over all
// parameters.
func TestClip(t *testing.T) {
	for _, clip := range []float64{0, 0.5, 3.7, 1e5} {
		p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, Elastic, 2,
			optimtest.Set{"clip": clip, "decay": 0.1, "eta": 0.1, "momentum": 0, "rho": 1e12, "batch": 5})
		x, m := optimtest.StartRows(optimtest.Cols, 2)
		next := p.Streams()
		clipped := 0
		for range 6 {
			for a := range x {
				g := p.Bowl.Gradient(x[a], next(a))
				var norm float64
				for _, v := range g {
					norm += v * v
				}
				norm = math.Sqrt(norm)
				if clip > 0 && norm > clip {
					clipped++
					for j := range g {
						g[j] *= clip / norm
					}
				}
				for j := range g {
					g[j] += 0.1 * x[a][j]
				}
				optimtest.Nesterov(x[a], m[a], g, 0.1, 0)
			}
		}
		p.Rounds(6)
		p.Same(optim.BlockX, x...)
		if want := map[float64]bool{0.5: true, 3.7: true}[clip]; want != (clipped > 0) {
			t.Errorf("clip %g: %d gradients were clipped", clip, clipped)
		}
	}
}

// Every gradient method applies the shared knobs.
// TestOwnKnobsComeFirst: screens begin with what makes the algorithm, not with the learning rate of its steps.
func TestOwnKnobsComeFirst(t *testing.T) {
	want := []string{"ell", "gamma", "rho", "alpha", "thermal", "inner", "variant", "eta", "eta_in", "momentum"}
	var got []string
	for _, k := range Parle.Shown() {
		got = append(got, k.Name)
	}
	if !slices.Equal(got[:len(want)], want) || len(got) != len(Parle.Knobs) {
		t.Errorf("Parle shows %v, want first %v", got, want)
	}
}

func TestSharedKnobs(t *testing.T) {
	for _, a := range []*optim.Algorithm{averaging.DPSGD, averaging.BGD, Elastic, EASGD, EntropySGD, Parle,
		averaging.LocalSGD, averaging.DiLoCo, gossip.SGP, gossip.ADPSGD, gossip.PopSGD} {
		b := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples)
		start := b.Populate(t, a, 4, optimtest.Set{"batch": 5})
		free := b.Populate(t, a, 4, optimtest.Set{"batch": 5})
		for _, knob := range []string{"clip", "decay"} {
			p := b.Populate(t, a, 4, optimtest.Set{"batch": 5, knob: 0.2})
			p.Rounds(6)
			free.Rounds(int(6 - free.Next))
			if optimtest.Distance(p.CentreOf(), free.CentreOf()) == 0 ||
				optimtest.Distance(free.CentreOf(), start.CentreOf()) == 0 {
				t.Errorf("%s: %s changes nothing", a.Name, knob)
			}
		}
	}
}
