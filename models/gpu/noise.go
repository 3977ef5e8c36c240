package gpu

import (
	"fmt"
	"math"
	"sort"

	"brood/models/engine"
	"brood/models/noise"
)

// kindOf is a kind of noise as kernels have it.
func kindOf(n engine.Noise) uint32 {
	if n.Integer {
		return 1
	}
	return 0
}

// fullRank refuses noise that has no kernels yet.
func fullRank(task string, n engine.Noise) error {
	if n.Rank > 0 {
		return &engine.ArgumentError{Task: task, What: fmt.Sprintf("noise of rank %d has no kernels on a device yet; take full rank, or the processor", n.Rank)}
	}
	return nil
}

// key appends what a row's noise is addressed by.
func (b *batch) key(k noise.Key, factor float32) {
	s := k.Schedule()
	b.words = append(b.words, s[0], s[1], k.Member, uint32(k.Round), math.Float32bits(factor))
}

// items is the work items whose tiles hold parameters [lo, hi): eight a tile.
func (e *Engine) items(lo, hi int) (from, n int) {
	if lo >= hi {
		return 0, 0
	}
	from = e.tile(lo)
	return 8 * from, 8 * (e.tile(hi-1) + 1 - from)
}

// tile is the tile of noise that holds a parameter.
func (e *Engine) tile(at int) int {
	ts := e.layout.Tensors
	i := sort.Search(len(ts), func(i int) bool { return ts[i].Lo+ts[i].Len > at })
	t := &ts[i]
	return e.tiles[i] + (at-t.Lo)/t.Cols*((t.Cols+31)/32) + (at-t.Lo)%t.Cols/32
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

func (e *Engine) noiseSum(t engine.NoiseSum) error {
	if err := fullRank("noise sum", t.Noise); err != nil {
		return err
	}
	b := new(batch)
	list := b.list()
	for i, id := range t.IDs {
		key, sign := signed(t.Key, t.Antithetic, id)
		if t.Square {
			sign = 1
		}
		b.words = append(b.words, key.Member, math.Float32bits(t.Weights[i]*sign))
	}
	if len(b.words) == 0 {
		b.list(0)
	}
	square := uint32(0)
	if t.Square {
		square = 1
	}
	s := t.Key.Schedule()
	from, n := e.items(t.Dst.Lo, t.Dst.Hi)
	d, at := first(t.Dst)
	return e.issue(b.launch("noise_sum", n, 1, wordsHere{}, list, uint32(len(t.IDs)), s[0], s[1], uint32(t.Key.Round), e.table, uint32(len(e.layout.Tensors)),
		uint64(from), uint64(n), kindOf(t.Noise), square, d, at, uint64(t.Dst.Lo), uint64(t.Dst.Hi)))
}

func (e *Engine) perturb(t engine.Perturb) error {
	b := new(batch)
	list := b.list()
	for i, k := range t.Keys {
		b.key(k, t.Sigma[i])
	}
	_, n := e.items(0, e.layout.Params)
	x, at := behind(t.X)
	return e.issue(b.launch("perturb", n, t.X.Rows, wordsHere{}, list, e.table, uint32(len(e.layout.Tensors)), uint64(n), x, at, uint64(t.X.Cols)))
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
	return e.issue(b.launch("crossover", t.Dst.Cols, t.Dst.Rows, wordsHere{}, list, e.table, uint32(len(e.layout.Tensors)), uint64(t.Dst.Cols), whole,
		d, at, x, atx, y, aty))
}
