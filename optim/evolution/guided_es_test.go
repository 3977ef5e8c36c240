package evolution

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/optimtest"
)

// guidedESReference is algorithm 1 of the source in float64, with the last surrogates unchanged.
type guidedESReference struct {
	x, m, v            []float64
	last               [][]float64 // newest first
	sigma, alpha, beta float64
}

// columns returns an orthonormal basis of the span of the surrogates, with a zero column for a surrogate that depends
// on newer ones.
func (w *guidedESReference) columns() (u [][]float64) {
	for _, s := range w.last {
		c := slices.Clone(s)
		for range 2 {
			for _, b := range u {
				dot := inner64(b, c)
				for i := range c {
					c[i] -= dot * b[i]
				}
			}
		}
		long := math.Sqrt(inner64(c, c))
		if long <= 1e-4*math.Sqrt(inner64(s, s)) {
			clear(c)
			long = 1
		}
		for i := range c {
			c[i] /= long
		}
		u = append(u, c)
	}
	return u
}

// take adds the newest of k surrogates and drops the oldest.
func (w *guidedESReference) take(s []float64, k int) {
	w.last = append([][]float64{slices.Clone(s)}, w.last[:min(k-1, len(w.last))]...)
}

// generation estimates the gradient from pairs. Row i of z is the noise of pair i in all parameters, row i of inside
// its noise along the columns of the subspace.
func (w *guidedESReference) generation(z, inside [][]float64, loss func(x []float64) float64) (g []float64) {
	n, u, alpha, columns := float64(len(w.x)), w.columns(), w.alpha, 0.0
	for _, c := range u {
		columns += math.Round(inner64(c, c))
	}
	if columns == 0 {
		alpha = 1
	}
	g = make([]float64, len(w.x))
	for i := range z {
		eps := make([]float64, len(w.x))
		for j := range eps {
			eps[j] = w.sigma * math.Sqrt(alpha/n) * z[i][j]
			for l := 0; l < len(u) && columns > 0; l++ {
				eps[j] += w.sigma * math.Sqrt((1-alpha)/columns) * u[l][j] * inside[i][l]
			}
		}
		var f [2]float64
		for side := range f {
			x := slices.Clone(w.x)
			for j := range x {
				x[j] += (1 - 2*float64(side)) * eps[j]
			}
			f[side] = float64(float32(loss(x)))
		}
		for j := range g {
			g[j] += w.beta / (2 * w.sigma * w.sigma * float64(len(z))) * (f[0] - f[1]) * eps[j]
		}
	}
	return g
}

// guided64 returns the noise of the pairs of a generation: P/2 normal vectors of all parameters, and of the k
// coordinates of the subspace.
func guided64(p *optimtest.Population, P, k, round int) (z, inside [][]float64) {
	for i := range P / 2 {
		key := p.Rand(noise.Candidate, uint64(round), 0)
		key.Member = uint32(i)
		z = append(z, p.Normal(key))
		row, of := make([]float64, k), p.Rand(noise.Direction, uint64(round), engine.Member(i))
		for j := range row {
			row[j] = float64(of.Gauss(j))
		}
		inside = append(inside, row)
	}
	return z, inside
}

// TestGuidedES compares with the rule as published, computed naively in float64, and each candidate with the one that
// the covariance gives.
func TestGuidedES(t *testing.T) {
	for _, c := range []struct {
		M, P, k, generations int
		alpha, sigma, eta    float64
		turned               optimtest.Set
	}{
		{optimtest.Cols, 8, 1, 20, 0.5, 0.5, 0.5, optimtest.Set{"optimiser": "sgd"}},
		{optimtest.Cols, 6, 4, 20, 0.3, 0.2, 0.2, optimtest.Set{"optimiser": "sgd", "momentum": 0.0, "distribution": "chromosome", "beta": 5.0}},
		{40, 4, 3, 30, 0, 1, 0.1, optimtest.Set{"optimiser": "sgd", "surrogate": "gradient"}},
		{40, 12, 2, 20, 0.9, 1, 0.03, optimtest.Set{"optimiser": "adam"}},
		{3, 4, 5, 20, 0.5, 0.1, 0.05, optimtest.Set{"optimiser": "sgd", "momentum": 0.5}},
		{1, 2, 2, 8, 0.5, 0.1, 0.05, optimtest.Set{"optimiser": "sgd", "momentum": 0.5}},
		{40, 8, 8, 30, 1, 1, 1, optimtest.Set{"optimiser": "sgd"}},
		{40, 8, 1, 30, 0.5, 0.3, 0.3, optimtest.Set{"optimiser": "sgd", "surrogate": "gradient"}},
		{40, 6, 3, 30, 0.2, 0.3, 0.02, optimtest.Set{"optimiser": "adam", "surrogate": "gradient", "distribution": "chromosome"}},
	} {
		c.turned["batch"], c.turned["sigma"], c.turned["alpha"], c.turned["subspace"], c.turned["eta"] = 4, c.sigma, c.alpha,
			c.k, c.eta
		b := optimtest.NewBowl(t, c.M, optimtest.Samples)
		p := b.Populate(t, GuidedES, c.P, c.turned)
		w, points, losses := &guidedESReference{
			x:     p.RowOf(optim.BlockX, 0),
			m:     make([]float64, c.M),
			v:     make([]float64, c.M),
			sigma: c.sigma,
			alpha: c.alpha,
			beta:  p.Knobs.Get("beta"),
		}, [][]float64{}, []float64{}
		for g := range c.generations {
			batch := make([]int32, 4)
			p.SharedBatch(batch, uint64(4*g))
			if p.Knobs.Is("surrogate", "gradient") {
				w.take(b.Gradient(w.x, batch), c.k)
			}
			z, inside := guided64(p, c.P, c.k, g)
			down := w.generation(z, inside, func(x []float64) float64 {
				points, losses = append(points, x), append(losses, b.Loss(x, batch))
				return losses[len(losses)-1]
			})
			if p.Knobs.Is("surrogate", "estimates") {
				w.take(negated(down), c.k) // the rule ascends
			}
			if p.Knobs.Is("optimiser", "adam") {
				optimtest.AdamW(w.x, w.m, w.v, down, 0.9, 0.999, c.eta, 0, g+1)
			} else {
				optimtest.Nesterov(w.x, w.m, down, c.eta, p.Knobs.Get("momentum"))
			}
		}
		asked, worst := 0, 0.0
		b.F = func(x []float64) float64 {
			worst = max(worst, optimtest.Distance(x, points[asked]))
			asked++
			return losses[asked-1]
		}
		p.Rounds(c.generations)
		if !(worst <= 2e-5) || asked != c.P*c.generations {
			t.Errorf("%+v: %d candidates are up to %g from the reference", c, asked, worst)
		}
		p.Same(optim.BlockX, w.x)
		if far := optimtest.Distance(p.RowOf(optim.BlockSubspace, 0), slices.Concat(w.columns()...)); !(far <= 1e-4) {
			t.Errorf("%+v: the subspace is %g from the reference", c, far)
		}
	}
}

// Without guidance Guided ES equals OpenAI-ES with raw results, where sigma is the deviation of one parameter.
func TestGuidedESWithoutGuidanceIsOpenAIES(t *testing.T) {
	const M, sigma = optimtest.Cols, 0.1
	b := optimtest.NewBowl(t, M, optimtest.Samples)
	for _, optimiser := range []string{"sgd", "adam"} {
		eta, beta := 0.05, 3.0
		if optimiser == "sgd" {
			eta *= M / beta
		}
		guided := b.Populate(t, GuidedES, 12, optimtest.Set{"alpha": 1, "subspace": 3, "optimiser": optimiser,
			"sigma": sigma * math.Sqrt(M), "beta": beta, "eta": eta, "batch": 4})
		es := b.Populate(t, OpenAIES, 12,
			optimtest.Set{"optimiser": optimiser, "shaping": "raw", "sigma": sigma, "eta": 0.05, "batch": 4})
		guided.Rounds(6)
		es.Rounds(6)
		if far := optimtest.Distance(guided.CentreOf(), es.CentreOf()); far > 2e-5 {
			t.Errorf("%s: the centres are %g apart", optimiser, far)
		}
		if moved := optimtest.Distance(guided.CentreOf(), optimtest.StartRow()); moved < 1e-2 {
			t.Errorf("%s: the centre moved by %g: the test sees nothing", optimiser, moved)
		}
	}
}

// Perturbations have the covariance sigma^2*(alpha/n I + (1-alpha)/k U U'). For a linear function the mean estimate is
// this covariance times beta/sigma^2 times the gradient.
func TestGuidedESCovariance(t *testing.T) {
	const M, P, k, sigma, alpha, beta, draws = 24, 32, 3, 0.7, 0.4, 2.0, 1500
	b := optimtest.NewBowl(t, M, 1)
	p := b.Populate(t, GuidedES, P, optimtest.Set{"sigma": sigma, "alpha": alpha, "beta": beta, "subspace": k,
		"optimiser": "sgd", "momentum": 0, "eta": 0.1, "batch": 1})
	p.Rounds(5)
	x, slope, u := p.RowOf(optim.BlockX, 0), make([]float64, M), [][]float64{}
	for j := range k {
		u = append(u, optimtest.Doubles(optimtest.RowOf(guidedESBasis(p.Env, p.Knobs), engine.Row(j))))
	}
	for j := range slope {
		slope[j] = math.Cos(float64(3 * j))
	}
	var inside [k]float64
	within, whole := 0.0, 0.0
	b.F = func(y []float64) float64 {
		d := make([]float64, M)
		for j := range d {
			d[j] = (y[j] - x[j]) / sigma
		}
		for l := range u {
			dot := inner64(u[l], d)
			inside[l] += dot * dot / (P * draws)
			within += dot * dot / (P * draws)
		}
		whole += inner64(d, d) / (P * draws)
		return inner64(slope, y)
	}
	mean := make([]float64, M)
	for range draws {
		p.Recycle()
		g := ram.New(1, M)
		if _, err := guidedESEstimate(context.Background(), p.Env, p.Knobs, p.Next, guidedESBasis(p.Env, p.Knobs),
			g); err != nil {
			t.Fatal(err)
		}
		p.Next++
		for j, v := range optimtest.Doubles(optimtest.Flat(g)) {
			mean[j] += v / draws
		}
	}
	near := func(what string, got, want float64, n float64) {
		t.Helper()
		if math.Abs(got/want-1) > 5*math.Sqrt(2/n) {
			t.Errorf("%s is %g, want %g", what, got, want)
		}
	}
	const N = draws * P / 2
	for l := range inside {
		near("a variance inside", inside[l], alpha/M+(1-alpha)/k, N)
	}
	near("a variance outside", (whole-within)/(M-k), alpha/M, N*(M-k))
	want, off := make([]float64, M), make([]float64, M)
	for j := range want {
		want[j] = -beta * alpha / M * slope[j]
		for l := range u {
			want[j] -= beta * (1 - alpha) / k * inner64(u[l], slope) * u[l][j]
		}
		off[j] = mean[j] - want[j]
	}
	if far := math.Sqrt(inner64(off, off) / inner64(want, want)); far > 0.03 {
		t.Errorf("the mean estimate is %g of itself from the covariance times the gradient", far)
	}
}

// The basis of the surrogates is orthonormal to 1e-5 and its span contains the newest surrogate, also if some
// surrogates are zero, dependent, nearly dependent, very long, very short, or not finite.
func TestGuidedESBasis(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, M := range []int{2, 5, 40, 3000} {
		for _, k := range []int{1, 2, 5, 9} {
			p := optimtest.NewBowl(t, M, optimtest.Samples).Populate(t, GuidedES, 2, optimtest.Set{"subspace": k})
			basis, last := guidedESBasis(p.Env, p.Knobs), [][]float64{}
			for round := range 60 {
				g := ram.New(1, M)
				v := optimtest.Flat(g)
				for j := range v {
					v[j] = float32(math.Pow(10, float64(r.IntN(40)-20)))
				}
				scale := v[0]
				for j := range v {
					v[j] = scale * float32(r.NormFloat64())
				}
				switch n := len(last); {
				case round%7 == 2:
					clear(v)
				case round == 31:
					v[0] = float32(math.NaN())
				case round == 38:
					v[M-1] = float32(math.Inf(-1))
				case round%7 == 4 && n > 1:
					for j := range v {
						v[j] = float32(last[n-1][j] - 2*last[n-2][j])
					}
				case round%7 >= 5 && n > 0:
					long := math.Sqrt(inner64(last[n-1], last[n-1]) / float64(M))
					for j := range v {
						v[j] = float32(last[n-1][j] + 1e-3*long*r.NormFloat64())
					}
				}
				p.Recycle()
				if err := guidedESPush(context.Background(), p.Env, basis, g); err != nil {
					t.Fatal(err)
				}
				last = append(last, optimtest.Doubles(v))
				var u [][]float64
				for j := range k {
					if row := optimtest.Doubles(optimtest.RowOf(basis, engine.Row(j))); inner64(row, row) > 0 {
						u = append(u, row)
					}
				}
				for j := range u {
					for l := range j + 1 {
						want := 0.0
						if j == l {
							want = 1
						}
						if got := inner64(u[j], u[l]); !(math.Abs(got-want) <= 1e-5) {
							t.Fatalf("%d parameters, %d surrogates, round %d: the product of columns %d and %d is %g", M, k, round,
								j, l, got)
						}
					}
				}
				newest := last[round]
				if long := math.Sqrt(inner64(newest, newest)); !(long > 0 &&
					long <= math.MaxFloat64) != (inner64(optimtest.Doubles(optimtest.RowOf(basis, 0)),
					optimtest.Doubles(optimtest.RowOf(basis, 0))) == 0) {
					t.Fatalf("a surrogate of length %g has the column %v", long, optimtest.RowOf(basis, 0))
				}
				// Each of the last k surrogates is in the span of the columns.
				for i := max(0, round-k+1); i <= round; i++ {
					rest, long := slices.Clone(last[i]), math.Sqrt(inner64(last[i], last[i]))
					for _, c := range u {
						dot := inner64(c, rest)
						for j := range rest {
							rest[j] -= dot * c[j]
						}
					}
					if left := math.Sqrt(inner64(rest, rest)); left > 2e-3*long {
						t.Fatalf("%d parameters, %d surrogates, round %d: the columns lack %g of surrogate %d", M, k, round, left/long, i)
					}
				}
				if len(u) > min(M, k, round+1) {
					t.Fatalf("%d columns of %d parameters and %d surrogates", len(u), M, min(k, round+1))
				}
			}
		}
	}
}

// If all results are equal or missing the parameters do not change, and a surrogate of zeros does not guide.
func TestGuidedESEqualResults(t *testing.T) {
	b := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples)
	for _, loss := range []float64{3, math.NaN()} {
		b.F = func(x []float64) float64 { return inner64(x, x) }
		p := b.Populate(t, GuidedES, 4, optimtest.Set{"optimiser": "sgd", "momentum": 0, "batch": 4})
		p.Rounds(3)
		before := p.CentreOf()
		b.F = func([]float64) float64 { return loss }
		p.Rounds(2)
		if far := optimtest.Distance(p.CentreOf(), before); far != 0 {
			t.Errorf("the centre moved by %g", far)
		}
		if n, err := guidedESColumns(context.Background(), p.Env, guidedESBasis(p.Env, p.Knobs)); n != 0 || err != nil {
			t.Errorf("%d columns of estimates of nothing, %v", n, err)
		}
		b.F = func(x []float64) float64 { return inner64(x, x) }
		p.Rounds(3)
		if far := optimtest.Distance(p.CentreOf(), before); far == 0 || math.IsNaN(far) {
			t.Errorf("it moved by %g later", far)
		}
	}
}

// biased is a bowl whose gradients differ by a constant vector from the true ones.
type biased struct {
	*optimtest.Bowl
	by []float64
}

func (b biased) Do(ctx context.Context, tasks ...engine.Task) error {
	for _, task := range tasks {
		if err := b.Bowl.Do(ctx, task); err != nil {
			return err
		}
		if g, ok := task.(engine.Gradients); ok {
			for j, v := range b.by {
				optimtest.Flat(g.G)[j] += float32(v)
			}
		}
	}
	return nil
}

// With a biased surrogate and few candidates relative to the parameters, guidance reaches a lower loss in a fixed time
// than no guidance at the best of some rates, and a lower loss than the limit of steps along the surrogate: the first
// problem of the source, without its condition number. Over a longer time no guidance may win.
func TestGuidedESBiasedSurrogate(t *testing.T) {
	const M, P, generations = 1000, 8, 300
	b := optimtest.NewBowl(t, M, 1)
	by, rest := make([]float64, M), 0.0
	for j := range by {
		by[j] = math.Cos(float64(5 * j))
		rest += by[j] * by[j] / (2 * b.A[j])
	}
	reaches := func(k optimtest.Set) float64 {
		k["optimiser"], k["momentum"], k["sigma"], k["batch"] = "sgd", 0, 0.1, 1
		p := b.Populate(t, GuidedES, P, k)
		p.Engine = biased{b, by}
		p.Rounds(generations)
		return b.Loss(p.CentreOf(), []int32{0})
	}
	begins, guided, plain := b.Loss(b.Populate(t, GuidedES, P, nil).CentreOf(), []int32{0}),
		reaches(optimtest.Set{"surrogate": "gradient", "eta": 1}), math.Inf(1)
	for _, eta := range []float64{1, 1.5, 2, 3, 4} {
		plain = min(plain, reaches(optimtest.Set{"alpha": 1, "eta": eta}))
	}
	t.Logf("of %.4g guidance leaves %.4g, none %.4g, and the surrogate %.4g", begins, guided, plain, rest)
	if guided > plain/2 || guided > 0.8*rest {
		t.Errorf("guidance leaves %g, none %g, and who follows the surrogate rests at %g", guided, plain, rest)
	}
}
