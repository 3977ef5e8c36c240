package native

import (
	"brood/models/engine"
	"brood/models/native/kernel"
)

// polar is the scratch memory of Muon steps: the momentum during orthogonalisation and its next iterate, two products
// of it with itself, and the current product.
type polar struct {
	u, next, gram, poly []float32
	product
	deal func(k *thread, lo, hi int) // product.rows as a func value, allocated once
}

// product is C = op(A) op(B), m x n over k, whose rows are divided among threads. B and C are contiguous.
type product struct {
	form    kernel.Form
	n, k    int
	a, b, c []float32
	lda     int
	ep      kernel.Epilogue
}

// rowsAtOnce is the minimum number of rows of a product per thread.
const rowsAtOnce = 16

// rows computes rows [lo, hi) of C. The bits of a row do not depend on the split.
func (p *product) rows(k *thread, lo, hi int) {
	a, ldb := p.a[lo*p.lda:], p.n
	switch p.form {
	case kernel.TN:
		a = p.a[lo:]
	case kernel.NT:
		ldb = p.k
	}
	k.Gemm(p.form, hi-lo, p.n, p.k, a, p.lda, p.b, ldb, p.c[lo*p.n:], p.n, &p.ep)
}

// multiply computes the current product of m rows; with add, it adds alpha times the product to C.
func (v *Vector) multiply(m int, p product, add bool, alpha float32) {
	s := &v.polar
	if s.deal == nil {
		s.deal = s.product.rows
	}
	p.ep = kernel.Epilogue{Add: add, Alpha: alpha}
	s.product = p
	v.split(m, rowsAtOnce, productCost(p.n, p.k), s.deal)
}

// productCost returns the cost of a row of a product, in split's elements of work.
func productCost(n, k int) int { return max(1, n*k/4) }

func (v *Vector) muon(t engine.Muon) error {
	defer v.forget()
	p, vectors := v.threads[0], t.Vectors()
	step := adamStep(&vectors)
	matrix, square := v.layout.MuonFloats()
	s := &v.polar
	s.u, s.next, s.gram, s.poly = grown(s.u, matrix), grown(s.next, matrix), grown(s.gram, square), grown(s.poly, square)
	for _, r := range t.Rows {
		for i := range v.layout.Tensors {
			n := &v.layout.Tensors[i]
			lo, hi := n.Lo, n.Lo+n.Len
			x, m, g := cut(t.X, r, lo, hi), cut(t.M, r, lo, hi), cut(t.G, r, lo, hi)
			rows, cols, ok := t.Takes(v.layout, i)
			if !ok {
				p.Adam(x, m, cut(t.V, r, lo, hi), g, &step)
				continue
			}
			p.both(m, t.Mu, m, 1-t.Mu, g)
			p.both(s.u[:n.Len], t.Mu, m, 1-t.Mu, g)
			p.Scale(s.u[:n.Len], t.Stretch(1, p.distance2(s.u[:n.Len], nil)))
			v.orthogonalise(rows, cols)
			if t.Fixed {
				p.Scale(x, t.Stretch(t.Length(rows), p.distance2(x, nil)))
			}
			keep, by := t.Factors(rows, cols)
			p.both(x, keep, x, by, s.u[:n.Len])
		}
	}
	return nil
}

// both computes dst = a*x + b*y.
func (p *thread) both(dst []float32, a float32, x []float32, b float32, y []float32) {
	p.c, p.x = append(p.c[:0], a, b), append(p.x[:0], x, y)
	p.Lin(dst, p.c, p.x)
}

// orthogonalise runs the Newton-Schulz iterations on the matrix in polar.u.
func (v *Vector) orthogonalise(rows, cols int) {
	s, p, side := &v.polar, v.threads[0], min(rows, cols)
	gram, poly := s.gram[:side*side], s.poly[:side*side]
	for range engine.SchulzSteps {
		u, next := s.u[:rows*cols], s.next[:rows*cols]
		form, deep, left, right := kernel.NT, cols, poly, u
		if rows > cols {
			form, deep, left, right = kernel.TN, rows, u, poly
		}
		v.multiply(side, product{form: form, n: side, k: deep, a: u, lda: cols, b: u, c: gram}, false, 0)
		copy(poly, gram)
		p.Scale(poly, engine.Schulz[1])
		v.multiply(side, product{n: side, k: side, a: gram, lda: side, b: gram, c: poly}, true, engine.Schulz[2])
		copy(next, u)
		p.Scale(next, engine.Schulz[0])
		v.multiply(rows, product{n: cols, k: side, a: left, lda: side, b: right, c: next}, true, 1)
		s.u, s.next = s.next, s.u
	}
}

// muonBytes returns the memory of Muon steps that all threads share.
func (v *Vector) muonBytes(w engine.Work) int64 {
	if !w.Muon {
		return 0
	}
	matrix, square := v.layout.MuonFloats()
	return 8 * int64(matrix+square)
}

// muonScratch returns the packing memory of the i-th thread's kernels for products of Muon steps.
func (v *Vector) muonScratch(w engine.Work, i int) (keep kernel.Scratch) {
	if !w.Muon {
		return keep
	}
	k := v.threads[i].Kernels
	add := func(form kernel.Form, m, n, deep, lda, ldb int) {
		pieces := max(1, min(len(v.threads), m*productCost(n, deep)/grain))
		if i < pieces {
			keep = keep.Max(k.GemmScratch(form, (m+pieces-1)/pieces, n, deep, lda, ldb))
		}
	}
	for j := range v.layout.Tensors {
		rows, cols, ok := v.layout.Tensors[j].Matrix()
		if !ok {
			continue
		}
		side := min(rows, cols)
		if rows > cols {
			add(kernel.TN, side, side, rows, cols, side)
		} else {
			add(kernel.NT, side, side, cols, cols, cols)
		}
		add(kernel.NN, side, side, side, side, side)
		add(kernel.NN, rows, cols, side, side, cols)
	}
	return keep
}
