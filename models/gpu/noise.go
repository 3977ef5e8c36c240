package gpu

import (
	"math"
	"sort"

	"brood/models/engine"
	"brood/models/noise"
)

// kindOf returns the number of a kind of noise in the kernels.
func kindOf(n engine.Noise) uint32 {
	if n.Integer {
		return 1
	}
	return 0
}

// key appends the words that address a row's noise.
func (b *batch) key(k noise.Key, factor float32) {
	s := k.Schedule()
	b.words = append(b.words, s[0], s[1], k.Member, uint32(k.Round), math.Float32bits(factor))
}

// items returns the first work item and the number of work items whose tiles hold parameters [lo, hi): eight per tile.
func (e *Engine) items(lo, hi int) (from, n int) {
	if lo >= hi {
		return 0, 0
	}
	from = e.tile(lo)
	return 8 * from, 8 * (e.tile(hi-1) + 1 - from)
}

// tile returns the number of the noise tile that holds a parameter.
func (e *Engine) tile(at int) int {
	ts := e.layout.Tensors
	i := sort.Search(len(ts), func(i int) bool { return ts[i].Lo+ts[i].Len > at })
	t := &ts[i]
	return e.tiles[i] + (at-t.Lo)/t.Cols*((t.Cols+31)/32) + (at-t.Lo)%t.Cols/32
}

func (e *Engine) noiseSum(t engine.NoiseSum) error {
	b := new(batch)
	list := b.list()
	for i := range t.IDs {
		key, w := weighed(&t, i)
		b.words = append(b.words, key.Member, math.Float32bits(w))
	}
	if len(b.words) == 0 {
		b.list(0)
	}
	if t.Noise.Rank == 0 {
		e.fullSum(b, &t, list, t.Dst.Lo, t.Dst.Hi)
		return e.issue(b)
	}
	for i := range e.layout.Tensors {
		w := &e.layout.Tensors[i]
		lo, hi := max(t.Dst.Lo, w.Lo), min(t.Dst.Hi, w.Lo+w.Len)
		if lo < hi && !t.Noise.Low(w) {
			e.fullSum(b, &t, list, lo, hi)
		}
	}
	if err := e.issue(b); err != nil {
		return err
	}
	for i := range e.layout.Tensors {
		w := &e.layout.Tensors[i]
		lo, hi := max(t.Dst.Lo, w.Lo), min(t.Dst.Hi, w.Lo+w.Len)
		if lo < hi && t.Noise.Low(w) {
			if err := e.lowSum(&t, i, lo, hi); err != nil {
				return err
			}
		}
	}
	return nil
}

// weighed returns the address and the weight of a sum's i-th noise.
func weighed(t *engine.NoiseSum, i int) (noise.Key, float32) {
	key, sign := engine.Signed(t.Key, t.Antithetic, t.IDs[i])
	if t.Square {
		sign = 1
	}
	return key, t.Weights[i] * sign
}

// fullSum appends the sum of full-rank noise over parameters [lo, hi); list holds members and weights.
func (e *Engine) fullSum(b *batch, t *engine.NoiseSum, list uint32, lo, hi int) {
	square := uint32(0)
	if t.Square {
		square = 1
	}
	s := t.Key.Schedule()
	from, n := e.items(lo, hi)
	d, at := first(t.Dst)
	b.launch("noise_sum", n, 1, wordsHere{}, list, uint32(len(t.IDs)), s[0], s[1], uint32(t.Key.Round), e.table,
		uint32(len(e.layout.Tensors)),
		uint64(from), uint64(n), kindOf(t.Noise), square, d, at+uint64(lo-t.Dst.Lo), uint64(lo), uint64(hi))
}

func (e *Engine) perturb(t engine.Perturb) error {
	b := new(batch)
	list := b.list()
	for i, k := range t.Keys {
		b.key(k, t.Sigma[i])
	}
	_, n := e.items(0, e.layout.Params)
	x, at := behind(t.X)
	return e.issue(b.launch("perturb", n, t.X.Rows, wordsHere{}, list, e.table, uint32(len(e.layout.Tensors)), uint64(n),
		x, at, uint64(t.X.Cols)))
}

func (e *Engine) crossover(t engine.Crossover) error {
	b := new(batch)
	list := b.list()
	for _, k := range t.Keys {
		b.key(k, 0)
	}
	whole := uint32(0)
	if t.PerTensor {
		whole = 1
	}
	d, at := behind(t.Dst)
	x, atx := behind(t.A)
	y, aty := behind(t.B)
	return e.issue(b.launch("crossover", t.Dst.Cols, t.Dst.Rows, wordsHere{}, list, e.table, uint32(len(e.layout.Tensors)),
		uint64(t.Dst.Cols), whole,
		d, at, x, atx, y, aty))
}
