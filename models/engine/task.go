package engine

import (
	"math"

	"brood/models/noise"
)

// Task is one of the closed set of tasks below. An engine may execute a task after Do returns. Do copies the input
// slices that are needed later, so that the caller may reuse them after Do returns. Slices marked "out" belong to the
// engine until the next Wait or Read returns; from then on they contain the results.
type Task interface{ task() }

// Gradients computes, for each entry i, the mean loss over Batches[i] of the model whose parameters are row Rows[i] of
// X, and writes its gradient to row i of G (len(Rows) x params). If the model has batch-norm, row StatRows[i] of Stats
// is the running statistics, updated in place. Masks[i] is the noise address of the entry's dropout masks (stream:
// layer index; element: sample*features + feature) and the address at which its batch was drawn, see Evaluate.Drawn.
// Masks may be nil for a model without dropout and a data set without augmentation. Next[i] is a batch that a later
// gradient will probably take, for an engine that is [Ahead]; results do not depend on it.
type Gradients struct {
	X        Mat
	Rows     []Row
	Batches  [][]int32 // sample ids of the engine's data set
	Stats    Mat       // the zero Mat if the layout has no statistics
	StatRows []Row     // distinct rows of Stats; nil means Rows
	Masks    []noise.Key
	Next     []Draw // nil: none are announced; else StatRows tell members apart
	G        Mat
	Loss     []float32 // out: mean loss, one per entry
}

// Draw is a batch of sample ids and the address of its dropout masks.
type Draw struct {
	Batch []int32
	Mask  noise.Key
}

// Entries returns the task of only the entries [lo, hi). It shares memory with t.
func (t Gradients) Entries(lo, hi int) Gradients {
	t.Rows, t.Batches, t.Loss, t.G = t.Rows[lo:hi], t.Batches[lo:hi], t.Loss[lo:hi], t.G.Sub(Row(lo), hi-lo)
	if t.StatRows != nil {
		t.StatRows = t.StatRows[lo:hi]
	}
	if t.Masks != nil {
		t.Masks = t.Masks[lo:hi]
	}
	if t.Next != nil {
		t.Next = t.Next[lo:hi]
	}
	return t
}

// Steps takes steps of an optimiser with each of some members: entry i with row XRows[i] of X and row Rows[i] of M, V
// and Stats, all updated in place. With t steps taken before and g the gradient of a step, clipped to the norm Clip if
// that is above 0, a step is
//
//	sgd    g += Coupled*x;  m <- Mu*m + g;  x <- x - Eta*(g + Mu*m)
//	adam   g += Coupled*x;  m <- B1*m + (1-B1)*g;  v <- B2*v + (1-B2)*g^2;  x <- x - Eta*mhat/(sqrt(vhat) + Eps)
//	adamw  x <- x - Eta*Decay*x, then adam
//
// Program has the engine take a step of its own along g + Coupled*x, with learning rate Eta and the state in row
// Rows[i] of State, whose bits only the engine reads. All zeros are the state before the first step.
//
// With an Anchor, each gradient includes g += Pull*(x - anchor) after Coupled, and after each step the running mean
// is Mean <- Alpha*Mean + (1-Alpha)*x; row Rows[i] of both belongs to entry i. The engine rounds as it does. Only an
// engine that is a [Stepper] executes this task.
type Steps struct {
	Optimiser string // sgd, adam, adamw or Program
	X         Mat
	XRows     []Row // nil means Rows
	M, V      Mat   // moments; sgd has no V, Program has neither
	State     Host  // U64, of Program
	Stats     Mat   // the zero Mat if the layout has no statistics
	Anchor    Mat   // the zero Mat: there is no pull and no running mean
	Mean      Mat
	Rows      []Row
	Entries   []RowSteps
	Mu        float32
	B1, B2    float32
	Eps, Clip float32
	Pull      float32
	Alpha     float32
	Loss      []float32 // out: mean loss before the last step, one per entry
}

// Program is the name of the optimiser that a program of the user brings.
const Program = "program"

// RowSteps is the steps of one entry of [Steps]: a step for each batch. Masks are as in [Gradients].
type RowSteps struct {
	Batches [][]int32
	Masks   []noise.Key
	T       uint64  // steps that have updated the moments before
	Eta     float32 // learning rate
	Coupled float32 // weight decay that is added to the gradient
	Decay   float32 // weight decay of adamw
}

// Evaluate computes, for each entry i, the summed loss and the correct predictions over Batches[i] of the model whose
// parameters are row Rows[i] of X, without dropout. Batch-norm uses row Rows[i] of Stats, or the batch's own statistics
// if Stats is the zero Mat.
//
// Drawn[i] is the address at which batch i was drawn for training; it determines the augmentation of its images. It
// contains the seed, the member, as Round the position of the first sample in the member's data stream, and as Stream
// the samples per pass of that stream, 0 for the whole training set. If Drawn is nil or an address has no Purpose,
// samples are not augmented.
type Evaluate struct {
	X       Mat
	Rows    []Row
	Batches [][]int32
	Drawn   []noise.Key
	Stats   Mat
	Loss    []float64 // out: sum over the samples of the batch
	Correct []int64   // out; 0 for losses without correct predictions, such as regression
	// out, of a regression: squared error of the standardised targets, mean over the outputs, summed over the samples;
	// nil if not requested
	Squares []float64
	// out, of an objective: one row of additional metrics per entry, summed over the samples; nil if not requested
	Metrics []float64
}

// Statistics recomputes batch-norm statistics: row i of Stats becomes the mean over Batches of the batch statistics of
// the model in row Rows[i] of X. All rows use the same batches, and samples are not augmented.
type Statistics struct {
	X       Mat
	Rows    []Row
	Batches [][]int32
	Stats   Mat
}

// Candidates evaluates the parameters theta + s*eps(id) for each id without storing them. s is Sigma, or Scale (1 row)
// element by element if Scale has a row. With Antithetic, ids 2k and 2k+1 use +eps(k) and -eps(k). Fitness is minus the
// mean loss over Batches[i] (or Batches[0] if there is only one), NaN if it is not finite. Its bits are independent of
// the other candidates and of the number of threads. Kernel variants compute identical eps, and fitness equal up to
// rounding. Scale requires noise of full rank. Drawn is as in Evaluate.
//
// With Axes, which require a Scale and Gaussian noise of full rank, the perturbation of entry i is
//
//	Scale.*eps + sum_k Along[i*K+k]*Axes[k], K the rows of Axes
//
// instead of Scale.*eps, summed from the left with every product rounded, and negated for the negative id of an
// antithetic pair. The covariance is a diagonal plus K outer products.
//
// A model of whole numbers rounds its parameters, see [Whole]: they are Whole(theta + s*eps), or, with Integer noise
// and no Scale, Whole(theta) +- Whole(s*eps), so that a candidate's layer sums are the sums of theta's and the noise's.
type Candidates struct {
	Theta, Scale Mat // 1 row each; Scale may be the zero Mat
	Axes         Mat // may be the zero Mat
	Along        []float32
	Noise        Noise
	Sigma        float32
	Key          noise.Key // purpose and round; the engine sets the member
	Antithetic   bool
	IDs          []Member
	Batches      [][]int32
	Drawn        []noise.Key
	Fitness      []float32 // out
	Metrics      []float64 // out, as in Evaluate but means over the batch

	// Evaluated reports that further candidates, as many as given, have been evaluated. Several goroutines may call it
	// concurrently. Nil: no report is needed. Engines that queue tasks do not call it.
	Evaluated func(candidates int)
}

// Report calls Evaluated, if there is one.
func (t *Candidates) Report(candidates int) {
	if t.Evaluated != nil {
		t.Evaluated(candidates)
	}
}

// NoiseSum writes dst[j] = sum_i Weights[i]*eps(IDs[i])[j] for the columns of the 1-row span Dst, summed in the order
// of IDs, in float32 without fused multiply-add. With Square the term is Weights[i]*(eps^2-1). Terms of weight zero are
// added too.
//
// Integer noise requires whole weights, whose magnitudes sum to at most 2^24, and no Square: the sum of weights*v is
// exact, is rounded to float32 and then multiplied by noise.IntegerScale. The result is equal for all kernel variants,
// machines and orders of IDs. With Rank r, each matrix is computed as one product (diag(weights) A/sqrt(r))' B over all
// ids, and Square is not allowed. As for every matrix product, the bits are independent of threads and slices.
type NoiseSum struct {
	Dst        Span
	Noise      Noise
	Weights    []float32
	Key        noise.Key
	Antithetic bool
	Square     bool
	IDs        []Member
}

// Sum adds rows pairwise in an order given by the caller. Operand i is the row Src[i], and operand len(Src)+j is the
// sum of the two operands Tree[j], which have lower indices. Dst becomes the last operand, divided by Div if Div is not
// 0. Every other operand is used exactly once. All spans are one row of equal width. Code rounds every source, every
// sum and the result; with Int8, blocks begin at column Lo of every span. Dst may be a source.
type Sum struct {
	Dst  Span
	Src  []Span
	Tree [][2]int
	Div  float32
	Code Code
}

// Feedback rounds rows with error feedback: with v = Src + Lost, Dst becomes v rounded by Code, and Lost becomes the
// rounding error v - Dst, or 0 if that is not a number. All matrices have equal shapes.
type Feedback struct {
	Dst, Src, Lost Mat
	Code           Code
}

// Copy copies a span to another of equal shape in the same engine's memory. They must not overlap.
type Copy struct{ Dst, Src Span }

// CopyColumns copies chosen columns of every row: with From it gathers Dst[r][i] = Src[r][From[i]], with To it scatters
// Dst[r][To[i]] = Src[r][i]. The other list is nil. To names no column twice. A 1-row Src is used for every row. Dst
// and Src must not overlap.
type CopyColumns struct {
	Dst, Src Mat
	To, From []int32
}

// Columns returns the number of columns that are copied.
func (t *CopyColumns) Columns() int { return max(len(t.To), len(t.From)) }

// Fill sets every element of a span.
type Fill struct {
	Dst   Span
	Value float32
}

// Product writes Dst = A.*B, element by element. A 1-row B is used for every row.
type Product struct{ Dst, A, B Mat }

// Clip limits the Euclidean norm of each row of X, sqrt(Cols) times its Distance to zero, to Longest: the elements of a
// longer row are multiplied by float32(Longest/norm). A row whose norm is NaN is unchanged.
type Clip struct {
	X       Mat
	Longest float32
}

// Finite reports for each row of X whether all its elements are finite.
type Finite struct {
	X  Mat
	OK []bool // out, one per row of X
}

// Digest computes the BLAKE3 hash of each row of X as little-endian elements.
type Digest struct {
	X    Mat
	Hash [][32]byte // out, one per row of X
}

// Term is C*Src in a linear statement. A 1-row Src is used for every row.
type Term struct {
	C   float32
	Src Mat
}

// Lin is the statement Dst = Map(sum_i C_i*Src_i)*By, element by element. Terms are added from left to right without
// fused multiply-add; Map and By each round once more. By without rows means no factor; a 1-row By is used for every
// row.
type Lin struct {
	Dst   Mat
	Terms []Term
	Map   Map
	By    Mat
}

// Map is a function of one element. All are exact or correctly rounded, so that all engines compute the same bits.
type Map uint8

const (
	Identity   Map = iota
	Sign           // 1 for a positive element, -1 for a negative one; zeros and NaN are unchanged
	Abs            // the magnitude
	Square         // the element times itself
	Sqrt           // the square root; 0 for a negative element
	Reciprocal     // 1 divided by the element
	Clamp          // the nearest number in [-1, 1]; NaN is unchanged
	mapCount
)

// Of returns the function value of x.
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

// Update runs a linear program over the given rows: for each row and element, every statement in order. A statement may
// read the result of an earlier one. All matrices have equal Cols.
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

// Corrections returns the bias corrections of the moments, 1/(1-B1^T) and 1/(1-B2^T).
func (t *Adam) Corrections() (c1, c2 float32) {
	c1 = float32(1 / (1 - power(float64(t.B1), t.T)))
	c2 = float32(1 / (1 - power(float64(t.B2), t.T)))
	return c1, c2
}

// power returns b^n by repeated squaring. It uses only multiplications, so that all architectures compute the same
// bits.
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

// NaturalStep is a natural-gradient step of independent normal distributions, one per parameter, with means X and
// standard deviations S (Schaul, Glasmachers, Schmidhuber 2011), in columns [Lo, Hi) of 1-row matrices:
//
//	X <- X + Eta*(S.*G);  S <- S.*exp(Rate*H)
//
// The update of X uses the old S; every product is rounded before it is added. The argument t of exp is clamped to
// [-86, 86]. exp(t) has a relative error of at most 2e-7 + 1e-7*|t|; exp(0) is exactly 1, the result is never zero or
// infinite, and NaN stays NaN.
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

// Crossover sets each element of row i of Dst to the element of row i of A or of B with equal probability: one random
// bit per element, or one per tensor if PerTensor is set. Keys[i] is the noise address of the bits.
type Crossover struct {
	Dst, A, B Mat
	Keys      []noise.Key
	PerTensor bool
}

// Distance computes the root-mean-square difference of each row of X from the 1-row Centre, or from zero if Centre is
// the zero Mat.
type Distance struct {
	X, Centre Mat
	RMS       []float64 // out, one per row of X
}

func (Gradients) task()   {}
func (Steps) task()       {}
func (Evaluate) task()    {}
func (Statistics) task()  {}
func (Candidates) task()  {}
func (NoiseSum) task()    {}
func (Sum) task()         {}
func (Feedback) task()    {}
func (Copy) task()        {}
func (CopyColumns) task() {}
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
