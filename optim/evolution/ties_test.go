package evolution

import (
	"math"
	"slices"
	"testing"

	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/optimtest"
)

// meanWeights is the reference for share: the weight of a result is the mean weight of the places of all results equal
// to it.
func meanWeights(weights []float64, fit []float32) []float64 {
	out, equal := make([]float64, len(fit)), equalIn(fit)
	for i := range fit {
		better, same := 0, 0
		for j := range fit {
			switch {
			case equal(i, j):
				same++
			case fit[j] > fit[i] || fit[i] != fit[i]:
				better++
			}
		}
		for k := better; k < better+same; k++ {
			if k < len(weights) {
				out[i] += weights[k] / float64(same)
			}
		}
	}
	return out
}

// drawnResults returns n results from a few values, so that many are equal, with some missing. With distinct set none
// are equal.
func drawnResults(n, values int, at uint32, distinct bool) []float32 {
	fit := make([]float32, n)
	for i := range fit {
		key := noise.Key{Purpose: noise.Data, Round: uint64(at), Member: uint32(i)}
		fit[i] = float32(key.Below(0, values)) - 3
		if distinct {
			fit[i] = key.Gauss(0)
		} else if key.Below(1, 5) == 0 {
			fit[i] = float32(math.NaN())
		}
	}
	return fit
}

// TestEqualResultsEqualWeights: each rule of ranks gives equal results the mean weight of their places, as the
// reference does, for every pattern of equal and missing results. Without equal results the bits are unchanged.
func TestEqualResultsEqualWeights(t *testing.T) {
	close := func(what string, fit []float32, got float32, want float64) {
		t.Helper()
		if math.Abs(float64(got)-want) > 1e-6 {
			t.Errorf("%s of %v: %g, want %g", what, fit, got, want)
		}
	}
	for at := range uint32(200) {
		for _, P := range []int{2, 3, 8, 17} {
			fit := drawnResults(P, 1+int(at%6), at, false)
			order := optim.Order(fit)
			places, raw := make([]float64, P), make([]float64, P)
			total := 0.0
			for k := range places {
				places[k] = 0.5 - float64(k)/float64(P-1)
				raw[k] = max(0, math.Log(float64(P)/2+1)-math.Log(float64(k+1)))
				total += raw[k]
			}
			ranks, utilities, wantU := meanWeights(places, fit), meanWeights(raw, fit), CentredRanks(fit, true)
			nes := snesUtilities(fit, true)
			for i := range fit {
				close("centred rank", fit, wantU[i], ranks[i])
				close("utility", fit, nes[i], utilities[i]/total-1/float64(P))
			}
			cma, lm := sepCMARates(P, 10, 1), lmMAESRates(P, 10, 3, 1)
			wantCMA, wantLM := meanWeights(cma.weights, fit), meanWeights(lm.weights, fit)
			cma.share(order, equalIn(fit))
			lm.share(order, equalIn(fit))
			for pos, i := range order {
				a, b := 0.0, 0.0
				if pos < len(cma.weights) {
					a = cma.weights[pos]
				}
				if pos < len(lm.weights) {
					b = lm.weights[pos]
				}
				close("weight of sep-cma", fit, float32(a), wantCMA[i])
				close("weight of lm-ma-es", fit, float32(b), wantLM[i])
			}
			close("mu_w", fit, float32(1/cma.moved), square64(wantCMA))

			fit = drawnResults(P, 0, at, true)
			cma, lm = sepCMARates(P, 10, 1), lmMAESRates(P, 10, 3, 1)
			was, wasLM := cma, lm
			was.weights, wasLM.weights = slices.Clone(cma.weights), slices.Clone(lm.weights)
			cma.share(optim.Order(fit), equalIn(fit))
			lm.share(optim.Order(fit), equalIn(fit))
			if !slices.Equal(CentredRanks(fit, true), CentredRanks(fit, false)) ||
				!slices.Equal(snesUtilities(fit, true), snesUtilities(fit, false)) ||
				!slices.Equal(cma.weights, was.weights) || cma.moved != was.moved || !slices.Equal(lm.weights, wasLM.weights) ||
				lm.effective != wasLM.effective {
				t.Fatalf("%v, where no results are equal, weigh otherwise", fit)
			}
		}
	}
}

func square64(v []float64) (s float64) {
	for _, x := range v {
		s += x * x
	}
	return s
}

// TestMissingResultsOfCRFMNES: missing results are equal if their noise has equal length, as the two results of a pair
// have.
func TestMissingResultsOfCRFMNES(t *testing.T) {
	nan := float32(math.NaN())
	all := engine.NewHost(6, crFMNESColumns, engine.F32)
	for i, row := range [][2]float32{{nan, 2}, {nan, 2}, {1, 3}, {1, 4}, {nan, 1}, {5, 6}} {
		all.Row(engine.Row(i))[crFMNESFitness], all.Row(engine.Row(i))[crFMNESLength] = row[0], row[1]
	}
	c := crFMNESConstants{ranks: []float64{32, 16, 8, 4, 2, 0}}
	order, _ := crFMNESOrder(all)
	c.share(order, crFMNESEqual(all))
	if want := []float64{32, 12, 12, 4, 1, 1}; !slices.Equal(c.ranks, want) {
		t.Errorf("places weigh %v, want %v", c.ranks, want)
	}
}

// TestConstantObjective: if all results are equal the centre does not change, to the bit. Three algorithms move it by
// their equations, which do not use the fitness there: sep-cma and lm-ma-es take the mean of all samples, a step of
// sigma/sqrt(P) in each parameter, and keep their step size; ga and pesgd mutate, and parents are drawn at random.
func TestConstantObjective(t *testing.T) {
	const P, n, rounds = 16, 40, 60
	for _, c := range []struct {
		alg  *optim.Algorithm
		k    optimtest.Set
		walk bool // moves by the mean of all samples
	}{
		{OpenAIES, optimtest.Set{"ties": "mean"}, false},
		{OpenAIES, optimtest.Set{"ties": "mean", "noise": "integer"}, false},
		{OpenAIES, optimtest.Set{"ties": "mean", "antithetic": "off", "optimiser": "sgd"}, false},
		{OpenAIES, optimtest.Set{"ties": "mean", "distribution": "semi"}, false},
		{OpenAIES, optimtest.Set{"shaping": "raw"}, false},
		{OpenAIES, optimtest.Set{"shaping": "sign"}, false},
		{OpenAIES, optimtest.Set{"shaping": "standard"}, false},
		{SNES, optimtest.Set{"ties": "mean"}, false},
		{CRFMNES, optimtest.Set{"ties": "mean"}, false},
		{PGPE, optimtest.Set{"ties": "mean"}, false},
		{PGPE, optimtest.Set{"ties": "mean", "optimiser": "adam"}, false},
		{PGPE, optimtest.Set{"shaping": "raw"}, false},
		{ARS, optimtest.Set{}, false},
		{GuidedES, optimtest.Set{}, false},
		{EGG, optimtest.Set{}, false},
		{SepCMA, optimtest.Set{"ties": "mean"}, true},
		{LMMAES, optimtest.Set{"ties": "mean"}, true},
	} {
		b := optimtest.NewBowl(t, n, 3)
		b.F = func([]float64) float64 { return 7 }
		p := b.Populate(t, c.alg, P, c.k)
		from := p.CentreOf()
		p.Rounds(rounds)
		far := 0.0
		for j, x := range p.CentreOf() {
			far += (x - from[j]) * (x - from[j])
		}
		far = math.Sqrt(far)
		if !c.walk {
			if far != 0 {
				t.Errorf("%s, %s: the centre has gone %g", c.alg.Name, optimtest.Describe(c.k), far)
			}
			continue
		}
		step, sigma := float64(p.Record(optim.BlockStep).F[0]), p.Knobs.Get("sigma")
		if by := far / (sigma * math.Sqrt(n*rounds/P)); by < 0.4 || by > 2 || step < 0.4 || step > 2.5 {
			t.Errorf("%s: the centre has gone %.3g times as far as means of samples do, and the step size is %.3g of what it "+
				"was", c.alg.Name, by, step)
		}
	}
}

// TestTiesKnob: the algorithms that weight results by rank have the knob ties, and its default is mean.
func TestTiesKnob(t *testing.T) {
	for _, alg := range []*optim.Algorithm{OpenAIES, SNES, SepCMA, CRFMNES, LMMAES, PGPE} {
		k, ok := alg.Knob("ties")
		if !ok || alg.Defaults().Choice("ties") != "mean" {
			t.Errorf("%s: knob ties %+v", alg.Name, k)
		}
		// With ties = order a constant objective moves the centre.
		b := optimtest.NewBowl(t, 20, 3)
		b.F = func([]float64) float64 { return 7 }
		p := b.Populate(t, alg, 8, optimtest.Set{"ties": "order"})
		from := p.CentreOf()
		if p.Rounds(3); slices.Equal(p.CentreOf(), from) {
			t.Errorf("%s: by order nothing moves", alg.Name)
		}
	}
}
