package population

import (
	"math"
	"slices"

	"brood/models/arith"
)

// A time-varying Gaussian process on the unit square (Bogunovic, Scarlett, Cevher: Time-varying Gaussian process bandit
// optimization, 2016). It computes in float64 in a fixed order, so that every worker gets the same bits:
//
//	k(a, b) = exp(-sum_j (a_j - b_j)^2/(2 l_j^2)) * (1 - forget)^(|t_a - t_b|/2)
//	mean(p) = k_p' (K + noise*I)^-1 y;  variance(p) = 1 - k_p' (K + noise*I)^-1 k_p
//
// With the Cholesky factor K + noise*I = L L', v = L^-1 k_p and w = L^-1 y, the mean is v'w and the variance 1 - v'v.
// Another observation appends a row to L.

// point is an input of the process: a point of the unit square and a time.
type point struct {
	x [2]float64
	t float64
}

// kernel has the hyper-parameters of the prior, which has mean 0 and variance 1.
type kernel struct {
	length [2]float64 // length scale of each coordinate
	forget float64    // share of the correlation lost in two units of time, below 1
	noise  float64    // variance of the observation noise, above 0
}

// kernels returns the kernels among which fitProcess chooses.
func kernels() (out []kernel) {
	lengths := []float64{0.3, 1, 0.1, 3}
	for _, l0 := range lengths {
		for _, l1 := range lengths {
			for _, forget := range []float64{0.1, 0.3, 0.01} {
				for _, noise := range []float64{0.1, 1, 0.01} {
					out = append(out, kernel{[2]float64{l0, l1}, forget, noise})
				}
			}
		}
	}
	return out
}

// process is a Gaussian process with its observations.
type process struct {
	kernel
	logDecay float64     // ln(1 - forget)/2
	points   []point     // points of the observations
	cholesky [][]float64 // L: row i has i+1 elements
	w        []float64   // L^-1 y
}

func newProcess(k kernel) *process {
	return &process{kernel: k, logDecay: arith.Log(1-k.forget) / 2}
}

func (g *process) covariance(a, b point) float64 {
	e := float64(g.logDecay * math.Abs(a.t-b.t))
	for j, l := range g.length {
		d := (a.x[j] - b.x[j]) / l
		e -= float64(float64(d*d) / 2)
	}
	return arith.Exp(e)
}

// solve returns L^-1 k_p by forward substitution. v is the result for a prefix of the observations, or nil; solve
// computes only the missing elements.
func (g *process) solve(p point, v []float64) []float64 {
	for i := len(v); i < len(g.points); i++ {
		s := g.covariance(p, g.points[i])
		for j, r := range g.cholesky[i][:i] {
			s -= float64(r * v[j])
		}
		v = append(v, s/g.cholesky[i][i])
	}
	return v
}

// posterior returns the posterior mean and variance at a point. v is the result of solve.
func (g *process) posterior(v []float64) (mean, variance float64) {
	return dot(v, g.w), max(0, 1-dot(v, v))
}

// observe adds observation y at p.
func (g *process) observe(p point, y float64) {
	v, d := g.appendRow(p)
	g.w = append(g.w, (y-dot(v, g.w))/d)
}

// addPending adds a pending observation at p with the posterior mean as its value. It leaves all means unchanged and
// only lowers variances (Desautels, Krause, Burdick: Parallelizing exploration-exploitation tradeoffs in Gaussian
// process bandit optimization, 2014).
func (g *process) addPending(p point) {
	g.appendRow(p)
	g.w = append(g.w, 0)
}

// appendRow appends the row of p to L. It returns the row without its diagonal (v) and the diagonal element (d).
func (g *process) appendRow(p point) (v []float64, d float64) {
	v = g.solve(p, nil)
	d = math.Sqrt(1 + g.noise - dot(v, v))
	g.points, g.cholesky = append(g.points, p), append(g.cholesky, append(slices.Clone(v), d))
	return v, d
}

// likelihood returns the log marginal likelihood of the observations, without the constant that is equal for all
// kernels.
func (g *process) likelihood() float64 {
	out := -float64(dot(g.w, g.w) / 2)
	for i, row := range g.cholesky {
		out -= arith.Log(row[i])
	}
	return out
}

// fitProcess returns a process with observations y at the points at. Its kernel maximises the likelihood; of several,
// it is the first, as if no likelihood is a number: another worker may have sent wrong observations.
func fitProcess(at []point, y []float64) (best *process) {
	top := math.Inf(-1)
	for _, k := range kernels() {
		g := newProcess(k)
		for i, p := range at {
			g.observe(p, y[i])
		}
		if l := g.likelihood(); best == nil || l > top {
			best, top = g, l
		}
	}
	return best
}

// dot returns the inner product of a with the first len(a) elements of b.
func dot(a, b []float64) (s float64) {
	for i, x := range a {
		s += float64(x * b[i])
	}
	return s
}
