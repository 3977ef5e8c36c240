package native

import (
	"math"
	"slices"
	"sync/atomic"

	"github.com/zeebo/blake3"

	"brood/models/engine"
)

func (v *Vector) copy(t engine.Copy) error {
	v.split(t.Dst.Rows, 1, t.Dst.Hi-t.Dst.Lo, func(_ *thread, lo, hi int) {
		for r := engine.Row(lo); r < engine.Row(hi); r++ {
			copy(row(t.Dst.Mat, t.Dst.Row+r)[t.Dst.Lo:t.Dst.Hi], row(t.Src.Mat, t.Src.Row+r)[t.Src.Lo:t.Src.Hi])
		}
	})
	return nil
}

func (v *Vector) copyColumns(t engine.CopyColumns) error {
	v.split(t.Columns(), tile, t.Dst.Rows, func(_ *thread, lo, hi int) {
		for r := range engine.Row(t.Dst.Rows) {
			dst, src := row(t.Dst, r), row(t.Src, min(r, engine.Row(t.Src.Rows-1)))
			if t.From == nil {
				for i, x := range src[lo:hi] {
					dst[t.To[lo+i]] = x
				}
				continue
			}
			out := dst[lo:hi]
			for i, from := range t.From[lo:hi] {
				out[i] = src[from]
			}
		}
	})
	return nil
}

func (v *Vector) fill(t engine.Fill) error {
	v.split(t.Dst.Hi-t.Dst.Lo, tile, t.Dst.Rows, func(_ *thread, lo, hi int) {
		for r := range engine.Row(t.Dst.Rows) {
			x := row(t.Dst.Mat, t.Dst.Row+r)[t.Dst.Lo+lo : t.Dst.Lo+hi]
			for i := range x {
				x[i] = t.Value
			}
		}
	})
	return nil
}

func (v *Vector) product(t engine.Product) error {
	v.split(t.Dst.Cols, tile, t.Dst.Rows, func(_ *thread, lo, hi int) {
		for r := range engine.Row(t.Dst.Rows) {
			out, b := cut(t.Dst, r, lo, hi), cut(t.B, r, lo, hi)
			for i, x := range cut(t.A, r, lo, hi) {
				out[i] = x * b[i]
			}
		}
	})
	return nil
}

func (v *Vector) nudge(t engine.Nudge) error {
	var moved atomic.Int64
	v.split(t.X.Cols, tile, 2, func(_ *thread, lo, hi int) {
		x, n := row(t.X, 0)[lo:hi], int64(0)
		for i, g := range row(t.G, 0)[lo:hi] {
			switch {
			case g > t.Limit:
				x[i] = min(x[i]+1, engine.MostWhole)
			case g < -t.Limit:
				x[i] = max(x[i]-1, -engine.MostWhole)
			default:
				continue
			}
			n++
		}
		moved.Add(n)
	})
	t.Moved[0] = float32(float64(moved.Load()) / float64(t.X.Cols))
	return nil
}

func (v *Vector) clip(t engine.Clip) error {
	by := make([]float32, t.X.Rows)
	v.split(t.X.Rows, 1, t.X.Cols, func(p *thread, lo, hi int) {
		for r := lo; r < hi; r++ {
			x := row(t.X, engine.Row(r))
			by[r] = 1
			if norm := p.rms(x, nil) * math.Sqrt(float64(len(x))); norm > float64(t.Longest) {
				by[r] = float32(float64(t.Longest) / norm)
			}
		}
	})
	for r, c := range by {
		if c == 1 {
			continue
		}
		x := row(t.X, engine.Row(r))
		v.split(len(x), tile, 1, func(k *thread, lo, hi int) { k.Lin(x[lo:hi], []float32{c}, [][]float32{x[lo:hi]}) })
	}
	return nil
}

func (v *Vector) finite(t engine.Finite) error {
	v.split(t.X.Rows, 1, t.X.Cols, func(_ *thread, lo, hi int) {
		for r := lo; r < hi; r++ {
			t.OK[r] = engine.AllFinite(row(t.X, engine.Row(r)))
		}
	})
	return nil
}

func (v *Vector) digest(t engine.Digest) error {
	v.split(t.X.Rows, 1, 4*t.X.Cols, func(k *thread, lo, hi int) {
		for r := lo; r < hi; r++ {
			h := blake3.New()
			for piece := range slices.Chunk(row(t.X, engine.Row(r)), 16*tile) {
				k.bytes = engine.AppendFloats(k.bytes[:0], piece)
				_, _ = h.Write(k.bytes) // never fails
			}
			h.Sum(t.Hash[r][:0])
		}
	})
	return nil
}
