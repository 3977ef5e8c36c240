package population

import (
	"math"
	"slices"

	"brood/models/arith"
)

// A Gaussian process on the unit square whose function changes with time (Bogunovic, Scarlett, Cevher: Time-varying
// Gaussian process bandit optimization, 2016), in float64 and one fixed order:
//
//	k(a, b) = exp(-sum_j (a_j - b_j)^2/(2 l_j^2)) * (1 - forget)^(|t_a - t_b|/2)
//	mean(p) = k_p' (K + noise*I)^-1 y;  variance(p) = 1 - k_p' (K + noise*I)^-1 k_p
//
// With K + noise*I = L L', v = L^-1 k_p and w = L^-1 y these are v'w and 1 - v'v, and a point more is a row of L more.

// place is where and when a process is asked.
type place struct {
	x [2]float64
	t float64
}

// kernel is what is supposed beforehand. Where nothing was measured the mean is 0 and the variance 1.
type kernel struct {
	length [2]float64 // along each side, how far a measurement reaches
	forget float64    // of what a measurement says, how much is lost in two units of time, below 1
	noise  float64    // variance of a measurement, above 0
}

// kernels are those that measurements choose among.
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

// process is a kernel and the points that are known of its function.
type process struct {
	kernel
	fade float64 // ln(1 - forget)/2
	at   []place
	root [][]float64 // L: row i has i+1
	w    []float64
}

func newProcess(k kernel) *process {
	return &process{kernel: k, fade: arith.Log(1-k.forget) / 2}
}

func (g *process) covariance(a, b place) float64 {
	e := float64(g.fade * math.Abs(a.t-b.t))
	for j, l := range g.length {
		d := (a.x[j] - b.x[j]) / l
		e -= float64(float64(d*d) / 2)
	}
	return arith.Exp(e)
}

// reduce is v of a place; it goes on where one of fewer points ended.
func (g *process) reduce(p place, v []float64) []float64 {
	for i := len(v); i < len(g.at); i++ {
		s := g.covariance(p, g.at[i])
		for j, r := range g.root[i][:i] {
			s -= float64(r * v[j])
		}
		v = append(v, s/g.root[i][i])
	}
	return v
}

// moments are the mean and the variance at a place, by its v.
func (g *process) moments(v []float64) (mean, variance float64) {
	return dot(v, g.w), max(0, 1-dot(v, v))
}

// measure adds what was measured at a place.
func (g *process) measure(p place, y float64) {
	v, d := g.grow(p)
	g.w = append(g.w, (y-dot(v, g.w))/d)
}

// expect adds a measurement to come as if it gave the mean, which changes no mean: variances alone fall (Desautels,
// Krause, Burdick: Parallelizing exploration-exploitation tradeoffs in Gaussian process bandit optimization, 2014).
func (g *process) expect(p place) {
	g.grow(p)
	g.w = append(g.w, 0)
}

// grow adds a row to L: v of the place among those before, and d on the diagonal.
func (g *process) grow(p place) (v []float64, d float64) {
	v = g.reduce(p, nil)
	d = math.Sqrt(1 + g.noise - dot(v, v))
	g.at, g.root = append(g.at, p), append(g.root, append(slices.Clone(v), d))
	return v, d
}

// likelihood is the logarithm of the density of what was measured, but for what all kernels have alike.
func (g *process) likelihood() float64 {
	out := -float64(dot(g.w, g.w) / 2)
	for i, row := range g.root {
		out -= arith.Log(row[i])
	}
	return out
}

// fitted is a process of the kernel under which the measurements are likeliest, the first of several.
func fitted(at []place, y []float64) (best *process) {
	top := math.Inf(-1)
	for _, k := range kernels() {
		g := newProcess(k)
		for i, p := range at {
			g.measure(p, y[i])
		}
		if l := g.likelihood(); l > top {
			best, top = g, l
		}
	}
	return best
}

// dot is the inner product of a with as much of b.
func dot(a, b []float64) (s float64) {
	for i, x := range a {
		s += float64(x * b[i])
	}
	return s
}
