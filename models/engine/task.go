package engine

import (
	"math"

	"brood/models/noise"
)

// Task is one of the closed set below. An engine may run it later than Do returns: it copies what it still needs of the
// slices that it reads, which are the caller's again then. Slices marked "out" are the engine's until the next Wait or
// Read returns, and hold the results from then on.
type Task interface{ task() }

// Gradients computes, for each cohort entry i, the mean loss over Batches[i] of the model whose parameters are row
// Rows[i] of X, and its gradient into row i of G (len(Rows) x params). With a model that has batch-norm statistics, row
// StatRows[i] of Stats is their running value and is advanced in place. Masks[i] addresses the entry's dropout masks
// (element = sample*features + feature of stream "layer index"), and where its batch was drawn, see Evaluate.Drawn; it
// may be nil for a model without dropout and a data set without augmentation.
type Gradients struct {
	X        Mat
	Rows     []Row
	Batches  [][]int32 // sample ids of the engine's data set
	Stats    Mat       // the zero Mat when the layout has no statistics
	StatRows []Row     // rows of Stats, no row twice; nil means Rows
	Masks    []noise.Key
	G        Mat
	Loss     []float32 // out: mean loss, one per entry
}

// Entries is the task of entries [lo, hi) alone. It shares their memory.
func (t Gradients) Entries(lo, hi int) Gradients {
	t.Rows, t.Batches, t.Loss, t.G = t.Rows[lo:hi], t.Batches[lo:hi], t.Loss[lo:hi], t.G.Sub(Row(lo), hi-lo)
	if t.StatRows != nil {
		t.StatRows = t.StatRows[lo:hi]
	}
	if t.Masks != nil {
		t.Masks = t.Masks[lo:hi]
	}
	return t
}

// Evaluate computes summed loss and correct predictions over Batches[i] with parameters row Rows[i] of X, dropout off.
// Batch-norm uses row Rows[i] of Stats, or the batch's own statistics when Stats is the zero Mat.
//
// Drawn says for each batch where it was drawn for training: seed, member and, as Round, position of its first sample
// in that member's stream of data, which decides what becomes of an image that is augmented; as Stream, of how many
// samples that stream makes a pass, where 0 is the whole training set. Nil, or an address without a Purpose, takes
// samples as they are.
type Evaluate struct {
	X       Mat
	Rows    []Row
	Batches [][]int32
	Drawn   []noise.Key
	Stats   Mat
	Loss    []float64 // out: sum over the samples of the batch
	Correct []int64   // out; 0 where predictions are not right or wrong
	// out, of a regression: squared error of the standardised targets, mean over the outputs, summed over the samples;
	// nil where nobody asks for it
	Squares []float64
	// out, of an objective: a row for each entry of what it measures beside the fitness, summed over the samples; nil
	// where nobody asks for it
	Metrics []float64
}

// Statistics rebuilds batch-norm statistics: row i of Stats becomes the mean over Batches of the batch statistics of
// the model in row Rows[i] of X. One list of batches serves all rows, and samples are taken as they are.
type Statistics struct {
	X       Mat
	Rows    []Row
	Batches [][]int32
	Stats   Mat
}

// Candidates evaluates theta + s*eps(id) for each id without keeping the perturbed parameters: s is Sigma, or Scale (1
// row) element by element when Scale has a row. With Antithetic, ids 2k and 2k+1 use +eps(k) and -eps(k). Fitness is
// minus the mean loss over Batches[i] (or Batches[0] when there is one), NaN when it is not finite. Its bits depend
// neither on the cohort nor on threads; twins agree on eps to the bit, and on fitness to rounding. Scale needs noise of
// full rank. Drawn is as in Evaluate.
//
// With Axes, which need a Scale and Gaussian noise, what entry i adds is not Scale.*eps but
//
//	Scale.*eps + sum_k Along[i*K+k]*Axes[k], K the rows of Axes
//
// from the left, every product rounded, under the sign of its id: a covariance that is a diagonal and K outer products.
//
// A model of whole numbers reads what it is given, see [Whole]: Whole(theta + s*eps), and under Integer noise without a
// Scale Whole(theta) + Whole(s*eps), or minus that, so that a candidate's sums are those of theta and of the noise.
type Candidates struct {
	Theta, Scale Mat // 1 row each; Scale may be the zero Mat
	Axes         Mat // may be the zero Mat
	Along        []float32
	Noise        Noise
	Sigma        float32
	Key          noise.Key // purpose and round; the member is filled in
	Antithetic   bool
	IDs          []Member
	Batches      [][]int32
	Drawn        []noise.Key
	Fitness      []float32 // out
	Metrics      []float64 // out, as in Evaluate but means over the batch
}

// NoiseSum writes dst[j] = sum_i Weights[i]*eps(IDs[i])[j] for the columns of the 1-row span Dst, summed in the order
// of IDs, in float32 without fused multiply-add. With Square the term is eps^2-1. A weight of zero is added like any
// other.
//
// Integer noise takes whole weights, of at most 2^24 in all, and no Square: the sum of weights*v is exact, is rounded
// to float32 and then multiplied by noise.IntegerScale. It is equal on every twin and machine, and for every order of
// IDs. With Rank r a matrix gets one product, (diag(weights) A/sqrt(r))' B over all ids, and no Square is allowed. Like
// those of every matrix product its bits are equal for any threads and slices.
type NoiseSum struct {
	Dst        Span
	Noise      Noise
	Weights    []float32
	Key        noise.Key
	Antithetic bool
	Square     bool
	IDs        []Member
}

// Sum adds rows pairwise, in an order that its caller fixes. Operand i is the row Src[i], and operand len(Src)+j the
// sum of the operands Tree[j], both of lower index; Dst becomes the last operand, over Div where that is not 0. All
// spans are one row of equal width. Code rounds every source, every sum and the result; with Int8 a block begins at
// column Lo of every span. An operand is used once. Dst may be a source.
type Sum struct {
	Dst  Span
	Src  []Span
	Tree [][2]int
	Div  float32
	Code Code
}

// Feedback rounds rows and keeps what is lost: with v = Src + Lost, Dst becomes v rounded by Code and Lost what v lost,
// v - Dst, or 0 where that is no number. All have equal shapes.
type Feedback struct {
	Dst, Src, Lost Mat
	Code           Code
}

// Copy copies a span to another of equal shape, in the same engine's memory. They do not overlap.
type Copy struct{ Dst, Src Span }

// Fill sets every element of a span.
type Fill struct {
	Dst   Span
	Value float32
}

// Product writes Dst = A.*B, element by element. A 1-row B serves every row.
type Product struct{ Dst, A, B Mat }

// Clip scales the rows of X whose Euclidean norm, sqrt(Cols) times the Distance to zero, is above Longest down to it:
// each element is multiplied by float32(Longest/norm). A row whose norm is not a number stays as it is.
type Clip struct {
	X       Mat
	Longest float32
}

// Finite says of each row of X whether all its elements are finite.
type Finite struct {
	X  Mat
	OK []bool // out, one per row of X
}

// Digest is the BLAKE3 hash of each row of X, as little-endian elements.
type Digest struct {
	X    Mat
	Hash [][32]byte // out, one per row of X
}

// Term is C*Src in a linear statement. A 1-row Src serves every row.
type Term struct {
	C   float32
	Src Mat
}

// Lin is the statement Dst = Map(sum_i C_i*Src_i)*By, element by element: terms from left to right without fused
// multiply-add, and one more rounding for each of Map and By. A By without rows is no factor, one of 1 row serves
// every row.
type Lin struct {
	Dst   Mat
	Terms []Term
	Map   Map
	By    Mat
}

// Map is a function of one element. All are exact or correctly rounded, so that every engine has the same bits.
type Map uint8

const (
	Identity   Map = iota
	Sign           // 1 of a positive element, -1 of a negative one; zeros and NaN stay
	Abs            // its magnitude
	Square         // the element times itself
	Sqrt           // the square root; 0 of a negative element
	Reciprocal     // 1 divided by the element
	Clamp          // the nearest number in [-1, 1]; NaN stays
	maps
)

// Of is the function of one element.
func (m Map) Of(x float32) float32 {
	switch m {
	case Sign:
		if x > 0 {
			return 1
		}
		if x < 0 {
			return -1
		}
	case Abs:
		return math.Float32frombits(math.Float32bits(x) &^ (1 << 31))
	case Square:
		return x * x
	case Sqrt:
		if x > 0 {
			return float32(math.Sqrt(float64(x)))
		}
		if x < 0 {
			return 0
		}
	case Reciprocal:
		return 1 / x
	case Clamp:
		if x > 1 {
			return 1
		}
		if x < -1 {
			return -1
		}
	}
	return x
}

// Update runs a linear programme over the given rows: per row and element every statement in order. A statement may
// read what an earlier one wrote. All matrices have equal Cols.
type Update struct {
	Rows []Row
	Prog []Lin
}

// Adam is one step per row: M = B1*M+(1-B1)*G; V = B2*V+(1-B2)*G^2; X -= Eta*mhat/(sqrt(vhat)+Eps), T counted from 1.
type Adam struct {
	X, M, V, G           Mat
	Rows                 []Row
	Eta, B1, B2, Eps, WD float32
	T                    uint64
}

// Corrections are what a step multiplies the moments by, 1/(1-B1^T) and 1/(1-B2^T).
func (t *Adam) Corrections() (c1, c2 float32) {
	return float32(1 / (1 - power(float64(t.B1), t.T))), float32(1 / (1 - power(float64(t.B2), t.T)))
}

// power is b^n by squaring: multiplications alone, so that no architecture differs.
func power(b float64, n uint64) float64 {
	p := 1.0
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			p *= b
		}
		b *= b
	}
	return p
}

// NaturalStep is a step of the natural gradient on normals of mean X and standard deviation S, one of each for a
// parameter (Schaul, Glasmachers, Schmidhuber 2011), in columns [Lo, Hi) of matrices of 1 row:
//
//	X <- X + Eta*(S.*G);  S <- S.*exp(Rate*H)
//
// X takes the S from before; every product is rounded before it is added. The exponential of t, held to [-86, 86], has
// a relative error of at most 2e-7 + 1e-7*|t|: exp(0) is 1 exactly, no t makes it zero or infinite, NaN stays NaN.
type NaturalStep struct {
	X, S, G, H Mat
	Lo, Hi     int
	Eta, Rate  float32
}

// Perturb adds Sigma[i]*eps(Keys[i]) to row i of X.
type Perturb struct {
	X     Mat
	Sigma []float32
	Keys  []noise.Key
}

// Crossover writes row i of Dst by picking each element from row i of A or of B with equal probability: one coin per
// weight, or one per tensor when PerTensor is set. Coins are addressed by Keys[i].
type Crossover struct {
	Dst, A, B Mat
	Keys      []noise.Key
	PerTensor bool
}

// Distance writes the root-mean-square difference of each row of X to the 1-row Centre, or to zero where that is the
// zero Mat.
type Distance struct {
	X, Centre Mat
	RMS       []float64 // out, one per row of X
}

func (Gradients) task()   {}
func (Evaluate) task()    {}
func (Statistics) task()  {}
func (Candidates) task()  {}
func (NoiseSum) task()    {}
func (Sum) task()         {}
func (Feedback) task()    {}
func (Copy) task()        {}
func (Fill) task()        {}
func (Product) task()     {}
func (Clip) task()        {}
func (Finite) task()      {}
func (Digest) task()      {}
func (Update) task()      {}
func (Adam) task()        {}
func (Muon) task()        {}
func (NaturalStep) task() {}
func (Perturb) task()     {}
func (Crossover) task()   {}
func (Distance) task()    {}
