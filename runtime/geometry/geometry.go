// Package geometry holds where the members of a population stood to each other after a round: plain data, which a
// worker measures and screens draw.
package geometry

import (
	"math"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/evolution"
)

// Geometry is where members stood. Distances are RMS: Euclidean ones, over the root of the number of parameters.
type Geometry struct {
	Session, Algorithm string
	Round              uint64
	Population         int             // members that there were; Members may be some of them
	Members            []engine.Member // ascending
	Length             []float64       // of each member's parameters, from zero
	Spread             []float64       // from the centre
	Distance           [][]float64     // of members i and j; symmetric
	From, To           engine.Member   // ends of the line
	Line               []optim.Scores  // at evenly spaced points from one to the other, both included; nil for one member
	Graded             bool            // predictions are right or wrong, so that the line has errors
	Measured           bool            // a loss is minus a fitness that somebody else measures, and nothing is wrong
	// of candidates of one model, which have no place of their own, in place of all from Members to Line: what as many
	// generations estimate from its parameters
	Slopes  []evolution.Slope
	Params  int // of the model
	Samples int // of training, behind Slope.Train
}

// Cosines are the means of what the slopes are, by batch and by training samples, and the standard errors of the two.
// NaN where there is none; the error of one is NaN.
func (g *Geometry) Cosines() (batch, batchError, train, trainError float64) {
	of := func(what func(evolution.Slope) float64) (mean, deviation float64) {
		n := float64(len(g.Slopes))
		for _, s := range g.Slopes {
			mean += what(s) / n
		}
		for _, s := range g.Slopes {
			d := what(s) - mean
			deviation += d * d / (n - 1)
		}
		return mean, math.Sqrt(deviation / n)
	}
	batch, batchError = of(func(s evolution.Slope) float64 { return s.Batch })
	train, trainError = of(func(s evolution.Slope) float64 { return s.Train })
	return batch, batchError, train, trainError
}

// Bound is the cosine that an estimate of n independent directions, drawn alike in all M parameters, has at most, on
// average, where the loss is a slope without noise: sqrt(n / (n + M)). Directions that surrogate gradients lead, or
// that are longer in some parameters, may have more.
func (g *Geometry) Bound() float64 {
	n := float64(g.Slopes[0].Directions)
	return math.Sqrt(n / (n + float64(g.Params)))
}

// Overlap is the cosine of the angle between the parameters of members i and j: with lengths a and b and their distance
// d it is (a^2 + b^2 - d^2) / 2ab. NaN where one of them is zero.
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

// Overlaps are the least, the mean and the largest of two different members; ok is false where there is one member.
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

// Furthest are the two members that lie furthest apart, the first of equal ones. There must be two.
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

// Barrier is by how much the highest point of the line lies above the straight line between the losses of its ends, in
// units of the loss, and where, as a share of the way; 0 where no point does, NaN where a loss is no number. See
// Frankle, Dziugaite, Roy, Carbin: Linear mode connectivity and the lottery ticket hypothesis (2020).
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

// Wanted is what is measured of a recorded run.
type Wanted struct {
	At       uint64 // the round; 0: that of the newest checkpoint, which nothing need be executed for
	Pair     bool   // From and To are given; else they are the two that lie furthest apart
	From, To engine.Member
	Points   int // of the line, 0 for 21
	Threads  int // 0 takes the machine's
}
