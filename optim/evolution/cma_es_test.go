package evolution

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"brood/models/bbob"
	"brood/models/engine"
	"brood/models/longtest"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/optimtest"
)

// cmaESReference is figure 6 of the tutorial in dense matrices. It has its own square roots of C, and takes the
// candidates as they were evaluated, since their noise determines them only up to the signs and the order of the axes.
type cmaESReference struct {
	m, ps, pc       []float64
	c, root, invert *mat.SymDense
	sigma           float64
	active          bool
	t               int
}

func newCMAESReference(m []float64, sigma float64, active bool) *cmaESReference {
	n := len(m)
	w := &cmaESReference{m: slices.Clone(m), ps: make([]float64, n), pc: make([]float64, n), sigma: sigma, active: active}
	w.c = mat.NewSymDense(n, nil)
	for i := range n {
		w.c.SetSym(i, i, 1)
	}
	w.decompose()
	return w
}

func (w *cmaESReference) decompose() {
	var e mat.EigenSym
	e.Factorize(w.c, true)
	var b mat.Dense
	e.VectorsTo(&b)
	of := func(power float64) *mat.SymDense {
		out := mat.NewSymDense(len(w.m), nil)
		for k, v := range e.Values(nil) {
			out.SymRankOne(out, math.Pow(v, power), b.ColView(k))
		}
		return out
	}
	w.root, w.invert = of(0.5), of(-0.5)
}

// generation updates the distribution from candidates and their losses.
func (w *cmaESReference) generation(xs [][]float64, losses []float64) {
	n, lambda := float64(len(w.m)), len(xs)
	order := make([]int, lambda)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if losses[a] < losses[b] {
			return -1
		}
		return 1
	})
	prime := make([]float64, lambda)
	var positive, negative, positives, negatives float64
	for i := range prime {
		prime[i] = math.Log(float64(lambda+1)/2) - math.Log(float64(i+1))
		if i < lambda/2 {
			positive, positives = positive+prime[i], positives+prime[i]*prime[i]
		} else {
			negative, negatives = negative+prime[i], negatives+prime[i]*prime[i]
		}
	}
	mu, minus := positive*positive/positives, negative*negative/negatives
	cs, cc := (mu+2)/(n+mu+5), (4+mu/n)/(n+4+2*mu/n)
	ds := 1 + 2*math.Max(0, math.Sqrt((mu-1)/(n+1))-1) + cs
	c1 := 2 / ((n+1.3)*(n+1.3) + mu)
	cmu := math.Min(1-c1, 2*(0.25+mu+1/mu-2)/((n+2)*(n+2)+2*mu/2))
	least := math.Min(1+c1/cmu, math.Min(1+2*minus/(mu+2), (1-c1-cmu)/(n*cmu)))
	chi := math.Sqrt(n) * (1 - 1/(4*n) + 1/(21*n*n))
	step, total := mat.NewVecDense(len(w.m), nil), 0.0
	update := mat.NewSymDense(len(w.m), nil)
	for rank, i := range order {
		y, white := mat.NewVecDense(len(w.m), nil), mat.NewVecDense(len(w.m), nil)
		for j := range w.m {
			y.SetVec(j, (xs[i][j]-w.m[j])/w.sigma)
		}
		white.MulVec(w.invert, y)
		weight := prime[rank] / positive
		if rank < lambda/2 {
			step.AddScaledVec(step, weight, y)
		} else if weight = prime[rank] * least / -negative; !w.active {
			weight = 0
		}
		total += weight
		if weight < 0 {
			weight *= n / mat.Dot(white, white)
		}
		update.SymRankOne(update, cmu*weight, y)
	}
	white := mat.NewVecDense(len(w.m), nil)
	white.MulVec(w.invert, step)
	w.t++
	square := 0.0
	for j := range w.m {
		w.m[j] += w.sigma * step.AtVec(j)
		w.ps[j] = (1-cs)*w.ps[j] + math.Sqrt(cs*(2-cs)*mu)*white.AtVec(j)
		square += w.ps[j] * w.ps[j]
	}
	h := 0.0
	if math.Sqrt(square)/math.Sqrt(1-math.Pow(1-cs, float64(2*w.t))) < (1.4+2/(n+1))*chi {
		h = 1
	}
	for j := range w.m {
		w.pc[j] = (1-cc)*w.pc[j] + h*math.Sqrt(cc*(2-cc)*mu)*step.AtVec(j)
	}
	w.c.ScaleSym(1+c1*(1-h)*cc*(2-cc)-c1-cmu*total, w.c)
	w.c.AddSym(w.c, update)
	w.c.SymRankOne(w.c, c1, mat.NewVecDense(len(w.m), slices.Clone(w.pc)))
	w.sigma *= math.Exp(cs / ds * (math.Sqrt(square)/chi - 1))
	if every := int(1 / (10 * n * (c1 + cmu))); w.t%max(1, every) == 0 {
		w.decompose()
	}
}

// TestCMAES compares with the tutorial's rule, computed in dense matrices, for generations of one round and of several.
// Each candidate is x + sigma*C^1/2 Q z, with an orthogonal Q and the noise z of its key.
func TestCMAES(t *testing.T) {
	for _, c := range []struct {
		M, P, doublings, generations int
		sigma                        float64
		active                       string
	}{{13, 10, 0, 25, 0.5, "on"}, {13, 7, 0, 25, 0.5, "off"}, {13, 4, 2, 12, 0.5, "on"}, {2, 6, 0, 20, 0.5, "on"},
		{60, 12, 0, 12, 0.5, "on"}, {1, 5, 0, 10, 0.5, "on"}} {
		b := optimtest.NewBowl(t, c.M, optimtest.Samples)
		p := b.Populate(t, CMAES, c.P,
			optimtest.Set{"sigma": c.sigma, "batch": 4, "active": c.active, "restarts": c.doublings})
		p.Record(optim.BlockPhase).U[0] = uint64(c.doublings) << 32
		w := newCMAESReference(p.RowOf(optim.BlockX, 0), c.sigma, c.active == "on")
		var xs [][]float64
		var losses []float64
		b.F = func(x []float64) float64 {
			l := 0.0
			for j, v := range x { // along and across each pair of neighbours
				l += math.Pow(v+x[(j+1)%len(x)]-1, 2) + 1e-3*v*v
			}
			xs, losses = append(xs, slices.Clone(x)), append(losses, l)
			return l
		}
		for g := range c.generations {
			xs, losses = nil, nil
			for part := range 1 << c.doublings {
				if phase := p.Record(optim.BlockPhase).U[0]; int(uint32(phase)) != part {
					t.Fatalf("%+v: phase %x in part %d", c, phase, part)
				}
				p.Rounds(1)
				for i := range c.P {
					key := p.Rand(noise.Candidate, p.Next-1, engine.Member(i))
					z, y := cmaESNoise(key, c.M), mat.NewVecDense(c.M, nil)
					for j := range c.M {
						y.SetVec(j, (xs[part*c.P+i][j]-w.m[j])/w.sigma)
					}
					y.MulVec(w.invert, y)
					if got, want := mat.Norm(y, 2), math.Sqrt(dot(z, z)); math.Abs(got-want) > 1e-4*want {
						t.Errorf("%+v: candidate %d of generation %d is %g deviations from the mean, its noise has %g", c, i, g,
							got, want)
					}
				}
			}
			if len(xs) != c.P<<c.doublings {
				t.Fatalf("%+v: %d candidates in a generation", c, len(xs))
			}
			w.generation(xs, losses)
		}
		p.Same(optim.BlockX, w.m)
		p.Same(optim.BlockPathS, w.ps)
		p.Same(optim.BlockPathC, w.pc)
		if got := c.sigma * float64(p.Record(optim.BlockStep).F[0]); math.Abs(got-w.sigma) > 1e-5*w.sigma {
			t.Errorf("%+v: the step size is %g, want %g", c, got, w.sigma)
		}
		s := loadCMAES(p.Env)
		for i, row := range s.covariance {
			for j, v := range row {
				if want := w.c.At(i, j); math.Abs(v-want) > 1e-4 {
					t.Errorf("%+v: C[%d][%d] is %g, want %g", c, i, j, v, want)
				}
			}
		}
	}
}

// The basis is orthonormal and the deviations are the roots of the eigenvalues, for a first decomposition and for one
// from the basis before.
func TestCMAESDecomposition(t *testing.T) {
	for _, n := range []int{1, 2, 5, 40} {
		s := &cmaESSearch{n: n, deviations: make([]float64, n)}
		for i := range n {
			s.covariance, s.basis = append(s.covariance, make([]float64, i+1)), append(s.basis, make([]float64, n))
		}
		s.begin()
		for step := range 3 {
			for k := range n {
				v := cmaESNoise(noise.Key{Seed: 1, Round: uint64(step), Member: uint32(k)}, n)
				for i, row := range s.covariance {
					add(row, math.Pow(10, -8*float64(k)/float64(n))*v[i], v[:i+1])
				}
			}
			s.decompose()
			c := mat.NewSymDense(n, nil)
			for i, row := range s.covariance {
				for j, v := range row {
					c.SetSym(i, j, v)
				}
			}
			var e mat.EigenSym
			e.Factorize(c, false)
			values, got := e.Values(nil), slices.Clone(s.deviations)
			slices.Sort(got)
			for i, v := range values {
				if math.Abs(got[i]*got[i]-v) > 1e-12*values[n-1] {
					t.Errorf("%d parameters, step %d: eigenvalue %d is %g, want %g", n, step, i, got[i]*got[i], v)
				}
			}
			for p := range n {
				for q := range p + 1 {
					if d := dot(s.basis[p], s.basis[q]); math.Abs(d-map[bool]float64{true: 1}[p == q]) > 1e-12 {
						t.Errorf("%d parameters: axes %d and %d have the product %g", n, p, q, d)
					}
				}
			}
			for k, row := range s.turned() {
				for l, v := range row {
					if want := map[bool]float64{true: s.deviations[k] * s.deviations[k]}[k == l]; math.Abs(v-want) > 1e-12*
						values[n-1] {
						t.Errorf("%d parameters: B'CB[%d][%d] is %g, want %g", n, k, l, v, want)
					}
				}
			}
		}
	}
}

// A search that has converged begins another one at another point, with twice the population and the initial
// distribution. The centre is the best candidate of all searches.
func TestCMAESRestarts(t *testing.T) {
	const M, P = 2, 6
	b := optimtest.NewBowl(t, M, 1)
	best, at, evaluated := math.Inf(1), make([]float64, M), 0
	b.F = func(x []float64) float64 { // many minima, of which the search finds one
		l := 0.0
		for _, v := range x {
			l += v*v - 8*math.Cos(2*math.Pi*v) + 8
		}
		if evaluated++; l < best {
			best = l
			copy(at, x)
		}
		return l
	}
	p := b.Populate(t, CMAES, P, optimtest.Set{"sigma": 2, "batch": 1, "restarts": 2})
	copy(optimtest.Flat(p.Block(optim.BlockStart)), []float32{3, -3})
	copy(optimtest.Flat(p.Block(optim.BlockX)), []float32{3, -3})
	begun, last := []int{}, 0
	for range 2500 {
		p.Rounds(1)
		doublings, part := cmaESPhase(p.Record(optim.BlockPhase).U[0])
		if part > 0 || p.Record(optim.BlockCycle).U[0] > 0 {
			continue
		}
		if begun = append(begun, doublings); p.Record(optim.BlockStep).F[0] != 1 {
			t.Errorf("a search begins with the step size %g", p.Record(optim.BlockStep).F[0])
		}
		if _, wide, square := loadCMAES(p.Env).axes(); wide != 1 || square != M {
			t.Error("a search does not begin with the identity")
		}
		if evaluated-last < 20*P {
			t.Errorf("a search of %d evaluations", evaluated-last)
		}
		last = evaluated
	}
	if len(begun) < 4 || !slices.Equal(begun[:4], []int{1, 2, 2, 2}) {
		t.Errorf("searches begin with the doublings %v", begun)
	}
	if far := optimtest.Distance(p.CentreOf(), at); far > 1e-6 || best > 1e-9 {
		t.Errorf("the centre is %v, the best candidate %v with %g", p.CentreOf(), at, best)
	}
}

// Results of a member that joined during a generation do not exist in its parts before.
func TestCMAESOfMembersThatJoin(t *testing.T) {
	const M, P = 5, 6
	b := optimtest.NewBowl(t, M, optimtest.Samples)
	p := b.Populate(t, CMAES, P, optimtest.Set{"batch": 4, "restarts": 1})
	p.Record(optim.BlockPhase).U[0] = 1 << 32
	p.Rounds(1)
	p.Record(optim.BlockResults).URow(3)[0] = 0
	rep := p.Rounds(1)
	i := slices.IndexFunc(rep.Points, func(x optim.Point) bool { return x.Series == "population" })
	if i < 0 || rep.Points[i].Value != 2*P-1 {
		t.Errorf("the points are %v, want a population of %d", rep.Points, 2*P-1)
	}
}

// Missing results do not spoil the distribution, even if all are missing.
func TestCMAESMissingResults(t *testing.T) {
	b := optimtest.NewBowl(t, 5, 1)
	b.F = func([]float64) float64 { return math.NaN() }
	p := b.Populate(t, CMAES, 8, optimtest.Set{"batch": 1, "restarts": 1})
	p.Rounds(50)
	for _, x := range append(p.RowOf(optim.BlockX, 0), p.CentreOf()...) {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			t.Fatalf("x is %v", p.RowOf(optim.BlockX, 0))
		}
	}
}

// cmaESEvaluations returns the evaluations until a candidate is within the target of the optimum of a function of the
// suite, from a uniform start in [-4, 4]; most if none is.
func cmaESEvaluations(t *testing.T, f *bbob.Function, P int, active string, most int, target float64, seed uint64) int {
	n, best, evaluated := len(f.Optimum()), math.Inf(1), 0
	at, b := make([]float64, n), optimtest.NewBowl(t, n, 1)
	b.F = func(u []float64) float64 {
		for j, v := range u {
			at[j] = f.Optimum()[j] + v
		}
		if best > target {
			evaluated++
		}
		gap := f.Gap(at)
		best = min(best, gap)
		return gap
	}
	p := b.Populate(t, CMAES, P, optimtest.Set{"sigma": 2, "batch": 1, "restarts": 9, "active": active})
	p.Seed = seed
	for j, v := range f.Optimum() {
		u := p.Rand(noise.Init, 0, 0).Uniform(j)
		for _, block := range []string{optim.BlockX, optim.BlockStart} {
			optimtest.Flat(p.Block(block))[j] = float32(float64(8*u-4) - v)
		}
	}
	for best > target && evaluated < most {
		p.Rounds(1)
	}
	return evaluated
}

// CMA-ES takes as many evaluations as published on the same functions and instances in 5 dimensions, up to 1e-7.
// Without negative weights these are those of BIPOP-CMA-ES by Hansen, which has none: its restarts are others, but few
// runs restart except on Rastrigin's function. Source: github.com/numbbo/ppdata-archive, bbob/2009/pptables.html, the
// ratios times the times of the reference. within is half of the range from the 10th to the 90th percentile.
func TestCMAESEvaluations(t *testing.T) {
	longtest.Need(t, longtest.Studies, "evaluates a million candidates")
	const runs, dimension, P, target = 15, 5, 8, 1e-7
	for _, c := range []struct {
		function      int
		takes, within float64
	}{{1, 647, 48}, {8, 2263, 211}, {10, 2068, 176}, {15, 25184, 15000}} {
		times, mean, square := []int{}, 0.0, 0.0
		for i := range runs {
			f, err := bbob.New(c.function, dimension, 1+i%5)
			if err != nil {
				t.Fatal(err)
			}
			times = append(times, cmaESEvaluations(t, f, P, "off", 500000, target, uint64(i+1)))
			mean += float64(times[i]) / runs
			square += float64(times[i]*times[i]) / runs
		}
		deviation := math.Sqrt((square - mean*mean) / (runs - 1)) // of the mean
		t.Logf("function %d: %.0f +- %.0f evaluations, published %.0f: %v", c.function, mean, deviation, c.takes, times)
		if math.Abs(mean-c.takes) > c.within+2*deviation {
			t.Errorf("function %d: %.0f +- %.0f evaluations, published %.0f +- %.0f", c.function, mean, deviation, c.takes,
				c.within)
		}
	}
}
