// Package blas gives the products of models/native/kernel to graphs of one's own: it is gonum's BLAS, but for Sgemm,
// which runs on the kernels. It imports the kernels and gonum.
//
//	b, err := blas.New(kernel.Best())
//	gorgonia.Use(b) // for the whole process
//
// Gorgonia's choice is one for the process, and brood's own graph engine is recorded as computing with gonum's: a
// program that runs that engine leaves the choice alone.
package blas

import (
	"sync"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	"brood/models/native/kernel"
)

// Implementation is gonum's interfaces of all types. It serves any number of goroutines.
type Implementation struct {
	gonum.Implementation
	variant kernel.Variant
	free    *sync.Pool // of *kernel.Kernels
}

// New fails with a kernel.UnavailableError for a variant that this CPU does not run.
func New(variant kernel.Variant) (Implementation, error) {
	k, err := kernel.New(variant)
	if err != nil {
		return Implementation{}, err
	}
	free := &sync.Pool{}
	free.Put(k)
	return Implementation{variant: variant, free: free}, nil
}

// Sgemm computes C = beta*C + alpha*op(A)*op(B), as gonum defines it. Arguments that gonum would refuse, and the
// product of two transposed matrices, go to gonum.
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
		if kn, err = kernel.New(b.variant); err != nil { // New ran it
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
		if beta == 0 { // what is there may be no number
			clear(row)
		} else {
			kn.Scale(row, beta)
		}
	}
	kn.Gemm(form, m, n, k, x, ldx, y, ldy, c, ldc, &kernel.Epilogue{Add: true, Alpha: alpha})
}

// form is what the kernels call the product.
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

// holds says whether s is a matrix of these sizes, of at least an element.
func holds(s []float32, rows, cols, ld int) bool {
	return rows > 0 && cols > 0 && ld >= cols && len(s) >= (rows-1)*ld+cols
}
