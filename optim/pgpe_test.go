package optim

import (
	"math"
	"slices"
	"testing"

	"brood/models/noise"
)

// PGPE with symmetric samples, naively in float64: the likelihood gradients of mean and deviations, and what follows
// the first.
func TestPGPE(t *testing.T) {
	const P, sigma = 10, 0.2
	for _, k := range []set{{"eta": 0.3}, {"eta": 0.3, "momentum": 0.3, "speed": 0.5, "distribution": "chromosome"}, {"optimiser": "adam", "eta": 0.05, "samples": "member"},
		{"optimiser": "sgd", "eta": 2, "momentum": 0.5, "shaping": "raw", "eta_s": 0.01}, {"optimiser": "sgd", "eta": 2, "momentum": 0, "eta_s": 10, "change": 0.05}} {
		k["sigma"], k["batch"] = sigma, 4
		p := newBowl(t, cols, samples).populate(t, PGPE, P, k)
		eta, etaS, change, mu := p.k.Get("eta"), p.k.Get("eta_s"), p.k.Get("change"), p.k.Get("momentum")
		x, m, v, s, at := start64(), make([]float64, cols), make([]float64, cols), slices.Repeat([]float64{sigma}, cols), uint64(0)
		limited := 0
		for round := range 6 {
			fit, eps := make([]float64, P), make([][]float64, P)
			for i := range P {
				key := p.Rand(noise.Candidate, uint64(round), 0)
				key.Member = uint32(i / 2)
				eps[i] = p.normal(key)
				y := slices.Clone(x)
				for j := range y {
					eps[i][j] *= s[j] * (1 - 2*float64(i%2))
					y[j] += eps[i][j]
				}
				batch := make([]int32, 4)
				if p.SharedBatch(batch, at); p.k.Is("samples", "member") || i == P-1 {
					at += 4
				}
				fit[i] = -p.bowl.loss(y, batch)
			}
			u, b := ranked(fit), 0.0
			if p.k.Is("shaping", "raw") {
				u = fit
			}
			for _, r := range u {
				b += r / P
			}
			g, d := make([]float64, cols), make([]float64, cols)
			for i := 0; i < P; i += 2 {
				for j := range g {
					g[j] += (u[i] - u[i+1]) / 2 * eps[i][j] / (P / 2)
					d[j] += ((u[i]+u[i+1])/2 - b) * (eps[i][j]*eps[i][j] - s[j]*s[j]) / s[j] / (P / 2)
				}
			}
			switch p.k.Choice("optimiser") {
			case "clipup":
				long, fast := 0.0, 0.0
				for j := range g {
					long += g[j] * g[j]
				}
				for j := range v {
					v[j] = mu*v[j] + eta*g[j]/math.Sqrt(long)
					fast += v[j] * v[j]
				}
				for j := range v {
					v[j] *= min(1, p.k.Get("speed")*eta/math.Sqrt(fast))
					x[j] += v[j]
				}
			case "adam":
				for j := range g {
					g[j] = -g[j]
				}
				adam64(x, m, v, g, 0.9, 0.999, eta, 0, round+1)
			case "sgd":
				for j := range g {
					g[j] = -g[j]
				}
				nes(x, m, g, eta, mu)
			}
			for j := range s {
				by := etaS * d[j]
				if math.Abs(by) > change*s[j] {
					by = math.Copysign(change*s[j], by)
					limited++
				}
				s[j] += by
			}
		}
		p.rounds(6)
		got := p.row(BlockS, 0)
		for j := range got {
			got[j] *= sigma
		}
		if a, b := distance(p.centre(), x), distance(got, s); a > 2e-5 || b > 1e-5 {
			t.Errorf("%s: mu is %g and s %g from the twin's", describe(k), a, b)
		}
		if (limited > 0) != (etaS == 10) {
			t.Errorf("%s: %d changes of a deviation were limited", describe(k), limited)
		}
	}
}

// With deviations that stay, and results as they are, it is OpenAI-ES with eta times sigma squared.
func TestPGPEOfFixedDeviationsIsOpenAIES(t *testing.T) {
	b := newBowl(t, cols, samples)
	fixed := b.populate(t, PGPE, 12, set{"eta_s": 0, "optimiser": "sgd", "momentum": 0, "shaping": "raw", "sigma": 0.1, "eta": 5, "batch": 4})
	es := b.populate(t, OpenAIES, 12, set{"optimiser": "sgd", "momentum": 0, "shaping": "raw", "sigma": 0.1, "eta": 0.05, "batch": 4})
	fixed.rounds(6)
	es.rounds(6)
	if far := distance(fixed.centre(), es.centre()); far > 1e-5 {
		t.Errorf("the centres are %g apart", far)
	}
	if moved := distance(fixed.centre(), start64()); moved < 1e-2 {
		t.Errorf("the centre moved by %g: the test sees nothing", moved)
	}
}

// Where all results are equal nothing moves.
func TestPGPEStandsStill(t *testing.T) {
	b := newBowl(t, cols, samples)
	p := b.populate(t, PGPE, 4, set{"shaping": "raw", "batch": 4})
	for j := range b.a {
		b.a[j] = 0
	}
	p.rounds(3)
	if far := distance(p.centre(), start64()); far != 0 {
		t.Errorf("the centre moved by %g", far)
	}
}
