package engine

import "math"

// Muon is one step per row by Muon (Jordan, Jin, Boza, You, Cesista, Newhouse, Bernstein: Muon: an optimizer for hidden
// layers in neural networks, 2024). For each tensor that it takes (Takes), a matrix of R rows and C columns:
//
//	M <- Mu*M + (1-Mu)*G;  U = Mu*M + (1-Mu)*G                      Nesterov's form
//	U <- U / (||U|| + 1e-7), the norm that of Frobenius
//	U <- a*U + (b*A + c*A*A) U with A = U U', or from the right with A = U' U where R > C      SchulzSteps times
//	X <- sqrt(R) / (||X|| + 1e-7) * X                               where it is Fixed
//	X <- (1 - Eta*WD)*X - Eta*sqrt(max(1, R/C))*U
//
// The polynomial brings singular values near 1, to within a third or so: U is about the orthogonal factor of the
// momentum. The factor of the last line is that of the source's code; others scale by 0.2*sqrt(max(R, C)) (Liu et al.,
// 2025) and take another Eta. A matrix that is Fixed is as long before each step as a step with Eta 1, so that Eta is
// the step's share of it, whatever it was: for matrices whose length makes no difference, as a norm comes behind them
// (Jordan: 94% on CIFAR-10 in 3.29 seconds on a single GPU, 2024). All other tensors take the step Vectors.
type Muon struct {
	X, M, V, G Mat
	Rows       []Row
	Eta, Mu    float32 // of matrices
	WD         float32
	Fixed      bool
	Hidden     bool   // the weights of the output layer are stepped as vectors are
	T          uint64 // steps, this one included
	// of vectors: the share of Eta that is their rate, and AdamW's decays and epsilon
	Share, B1, B2, Eps float32
}

// Schulz are the coefficients a, b and c of the polynomial, and SchulzSteps how often it is taken.
var Schulz = [3]float32{3.4445, -4.7750, 2.0315}

// SchulzSteps is the iterations of Newton and Schulz in a step.
const SchulzSteps = 5

// Takes says whether tensor i is a matrix of this step, and of which size.
func (t *Muon) Takes(l *Layout, i int) (rows, cols int, ok bool) {
	rows, cols, ok = l.Tensors[i].Matrix()
	return rows, cols, ok && !(t.Hidden && i == l.lastWeights())
}

// Vectors is the step of all other tensors: AdamW.
func (t *Muon) Vectors() Adam {
	return Adam{X: t.X, M: t.M, V: t.V, G: t.G, Rows: t.Rows, Eta: t.Eta * t.Share, B1: t.B1, B2: t.B2, Eps: t.Eps, WD: t.WD, T: t.T}
}

// Factors are what X and the orthogonal U of a matrix of these sizes are multiplied by before they are added.
func (t *Muon) Factors(rows, cols int) (keep, step float32) {
	scale := float32(math.Sqrt(max(1, float64(rows)/float64(cols))))
	return 1 - float32(t.Eta*t.WD), -float32(t.Eta * scale)
}

// Stretch is what a matrix whose elements' squares add up to so much is multiplied by to have a length.
func (*Muon) Stretch(length float32, squares float64) float32 {
	return float32(float64(length) / (math.Sqrt(squares) + 1e-7))
}

// Length is that of a matrix of so many rows that is fixed.
func (*Muon) Length(rows int) float32 { return float32(math.Sqrt(float64(rows))) }

// lastWeights is the index of the last tensor that has rows and is no table: the weights of the output layer, which are
// no matrix where that has one output. -1 where there is none.
func (l *Layout) lastWeights() int {
	i := len(l.Tensors) - 1
	for i >= 0 && (l.Tensors[i].Table || len(l.Tensors[i].Shape) < 2) {
		i--
	}
	return i
}

// MuonFloats is what a step of Muon on a layout needs beside: two copies of its largest matrix, and two squares of the
// largest smaller side.
func (l *Layout) MuonFloats() (matrix, square int) {
	for i := range l.Tensors {
		if r, c, ok := l.Tensors[i].Matrix(); ok {
			matrix, square = max(matrix, r*c), max(square, min(r, c)*min(r, c))
		}
	}
	return matrix, square
}
