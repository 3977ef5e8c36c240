package kernel

import (
	"unsafe"

	"brood/models/noise"
)

// noiseArgs is the argument of the noise kernels.
type noiseArgs struct {
	dst              unsafe.Pointer // whole tiles
	tiles            int
	keys             *noise.Schedule
	ctr              [4]uint32
	members, weights unsafe.Pointer
	count            int
	keep             float32 // a scale; of dropout: what stays is multiplied by it, and words below limit go
	limit            uint32
}

// Field addresses the Gaussian noise of a matrix of Cols columns, one stream of Key: element e is in row e/Cols, and each
// row begins a tile, as in noise.Key.Each. Schedule is Key.Schedule(), which all members and streams share.
type Field struct {
	Key      noise.Key
	Schedule *noise.Schedule
	Cols     int
}

// Normals writes the normals of elements [lo, lo+len(dst)) of f.
func (k *Kernels) Normals(dst []float32, f Field, lo int) {
	k.runs(len(dst), lo, f, func(first uint32, count int) { k.tiles(first, count, f, nil, nil, false) }, func(at int, eps []float32) { copy(dst[at:], eps) })
}

// Perturb computes dst = src + sigma*eps over elements [lo, lo+len(dst)) of f, the product rounded. dst may be src.
func (k *Kernels) Perturb(dst, src []float32, sigma float32, f Field, lo int) {
	src = src[:len(dst)]
	k.runs(len(dst), lo, f, func(first uint32, count int) { k.tiles(first, count, f, nil, nil, false) }, func(at int, eps []float32) {
		n := len(eps)
		k.lin(dst[at:at+n], 2, 1, src[at:], sigma, eps, 0, nil)
	})
}

// NoiseSum computes dst = sum_i weights[i]*eps(members[i]) over elements [lo, lo+len(dst)) of f, whose Key.Member is not
// read, in the order of members, every product rounded. With square the term is weights[i]*(eps^2-1).
func (k *Kernels) NoiseSum(dst []float32, members []uint32, weights []float32, square bool, f Field, lo int) {
	if len(members) == 0 {
		clear(dst)
		return
	}
	weights = weights[:len(members)]
	k.runs(len(dst), lo, f, func(first uint32, count int) { k.tiles(first, count, f, members, weights, square) }, func(at int, sum []float32) { copy(dst[at:], sum) })
}

// runs has the tiles of elements [lo, lo+n) of f made in k.line, some at a time, and hands out what belongs to the matrix, piece
// by piece with its place in the window.
func (k *Kernels) runs(n, lo int, f Field, tiles func(first uint32, count int), emit func(at int, values []float32)) {
	if n == 0 {
		return
	}
	if k.line == nil {
		k.line = aligned(line)
	}
	row := (f.Cols + noise.Tile - 1) / noise.Tile // in tiles
	tile := func(e int) int { return e/f.Cols*row + e%f.Cols/noise.Tile }
	last := tile(lo + n - 1)
	for at := 0; at < n; {
		first := tile(lo + at)
		count := min(line/noise.Tile, last-first+1)
		tiles(uint32(first), count)
		for at < n {
			e := lo + at
			t, lane := tile(e)-first, e%f.Cols%noise.Tile
			if t >= count {
				break
			}
			p := noise.Tile*t + lane
			m := min(n-at, f.Cols-e%f.Cols, noise.Tile*count-p)
			if f.Cols%noise.Tile == 0 {
				m = min(n-at, noise.Tile*count-p)
			}
			emit(at, k.line[p:p+m])
			at += m
		}
	}
}

// tiles fills k.line with tiles [first, first+count) of f.Key or, with members, of their sum.
func (k *Kernels) tiles(first uint32, count int, f Field, members []uint32, weights []float32, square bool) {
	if k.isa.noiseFill == nil {
		k.portableTiles(first, count, f, members, weights, square)
		return
	}
	a := &k.noise
	*a = noiseArgs{dst: ptr(k.line, 0), tiles: count, keys: f.Schedule, ctr: f.Key.Counter(8 * first), count: len(members)}
	switch {
	case len(members) == 0:
		k.isa.noiseFill(a)
		return
	case square:
		a.members, a.weights = unsafe.Pointer(unsafe.SliceData(members)), ptr(weights, 0)
		k.isa.noiseSquare(a)
	default:
		a.members, a.weights = unsafe.Pointer(unsafe.SliceData(members)), ptr(weights, 0)
		k.isa.noiseSum(a)
	}
}

// portableTiles is the portable twin.
func (k *Kernels) portableTiles(first uint32, count int, f Field, members []uint32, weights []float32, square bool) {
	for i := range count {
		out := (*[noise.Tile]float32)(k.line[noise.Tile*i:])
		if len(members) == 0 {
			f.Schedule.Row(out, f.Key, first+uint32(i))
			continue
		}
		clear(out[:])
		var eps [noise.Tile]float32
		for j, m := range members {
			f.Key.Member = m
			f.Schedule.Row(&eps, f.Key, first+uint32(i))
			for l, e := range eps {
				if square {
					e = float32(e*e) - 1
				}
				out[l] += float32(weights[j] * e)
			}
		}
	}
}

// Drop writes the masks of dropout for elements [lo, lo+len(dst)) of the stream of key: word e of it lets element e pass,
// times 1/(1-rate), or makes it zero where the word as a fraction is below rate. lo is a multiple of 4.
func (k *Kernels) Drop(dst []float32, key noise.Key, s *noise.Schedule, lo int, rate float64) {
	ctr, keep, limit := key.Counter(uint32(lo/4)), 1/(1-float32(rate)), uint32(rate*(1<<24))
	if k.isa.drop == nil {
		drop(dst, s, ctr, keep, limit)
		return
	}
	whole := len(dst) / noise.Tile * noise.Tile
	fill := func(dst []float32, tiles int) {
		k.noise = noiseArgs{dst: ptr(dst, 0), tiles: tiles, keys: s, ctr: ctr, keep: keep, limit: limit}
		k.isa.drop(&k.noise)
	}
	if whole > 0 {
		fill(dst, whole/noise.Tile)
	}
	if whole < len(dst) {
		ctr[0] += uint32(whole / 4)
		fill(k.lanes[:], 1)
		copy(dst[whole:], k.lanes[:])
	}
}

// drop is the portable twin.
func drop(dst []float32, s *noise.Schedule, ctr [4]uint32, keep float32, limit uint32) {
	for at := 0; at < len(dst); at += 4 {
		w := s.Block(ctr)
		for i := range min(4, len(dst)-at) {
			dst[at+i] = keep
			if w[i]>>8 < limit {
				dst[at+i] = 0
			}
		}
		ctr[0]++
	}
}
