package evolution

import (
	"math"
	"slices"
	"testing"

	"brood/models/noise"
	"brood/optim"
	"brood/optim/optimtest"
)

// TestPGPE compares with PGPE with symmetric samples, computed naively in float64: the likelihood gradients of mean and
// deviations, and the optimiser steps along the first.
func TestPGPE(t *testing.T) {
	const P, sigma = 10, 0.2
	for _, k := range []optimtest.Set{{"eta": 0.3},
		{"eta": 0.3, "momentum": 0.3, "speed": 0.5, "distribution": "chromosome"},
		{"optimiser": "adam", "eta": 0.05, "samples": "member"},
		{"optimiser": "sgd", "eta": 2, "momentum": 0.5, "shaping": "raw", "eta_s": 0.01},
		{"optimiser": "sgd", "eta": 2, "momentum": 0, "eta_s": 10, "change": 0.05}} {
		k["sigma"], k["batch"] = sigma, 4
		p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, PGPE, P, k)
		eta, etaS, change, mu := p.Knobs.Get("eta"), p.Knobs.Get("eta_s"), p.Knobs.Get("change"), p.Knobs.Get("momentum")
		x, m, v, s, at := optimtest.StartRow(), make([]float64, optimtest.Cols), make([]float64, optimtest.Cols),
			slices.Repeat([]float64{sigma}, optimtest.Cols), uint64(0)
		limited := 0
		for round := range 6 {
			fit, eps := make([]float64, P), make([][]float64, P)
			for i := range P {
				key := p.Rand(noise.Candidate, uint64(round), 0)
				key.Member = uint32(i / 2)
				eps[i] = p.Normal(key)
				y := slices.Clone(x)
				for j := range y {
					eps[i][j] *= s[j] * (1 - 2*float64(i%2))
					y[j] += eps[i][j]
				}
				batch := make([]int32, 4)
				if p.SharedBatch(batch, at); p.Knobs.Is("samples", "member") || i == P-1 {
					at += 4
				}
				fit[i] = -p.Bowl.Loss(y, batch)
			}
			u, b := ranked(fit), 0.0
			if p.Knobs.Is("shaping", "raw") {
				u = fit
			}
			for _, r := range u {
				b += r / P
			}
			g, d := make([]float64, optimtest.Cols), make([]float64, optimtest.Cols)
			for i := 0; i < P; i += 2 {
				for j := range g {
					g[j] += (u[i] - u[i+1]) / 2 * eps[i][j] / (P / 2)
					d[j] += ((u[i]+u[i+1])/2 - b) * (eps[i][j]*eps[i][j] - s[j]*s[j]) / s[j] / (P / 2)
				}
			}
			switch p.Knobs.Choice("optimiser") {
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
					v[j] *= min(1, p.Knobs.Get("speed")*eta/math.Sqrt(fast))
					x[j] += v[j]
				}
			case "adam":
				for j := range g {
					g[j] = -g[j]
				}
				optimtest.AdamW(x, m, v, g, 0.9, 0.999, eta, 0, round+1)
			case "sgd":
				for j := range g {
					g[j] = -g[j]
				}
				optimtest.Nesterov(x, m, g, eta, mu)
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
		p.Rounds(6)
		got := p.RowOf(optim.BlockS, 0)
		for j := range got {
			got[j] *= sigma
		}
		if a, b := optimtest.Distance(p.CentreOf(), x), optimtest.Distance(got, s); a > 2e-5 || b > 1e-5 {
			t.Errorf("%s: mu is %g and s %g from the reference", optimtest.Describe(k), a, b)
		}
		if (limited > 0) != (etaS == 10) {
			t.Errorf("%s: %d changes of a deviation were limited", optimtest.Describe(k), limited)
		}
	}
}

// With constant deviations and raw results PGPE equals OpenAI-ES with eta times sigma squared.
func TestPGPEOfFixedDeviationsIsOpenAIES(t *testing.T) {
	b := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples)
	fixed := b.Populate(t, PGPE, 12,
		optimtest.Set{"eta_s": 0, "optimiser": "sgd", "momentum": 0, "shaping": "raw", "sigma": 0.1, "eta": 5, "batch": 4})
	es := b.Populate(t, OpenAIES, 12,
		optimtest.Set{"optimiser": "sgd", "momentum": 0, "shaping": "raw", "sigma": 0.1, "eta": 0.05, "batch": 4})
	fixed.Rounds(6)
	es.Rounds(6)
	if far := optimtest.Distance(fixed.CentreOf(), es.CentreOf()); far > 1e-5 {
		t.Errorf("the centres are %g apart", far)
	}
	if moved := optimtest.Distance(fixed.CentreOf(), optimtest.StartRow()); moved < 1e-2 {
		t.Errorf("the centre moved by %g: the test sees nothing", moved)
	}
}

// If all results are equal the parameters do not change.
func TestPGPEEqualResults(t *testing.T) {
	b := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples)
	p := b.Populate(t, PGPE, 4, optimtest.Set{"shaping": "raw", "batch": 4})
	for j := range b.A {
		b.A[j] = 0
	}
	p.Rounds(3)
	if far := optimtest.Distance(p.CentreOf(), optimtest.StartRow()); far != 0 {
		t.Errorf("the centre moved by %g", far)
	}
}
