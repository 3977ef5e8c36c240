package kernel

import "unsafe"

// Scratch is the scratch memory of a Kernels for packed operands, in elements of four bytes: each part grows to the
// largest size needed.
type Scratch struct {
	A, B    int // of products
	Filters int // of convolutions
	Exact   int // of products of bytes computed with floats or 16-bit integers
	Totals  int
	Rounded int  // operands of bfloat16 products
	ALines  int  // rows of A in whole cache lines, of products by AMX tiles
	Sums    int  // of AMX tiles, and of bfloat16 blocks
	Line    bool // a piece of noise
}

// Max returns the maximum of each part.
func (r Scratch) Max(o Scratch) Scratch {
	return Scratch{
		A:       max(r.A, o.A),
		B:       max(r.B, o.B),
		Filters: max(r.Filters, o.Filters),
		Exact:   max(r.Exact, o.Exact),
		Totals:  max(r.Totals, o.Totals),
		Rounded: max(r.Rounded, o.Rounded),
		ALines:  max(r.ALines, o.ALines),
		Sums:    max(r.Sums, o.Sums),
		Line:    r.Line || o.Line,
	}
}

// Bytes returns the memory of all parts.
func (r Scratch) Bytes() int64 {
	n := r.A + r.B + r.Filters + r.Exact + r.Totals + r.Rounded + r.ALines + r.Sums
	if r.Line {
		n += line
	}
	return 4 * int64(n)
}

// GemmScratch returns the scratch memory of a product of this size; Gemm packs accordingly.
func (k *Kernels) GemmScratch(form Form, m, n, kk, lda, ldb int) (r Scratch) {
	if k.isa.tiles == nil {
		return r
	}
	if n >= packCols && (lda >= packLda || form == TN && k.scattered(kk, lda)) {
		r.A = k.scratchA()
	}
	packs := k.packsB(form, m, n, kk, ldb)
	if packs || k.ragged(n) {
		r.B = k.isa.width * min(kk, maxK)
	}
	if packs && k.rowsA(min(kk, maxK)) < m { // all panels are kept for the next block of rows
		r.B *= (n + k.isa.width - 1) / k.isa.width
	}
	return r
}

// ragged reports whether n columns of B end within the columns that a tile reads at a time, so that the panel at the
// edge is packed.
func (k *Kernels) ragged(n int) bool { return k.isa.reads > 0 && n%k.isa.reads > 0 }

// packsB reports whether all panels of B are packed.
func (k *Kernels) packsB(form Form, m, n, kk, ldb int) bool {
	return form == NT || m >= packTiles*k.isa.height &&
		(4*n*kk > k.caches.l2/2 || ldb >= packLdb || k.scattered(kk, ldb))
}

// BF16Scratch returns the scratch memory of a bfloat16 product.
func (k *Kernels) BF16Scratch(order Order, m, n, kk int) (r Scratch) {
	wide := k.stride16(order, kk)
	switch {
	case order == Pairs:
		r = k.GemmScratch(NT, m, n, wide, wide, wide)
	case k.isa.amxPairs != nil:
		r = k.amxScratch(m, wide, wide)
	default:
		r = k.GemmScratch(NT, m, n, blockK/2, wide, wide)
		r.Sums, r.Line = m*n, true
	}
	r.Rounded = (m + n) * wide
	return r
}

// BytesScratch returns the scratch memory of a product of bytes; SumBytes needs no Totals.
func (k *Kernels) BytesScratch(m, n, kk int) Scratch {
	if k.isa.amxBytes != nil {
		return k.amxScratch(m, (kk+3)/4, (kk+3)/4)
	}
	if w, words := k.isa.bytesWidth, (kk+3)/4; k.isa.widen != nil {
		return Scratch{B: w * 2 * words, Exact: (m + w) * 2 * words}
	} else if k.isa.bytes != nil {
		return Scratch{B: w * words}
	}
	kc := min(kk, exactK)
	return k.GemmScratch(NT, m, n, kc, kc, kc).Max(Scratch{Exact: (m+n)*kc + m*n, Totals: m * n})
}

// Bytes returns the memory of the tables.
func (c *Conv) Bytes() int64 {
	n := int(unsafe.Sizeof(*c)) + (cap(c.forward)+cap(c.data))*int(unsafe.Sizeof(convRun{})) +
		cap(c.weights)*int(unsafe.Sizeof(dotJob{}))
	seen := map[*int32]bool{}
	for _, runs := range [][]convRun{c.forward, c.data} {
		for _, r := range runs { // most runs share theirs
			if first := unsafe.SliceData(r.tab); !seen[first] {
				seen[first] = true
				n += 4 * cap(r.tab)
			}
		}
	}
	for _, j := range c.weights {
		n += 4 * cap(j.list)
	}
	return int64(n)
}
