package kernel

import "unsafe"

// Form reports which operand of a product is stored transposed.
type Form uint8

const (
	NN Form = iota // A is m x k, B is k x n
	NT             // A is m x k, B is n x k
	TN             // A is k x m, B is k x n
)

// Epilogue describes the steps from P = op(A) op(B) to C. They run in the order of the fields; the zero value stores P.
type Epilogue struct {
	Bias   []float32 // n values added to each row; nil: none
	Gate   []float32 // m x n: P where Gate > 0, else 0, the gradient through ReLU; nil: none
	LDGate int
	Add    bool    // C + Alpha*P: accumulation with 1, a step of gradient descent with minus the rate
	Alpha  float32 // read only with Add
	ReLU   bool    // max(0, ...); NaN stays NaN
}

// maxK is the largest k whose sum stays in registers; a longer product is cut there, and the sum continues from C.
const maxK = 1024

// tileArgs is the argument of a register tile; strides are in bytes.
type tileArgs struct {
	a, b, c, gate, bias              unsafe.Pointer
	rowA, stepA, ldb, ldc, ldGate, k int
	flags                            uint64
	bits                             uint64         // used columns, one bit each
	lanes                            unsafe.Pointer // used columns, one word each
	alpha                            float32
	start                            unsafe.Pointer // NEON, for bytes: initial sums of each column
	// AVX-512: a line to prefetch into the second-level cache every four steps.
	ahead uintptr
}

const (
	flagLoad = 1 << iota // the accumulators start from C
	flagBias
	flagGate
	flagAdd
	flagReLU
	flagWhole // for bytes: C holds the sums as int32
	flagKeep  // for AMX tiles: sums stay in scratch memory, C is not written
)

// Gemm computes C = op(A) op(B), m x n, with the epilogue ep, which may be nil. C must not overlap any other operand.
// With k = 0 the product is zero.
func (k *Kernels) Gemm(form Form, m, n, kk int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int,
	ep *Epilogue) {
	if m <= 0 || n <= 0 {
		return
	}
	if ep == nil {
		ep = &Epilogue{}
	}
	ra, ca, rb, cb := m, kk, kk, n
	if form == TN {
		ra, ca = kk, m
	}
	if form == NT {
		rb, cb = n, kk
	}
	a, b, c = matrix(a, ra, ca, lda), matrix(b, rb, cb, ldb), matrix(c, m, n, ldc)
	if ep.Bias != nil {
		_ = ep.Bias[n-1]
	}
	if ep.Gate != nil {
		matrix(ep.Gate, m, n, ep.LDGate)
	}
	if k.isa.tiles == nil {
		gemm(form, m, n, kk, a, lda, b, ldb, c, ldc, ep)
		return
	}
	k.gemm(form, m, n, kk, a, lda, b, ldb, c, ldc, ep)
}

// matrix checks that s holds rows x cols elements at stride ld, and returns it.
func matrix[T float32 | int32](s []T, rows, cols, ld int) []T {
	if rows <= 0 || cols <= 0 {
		return s
	}
	if ld < cols {
		panic("kernel: a matrix whose stride is less than its columns")
	}
	return s[:(rows-1)*ld+cols]
}
