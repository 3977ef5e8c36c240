package evolution

import (
	"math"
	"slices"
	"testing"

	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/averaging"
	"brood/optim/optimtest"
)

func ranked(fit []float64) []float64 {
	u := make([]float64, len(fit))
	for pos, i := range optimtest.Descending(fit) {
		u[i] = 0.5 - float64(pos)/float64(len(fit)-1)
	}
	return u
}

// TestOpenAIES: f(theta +- sigma eps); u = centred ranks over all results, or over the results of each group; g = 1/(P
// sigma) sum u eps - decay*theta; a step of Adam or of Nesterov SGD.
func TestOpenAIES(t *testing.T) {
	const P, sigma = 12, 0.1
	for _, k := range []optimtest.Set{{}, {"optimiser": "sgd", "momentum": 0.5}, {"samples": "member"}, {"shaping": "raw"},
		{"shaping": "sign", "optimiser": "sgd"}, {"shaping": "standard", "optimiser": "sgd"}, {"distribution": "chromosome"},
		{"distribution": "semi", "groups": 1}, {"distribution": "semi", "groups": 4},
		{"distribution": "semi", "groups": 3, "optimiser": "sgd", "divide": "P"},
		{"optimiser": "sgd", "divide": "sigma"}, {"optimiser": "sgd", "divide": "none"}} {
		k["sigma"], k["eta"], k["batch"], k["decay"] = sigma, 0.05, 4, 0.01
		p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, OpenAIES, P, k)
		x, m, v, at := optimtest.StartRow(), make([]float64, optimtest.Cols), make([]float64, optimtest.Cols), uint64(0)
		groups := 1
		if p.Knobs.Is("distribution", "semi") {
			groups = p.Knobs.I("groups")
		}
		by := map[string]float64{"both": P * sigma, "P": P, "sigma": sigma, "none": 1}[p.Knobs.Choice("divide")]
		for round := range 6 {
			fit, eps := make([]float64, P), make([][]float64, P)
			for i := range P {
				key := p.Rand(noise.Candidate, uint64(round), 0)
				key.Member = uint32(i / 2)
				eps[i] = p.Normal(key)
				y := slices.Clone(x)
				for j := range y {
					eps[i][j] *= 1 - 2*float64(i%2)
					y[j] += sigma * eps[i][j]
				}
				batch := make([]int32, 4)
				if p.SharedBatch(batch, at); p.Knobs.Is("samples", "member") {
					at += 4
				}
				fit[i] = -p.Bowl.Loss(y, batch)
			}
			if p.Knobs.Is("samples", "shared") {
				at += 4
			}
			g := make([]float64, optimtest.Cols)
			for group := range groups {
				lo, hi := 2*(P/2*group/groups), 2*(P/2*(group+1)/groups)
				u := ranked(fit[lo:hi])
				switch p.Knobs.Choice("shaping") {
				case "raw":
					u = fit[lo:hi]
				case "sign":
					for i := range u {
						u[i] = math.Copysign(0.5, fit[lo+i]-fit[lo+i^1])
					}
				case "standard":
					n, d, mean, deviation := float64(P/2), make([]float64, P/2), 0.0, 0.0
					for k := range d {
						d[k] = fit[2*k] - fit[2*k+1]
						mean += d[k] / n
					}
					for k := range d {
						deviation += (d[k] - mean) * (d[k] - mean) / n
					}
					for i := range u {
						u[i] = (1 - 2*float64(i%2)) * (d[i/2] - mean) / math.Sqrt(deviation) / 2
					}
				}
				for i := range u {
					for j := range g {
						g[j] -= u[i] * eps[lo+i][j] / by
					}
				}
			}
			for j := range g {
				g[j] += 0.01 * x[j]
			}
			if p.Knobs.Is("optimiser", "sgd") {
				optimtest.Nesterov(x, m, g, 0.05, p.Knobs.Get("momentum"))
				continue
			}
			for j := range g {
				m[j], v[j] = 0.9*m[j]+0.1*g[j], 0.999*v[j]+0.001*g[j]*g[j]
				T := float64(round + 1)
				x[j] -= 0.05 * m[j] / (1 - math.Pow(0.9, T)) / (math.Sqrt(v[j]/(1-math.Pow(0.999, T))) + 1e-8)
			}
		}
		p.Rounds(6)
		if far := optimtest.Distance(p.RowOf(optim.BlockX, 0), x); far > 2e-5 {
			t.Errorf("%s: x is %g from the reference", optimtest.Describe(k), far)
		}
		if at != p.Record(optim.BlockCursor).U[0] {
			t.Errorf("%s: %d samples drawn, the reference drew %d", optimtest.Describe(k), p.Record(optim.BlockCursor).U[0], at)
		}
	}
}

// One group of semi equals the exact update bit for bit. More groups equal it for raw fitness only, up to rounding.
func TestSemiReductions(t *testing.T) {
	b := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples)
	run := func(k optimtest.Set) []float64 {
		k["eta"], k["batch"], k["optimiser"] = 0.02, 4, "sgd"
		p := b.Populate(t, OpenAIES, 16, k)
		p.Rounds(6)
		return p.CentreOf()
	}
	semi := func(groups int, shaping string) []float64 {
		return run(optimtest.Set{"distribution": "semi", "groups": groups, "shaping": shaping})
	}
	if !slices.Equal(semi(1, "ranks"), run(optimtest.Set{})) {
		t.Error("one group is not the exact update")
	}
	if far := optimtest.Distance(semi(4, "raw"), run(optimtest.Set{"shaping": "raw"})); far > 1e-5 {
		t.Errorf("four groups of raw fitness are %g from the exact update", far)
	}
	if far := optimtest.Distance(semi(4, "ranks"), run(optimtest.Set{})); far < 1e-3 {
		t.Errorf("four groups of ranks are %g from the exact update: ranks are not local", far)
	}
}

// TestGradientQuality checks the formula for the quality of an estimate: for a linear function of M parameters and n
// antithetic pairs the mean cosine to the gradient is rho*sqrt(n)/sqrt(M + rho^2 n). rho is the correlation of a result
// with its weight: sqrt(3/pi) for ranks, 1 for raw, sqrt(2/pi) for sign, 1 for standard.
func TestGradientQuality(t *testing.T) {
	const M = 96
	for _, n := range []int{24, 96, 384} {
		for shaping, rho := range map[string]float64{"ranks": math.Sqrt(3 / math.Pi), "raw": 1,
			"sign": math.Sqrt(2 / math.Pi), "standard": 1} {
			b := optimtest.NewBowl(t, M, 1)
			b.Flat = true
			p := b.Populate(t, OpenAIES, 2*n,
				optimtest.Set{"optimiser": "sgd", "eta": 1e-3, "momentum": 0, "batch": 1, "shaping": shaping, "sigma": 0.1})
			runs := 60 + 6000/n
			var sum, square float64
			for range runs {
				from := p.RowOf(optim.BlockX, 0)
				p.Rounds(1)
				var dot, a, c float64
				for j, x := range p.RowOf(optim.BlockX, 0) {
					d := x - from[j]
					dot, a, c = dot+d*b.E[0][j], a+d*d, c+b.E[0][j]*b.E[0][j]
				}
				cos := dot / math.Sqrt(a*c)
				sum, square = sum+cos, square+cos*cos
			}
			mean := sum / float64(runs)
			se := math.Sqrt((square/float64(runs) - mean*mean) / float64(runs))
			law := rho * math.Sqrt(float64(n)) / math.Sqrt(M+rho*rho*float64(n))
			t.Logf("%d pairs, shaping %s: cosine %.4f +- %.4f, law %.4f", n, shaping, mean, se, law)
			if math.Abs(mean-law) > 4*se+0.005 { // the formula omits terms of order 1/n
				t.Errorf("%d pairs, shaping %s: mean cosine %.4f +- %.4f, the law says %.4f", n, shaping, mean, se, law)
			}
		}
	}
}

// The state of SGD does not affect Adam: its blocks have other names, so a swap keeps none of them.
func TestAdamKeepsItsState(t *testing.T) {
	p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, OpenAIES, 4, nil)
	for _, b := range averaging.DPSGD.Blocks(averaging.DPSGD.Defaults(), p.Layout) {
		for _, own := range OpenAIES.Blocks(p.Knobs, p.Layout) {
			if own.Name == b.Name && own.Name != optim.BlockX && own.Name != optim.BlockCursor {
				t.Errorf("block %s would be carried over", b.Name)
			}
		}
	}
}

// A missing result has the weight of the worst one. So has an infinite result with rules that use the values of
// results.
func TestMissingResults(t *testing.T) {
	nan, far := float32(math.NaN()), float32(math.Inf(-1))
	for _, rule := range []string{"raw", "standard"} {
		if u := openaiESUtilities(optimtest.Set{"shaping": rule}.Of(OpenAIES),
			[]float32{-2, far, nan, -3, -1, far}); !engine.AllFinite(u) || u[1] > u[3] || u[5] > u[3] {
			t.Errorf("rule %s with an infinite result: %v", rule, u)
		}
	}
	for _, rule := range []string{"ranks", "raw", "sign", "standard"} {
		if u := openaiESUtilities(optimtest.Set{"shaping": rule}.Of(OpenAIES), []float32{-2, nan, nan, -3}); !(u[1] <= u[3] &&
			u[2] <= u[3] && u[0] > u[1]) {
			t.Errorf("rule %s: %v", rule, u)
		}
		if u := openaiESUtilities(optimtest.Set{"shaping": rule}.Of(OpenAIES), []float32{nan, nan}); rule != "ranks" &&
			u[0] != u[1] {
			t.Errorf("rule %s, all missing: %v", rule, u)
		}
	}
	if u := snesUtilities([]float32{nan, -1, -2}, false); !(u[1] > u[2] && u[2] >= u[0]) {
		t.Errorf("%v", u)
	}
}

// TestSepCMA compares with sep-CMA-ES and its constants, computed naively in float64.
func TestSepCMA(t *testing.T) {
	for _, c := range []struct {
		P    int
		k    optimtest.Set
		rate float64
	}{{10, optimtest.Set{}, 1}, {7, optimtest.Set{"samples": "member", "rate": 5.0}, 5},
		{2, optimtest.Set{"rate": 0.0}, 0}} {
		c.k["sigma"], c.k["batch"] = 0.2, 4
		p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, SepCMA, c.P, c.k)
		m, sigma, at, M := optimtest.StartRow(), 0.2, uint64(0), float64(optimtest.Cols)
		s, ps, pc := make([]float64, optimtest.Cols), make([]float64, optimtest.Cols), make([]float64, optimtest.Cols)
		for j := range s {
			s[j] = 1
		}
		mu := c.P / 2
		var w []float64
		sum, squares := 0.0, 0.0
		for i := range mu {
			w = append(w, math.Log(float64(mu)+1)-math.Log(float64(i)+1))
			sum += w[i]
		}
		for i := range w {
			w[i] /= sum
			squares += w[i] * w[i]
		}
		eff := 1 / squares
		cs, cc := (eff+2)/(M+eff+3), 4/(M+4)
		ds := 1 + cs + 2*max(0, math.Sqrt((eff-1)/(M+1))-1)
		cov := 2/math.Pow(M+math.Sqrt2, 2)/eff + (1-1/eff)*min(1, (2*eff-1)/(math.Pow(M+2, 2)+eff))
		cov = min(1, cov*(M+2)/3*c.rate)
		length := math.Sqrt(M) * (1 - 1/(4*M) + 1/(21*M*M))
		for g := range 8 {
			fit, z := make([]float64, c.P), make([][]float64, c.P)
			for i := range z {
				z[i] = p.Normal(p.Rand(noise.Candidate, uint64(g), engine.Member(i)))
				y := slices.Clone(m)
				for j := range y {
					y[j] += sigma * s[j] * z[i][j]
				}
				batch := make([]int32, 4)
				p.SharedBatch(batch, at)
				if p.Knobs.Is("samples", "member") || i == c.P-1 {
					at += 4
				}
				fit[i] = -p.Bowl.Loss(y, batch)
			}
			best, norm := optimtest.Descending(fit)[:mu], 0.0
			zw, rank := make([]float64, optimtest.Cols), make([]float64, optimtest.Cols)
			for j := range m {
				for pos, i := range best {
					zw[j] += w[pos] * z[i][j]
					rank[j] += w[pos] * math.Pow(s[j]*z[i][j], 2)
				}
				m[j] += sigma * s[j] * zw[j]
				ps[j] = (1-cs)*ps[j] + math.Sqrt(cs*(2-cs)*eff)*zw[j]
				norm += ps[j] * ps[j]
			}
			h := 0.0
			if math.Sqrt(norm)/math.Sqrt(1-math.Pow(1-cs, 2*float64(g+1))) < (1.4+2/(M+1))*length {
				h = 1
			}
			for j := range m {
				pc[j] = (1-cc)*pc[j] + h*math.Sqrt(cc*(2-cc)*eff)*s[j]*zw[j]
				s[j] = math.Sqrt((1-cov)*s[j]*s[j] + cov/eff*pc[j]*pc[j] + cov*(1-1/eff)*rank[j])
			}
			sigma *= math.Exp(cs / ds * (math.Sqrt(norm)/length - 1))
		}
		p.Rounds(8)
		p.Same(optim.BlockX, m)
		p.Same(optim.BlockS, s)
		p.Same(optim.BlockPathS, ps)
		p.Same(optim.BlockPathC, pc)
		if got := 0.2 * float64(p.Record(optim.BlockStep).F[0]); math.Abs(got-sigma) > 1e-5*sigma {
			t.Errorf("%s: the step size is %g, want %g", optimtest.Describe(c.k), got, sigma)
		}
		if still := optimtest.Distance(p.RowOf(optim.BlockS, 0),
			slices.Repeat([]float64{1}, optimtest.Cols)) == 0; still != (c.rate == 0) {
			t.Errorf("%s: deviations stay at one: %v", optimtest.Describe(c.k), still)
		}
	}
}

// TestSNES: u_k = max(0, ln(P/2+1) - ln k)/sum - 1/P; mu += eta s.*sum u z; s *= exp(eta_s/2 sum u (z^2-1)).
func TestSNES(t *testing.T) {
	const P = 9
	for _, k := range []optimtest.Set{{}, {"distribution": "chromosome", "eta": 0.5, "eta_s": 2}, {"samples": "member"}} {
		k["sigma"], k["batch"] = 0.2, 4
		p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, SNES, P, k)
		mu, s, at, own := optimtest.StartRow(), make([]float64, optimtest.Cols), uint64(0), uint64(0)
		if p.Knobs.Is("samples", "member") {
			own = 4
		}
		for j := range s {
			s[j] = 0.2
		}
		for round := range 6 {
			fit, z := make([]float64, P), make([][]float64, P)
			for i := range P {
				z[i] = p.Normal(p.Rand(noise.Candidate, uint64(round), engine.Member(i)))
				y := slices.Clone(mu)
				for j := range y {
					y[j] += s[j] * z[i][j]
				}
				batch := make([]int32, 4)
				p.SharedBatch(batch, at)
				at += own
				fit[i] = -p.Bowl.Loss(y, batch)
			}
			if own == 0 {
				at += 4
			}
			var total float64
			for j := 1; j <= P; j++ {
				total += max(0, math.Log(P/2.0+1)-math.Log(float64(j)))
			}
			m1, m2 := make([]float64, optimtest.Cols), make([]float64, optimtest.Cols)
			for pos, i := range optimtest.Descending(fit) {
				u := max(0, math.Log(P/2.0+1)-math.Log(float64(pos+1)))/total - 1.0/P
				for j := range mu {
					m1[j] += u * z[i][j]
					m2[j] += u * (z[i][j]*z[i][j] - 1)
				}
			}
			etaS := p.Knobs.Get("eta_s") * (3 + math.Log(optimtest.Cols)) / (5 * math.Sqrt(optimtest.Cols))
			for j := range mu {
				mu[j] += p.Knobs.Get("eta") * s[j] * m1[j]
				s[j] *= math.Exp(0.5 * etaS * m2[j])
			}
		}
		p.Rounds(6)
		got := p.RowOf(optim.BlockS, 0)
		for j := range got {
			got[j] *= 0.2
		}
		if a, b := optimtest.Distance(p.CentreOf(), mu), optimtest.Distance(got, s); a > 1e-5 || b > 1e-5 {
			t.Errorf("%s: mu is %g and s %g from the reference", optimtest.Describe(k), a, b)
		}
	}
}

// The chosen distribution is the cheaper one by the cost of each, for all M and N.
func TestCheaperDistribution(t *testing.T) {
	for _, rate := range []float64{1e8, 2e9} {
		for _, bandwidth := range []float64{1e6, 1.25e8} {
			for _, near := range []float64{0.1, 0.9, 1.1, 10} { // relative to the size at which both cost the same
				for _, N := range []float64{2, 7, 48} {
					const M = 3e6
					P := math.Ceil(near * 4 * rate / bandwidth)
					seed := P * M / rate
					chromosome := P*M/(N*rate) + 4*M*(N-1)/(N*bandwidth)
					if SeedsWin(int(P), rate, bandwidth) != (seed < chromosome) {
						t.Errorf("P %g, %g elements/s, %g bytes/s, %g workers: seeds take %g s, slices %g s", P, rate, bandwidth, N, seed,
							chromosome)
					}
				}
			}
		}
	}
}
