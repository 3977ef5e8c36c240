package native

import (
	"math"

	"brood/models/native/kernel"
)

// factors holds A/sqrt(r) and B of a tensor's noise of rank r (engine.Noise), transposed: r rows of each.
type factors struct {
	a, b       []float32
	rows, cols int // of the tensor
	rank       int
}

// draw draws the factors of a tensor of n elements, addressed by f.
func (w *factors) draw(k *kernel.Kernels, f kernel.Field, n, rank int) {
	w.rows, w.cols, w.rank = n/f.Cols, f.Cols, rank
	w.a, w.b = grown(w.a, rank*w.rows), grown(w.b, rank*w.cols)
	f.Cols = max(w.rows, w.cols)
	for q := range rank {
		k.Normals(w.a[q*w.rows:(q+1)*w.rows], f, 2*q*f.Cols)
		k.Normals(w.b[q*w.cols:(q+1)*w.cols], f, (2*q+1)*f.Cols)
	}
	k.Scale(w.a[:rank*w.rows], float32(1/math.Sqrt(float64(rank))))
}

// spread writes elements [from, from+len(dst)) of A B'.
func (w *factors) spread(k *thread, dst []float32, from int) {
	w.pieces(from, len(dst), func(place, row, rows, col, cols int) {
		for i := range rows {
			k.c, k.x = k.c[:0], k.x[:0]
			for q := range w.rank {
				k.c, k.x = append(k.c, w.a[q*w.rows+row+i]), append(k.x, w.b[q*w.cols+col:][:cols])
			}
			k.Lin(dst[place+i*cols:][:cols], k.c, k.x)
		}
	})
}

// pieces splits elements [from, from+n) into rectangles: the remainder of a row, whole rows, and the start of a row.
func (w *factors) pieces(from, n int, f func(place, row, rows, col, cols int)) {
	for at := 0; at < n; {
		row, col := (from+at)/w.cols, (from+at)%w.cols
		rows, cols := 1, min(n-at, w.cols-col)
		if cols == w.cols {
			rows = (n - at) / cols
		}
		f(at, row, rows, col, cols)
		at += rows * cols
	}
}

// columnsAtOnce limits the factors that are stored while they are summed.
const columnsAtOnce = 256

// lowSum adds up the low-rank noise of v.ids with the weights v.scale for elements [from, from+len(dst)) of a tensor of
// n elements, addressed by f: products of some candidates at a time, each added to the previous ones.
func (v *Vector) lowSum(k *thread, dst []float32, f kernel.Field, from, n, rank int) {
	clear(dst)
	w := &k.factors
	rows, cols, some := n/f.Cols, f.Cols, columnsAtOnce/rank
	for lo := 0; lo < len(v.ids); lo += some {
		ids := v.ids[lo:min(len(v.ids), lo+some)]
		k.left, k.right = grown(k.left, len(ids)*rank*rows), grown(k.right, len(ids)*rank*cols)
		for i, id := range ids {
			f.Key.Member = id
			w.draw(k.Kernels, f, n, rank)
			k.Scale(w.a[:rank*rows], v.scale[lo+i])
			copy(k.left[i*rank*rows:], w.a[:rank*rows])
			copy(k.right[i*rank*cols:], w.b[:rank*cols])
		}
		w.pieces(from, len(dst), func(place, row, m, col, c int) {
			k.Gemm(kernel.TN, m, c, len(ids)*rank, k.left[row:], rows, k.right[col:], cols, dst[place:], c,
				&kernel.Epilogue{Add: true, Alpha: 1})
		})
	}
}
