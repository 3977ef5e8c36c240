package population

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"brood/models/engine"
	"brood/models/longtest"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
	"brood/optim/optimtest"
)

// naive is a textbook Gaussian process: it solves with the whole of K + noise*I by elimination each time.
type naive struct {
	kernel
	points []point
	y      []float64
}

func (g *naive) covariance(a, b point) float64 {
	far := 0.0
	for j := range a.x {
		far += (a.x[j] - b.x[j]) * (a.x[j] - b.x[j]) / (2 * g.length[j] * g.length[j])
	}
	return math.Exp(-far) * math.Pow(1-g.forget, math.Abs(a.t-b.t)/2)
}

// solve returns (K + noise*I)^-1 b and the determinant, by elimination with pivots.
func (g *naive) solve(b []float64) (x []float64, det float64) {
	n := len(g.points)
	m := make([][]float64, n)
	for i := range m {
		for j := range n {
			m[i] = append(m[i], g.covariance(g.points[i], g.points[j]))
		}
		m[i][i] += g.noise
		m[i] = append(m[i], b[i])
	}
	det = 1
	for c := range n {
		p := c
		for r := c; r < n; r++ {
			if math.Abs(m[r][c]) > math.Abs(m[p][c]) {
				p = r
			}
		}
		if p != c {
			m[c], m[p], det = m[p], m[c], -det
		}
		det *= m[c][c]
		for r := range n {
			if r == c {
				continue
			}
			f := m[r][c] / m[c][c]
			for j := c; j <= n; j++ {
				m[r][j] -= f * m[c][j]
			}
		}
	}
	for c := range n {
		x = append(x, m[c][n]/m[c][c])
	}
	return x, det
}

func (g *naive) posterior(p point) (mean, variance float64) {
	var k []float64
	for _, q := range g.points {
		k = append(k, g.covariance(p, q))
	}
	alpha, _ := g.solve(g.y)
	beta, _ := g.solve(k)
	variance = 1
	for i := range k {
		mean += k[i] * alpha[i]
		variance -= k[i] * beta[i]
	}
	return mean, variance
}

func (g *naive) likelihood() (l float64) {
	alpha, det := g.solve(g.y)
	for i := range alpha {
		l -= g.y[i] * alpha[i] / 2
	}
	return l - math.Log(det)/2
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-9*max(1, math.Abs(want))) {
		t.Errorf("%s is %.12g, want %.12g", what, got, want)
	}
}

// TestGaussianProcessByHand: one measurement y = 1 of variance 1/4, and 1 - forget = 0.81. K + noise is 1.25. k is 1 at
// the same place and time, 0.9 after one unit of time and exp(-1/2) at a distance of one length. With a second
// measurement, -1, two units later, K + noise is (1.25 .81; .81 1.25), and between the two k is (.9 .9).
func TestGaussianProcessByHand(t *testing.T) {
	g := newProcess(kernel{length: [2]float64{0.5, 0.25}, forget: 0.19, noise: 0.25})
	ask := func(p point) (mean, variance float64) { return g.posterior(g.solve(p, nil)) }
	mean, variance := ask(point{})
	near(t, "the mean before all", mean, 0)
	near(t, "the variance before all", variance, 1)
	g.observe(point{}, 1)
	for _, c := range []struct {
		p              point
		mean, variance float64
	}{
		{point{}, 0.8, 0.2},
		{point{t: 1}, 0.72, 0.352},
		{point{x: [2]float64{0.5, 0}}, 0.8 * math.Exp(-0.5), 1 - math.Exp(-1)/1.25},
		{point{x: [2]float64{0, 0.25}}, 0.8 * math.Exp(-0.5), 1 - math.Exp(-1)/1.25},
	} {
		mean, variance := ask(c.p)
		near(t, "the mean", mean, c.mean)
		near(t, "the variance", variance, c.variance)
	}
	near(t, "the likelihood", g.likelihood(), -1/(2*1.25)-math.Log(1.25)/2)
	g.observe(point{t: 2}, -1)
	mean, variance = ask(point{t: 1})
	near(t, "the mean between opposites", mean, 0)
	near(t, "the variance between them", variance, 1-2*.81/2.06)
}

// TestGaussianProcess: a Cholesky factor that grows by one row per point gives the results of the textbook formulas,
// for every kernel. A pending measurement lowers the variance as a completed one does, and does not change the mean.
func TestGaussianProcess(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	somewhere := func() point { return point{x: [2]float64{r.Float64(), r.Float64()}, t: float64(r.IntN(9))} }
	for i, k := range kernels() {
		g, ref := newProcess(k), &naive{kernel: k}
		for range 3 + i%9 {
			p, y := somewhere(), r.NormFloat64()
			g.observe(p, y)
			ref.points, ref.y = append(ref.points, p), append(ref.y, y)
		}
		near(t, "the likelihood", g.likelihood(), ref.likelihood())
		asked := somewhere()
		v := g.solve(asked, nil)
		was, before := g.posterior(v)
		mean, variance := ref.posterior(asked)
		near(t, "the mean", was, mean)
		near(t, "the variance", before, variance)
		p := somewhere()
		pending, _ := ref.posterior(p)
		ref.points, ref.y = append(ref.points, p), append(ref.y, pending)
		g.addPending(p)
		mean, variance = g.posterior(g.solve(asked, v)) // v continues with the rows that it has
		near(t, "the mean with a pending measurement", mean, was)
		_, want := ref.posterior(asked)
		near(t, "the variance with a pending measurement", variance, want)
		if variance > before+1e-12 {
			t.Errorf("a measurement to come raises the variance from %g to %g", before, variance)
		}
	}
}

// TestFitted: for measurements of a function that depends smoothly on one coordinate alone and not on time, the fit
// chooses a kernel with these properties.
func TestFitted(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var at []point
	var y []float64
	for i := range 40 {
		p := point{x: [2]float64{r.Float64(), r.Float64()}, t: float64(i / 4)}
		at, y = append(at, p), append(y, math.Sin(12*p.x[0]))
	}
	g := fitProcess(at, y)
	if g.length[0] > 0.3 || g.length[1] != 3 || g.forget != 0.01 || g.noise != 0.01 {
		t.Errorf("the kernel is %+v", g.kernel)
	}
	if g = fitProcess(nil, nil); g.kernel != kernels()[0] {
		t.Errorf("without measurements the kernel is %+v", g.kernel)
	}
}

// pb2Reference chooses the points that explore must choose, with the textbook process.
func pb2Reference(at []point, y []float64, now []point, children int, beta, t float64) (chosen []point) {
	g, top := &naive{}, math.Inf(-1)
	for _, k := range kernels() {
		if one := (&naive{k, at, y}); one.likelihood() > top {
			g, top = one, one.likelihood()
		}
	}
	g.points, g.y = slices.Clone(at), slices.Clone(y)
	real := &naive{g.kernel, at, y}
	pend := func(p point) {
		mean, _ := real.posterior(p)
		g.points, g.y = append(g.points, p), append(g.y, mean)
	}
	for _, p := range now {
		pend(p)
	}
	for range children {
		var best point
		top := math.Inf(-1)
		for i := range 33 {
			for j := range 33 {
				p := point{x: [2]float64{float64(i) / 32, float64(j) / 32}, t: t}
				mean, variance := g.posterior(p)
				if u := mean + math.Sqrt(beta*max(0, variance)); u > top+1e-9 {
					best, top = p, u
				}
			}
		}
		pend(best)
		chosen = append(chosen, best)
	}
	return chosen
}

// standard64 returns gains in standard deviations of the finite ones, limited to two deviations.
func standard64(gains []float64) (y []float64) {
	mean, square := 0.0, 0.0
	for _, g := range gains {
		mean += g / float64(len(gains))
	}
	for _, g := range gains {
		square += (g - mean) * (g - mean) / float64(len(gains))
	}
	for _, g := range gains {
		y = append(y, max(-2, min(2, (g-mean)/math.Sqrt(square))))
	}
	return y
}

// TestPB2: members of the worst quarter copy a member of the best quarter and get the factors with the highest upper
// bound. An observation is the gain of one period, in deviations of all observations. A period whose initial fitness
// was not measured gives no observation.
func TestPB2(t *testing.T) {
	const n, vary, beta = 9, 4, 1.5
	b := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples)
	b.ValidationCount = 10
	p := b.Populate(t, PB2, n, optimtest.Set{"batch": 3, "slice": 4, "eta": 0.02, "decay": 0.01, "vary": vary,
		"period": 0.5, "beta": beta, "window": 20})
	next := p.Streams()
	x, m := optimtest.StartRows(optimtest.Cols, n)
	f := make([][2]float64, n)
	for a := range f {
		key := p.Rand(noise.Select, 0, engine.Member(a))
		key.Stream = 2
		for i := range f[a] {
			f[a][i] = math.Pow(vary, 2*float64(key.Uniform(i))-1)
		}
	}
	toPoint := func(f [2]float64, t float64) (p point) {
		for i := range f {
			p.x[i] = (math.Log(f[i])/math.Log(vary) + 1) / 2
		}
		p.t = t
		return p
	}
	var at []point
	var gains, y, from []float64
	for comparison := 1; comparison <= 5; comparison++ {
		fit := make([]float64, n)
		for a := range x {
			for range 5 {
				g := b.Gradient(x[a], next(a))
				for j := range g {
					g[j] += 0.01 * f[a][1] * x[a][j]
				}
				optimtest.Nesterov(x[a], m[a], g, 0.02*f[a][0], 0.9)
			}
			fit[a] = -b.Loss(x[a], b.Validation())
		}
		if from != nil {
			for a := range fit {
				at, gains = append(at, toPoint(f[a], float64(comparison))), append(gains, fit[a]-from[a])
			}
		}
		at, gains = at[max(0, len(at)-20):], gains[max(0, len(gains)-20):]
		y = standard64(gains)
		order, round := optimtest.Descending(fit), uint64(2*comparison-1)
		from = slices.Clone(fit)
		var stay []point
		for a := range x {
			if !slices.Contains(order[n-2:], a) {
				stay = append(stay, toPoint(f[a], float64(comparison+1)))
			}
		}
		chosen := pb2Reference(at, y, stay, 2, beta, float64(comparison+1))
		source := map[int][]float64{}
		for i, c := range order[n-2:] { // floor(9/4), the better one first
			src := order[p.Rand(noise.Select, round, engine.Member(c)).Below(0, 2)]
			source[c], from[c] = x[src], fit[src]
			for j, u := range chosen[i].x {
				f[c][j] = math.Pow(vary, 2*u-1)
			}
		}
		for c, row := range source {
			x[c] = slices.Clone(row)
			clear(m[c])
		}
		p.Rounds(2)
		for a := range f {
			if far := optimtest.Distance(p.RowOf(optim.BlockHyper, a), f[a][:]); far > 1e-5 {
				t.Fatalf("after comparison %d the factors of member %d are %v, the reference's %v", comparison, a,
					p.RowOf(optim.BlockHyper, a), f[a])
			}
			if got := p.RowOf(optim.BlockFrom, a); math.Abs(got[0]-from[a]) > 1e-5 || got[1] != 1 {
				t.Errorf("after comparison %d member %d began with %v, the reference's with %g", comparison, a, got, from[a])
			}
		}
	}
	p.Same(optim.BlockX, x...)
	gotAt, gotY := pb2Observations(p.Record(optim.BlockTried).F, 20, vary)
	if len(gotAt) != 20 {
		t.Fatalf("%d observations", len(gotAt))
	}
	for i := range gotAt {
		if gotAt[i].t != at[i].t || math.Abs(gotAt[i].x[0]-at[i].x[0]) > 1e-5 || math.Abs(gotAt[i].x[1]-at[i].x[1]) > 1e-5 ||
			math.Abs(gotY[i]-y[i]) > 1e-2 {
			t.Errorf("observation %d is %v at %v, the reference's %v at %v", i, gotY[i], gotAt[i], y[i], at[i])
		}
	}
	if all, _ := pb2Observations(p.Record(optim.BlockTried).F, pb2Window, vary); len(all) != 4*n {
		t.Errorf("%d observations of %d comparisons are kept", len(all), 4)
	}
}

// TestPB2VaryLowered: if vary is lowered during a run, factors outside the new bounds move to the bounds, also of
// members that are not replaced. Other factors keep their bits, and all do if vary does not change.
func TestPB2VaryLowered(t *testing.T) {
	b := optimtest.NewBowl(t, 10, 200)
	b.ValidationCount = 10
	p := b.Populate(t, PB2, 4, optimtest.Set{"batch": 2, "period": 100, "vary": 4})
	rows := [][2]float32{{4, 0.25}, {0.25, 1.25}, {1, 3}, {0.5, 0.75}}
	for i, f := range rows {
		copy(p.Record(optim.BlockHyper).Row(engine.Row(i)), f[:])
	}
	check := func(when string, want ...[2]float32) {
		t.Helper()
		for i, f := range want {
			if got := p.Record(optim.BlockHyper).Row(engine.Row(i)); got[0] != f[0] || got[1] != f[1] {
				t.Errorf("%s member %d has the factors %v, want %v", when, i, got, f)
			}
		}
	}
	p.Rounds(1)
	check("under the vary of 4", rows...)
	p.Knobs = p.Knobs.With("vary", 2)
	p.Rounds(1)
	check("under one of 2", [2]float32{2, 0.5}, [2]float32{0.5, 1.25}, [2]float32{1, 2}, [2]float32{0.5, 0.75})
}

// TestPB2Most: the largest population is allowed and gets factors within the bounds; one more member is rejected.
func TestPB2Most(t *testing.T) {
	shape := func(n int) optim.Shape {
		return optim.Shape{Roster: collective.Place(collective.IDs(n), []int{0}), K: optimtest.Set{}.Of(PB2),
			Data: optim.DataSize{Train: 100, Validation: 10}}
	}
	if err := PB2.Check(shape(pb2MaxMembers)); err != nil {
		t.Error(err)
	}
	if err := PB2.Check(shape(pb2MaxMembers + 1)); err == nil {
		t.Error("more than the largest population is allowed")
	}
	b := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples)
	b.ValidationCount = 10
	p := b.Populate(t, PB2, pb2MaxMembers, optimtest.Set{"batch": 1, "period": 0.001})
	p.Rounds(2)
	if f := p.Record(optim.BlockHyper).F; slices.Max(f) > 2 || slices.Min(f) < 0.5 {
		t.Errorf("factors go from %g to %g", slices.Min(f), slices.Max(f))
	}
}

// TestPB2Standard: gains are in deviations, limited to two. A missing gain counts as the lowest.
func TestPB2Standard(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		gains []float64
		want  []float64
	}{
		{[]float64{1, 3}, []float64{-1, 1}},
		{[]float64{1, nan, 3, -inf, inf}, []float64{-1, -2, 1, -2, -2}},
		{[]float64{5, 5, 5}, []float64{0, 0, 0}},
		{[]float64{5}, []float64{0}},
		{[]float64{nan}, []float64{-2}},
		{[]float64{0, 0, 0, 0, 0, 0, 0, 0, 0, 100}, append(slices.Repeat([]float64{-1. / 3}, 9), 2)},
		{nil, []float64{}},
	} {
		if got := pb2Standardize(c.gains); !slices.EqualFunc(got, c.want,
			func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }) {
			t.Errorf("%v becomes %v, want %v", c.gains, got, c.want)
		}
	}
}

// TestPB2Place: the place of a factor is linear in its logarithm between 1/vary and vary; factors outside are placed at
// the nearer end.
func TestPB2Place(t *testing.T) {
	for _, c := range []struct {
		f    [2]float32
		vary float64
		want [2]float64
	}{
		{[2]float32{0.25, 4}, 4, [2]float64{0, 1}}, {[2]float32{1, 2}, 4, [2]float64{0.5, 0.75}},
		{[2]float32{0.01, 100}, 4, [2]float64{0, 1}}, {[2]float32{3, 1}, 1, [2]float64{0.5, 0.5}},
	} {
		if got := pb2Point(c.f[:], c.vary, 7); optimtest.Distance(got.x[:], c.want[:]) > 1e-9 || got.t != 7 {
			t.Errorf("%v of %g is at %+v", c.f, c.vary, got)
		}
	}
}

// TestBanditFindsTheBest: for a function with one maximum, measured with noise at four places a step, of which the
// worst is replaced, one of the four places soon approaches the maximum, and approaches it again after the maximum has
// moved: the mean distance is at most a tenth of a side, while the nearest of four random places is at a quarter of a
// side.
func TestBanditFindsTheBest(t *testing.T) {
	longtest.Need(t, longtest.Studies, "fits the bandit hundreds of times")
	r := rand.New(rand.NewPCG(5, 6))
	var far [2]float64
	const runs = 3
	for range runs {
		summit, at, gains := [2]float64{0.2 + 0.6*r.Float64(), 0.2 + 0.6*r.Float64()}, []point(nil), []float64(nil)
		now := make([][2]float64, 4)
		for i := range now {
			now[i] = [2]float64{r.Float64(), r.Float64()}
		}
		for step := range 40 {
			if step == 20 {
				summit[0], summit[1] = summit[1], 1-summit[0]
			}
			worst, least := 0, math.Inf(1)
			for i, x := range now {
				gain := 0.02 * r.NormFloat64()
				for j := range x {
					gain -= (x[j] - summit[j]) * (x[j] - summit[j])
				}
				if gain < least {
					worst, least = i, gain
				}
				at, gains = append(at, point{x, float64(step)}), append(gains, gain)
			}
			at, gains = at[max(0, len(at)-pb2Window):], gains[max(0, len(gains)-pb2Window):]
			g := fitProcess(at, pb2Standardize(gains))
			for i, x := range now {
				if i != worst {
					g.addPending(point{x, float64(step + 1)})
				}
			}
			now[worst] = pb2Choose(g, pb2Grid(float64(step+1)), 2).x
			if step%20 >= 15 {
				near := math.Inf(1)
				for _, x := range now {
					near = min(near, math.Hypot(x[0]-summit[0], x[1]-summit[1]))
				}
				far[step/20] += near / (5 * runs)
			}
		}
	}
	if far[0] > 0.1 || far[1] > 0.1 {
		t.Errorf("the nearest is %.3g from the summit, and %.3g after it moved", far[0], far[1])
	}
}
