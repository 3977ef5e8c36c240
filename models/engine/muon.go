package engine

import "math"

// Muon is one step per row by Muon (Jordan, Jin, Boza, You, Cesista, Newhouse, Bernstein: Muon: an optimizer for hidden
// layers in neural networks, 2024). For each tensor selected by Takes, a matrix of R rows and C columns:
//
//	M <- Mu*M + (1-Mu)*G;  U = Mu*M + (1-Mu)*G                      Nesterov's form
//	U <- U / (||U|| + 1e-7)                                         Frobenius norm
//	U <- a*U + (b*A + c*A*A) U with A = U U', or from the right with A = U' U if R > C      SchulzSteps times
//	X <- sqrt(R) / (||X|| + 1e-7) * X                               if Fixed
//	X <- (1 - Eta*WD)*X - Eta*sqrt(max(1, R/C))*U
//
// The polynomial moves the singular values to within about a third of 1, so that U approximates the orthogonal factor
// of the momentum. The scale in the last line is from the authors' code; Liu et al. (2025) scale by 0.2*sqrt(max(R,
// C)) and use another Eta. With Fixed, the matrix is rescaled before each step to the norm of a step with Eta 1, so
// that Eta is the relative step size. This suits matrices whose norm has no effect because a normalisation follows
// (Jordan: 94% on CIFAR-10 in 3.29 seconds on a single GPU, 2024). All other tensors are stepped by Vectors.
type Muon struct {
	X, M, V, G Mat
	Rows       []Row
	Eta, Mu    float32 // learning rate and momentum of matrices
	WD         float32 // weight decay
	Fixed      bool
	Hidden     bool   // step the weights of the output layer with Vectors
	T          uint64 // number of this step, from 1
	// AdamW step of the other tensors: learning rate as a fraction of Eta, decay rates and epsilon
	Share, B1, B2, Eps float32
}

// Schulz is the coefficients a, b and c of the polynomial.
var Schulz = [3]float32{3.4445, -4.7750, 2.0315}

// SchulzSteps is the number of Newton-Schulz iterations per step.
const SchulzSteps = 5

// Takes reports whether tensor i is stepped as a matrix, and its size.
func (t *Muon) Takes(l *Layout, i int) (rows, cols int, ok bool) {
	rows, cols, ok = l.Tensors[i].Matrix()
	return rows, cols, ok && !(t.Hidden && i == l.lastWeights())
}

// Vectors returns the AdamW step of all tensors not selected by Takes.
func (t *Muon) Vectors() Adam {
	return Adam{
		X:    t.X,
		M:    t.M,
		V:    t.V,
		G:    t.G,
		Rows: t.Rows,
		Eta:  t.Eta * t.Share,
		B1:   t.B1,
		B2:   t.B2,
		Eps:  t.Eps,
		WD:   t.WD,
		T:    t.T,
	}
}

// Factors returns the factors of X and U in the last line of the step, for a matrix of this size.
func (t *Muon) Factors(rows, cols int) (keep, step float32) {
	scale := float32(math.Sqrt(max(1, float64(rows)/float64(cols))))
	return 1 - float32(t.Eta*t.WD), -float32(t.Eta * scale)
}

// Stretch returns the factor that scales a matrix to the Frobenius norm length. squares is the sum of its squared
// elements.
func (*Muon) Stretch(length float32, squares float64) float32 {
	return float32(float64(length) / (math.Sqrt(squares) + 1e-7))
}

// Length returns the norm of a Fixed matrix of that many rows.
func (*Muon) Length(rows int) float32 { return float32(math.Sqrt(float64(rows))) }

// lastWeights returns the index of the last tensor with two or more dimensions that is not an embedding table: the
// weights of the output layer. It returns -1 if there is none. With a single output, Matrix does not treat them as a
// matrix.
func (l *Layout) lastWeights() int {
	i := len(l.Tensors) - 1
	for i >= 0 && (l.Tensors[i].Table || len(l.Tensors[i].Shape) < 2) {
		i--
	}
	return i
}

// MuonFloats returns the sizes, in elements, of the scratch matrices of a Muon step, which needs two of each: the
// largest matrix, and the largest square of a matrix's smaller side.
func (l *Layout) MuonFloats() (matrix, square int) {
	for i := range l.Tensors {
		if r, c, ok := l.Tensors[i].Matrix(); ok {
			matrix, square = max(matrix, r*c), max(square, min(r, c)*min(r, c))
		}
	}
	return matrix, square
}
