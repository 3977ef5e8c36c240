package gpu

import (
	"math"

	"brood/models/engine"
)

// columnsAtOnce is the number of factor columns in one product of a sum.
const columnsAtOnce = 256

// factors appends the draw of tensor i's factors for rows of keys: A over the root of the rank, times the key's factor
// if weighted, into rows of a, and B into rows of x, stepA and stepX apart.
func (e *Engine) factors(b *batch, i, rank int, keys uint32, entries int, weighted bool, a Memory, stepA int, x Memory,
	stepX int) {
	t := &e.layout.Tensors[i]
	rows := t.Len / t.Cols
	n := 8 * 2 * rank * ((max(rows, t.Cols) + 31) / 32)
	by := uint32(0)
	if weighted {
		by = 1
	}
	b.launch("draw_factors", n, entries, wordsHere{}, keys, uint32(i), uint32(rows), uint32(t.Cols), by,
		float32(1/math.Sqrt(float64(rank))),
		a, uint64(stepA), x, uint64(stepX), uint32(n))
}

// lowSum adds up low-rank noise for parameters [lo, hi) of tensor i: products of some candidates at a time, each added
// to the previous ones.
func (e *Engine) lowSum(t *engine.NoiseSum, i, lo, hi int) error {
	w, rank := &e.layout.Tensors[i], t.Noise.Rank
	rows, cols, some := w.Len/w.Cols, w.Cols, columnsAtOnce/rank
	d, at := first(t.Dst)
	at += uint64(lo - t.Dst.Lo)
	if err := e.issue(new(batch).launch("zeros", hi-lo, 1, d, at, uint64(hi-lo))); err != nil {
		return err
	}
	left, err := e.scratchMemory("left factors", 4*some*rank*rows)
	if err != nil {
		return err
	}
	right, err := e.scratchMemory("right factors", 4*some*rank*cols)
	if err != nil {
		return err
	}
	for from := 0; from < len(t.IDs); from += some {
		n := min(some, len(t.IDs)-from)
		b := new(batch)
		keys := b.list()
		for j := range n {
			key, weight := weighed(t, from+j)
			b.key(key, weight)
		}
		e.factors(b, i, rank, keys, n, true, left, rank*rows, right, rank*cols)
		rectangles(lo-w.Lo, hi-lo, cols, func(place, row, m, col, c int) {
			b.gemm(1, product{
				m:       m,
				n:       c,
				k:       n * rank,
				add:     true,
				factors: none,
				a:       singleEntry(left, row, 1, rows),
				b:       singleEntry(right, col, cols, 1),
				c:       singleEntry(d, int(at)+place, c, 1),
			})
		})
		if err := e.issue(b); err != nil {
			return err
		}
	}
	return nil
}

// singleEntry is the place of an operand of a single entry.
func singleEntry(m Memory, at, down, across int) place {
	return place{m: m, at: uint64(at), list: none, down: down, across: across}
}

// rectangles splits elements [from, from+n) of rows of cols elements into the remainder of a row, whole rows, and the
// start of a row.
func rectangles(from, n, cols int, f func(place, row, rows, col, some int)) {
	for at := 0; at < n; {
		row, col := (from+at)/cols, (from+at)%cols
		rows, some := 1, min(n-at, cols-col)
		if some == cols {
			rows = (n - at) / cols
		}
		f(at, row, rows, col, some)
		at += rows * some
	}
}
