package native

import (
	"sort"

	"brood/models/engine"
	"brood/models/noise"
)

// Normals writes the standard normals of parameters [lo, lo+len(dst)) addressed by key: the stream is the tensor's index
// in the layout, the element its place in the tensor, in rows of the tensor's Cols.
func Normals(dst []float32, lo int, l *engine.Layout, key noise.Key) {
	s := key.Schedule()
	normals(dst, lo, l, key, s)
}

func normals(dst []float32, lo int, l *engine.Layout, key noise.Key, s *noise.Schedule) {
	var buf [noise.Tile]float32
	hi := lo + len(dst)
	for i := first(l, lo); i < len(l.Tensors) && l.Tensors[i].Lo < hi; i++ {
		t := &l.Tensors[i]
		key.Stream = uint32(i)
		tiles := (t.Cols + noise.Tile - 1) / noise.Tile
		for at, end := max(lo, t.Lo), min(hi, t.Lo+t.Len); at < end; {
			r, c := (at-t.Lo)/t.Cols, (at-t.Lo)%t.Cols
			lane := c % noise.Tile
			s.Row(&buf, key, uint32(r*tiles+c/noise.Tile))
			at += copy(dst[at-lo:end-lo], buf[lane:min(noise.Tile, lane+t.Cols-c)])
		}
	}
}

// first is the tensor that holds parameter at.
func first(l *engine.Layout, at int) int {
	return sort.Search(len(l.Tensors), func(i int) bool { return l.Tensors[i].Lo+l.Tensors[i].Len > at })
}

// signed addresses candidate id: with antithetic pairs, ids 2k and 2k+1 share the noise of k with opposite signs.
func signed(key noise.Key, antithetic bool, id engine.Member) (noise.Key, float32) {
	key.Member = uint32(id)
	if !antithetic {
		return key, 1
	}
	key.Member = uint32(id) / 2
	return key, 1 - 2*float32(id&1)
}

// Candidate writes theta + s*eps(id) of the task into dst (params elements, owned by the caller). It is what a
// candidate's fitness is measured on; engines that materialise candidates call it, one vector per thread.
func Candidate(dst []float32, l *engine.Layout, t *engine.Candidates, id engine.Member) error {
	const name = "candidates"
	if err := single(name, "theta", t.Theta, l.Params); err != nil {
		return err
	}
	if t.Scale.Rows > 0 {
		if err := single(name, "scale", t.Scale, l.Params); err != nil {
			return err
		}
	}
	if len(dst) != l.Params {
		return bad(name, "room for %d parameters, want %d", len(dst), l.Params)
	}
	key, sign := signed(t.Key, t.Antithetic, id)
	Normals(dst, 0, l, key)
	theta, sigma := t.Theta.F[:len(dst)], sign*t.Sigma
	if t.Scale.Rows == 0 {
		for i, e := range dst {
			dst[i] = theta[i] + float32(sigma*e)
		}
		return nil
	}
	for i, s := range t.Scale.F[:len(dst)] {
		dst[i] = theta[i] + float32(float32(sign*s)*dst[i])
	}
	return nil
}

func (v *Vector) noiseSum(t engine.NoiseSum) error {
	const name = "noise sum"
	d := t.Dst
	if err := fit(name, "dst", d.Mat, d.Mat.Cols); err != nil {
		return err
	}
	switch {
	case d.Rows != 1 || d.Row < 0 || int(d.Row) >= d.Mat.Rows:
		return bad(name, "dst spans %d rows from row %d of %d, want one row", d.Rows, d.Row, d.Mat.Rows)
	case d.Mat.Cols != v.layout.Params:
		return bad(name, "dst has %d columns, want %d", d.Mat.Cols, v.layout.Params)
	case d.Lo < 0 || d.Hi < d.Lo || d.Hi > d.Mat.Cols:
		return bad(name, "columns [%d, %d) of %d", d.Lo, d.Hi, d.Mat.Cols)
	case len(t.Weights) != len(t.IDs):
		return bad(name, "%d weights for %d ids", len(t.Weights), len(t.IDs))
	}
	dst, s := d.Mat.Row(d.Row)[d.Lo:d.Hi], t.Key.Schedule()
	v.split(len(dst), tile, 32*len(t.IDs), func(lo, hi int) {
		var eps [tile]float32
		for a := lo; a < hi; a += tile {
			out := dst[a:min(hi, a+tile)]
			clear(out)
			e := eps[:len(out)]
			for i, id := range t.IDs {
				key, sign := signed(t.Key, t.Antithetic, id)
				normals(e, d.Lo+a, &v.layout, key, s)
				accumulate(out, e, t.Weights[i], sign, t.Square)
			}
		}
	})
	return nil
}

func accumulate(out, eps []float32, w, sign float32, square bool) {
	eps = eps[:len(out)]
	if square {
		for j, e := range eps {
			out[j] += float32(w * (float32(e*e) - 1))
		}
		return
	}
	w *= sign
	for j, e := range eps {
		out[j] += float32(w * e)
	}
}

func (v *Vector) perturb(t engine.Perturb) error {
	const name = "perturb"
	if err := fit(name, "x", t.X, v.layout.Params); err != nil {
		return err
	}
	if len(t.Sigma) != t.X.Rows || len(t.Keys) != t.X.Rows {
		return bad(name, "%d sigmas and %d keys for %d rows", len(t.Sigma), len(t.Keys), t.X.Rows)
	}
	v.split(t.X.Cols, tile, 32*t.X.Rows, func(lo, hi int) {
		var eps [tile]float32
		for r, key := range t.Keys {
			s, x, sigma := key.Schedule(), t.X.Row(engine.Row(r)), t.Sigma[r]
			for a := lo; a < hi; a += tile {
				e := eps[:min(hi, a+tile)-a]
				normals(e, a, &v.layout, key, s)
				for j, z := range e {
					x[a+j] += float32(sigma * z)
				}
			}
		}
	})
	return nil
}
