// Package blas makes the products of models/native/kernel available to Gorgonia graphs: it is gonum's BLAS with Sgemm
// replaced by the kernels. It imports the kernels and gonum.
//
//	b, err := blas.New(kernel.Best())
//	gorgonia.Use(b) // for the whole process
//
// Gorgonia has one BLAS per process, and brood's graph engine is recorded as computing with gonum's: a program that
// runs that engine must not change it.
package blas

import (
	"sync"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	"brood/models/native/kernel"
)

// Implementation implements gonum's BLAS interfaces of all types. It is safe for concurrent use.
type Implementation struct {
	gonum.Implementation
	variant kernel.Variant
	free    *sync.Pool // of *kernel.Kernels
}

// New returns a kernel.UnavailableError for a variant that this CPU cannot run.
func New(variant kernel.Variant) (Implementation, error) {
	k, err := kernel.New(variant)
	if err != nil {
		return Implementation{}, err
	}
	free := &sync.Pool{}
	free.Put(k)
	return Implementation{variant: variant, free: free}, nil
}

// Sgemm computes C = beta*C + alpha*op(A)*op(B), as gonum defines it. It passes invalid arguments, and products of two
// transposed matrices, to gonum.
func (b Implementation) Sgemm(tA, tB blas.Transpose, m, n, k int, alpha float32, x []float32, ldx int, y []float32,
	ldy int, beta float32, c []float32, ldc int) {
	form, ok := form(tA, tB)
	rx, cx, ry, cy := m, k, k, n
	switch form {
	case kernel.TN:
		rx, cx = k, m
	case kernel.NT:
		ry, cy = n, k
	}
	if !ok || !holds(x, rx, cx, ldx) || !holds(y, ry, cy, ldy) || !holds(c, m, n, ldc) {
		b.Implementation.Sgemm(tA, tB, m, n, k, alpha, x, ldx, y, ldy, beta, c, ldc)
		return
	}
	kn, _ := b.free.Get().(*kernel.Kernels)
	if kn == nil {
		var err error
		if kn, err = kernel.New(b.variant); err != nil { // cannot fail: New created one
			panic(err)
		}
	}
	defer b.free.Put(kn)
	if alpha == 1 && beta == 0 {
		kn.Gemm(form, m, n, k, x, ldx, y, ldy, c, ldc, nil)
		return
	}
	for i := 0; i < m && beta != 1; i++ {
		row := c[i*ldc : i*ldc+n]
		if beta == 0 { // C may contain NaN
			clear(row)
		} else {
			kn.Scale(row, beta)
		}
	}
	kn.Gemm(form, m, n, k, x, ldx, y, ldy, c, ldc, &kernel.Epilogue{Add: true, Alpha: alpha})
}

// form returns the kernels' form of a product; ok is false if there is none.
func form(tA, tB blas.Transpose) (kernel.Form, bool) {
	a, b := tA == blas.Trans || tA == blas.ConjTrans, tB == blas.Trans || tB == blas.ConjTrans
	known := (a || tA == blas.NoTrans) && (b || tB == blas.NoTrans)
	switch {
	case a && b:
		return kernel.NN, false
	case a:
		return kernel.TN, known
	case b:
		return kernel.NT, known
	}
	return kernel.NN, known
}

// holds reports whether s is a non-empty matrix of this size.
func holds(s []float32, rows, cols, ld int) bool {
	return rows > 0 && cols > 0 && ld >= cols && len(s) >= (rows-1)*ld+cols
}
