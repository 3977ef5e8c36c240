// Package bbob has the 24 noiseless functions of the black-box optimisation benchmark BBOB, in the instances of its
// reference implementation. It imports arith and usererr only.
//
//	f, _ := bbob.New(10, 5, 1)  // function 10 (ellipsoid) in 5 dimensions, instance 1
//	gap := f.Gap(x)             // f(x) - f_opt: 0 at f.Optimum(), and the targets of the benchmark are 10^2 to 10^-8
//
// Hansen, Finck, Ros, Auger: Real-parameter black-box optimization benchmarking 2009: noiseless functions definitions
// (INRIA report 6829) defines the functions; its code fixes what the report leaves open: how an instance determines
// optimum and rotations, and which of them a function takes. A test compares all functions with values of that code.
//
// All results have the same bits on every platform: products are rounded before they are added, and functions are from
// package arith.
package bbob

import (
	"math"

	"brood/models/arith"
	"brood/models/usererr"
)

const (
	// Functions is the number of functions; they count from 1.
	Functions = 24
	// MaxDimension is the highest dimension; the lowest is 2.
	MaxDimension = 40
	// MaxInstance is the highest instance; they count from 1.
	MaxInstance = 1000
)

// names has the name of each function.
var names = [Functions]string{
	"sphere", "ellipsoid, separable", "Rastrigin, separable", "Bueche-Rastrigin", "linear slope",
	"attractive sector", "step ellipsoid", "Rosenbrock", "Rosenbrock, rotated",
	"ellipsoid", "discus", "bent cigar", "sharp ridge", "different powers",
	"Rastrigin", "Weierstrass", "Schaffers F7", "Schaffers F7, ill-conditioned", "Griewank-Rosenbrock F8F2",
	"Schwefel", "Gallagher, 101 peaks", "Gallagher, 21 peaks", "Katsuura", "Lunacek bi-Rastrigin",
}

// Name returns the name of a function, which counts from 1.
func Name(number int) string { return names[number-1] }

// Function is one function in a dimension and an instance. It is read-only and may be used concurrently.
type Function struct {
	optimum []float64
	value   func(x []float64) float64 // f(x) - f_opt, possibly below 0 by a rounding error
}

// New returns a function. The error names the number that is out of range.
func New(number, dimension, instance int) (*Function, error) {
	switch {
	case number < 1 || number > Functions:
		return nil, usererr.Errorf("bbob = %d: give the number of a function, 1 to %d", number, Functions)
	case dimension < 2 || dimension > MaxDimension:
		return nil, usererr.Errorf("dimension = %d: the functions of the suite have 2 to %d", dimension, MaxDimension)
	case instance < 1 || instance > MaxInstance:
		return nil, usererr.Errorf("instance = %d: give 1 to %d", instance, MaxInstance)
	}
	p := &problem{n: dimension, seed: seedOf(number, instance)}
	p.optimum = drawOptimum(p.seed, dimension)
	value := suite[number-1](p)
	return &Function{optimum: p.optimum, value: value}, nil
}

// Optimum returns the point at which the gap is 0; read-only.
func (f *Function) Optimum() []float64 { return f.optimum }

// Gap returns f(x) - f_opt, at least 0. x has one element per dimension and may be outside of the domain [-5, 5].
func (f *Function) Gap(x []float64) float64 { return max(0, f.value(x)) }

// problem is a function under construction.
type problem struct {
	n       int
	seed    int64
	optimum []float64 // drawn; a function with another optimum replaces it
}

// first and second are the rotations R and Q of the report.
func (p *problem) first() [][]float64  { return drawRotation(p.seed+1000000, p.n) }
func (p *problem) second() [][]float64 { return drawRotation(p.seed, p.n) }

// powers returns base^(i/(n-1)) for all i.
func (p *problem) powers(base float64) []float64 {
	out := make([]float64, p.n)
	for i := range out {
		out[i] = arith.Pow(base, float64(i)/float64(p.n-1))
	}
	return out
}

// stretch returns the matrix R diag(s) Q.
func stretch(r [][]float64, s []float64, q [][]float64) [][]float64 {
	out := make([][]float64, len(r))
	for i := range out {
		out[i] = make([]float64, len(r))
		for j := range out {
			for k := range s {
				out[i][j] += float64(r[i][k] * s[k] * q[k][j])
			}
		}
	}
	return out
}

// minus returns x - y.
func minus(x, y []float64) []float64 {
	out := make([]float64, len(x))
	for i := range x {
		out[i] = x[i] - y[i]
	}
	return out
}

// times returns m x.
func times(m [][]float64, x []float64) []float64 {
	out := make([]float64, len(x))
	for i, row := range m {
		for j, a := range row {
			out[i] += float64(a * x[j])
		}
	}
	return out
}

// scaled multiplies x by s element by element, in place.
func scaled(x, s []float64) []float64 {
	for i := range x {
		x[i] *= s[i]
	}
	return x
}

// oscillate is T_osz for one number.
func oscillate(x float64) float64 {
	if x == 0 {
		return 0
	}
	a, b := 10.0, 7.9
	if x < 0 {
		a, b = 5.5, 3.1
	}
	l := arith.Log(math.Abs(x))
	return math.Copysign(arith.Exp(l+float64(0.049*(sin(a*l)+sin(b*l)))), x)
}

// oscillated applies T_osz to each element, in place.
func oscillated(x []float64) []float64 {
	for i := range x {
		x[i] = oscillate(x[i])
	}
	return x
}

// asymmetric applies T_asy with the exponent beta, in place.
func asymmetric(x []float64, beta float64) []float64 {
	for i, v := range x {
		if v > 0 {
			x[i] = arith.Pow(v, 1+float64(beta*float64(i)/float64(len(x)-1)*math.Sqrt(v)))
		}
	}
	return x
}

// outside is f_pen: the squared distance of x to the domain.
func outside(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		if d := math.Abs(v) - 5; d > 0 {
			sum += float64(d * d)
		}
	}
	return sum
}

// squares returns the sum of w_i x_i^2.
func squares(w, x []float64) float64 {
	sum := 0.0
	for i, v := range x {
		sum += float64(w[i] * v * v)
	}
	return sum
}

func sin(x float64) float64 {
	s, _ := arith.SinCos(x)
	return s
}
