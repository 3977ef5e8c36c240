package kernel

import "unsafe"

// Room is what a Kernels keeps of packed operands, in elements of four bytes: each part grows to the largest that was
// needed.
type Room struct {
	A, B    int // of products
	Filters int // of convolutions
	Exact   int // of products of bytes by floats, or by 16 bits
	Totals  int
	Rounded int  // operands of products of bfloat16
	ALines  int  // rows of A in whole lines, of products by tiles of AMX
	Sums    int  // of these, and of blocks of bfloat16
	Line    bool // a piece of noise
}

// Max has the larger of each part.
func (r Room) Max(o Room) Room {
	return Room{max(r.A, o.A), max(r.B, o.B), max(r.Filters, o.Filters), max(r.Exact, o.Exact), max(r.Totals, o.Totals), max(r.Rounded, o.Rounded), max(r.ALines, o.ALines), max(r.Sums, o.Sums), r.Line || o.Line}
}

// Bytes is the memory of all parts.
func (r Room) Bytes() int64 {
	n := r.A + r.B + r.Filters + r.Exact + r.Totals + r.Rounded + r.ALines + r.Sums
	if r.Line {
		n += line
	}
	return 4 * int64(n)
}

// roomA is that of the packed rows of A.
const roomA = packRows*maxK + 16

// GemmRoom is what a product of these sizes keeps, by which Gemm decides what it packs.
func (k *Kernels) GemmRoom(form Form, m, n, kk, lda, ldb int) (r Room) {
	if k.isa.tiles == nil {
		return r
	}
	block := m
	if n >= packCols && lda >= packLda {
		r.A, block = roomA, packRows
	}
	packs := k.packsB(form, m, n, kk, ldb)
	if packs || k.ragged(n) {
		r.B = k.isa.width * min(kk, maxK)
	}
	if packs && block < m { // all panels are kept for the next block of rows
		r.B *= (n + k.isa.width - 1) / k.isa.width
	}
	return r
}

// ragged says whether n columns of B end amid what a tile reads at a time, so that the panel at the edge is packed.
func (k *Kernels) ragged(n int) bool { return k.isa.reads > 0 && n%k.isa.reads > 0 }

// packsB says whether all panels of B are packed.
func (k *Kernels) packsB(form Form, m, n, kk, ldb int) bool {
	return form == NT || m >= packTiles*k.isa.height && (4*n*kk > packBytes || ldb >= packLdb)
}

// BF16Room is what a product of bfloat16 keeps.
func (k *Kernels) BF16Room(order Order, m, n, kk int) (r Room) {
	wide := k.stride16(order, kk)
	switch {
	case order == Pairs:
		r = k.GemmRoom(NT, m, n, wide, wide, wide)
	case k.isa.amxPairs != nil:
		r = k.amxRoom(m, n, wide, wide)
	default:
		r = k.GemmRoom(NT, m, n, blockK/2, wide, wide)
		r.Sums, r.Line = m*n, true
	}
	r.Rounded = (m + n) * wide
	return r
}

// BytesRoom is what a product of bytes keeps; of Totals SumBytes has none.
func (k *Kernels) BytesRoom(m, n, kk int) Room {
	if k.isa.amxBytes != nil {
		return k.amxRoom(m, n, (kk+3)/4, (kk+3)/4)
	}
	if w, words := k.isa.bytesWidth, (kk+3)/4; k.isa.widen != nil {
		return Room{B: w * 2 * words, Exact: (m + w) * 2 * words}
	} else if k.isa.bytes != nil {
		return Room{B: w * words}
	}
	kc := min(kk, exactK)
	return k.GemmRoom(NT, m, n, kc, kc, kc).Max(Room{Exact: (m+n)*kc + m*n, Totals: m * n})
}

// Bytes is the memory of the tables.
func (c *Conv) Bytes() int64 {
	n := int(unsafe.Sizeof(*c)) + (cap(c.forward)+cap(c.data))*int(unsafe.Sizeof(convRun{})) + cap(c.weights)*int(unsafe.Sizeof(dotJob{}))
	seen := map[*int32]bool{}
	for _, runs := range [][]convRun{c.forward, c.data} {
		for _, r := range runs { // most share theirs
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
