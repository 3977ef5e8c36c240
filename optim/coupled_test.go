package optim

import (
	"math"
	"testing"

	"brood/models/noise"
)

const cols, samples = 13, 40

// Elastic-SGD, eq. 1 of Parle: r = mean x; x -= eta*Nes(m, grad f(x) + (x - r)/rho).
func TestElastic(t *testing.T) {
	p := newBowl(t, cols, samples).populate(t, Elastic, 3, set{"rho": 2, "eta": 0.05, "momentum": 0.6, "batch": 4, "split": 0.5})
	x, m := twins(cols, 3)
	next := p.streams()
	for range 8 {
		r := average64(x)
		for a := range x {
			g := p.bowl.gradient(x[a], next(a))
			for j := range g {
				g[j] += (x[a][j] - r[j]) / 2
			}
			nes(x[a], m[a], g, 0.05, 0.6)
		}
	}
	p.rounds(8)
	p.same(BlockX, x...)
}

// EASGD and EAMSGD (Zhang 2015, algorithms 1 and 2): turn by turn, e = alpha(x - c) when tau divides the member's
// clock, then a step along the gradient at x as it was.
func TestEASGD(t *testing.T) {
	for _, mu := range []float64{0, 0.9} {
		p := newBowl(t, cols, samples).populate(t, EASGD, 4, set{"momentum": mu, "eta": 0.05, "tau": 2, "batch": 3})
		x, m := twins(cols, 4)
		c, clock, next := start64(), make([]uint64, 4), p.streams()
		met := 0
		for round := range 9 {
			for _, turn := range easgdTurns(p.Rand(noise.Pair, uint64(round), 0), p.Roster.Members, append([]uint64(nil), clock...), 2) {
				a := turn.member
				g := p.bowl.gradient(x[a], next(int(a)))
				if clock[a]%2 == 0 {
					met++
					for j := range c {
						e := 0.9 / 4 * (x[a][j] - c[j])
						x[a][j] -= e
						c[j] += e
					}
				}
				nes(x[a], m[a], g, 0.05, mu)
				clock[a]++
			}
		}
		p.rounds(9)
		p.same(BlockX, x...)
		p.same(BlockXBar, c)
		if met < 12 {
			t.Errorf("%d meetings in 36 turns with tau 2", met)
		}
	}
}

func start64() []float64 {
	x, _ := twins(cols, 1)
	return x[0]
}

// cycle is the inner loop of local entropy as Entropy-SGD's algorithm 1 has it; z and y are changed.
func cycle(p *population, x, y, z, m []float64, eta, mu float64, next func() ([]float64, noise.Key)) {
	for range p.k.I("ell") {
		g, key := next()
		eps := p.normal(key)
		for j := range g {
			g[j] += (y[j] - x[j]) / p.k.Get("gamma")
		}
		nes(y, m, g, eta, mu)
		for j := range y {
			y[j] += eta * p.k.Get("thermal") / math.Sqrt(0.5*eta) * eps[j]
			z[j] = p.k.Get("alpha")*z[j] + (1-p.k.Get("alpha"))*y[j]
		}
	}
}

// Entropy-SGD, algorithm 1, data-parallel: y = z = x, m = 0; ell Langevin steps; x -= eta*Nes(mx, x - z).
func TestEntropySGD(t *testing.T) {
	for _, slice := range []float64{32, 2} { // a cycle a round, and two rounds a cycle
		p := newBowl(t, cols, samples).populate(t, EntropySGD, 3, set{"ell": 4, "slice": slice, "eta": 0.3, "eta_in": 0.05, "momentum": 0.6, "gamma": 5, "thermal": 0.1, "batch": 3})
		x, mx, at := start64(), make([]float64, cols), uint64(0)
		for range 3 {
			y, z, m := append([]float64(nil), x...), append([]float64(nil), x...), make([]float64, cols)
			cycle(p, x, y, z, m, 0.05, 0.6, func() ([]float64, noise.Key) {
				batch := make([]int32, 9)
				p.SharedBatch(batch, at)
				at += 9
				return p.bowl.gradient(y, batch), p.Rand(noise.Thermal, at, 0)
			})
			for j := range z {
				z[j] = x[j] - z[j]
			}
			nes(x, mx, z, 0.3, 0.6)
		}
		p.rounds(3 * 4 / min(4, int(slice)))
		p.same(BlockX, x)
	}
}

// Parle, both variants, with thermal noise, on disjoint parts, in cycles that take two rounds.
func TestParle(t *testing.T) {
	for _, variant := range []string{"paper", "arxiv"} {
		for _, inner := range []string{"kept", "zeroed"} {
			p := newBowl(t, cols, samples).populate(t, Parle, 3, set{"variant": variant, "inner": inner, "ell": 4, "slice": 2, "eta": 0.1, "eta_in": 0.05,
				"momentum": 0.6, "gamma": 5, "rho": 2, "thermal": 0.1, "batch": 3, "parts": "disjoint"})
			x, m := twins(cols, 3)
			y, mx := twins(cols, 3)
			z, _ := twins(cols, 3)
			xbar, next, at := start64(), p.streams(), make([]uint64, 3)
			for range 3 {
				for a := range x {
					if inner == "zeroed" {
						clear(m[a])
					}
					eta := 0.1
					if variant == "arxiv" {
						eta = 0.05
						copy(y[a], x[a])
						copy(z[a], x[a])
					}
					cycle(p, x[a], y[a], z[a], m[a], eta, 0.6, func() ([]float64, noise.Key) {
						at[a] += 3
						return p.bowl.gradient(y[a], next(a)), p.Rand(noise.Thermal, at[a], Member(a))
					})
				}
				r := average64(z)
				for a := range x {
					g := make([]float64, cols)
					for j := range g {
						if variant == "paper" { // eq. 5: tau = gamma/(rho + gamma)
							x[a][j] = (1-5.0/7)*z[a][j] + 5.0/7*xbar[j]
						} else {
							g[j] = (x[a][j] - z[a][j]) + (x[a][j]-r[j])/2
						}
					}
					if variant != "paper" {
						nes(x[a], mx[a], g, 0.1, 0.6)
					}
				}
				xbar = average64(x)
			}
			p.rounds(6)
			p.same(BlockX, x...)
			if far := distance(p.centre(), xbar); far > 1e-5 {
				t.Errorf("variant %v: the centre is %g from the twin's", variant, far)
			}
		}
	}
}

// With disjoint parts every sample belongs to one member, whatever n.
func TestDisjointParts(t *testing.T) {
	for _, n := range []int{1, 3, 7} {
		p := newBowl(t, cols, samples).populate(t, Parle, n, set{"parts": "disjoint"})
		owner := map[int32]int{}
		for m := range n {
			size := p.window(Member(m), 0).Len
			for _, id := range p.Stream(Member(m), 0, size, 0) {
				if o, ok := owner[id]; ok {
					t.Errorf("n = %d: sample %d belongs to members %d and %d", n, id, o, m)
				}
				owner[id] = m
			}
		}
		if rep := p.rounds(1); len(owner) != samples || rep.Pass.Of != samples {
			t.Errorf("n = %d: %d of %d samples belong to a member, a pass has %d", n, len(owner), samples, rep.Pass.Of)
		}
	}
}

// Clipping: g <- g*min(1, clip/||g||) of each member, before weight decay is added; the norm is over all parameters.
func TestClip(t *testing.T) {
	for _, clip := range []float64{0, 0.5, 3.7, 1e5} {
		p := newBowl(t, cols, samples).populate(t, Elastic, 2, set{"clip": clip, "decay": 0.1, "eta": 0.1, "momentum": 0, "rho": 1e12, "batch": 5})
		x, m := twins(cols, 2)
		next := p.streams()
		clipped := 0
		for range 6 {
			for a := range x {
				g := p.bowl.gradient(x[a], next(a))
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
				nes(x[a], m[a], g, 0.1, 0)
			}
		}
		p.rounds(6)
		p.same(BlockX, x...)
		if want := map[float64]bool{0.5: true, 3.7: true}[clip]; want != (clipped > 0) {
			t.Errorf("clip %g: %d gradients were clipped", clip, clipped)
		}
	}
}

// Every gradient method has the shared knobs: one place applies them.
func TestSharedKnobs(t *testing.T) {
	for _, a := range []*Algorithm{DPSGD, BGD, Elastic, EASGD, EntropySGD, Parle, LocalSGD, DiLoCo, SGP, ADPSGD, PopSGD} {
		b := newBowl(t, cols, samples)
		start := b.populate(t, a, 4, set{"batch": 5})
		free := b.populate(t, a, 4, set{"batch": 5})
		for _, knob := range []string{"clip", "decay"} {
			p := b.populate(t, a, 4, set{"batch": 5, knob: 0.2})
			p.rounds(6)
			free.rounds(int(6 - free.round))
			if distance(p.centre(), free.centre()) == 0 || distance(free.centre(), start.centre()) == 0 {
				t.Errorf("%s: %s changes nothing", a.Name, knob)
			}
		}
	}
}
