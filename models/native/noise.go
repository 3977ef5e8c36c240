package native

import (
	"fmt"
	"sort"

	"brood/models/engine"
	"brood/models/native/kernel"
	"brood/models/noise"
)

// fields calls f for the part of every tensor within the parameters [at, at+n), with the tensor, its noise, the part's
// first element in the tensor, its position in the range and its number of elements.
func fields(l *engine.Layout, key noise.Key, s *noise.Schedule, at, n int,
	f func(t *engine.Tensor, field kernel.Field, from, place, n int)) {
	end := at + n
	for i := first(l, at); i < len(l.Tensors) && l.Tensors[i].Lo < end; i++ {
		t := &l.Tensors[i]
		key.Stream = uint32(i)
		lo, hi := max(at, t.Lo), min(end, t.Lo+t.Len)
		f(t, kernel.Field{Key: key, Schedule: s, Cols: t.Cols}, lo-t.Lo, lo-at, hi-lo)
	}
}

// Normals writes the standard normals of parameters [lo, lo+len(dst)) addressed by key to dst. The stream is the
// tensor's index in the layout, and the element is its position in the tensor, in rows of the tensor's Cols.
func (v *Vector) Normals(dst []float32, lo int, key noise.Key) {
	v.threads[0].draw(engine.Noise{}, v.layout, dst, lo, key)
}

// draw writes the noise of parameters [lo, lo+len(dst)) to dst.
func (k *thread) draw(n engine.Noise, l *engine.Layout, dst []float32, lo int, key noise.Key) {
	fields(l, key, key.Schedule(), lo, len(dst), func(t *engine.Tensor, f kernel.Field, from, place, many int) {
		d := dst[place : place+many]
		switch {
		case n.Integer:
			k.Integers(d, noise.IntegerScale, f, from)
		case n.Low(t):
			k.factors.draw(k.Kernels, f, t.Len, n.Rank)
			k.factors.spread(k, d, from)
		default:
			k.Normals(d, f, from)
		}
	})
}

// first returns the index of the tensor that contains parameter at.
func first(l *engine.Layout, at int) int {
	return sort.Search(len(l.Tensors), func(i int) bool { return l.Tensors[i].Lo+l.Tensors[i].Len > at })
}

// addAxes adds the components of entry i along the axes to dst, the scaled noise of parameters [lo, lo+len(dst)).
func (k *thread) addAxes(dst []float32, t *engine.Candidates, i, lo int) {
	if t.Axes.Rows == 0 {
		return
	}
	c, x := []float32{1}, [][]float32{dst}
	for r, amount := range t.Amounts(i) {
		c, x = append(c, amount), append(x, row(t.Axes, engine.Row(r))[lo:lo+len(dst)])
	}
	k.Lin(dst, c, x)
}

// Candidate writes the perturbed parameters of entry i of the task to dst, which has params elements, with the kernels
// of the given executor thread. Engines that evaluate candidates from their full parameters call it.
func (v *Vector) Candidate(worker int, dst []float32, t *engine.Candidates, i int) error {
	l, k := v.layout, v.threads[worker]
	if err := l.Perturbed(t, owned); err != nil {
		return err
	}
	if len(dst) != l.Params {
		return &engine.ArgumentError{Task: "candidates",
			What: fmt.Sprintf("memory for %d parameters, want %d", len(dst), l.Params)}
	}
	key, sign := engine.Signed(t.Key, t.Antithetic, t.IDs[i])
	theta := flat(t.Theta)[:len(dst)]
	k.draw(t.Noise, l, dst, 0, key)
	if t.Scale.Rows == 0 {
		k.Lin(dst, []float32{1, sign * t.Sigma}, [][]float32{theta, dst})
		return nil
	}
	for j, s := range flat(t.Scale)[:len(dst)] {
		dst[j] *= s
	}
	k.addAxes(dst, t, i, 0)
	k.Lin(dst, []float32{1, sign}, [][]float32{theta, dst})
	return nil
}

func (v *Vector) noiseSum(t engine.NoiseSum) error {
	d := t.Dst
	v.ids, v.scale, v.whole = v.ids[:0], v.scale[:0], v.whole[:0]
	for i, id := range t.IDs {
		key, sign := engine.Signed(t.Key, t.Antithetic, id)
		if t.Square {
			sign = 1
		}
		v.ids, v.scale = append(v.ids, key.Member), append(v.scale, t.Weights[i]*sign)
		if t.Noise.Integer {
			v.whole = append(v.whole, int32(v.scale[i]))
		}
	}
	dst, s := row(d.Mat, d.Row)[d.Lo:d.Hi], t.Key.Schedule()
	v.split(len(dst), tile, 32*len(t.IDs), func(k *thread, lo, hi int) {
		fields(v.layout, t.Key, s, d.Lo+lo, hi-lo, func(w *engine.Tensor, f kernel.Field, from, place, n int) {
			out := dst[lo+place : lo+place+n]
			switch {
			case t.Noise.Integer:
				k.IntegerSum(out, v.ids, v.whole, noise.IntegerScale, f, from)
			case t.Noise.Low(w):
				v.lowSum(k, out, f, from, w.Len, t.Noise.Rank)
			default:
				k.NoiseSum(out, v.ids, v.scale, t.Square, f, from)
			}
		})
	})
	return nil
}

func (v *Vector) perturb(t engine.Perturb) error {
	v.split(t.X.Cols, tile, 32*t.X.Rows, func(k *thread, lo, hi int) {
		for r, key := range t.Keys {
			x := row(t.X, engine.Row(r))[lo:hi]
			fields(v.layout, key, key.Schedule(), lo, hi-lo, func(_ *engine.Tensor, f kernel.Field, from, place, n int) {
				k.Perturb(x[place:place+n], x[place:place+n], t.Sigma[r], f, from)
			})
		}
	})
	return nil
}
