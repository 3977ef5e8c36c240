// Package geometry defines the geometry of a population after a round: lengths and distances of the parameters of its
// members. A worker measures it and screens draw it.
package geometry

import (
	"math"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/evolution"
)

// Geometry is the geometry of some members. Distances are RMS: Euclidean distances divided by the square root of the
// number of parameters.
type Geometry struct {
	Session, Algorithm string
	Round              uint64
	Population         int             // size of the population; Members may be a part of it
	Members            []engine.Member // ascending
	Length             []float64       // RMS norm of the parameters of each member
	Spread             []float64       // distance of each member to the centre
	Distance           [][]float64     // distance of members i and j; symmetric
	From, To           engine.Member   // ends of Line
	Line               []optim.Scores  // scores at evenly spaced points from From to To, inclusive; nil for one member
	Graded             bool            // predictions are right or wrong, so that Line has errors
	Measured           bool            // losses are minus the fitness of an objective, without errors
	// Slopes replaces the fields from Members to Line if the members are candidates of one model without parameters of
	// their own: estimates of the gradient by several generations at the current parameters.
	Slopes  []evolution.Slope
	Params  int // parameters of the model
	Samples int // training samples of the gradient in Slope.Train
}

// Cosines returns the mean cosines between the estimated and the true gradient, on the batch and on training samples,
// with their standard errors. Means without slopes, and errors with fewer than two slopes, are NaN.
func (g *Geometry) Cosines() (batch, batchError, train, trainError float64) {
	estimate := func(cosine func(evolution.Slope) float64) (mean, deviation float64) {
		n := float64(len(g.Slopes))
		for _, s := range g.Slopes {
			mean += cosine(s) / n
		}
		for _, s := range g.Slopes {
			d := cosine(s) - mean
			deviation += d * d / (n - 1)
		}
		return mean, math.Sqrt(deviation / n)
	}
	batch, batchError = estimate(func(s evolution.Slope) float64 { return s.Batch })
	train, trainError = estimate(func(s evolution.Slope) float64 { return s.Train })
	return batch, batchError, train, trainError
}

// Bound returns an upper bound of the expected cosine of an estimate by n independent isotropic directions in M
// parameters, for a linear loss without noise: sqrt(n / (n + M)). Directions from surrogate gradients, or with
// different scales in different parameters, may exceed it.
func (g *Geometry) Bound() float64 {
	n := float64(g.Slopes[0].Directions)
	return math.Sqrt(n / (n + float64(g.Params)))
}

// Overlap returns the cosine of the angle between the parameters of members i and j: (a^2 + b^2 - d^2) / 2ab for
// lengths a and b and distance d. It is NaN if a length is zero.
func (g *Geometry) Overlap(i, j int) float64 {
	a, b, d := g.Length[i], g.Length[j], g.Distance[i][j]
	switch {
	case a == 0 || b == 0:
		return math.NaN()
	case i == j:
		return 1
	}
	return min(1, max(-1, (float64(a*a)+float64(b*b)-float64(d*d))/(2*a*b)))
}

// Overlaps returns the least, the mean and the largest overlap of two different members; ok is false for one member.
func (g *Geometry) Overlaps() (least, mean, most float64, ok bool) {
	least, most = math.Inf(1), math.Inf(-1)
	n := 0.0
	for i := range g.Members {
		for j := range i {
			x := g.Overlap(i, j)
			least, most, mean, n = min(least, x), max(most, x), mean+x, n+1
		}
	}
	return least, mean / max(1, n), most, n > 0
}

// Furthest returns the two members with the largest distance, the first pair if several are equal. It needs two
// members.
func (g *Geometry) Furthest() (a, b engine.Member) {
	i, j := 0, 1
	for y := range g.Members {
		for x := range y {
			if g.Distance[x][y] > g.Distance[i][j] {
				i, j = x, y
			}
		}
	}
	return g.Members[i], g.Members[j]
}

// Barrier returns the largest height of Line above the straight line between the losses of its ends, in units of the
// loss, and its position from 0 to 1. The height is 0 if no point is above, and NaN if a loss is NaN. See Frankle,
// Dziugaite, Roy, Carbin: Linear mode connectivity and the lottery ticket hypothesis (2020).
func (g *Geometry) Barrier() (height, at float64) {
	for i, p := range g.Line {
		t := float64(i) / float64(max(1, len(g.Line)-1))
		h := p.Mean() - (1-t)*g.Line[0].Mean() - t*g.Line[len(g.Line)-1].Mean()
		switch {
		case h != h:
			return h, t
		case h > height:
			height, at = h, t
		}
	}
	return height, at
}

// Wanted is a request to measure the geometry of a recorded run.
type Wanted struct {
	At       uint64 // round; 0: the newest checkpoint, which needs no recomputation
	Pair     bool   // From and To are set; otherwise they are the two members furthest apart
	From, To engine.Member
	Points   int // points of the line; 0 means 21
	Threads  int // 0: all cores
}
