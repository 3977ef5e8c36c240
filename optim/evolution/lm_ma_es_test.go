package evolution

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"brood/models/engine"
	"brood/models/longtest"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/optimtest"
)

// lmMAESReference is algorithm 1 of the source, candidate by candidate in float64: d is transformed by one direction
// after another.
type lmMAESReference struct {
	x, ps       []float64
	m           [][]float64
	sigma, rate float64
	t           int
}

func newLMMAESReference(x []float64, vectors int, sigma, rate float64) *lmMAESReference {
	w := &lmMAESReference{x: slices.Clone(x), ps: make([]float64, len(x)), sigma: sigma, rate: rate}
	for range vectors {
		w.m = append(w.m, make([]float64, len(x)))
	}
	return w
}

// transform returns d after lines 6 to 8: z transformed by the first min(t, V) directions.
func (w *lmMAESReference) transform(z []float64) []float64 {
	d := slices.Clone(z)
	for j := range min(w.t, len(w.m)) {
		c := min(0.5, w.rate/(math.Pow(1.5, float64(j))*float64(len(d))))
		along := inner64(w.m[j], d)
		for i := range d {
			d[i] = (1-c)*d[i] + c*w.m[j][i]*along
		}
	}
	return d
}

// generation calls loss for every candidate and updates the distribution. loss may return NaN.
func (w *lmMAESReference) generation(z [][]float64, loss func(i int, x []float64) float64) {
	P, M := len(z), float64(len(w.x))
	fit, d := make([]float64, P), make([][]float64, P)
	for i := range z {
		d[i] = w.transform(z[i])
		x := slices.Clone(w.x)
		for j := range x {
			x[j] += w.sigma * d[i][j]
		}
		if fit[i] = -loss(i, x); fit[i] != fit[i] {
			fit[i] = -1e300 - 1e290*float64(i)
		}
	}
	mu := P / 2
	weights, total, squares := make([]float64, mu), 0.0, 0.0
	for k := range weights {
		weights[k] = math.Log((float64(P) + 1) / 2 / float64(k+1))
		total += weights[k]
	}
	for k := range weights {
		weights[k] /= total
		squares += weights[k] * weights[k]
	}
	best, mean := optimtest.Descending(fit)[:mu], make([]float64, len(w.x))
	for k, i := range best {
		for j := range mean {
			mean[j] += weights[k] * z[i][j]
			w.x[j] += w.sigma * weights[k] * d[i][j]
		}
	}
	remember := func(p []float64, c float64) {
		c = min(1, c)
		for j := range p {
			p[j] = (1-c)*p[j] + math.Sqrt(c*(2-c)/squares)*mean[j]
		}
	}
	cs := min(1, 2*float64(P)/M)
	remember(w.ps, cs)
	for j := range w.m {
		remember(w.m[j], float64(P)/(math.Pow(4, float64(j))*M))
	}
	w.sigma *= math.Exp(cs / 2 * (inner64(w.ps, w.ps)/M - 1))
	w.t++
}

// singles64 returns the noise of the candidates of a generation, one vector for each, in float64.
func singles64(p *optimtest.Population, P, round int) (z [][]float64) {
	for i := range P {
		key := p.Rand(noise.Candidate, uint64(round), 0)
		key.Member = uint32(i)
		z = append(z, p.Normal(key))
	}
	return z
}

// TestLMMAES compares with the rule as published, computed naively in float64, and each candidate with the result of
// the loop over the directions.
func TestLMMAES(t *testing.T) {
	for _, c := range []struct {
		M, P, vectors, generations int
		sigma, rate                float64
	}{{optimtest.Cols, 10, 0, 30, 0.2, 1}, {optimtest.Cols, 7, 3, 30, 0.02, 3}, {40, 12, 0, 40, 1, 1},
		{2, 6, 5, 12, 0.5, 1}, {40, 12, 9, 20, 0.5, 0}, {2000, 4, 0, 40, 0.1, 100}} {
		b := optimtest.NewBowl(t, c.M, optimtest.Samples)
		p := b.Populate(t, LMMAES, c.P, optimtest.Set{"sigma": c.sigma, "rate": c.rate, "vectors": c.vectors, "batch": 4})
		vectors := lmMAESVectors(p.Knobs, p.Layout)
		if want := 4 + int(math.Floor(3*math.Log(float64(c.M)))); c.vectors == 0 && vectors != want {
			t.Errorf("%d parameters have %d directions, want %d", c.M, vectors, want)
		}
		w, points, losses := newLMMAESReference(p.RowOf(optim.BlockX, 0), vectors, c.sigma, c.rate), [][]float64{},
			[]float64{}
		for g := range c.generations {
			w.generation(singles64(p, c.P, g), func(_ int, x []float64) float64 {
				points, losses = append(points, x), append(losses, b.Loss(x, []int32{0, 1, 2, 3}))
				return losses[len(losses)-1]
			})
		}
		asked := 0
		b.F = func(x []float64) float64 {
			if far := optimtest.Distance(x, points[asked]); !(far <= 1e-5) {
				t.Errorf("%+v: candidate %d of generation %d is %g from the reference", c, asked%c.P, asked/c.P, far)
			}
			asked++
			return losses[asked-1]
		}
		p.Rounds(c.generations)
		if asked != c.P*c.generations {
			t.Errorf("%d candidates were evaluated, want %d", asked, c.P*c.generations)
		}
		p.Same(optim.BlockX, w.x)
		p.Same(optim.BlockPathS, w.ps)
		p.Same(optim.BlockAxes, slices.Concat(w.m...))
		if got := c.sigma * float64(p.Record(optim.BlockStep).F[0]); math.Abs(got-w.sigma) > 1e-5*w.sigma {
			t.Errorf("%+v: the step size is %g, want %g", c, got, w.sigma)
		}
	}
}

// becomes returns the population after a swap to another algorithm or to other knobs, as the runtime plans it: blocks
// that both have keep their rows, and all others are initialised.
func becomes(p *optimtest.Population, alg *optim.Algorithm, turned optimtest.Set) *optimtest.Population {
	p.T.Helper()
	q, before := p.Bowl.Populate(p.T, alg, len(p.Mine), turned), p.Algorithm.Blocks(p.Knobs, p.Layout)
	q.Next = p.Next
	for _, b := range alg.Blocks(q.Knobs, q.Layout) {
		switch {
		case !slices.Contains(before, b):
		case b.Record:
			q.Records[b.Name] = p.Records[b.Name]
		default:
			q.Blocks[b.Name] = p.Blocks[b.Name]
		}
	}
	return q
}

// Directions that start in a later round, after another algorithm or with a different number of directions, start as in
// a new run: the first is used after one generation, all V after V. Directions that exist continue.
func TestLMMAESNewDirections(t *testing.T) {
	const M, P = 20, 8
	b := optimtest.NewBowl(t, M, optimtest.Samples)
	p := b.Populate(t, SepCMA, P, optimtest.Set{"sigma": 0.2, "batch": 4})
	p.Rounds(30)
	var w *lmMAESReference
	for i, c := range []struct {
		vectors, generations int
		rate                 float64
		begin                bool
	}{{9, 4, 5, true}, {9, 8, 2, false}, {5, 7, 5, true}, {9, 3, 5, true}, {0, 20, 3, true}} {
		p = becomes(p, LMMAES, optimtest.Set{"sigma": 0.2, "rate": c.rate, "vectors": c.vectors, "batch": 4})
		V, points, losses := lmMAESVectors(p.Knobs, p.Layout), [][]float64{}, []float64{}
		if c.begin {
			w = newLMMAESReference(p.RowOf(optim.BlockX, 0), V, 0.2*float64(p.Record(optim.BlockStep).F[0]), c.rate)
			w.ps = p.RowOf(optim.BlockPathS, 0)
		}
		w.rate = c.rate
		for g := range c.generations {
			w.generation(singles64(p, P, int(p.Next)+g), func(_ int, x []float64) float64 {
				points, losses = append(points, x), append(losses, inner64(x, x))
				return losses[len(losses)-1]
			})
		}
		asked, worst := 0, 0.0
		b.F = func(x []float64) float64 {
			worst = max(worst, optimtest.Distance(x, points[asked]))
			asked++
			return losses[asked-1]
		}
		p.Rounds(c.generations)
		if !(worst <= 1e-5) {
			t.Errorf("turn %d, to %d directions: candidates are up to %g from the reference", i, V, worst)
		}
		p.Same(optim.BlockX, w.x)
		p.Same(optim.BlockAxes, slices.Concat(w.m...))
	}
}

// The inner products of the directions are updated from generation to generation in float64, while the directions are
// rounded to float32. They stay accurate.
func TestLMMAESGram(t *testing.T) {
	for _, M := range []int{3, 60} {
		p := optimtest.NewBowl(t, M, optimtest.Samples).Populate(t, LMMAES, 9, optimtest.Set{"sigma": 0.1, "batch": 4})
		for range 4 {
			p.Rounds(500)
			axes := p.Block(optim.BlockAxes).Fold(lmMAESVectors(p.Knobs, p.Layout))
			for j := range axes.Rows {
				for l := range j {
					a, b := optimtest.Doubles(optimtest.RowOf(axes, engine.Row(j))),
						optimtest.Doubles(optimtest.RowOf(axes, engine.Row(l)))
					got, want := math.Float64frombits(p.Record(optim.BlockGram).U[j*axes.Rows+l]), inner64(a, b)
					if far := math.Abs(got-want) / math.Sqrt(inner64(a, a)*inner64(b, b)); !(far <= 1e-6) {
						t.Errorf("%d parameters, generation %d: m_%d.m_%d is %g and said to be %g", M, p.Next, j, l, want, got)
					}
				}
			}
		}
	}
}

// The result of the loop over the directions is a linear combination of the noise and the directions. Its coefficients
// follow from inner products alone, also for directions that are long, short, parallel or zero.
func TestLMMAESCoefficients(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const M, V = 30, 14
	for round := range 50 {
		w := newLMMAESReference(make([]float64, M), V, 1, float64(1+round%7))
		if w.t = round; round < 5 {
			w.t = V
		}
		vector := func(scale float64) []float64 {
			v := make([]float64, M)
			for i := range v {
				v[i] = scale * r.NormFloat64()
			}
			return v
		}
		for j := range w.m {
			switch w.m[j] = vector(math.Pow(10, float64(r.IntN(4)-2))); {
			case j > 0 && j%4 == 0:
				for i := range w.m[j] {
					w.m[j][i] = -2 * w.m[j-1][i]
				}
			case j%5 == 4:
				clear(w.m[j])
			}
		}
		z := vector(1)
		way, dots := &lmMAESTransform{}, make([]float64, V)
		for j := range w.m {
			dots[j] = inner64(w.m[j], z)
			way.gram = append(way.gram, nil)
			for l := range j + 1 {
				way.gram[j] = append(way.gram[j], inner64(w.m[j], w.m[l]))
			}
		}
		scale := 1.0
		for _, c := range lmMAESRates(4, M, V, w.rate).shape[:min(V, w.t)] {
			way.shape = append(way.shape, c)
			scale *= 1 - c
		}
		got, want := make([]float64, M), w.transform(z)
		for i := range got {
			got[i] = scale * z[i]
		}
		for j, a := range way.amounts(dots) {
			for i := range got {
				got[i] += a * w.m[j][i]
			}
		}
		size := math.Sqrt(inner64(want, want) / M)
		for i := range got {
			if d := math.Abs(got[i] - want[i]); !(d <= 1e-9*size) {
				t.Fatalf("round %d: element %d is %g, the loop makes %g", round, i, got[i], want[i])
			}
		}
	}
}

// turned returns f of x after reflections in several planes that no axis is parallel to.
func turned(f func(x []float64) float64, M int) func(x []float64) float64 {
	r, planes := rand.New(rand.NewPCG(7, 7)), [6][]float64{}
	for k := range planes {
		planes[k] = make([]float64, M)
		for j := range planes[k] {
			planes[k][j] = r.NormFloat64()
		}
	}
	return func(x []float64) float64 {
		y := slices.Clone(x)
		for _, u := range planes {
			across := 2 * inner64(u, y) / inner64(u, u)
			for j := range y {
				y[j] -= across * u[j]
			}
		}
		return f(y)
	}
}

// LM-MA-ES is invariant under orthogonal transformations: an ellipsoid takes as many evaluations with and without one.
// sep-CMA-ES takes far fewer if the axes of the ellipsoid are parameters, and more if not and on a curved valley.
func TestLMMAESInvariance(t *testing.T) {
	longtest.Need(t, longtest.Studies, "evaluates a million candidates")
	const M, P = 40, 16
	b := optimtest.NewBowl(t, M, 1)
	takes := func(alg *optim.Algorithm, from float64, f func(x []float64) float64, most, seeds int) (mean float64) {
		for seed := range uint64(seeds) {
			n, _ := evaluations(b, t, alg, P, seed+1, from, 1e-10, most, f)
			mean += float64(n) / float64(seeds)
		}
		return mean
	}
	straight := func(x []float64) (sum float64) {
		for j, v := range x {
			sum += math.Pow(2000, float64(j)/(M-1)) * v * v
		}
		return sum
	}
	valley := crFMNESFunctions[2].f
	here, there, bent := takes(LMMAES, 3, straight, 200000, 2), takes(LMMAES, 3, turned(straight, M), 200000, 2),
		takes(LMMAES, -1, valley, 200000, 1)
	sepHere, sepThere, sepBent := takes(SepCMA, 3, straight, int(here), 1),
		takes(SepCMA, 3, turned(straight, M), int(3*there), 1), takes(SepCMA, -1, valley, int(2*bent), 1)
	t.Logf("straight, turned and in a valley: LM-MA-ES %.0f, %.0f and %.0f, sep-CMA-ES %.0f, %.0f and %.0f or more", here,
		there, bent, sepHere, sepThere, sepBent)
	if math.Abs(there/here-1) > 0.15 {
		t.Errorf("LM-MA-ES takes %.0f evaluations straight and %.0f turned", here, there)
	}
	if sepHere > here/3 || sepThere < 3*there || sepBent < 2*bent {
		t.Errorf("sep-CMA-ES takes %.0f, %.0f and %.0f, LM-MA-ES %.0f, %.0f and %.0f", sepHere, sepThere, sepBent, here,
			there, bent)
	}
}

// Missing results rank last. Without any result the step size stays finite.
func TestLMMAESMissingResults(t *testing.T) {
	const P, M = 12, 30
	b := optimtest.NewBowl(t, M, 1)
	nan := func(x []float64) float64 {
		if x[0]+x[1] > 4.5 {
			return math.NaN()
		}
		return inner64(x, x)
	}
	b.F = nan
	p := b.Populate(t, LMMAES, P, optimtest.Set{"sigma": 0.5, "batch": 1, "ties": "order"})
	w, missing := newLMMAESReference(p.RowOf(optim.BlockX, 0), lmMAESVectors(p.Knobs, p.Layout), 0.5, 1), 0
	for g := range 10 {
		w.generation(singles64(p, P, g), func(_ int, x []float64) float64 {
			l := nan(x)
			if l != l {
				missing++
			}
			return l
		})
	}
	p.Rounds(10)
	p.Same(optim.BlockX, w.x)
	if missing < 10 {
		t.Errorf("%d results are missing: a poor test", missing)
	}
	b.F = func([]float64) float64 { return math.NaN() }
	q := b.Populate(t, LMMAES, P, optimtest.Set{"sigma": 0.5, "batch": 1})
	q.Rounds(30)
	for _, name := range []string{optim.BlockX, optim.BlockAxes, optim.BlockPathS} {
		for _, x := range q.RowOf(name, 0) {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				t.Fatalf("with no result at all %s is %v", name, q.RowOf(name, 0))
			}
		}
	}
	if step := q.Record(optim.BlockStep).F[0]; !(step > 0 && step < 10) {
		t.Errorf("with no result at all the step size goes to %v of itself", step)
	}
}

// TestLMMAESStretch: the reported stretch is the length of the step of the mean, in step sizes.
func TestLMMAESStretch(t *testing.T) {
	const P, M = 8, 20
	b := optimtest.NewBowl(t, M, 1)
	b.F = func(x []float64) float64 { return x[0] }
	p := b.Populate(t, LMMAES, P, optimtest.Set{"sigma": 0.5, "batch": 1})
	longest := 0.0
	for g := range 40 {
		x, sigma := p.RowOf(optim.BlockX, 0), 0.5*float64(p.Record(optim.BlockStep).F[0])
		z, best, mean := singles64(p, P, g), 0.0, make([]float64, M)
		seen := []float64{}
		b.F = func(x []float64) float64 { seen = append(seen, -x[0]); return x[0] }
		rep := p.Rounds(1)
		weights := lmMAESRates(P, M, 1, 1).weights
		for k, i := range optimtest.Descending(seen)[:P/2] {
			for j := range mean {
				mean[j] += float64(weights[k]) * z[i][j]
			}
		}
		for j, v := range p.RowOf(optim.BlockX, 0) {
			best += math.Pow((v-x[j])/sigma, 2)
		}
		got := rep.Points[len(rep.Points)-1]
		if want := math.Sqrt(best / inner64(mean, mean)); got.Series != "stretch" || math.Abs(got.Value-want) > 1e-4*want {
			t.Errorf("generation %d: got %+v, the mean moved %g times as far", g, got, want)
		}
		longest = max(longest, got.Value)
	}
	if longest < 1.2 {
		t.Errorf("nothing was stretched by more than %g", longest)
	}
}
