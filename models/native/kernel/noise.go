package kernel

import (
	"math"
	"unsafe"

	"brood/models/noise"
)

// noiseArgs is the argument of the noise kernels.
type noiseArgs struct {
	dst             unsafe.Pointer // whole tiles
	tiles           int
	keys            *noise.Schedule
	block           uint32  // of the first tile
	keep            float32 // a scale; for dropout: the factor of kept elements; words below limit are dropped
	limit           uint32  // for rounded integers: the bits of a second scale
	_               uint32
	leads, weights  unsafe.Pointer // of a sum's members
	count           int            // number of members
	left, row, back int            // tiles left in the row, and in a whole row; excess bytes of its last tile
	lead            lead           // for noise that is not a sum
}

// lead holds the part of the cipher's first three rounds that all blocks of a stream have in common: the words that are
// xored with halves of products. Only word 0 of the counter differs between blocks, so two of the first four products
// are constant.
type lead [4]uint32

// leadOf returns the lead of a counter.
func leadOf(s *noise.Schedule, c [4]uint32) lead {
	first := 0xCD9E8D57 * uint64(c[2])
	second := 0xD2511F53 * uint64(uint32(first>>32)^c[1]^s[0])
	return lead{c[3] ^ s[1], uint32(first) ^ s[2], uint32(second>>32) ^ s[3], uint32(second) ^ s[5]}
}

// Field addresses the Gaussian noise of a matrix of Cols columns, one stream of Key: element e is in row e/Cols, and
// each row begins a tile, as in noise.Key.Each. Schedule is Key.Schedule(), which all members and streams share.
type Field struct {
	Key      noise.Key
	Schedule *noise.Schedule
	Cols     int
}

// Normals writes the normals of elements [lo, lo+len(dst)) of f.
func (k *Kernels) Normals(dst []float32, f Field, lo int) {
	k.fill(dst, f, lo, k.isa.noiseFill, 1, func(first uint32, count int) { k.tiles(first, count, f, nil, nil, false) })
}

// fill lets a kernel write the tiles of elements [lo, lo+len(dst)) of f directly. Only a tile that begins before dst,
// and tiles that would pass its end, go through k.line, where lines computes them.
func (k *Kernels) fill(dst []float32, f Field, lo int, kernel func(*noiseArgs), scale float32,
	lines func(first uint32, count int)) {
	at := 0
	through := func(end int) {
		from := at
		k.runs(end-at, lo+at, f, lines, func(i int, eps []float32) { copy(dst[from+i:], eps) })
		at = end
	}
	if c := lo % f.Cols; c%noise.Tile > 0 {
		through(min(len(dst), noise.Tile-c%noise.Tile, f.Cols-c))
	}
	if kernel != nil && len(dst)-at >= noise.Tile {
		first, next := f.tile(lo+at), f.tile(lo+len(dst)-noise.Tile)+1
		k.noise = f.args(ptr(dst, at), uint32(first), next-first)
		row := f.row()
		k.noise.keep, k.noise.row, k.noise.left, k.noise.back = scale, row, row-first%row, 4*(row*noise.Tile-f.Cols)
		kernel(&k.noise)
		at = next/row*f.Cols + next%row*noise.Tile - lo
	}
	through(len(dst))
}

// row returns the number of tiles in a row.
func (f *Field) row() int { return (f.Cols + noise.Tile - 1) / noise.Tile }

// tile returns the tile that contains element e.
func (f *Field) tile(e int) int { return e/f.Cols*f.row() + e%f.Cols/noise.Tile }

// args returns the arguments that all noise kernels need.
func (f *Field) args(dst unsafe.Pointer, first uint32, count int) noiseArgs {
	c := f.Key.Counter(8 * first)
	return noiseArgs{
		dst:   dst,
		tiles: count,
		keys:  f.Schedule,
		block: c[0],
		lead:  leadOf(f.Schedule, c),
		left:  count,
		row:   count,
	}
}

// sumArgs returns the arguments of a sum over members.
func (k *Kernels) sumArgs(f Field, first uint32, count int, members []uint32, weights unsafe.Pointer) noiseArgs {
	a := f.args(ptr(k.line, 0), first, count)
	a.leads, a.weights, a.count = unsafe.Pointer(unsafe.SliceData(k.leads)), weights, len(members)
	return a
}

// lead computes the leads of the members of a sum.
func (k *Kernels) lead(f Field, members []uint32) {
	if cap(k.leads) < len(members) {
		k.leads = make([]lead, len(members))
	}
	k.leads = k.leads[:len(members)]
	for i, m := range members {
		f.Key.Member = m
		k.leads[i] = leadOf(f.Schedule, f.Key.Counter(0))
	}
}

// Perturb computes dst = src + sigma*eps over elements [lo, lo+len(dst)) of f, the product rounded. dst may be src.
func (k *Kernels) Perturb(dst, src []float32, sigma float32, f Field, lo int) {
	src = src[:len(dst)]
	k.runs(len(dst), lo, f, func(first uint32, count int) { k.tiles(first, count, f, nil, nil, false) },
		func(at int, eps []float32) {
			n := len(eps)
			k.lin(dst[at:at+n], 2, 1, src[at:], sigma, eps, 0, nil)
		})
}

// NoiseSum computes dst = sum_i weights[i]*eps(members[i]) over elements [lo, lo+len(dst)) of f, whose Key.Member is
// not read, in the order of members, every product rounded. With square the term is weights[i]*(eps^2-1).
func (k *Kernels) NoiseSum(dst []float32, members []uint32, weights []float32, square bool, f Field, lo int) {
	if len(members) == 0 {
		clear(dst)
		return
	}
	weights = weights[:len(members)]
	k.lead(f, members)
	k.runs(len(dst), lo, f, func(first uint32, count int) { k.tiles(first, count, f, members, weights, square) },
		func(at int, sum []float32) { copy(dst[at:], sum) })
}

// runs computes the tiles of elements [lo, lo+n) of f in k.line, some at a time, and calls emit with each piece that
// belongs to the matrix and its position in the window.
func (k *Kernels) runs(n, lo int, f Field, tiles func(first uint32, count int), emit func(at int, values []float32)) {
	if n == 0 {
		return
	}
	if k.line == nil {
		k.line = aligned(line)
	}
	last := f.tile(lo + n - 1)
	for at := 0; at < n; {
		first := f.tile(lo + at)
		count := min(line/noise.Tile, last-first+1)
		tiles(uint32(first), count)
		for at < n {
			e := lo + at
			t, lane := f.tile(e)-first, e%f.Cols%noise.Tile
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
	if len(members) == 0 {
		k.noise = f.args(ptr(k.line, 0), first, count)
		k.isa.noiseFill(&k.noise)
		return
	}
	k.noise = k.sumArgs(f, first, count, members, ptr(weights, 0))
	if square {
		k.isa.noiseSquare(&k.noise)
	} else {
		k.isa.noiseSum(&k.noise)
	}
}

// portableTiles is the portable variant.
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

// Drop writes the dropout masks of elements [lo, lo+len(dst)) of the stream of key: 0 if word e, as a fraction, is
// below rate, else 1/(1-rate). lo must be a multiple of 4.
func (k *Kernels) Drop(dst []float32, key noise.Key, s *noise.Schedule, lo int, rate float64) {
	ctr, keep, limit := key.Counter(uint32(lo/4)), 1/(1-float32(rate)), uint32(rate*(1<<24))
	if k.isa.drop == nil {
		drop(dst, s, ctr, keep, limit)
		return
	}
	whole := len(dst) / noise.Tile * noise.Tile
	fill := func(dst []float32, tiles int) {
		k.noise = noiseArgs{
			dst:   ptr(dst, 0),
			tiles: tiles,
			keys:  s,
			block: ctr[0],
			lead:  leadOf(s, ctr),
			keep:  keep,
			limit: limit,
		}
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

// drop is the portable variant.
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

// Cross writes b[i] to dst[i] where coin i of the stream of key is 1, else a[i]. Coin i is bit i%32 of word i/32. dst
// may be a or b.
func (k *Kernels) Cross(dst, a, b []float32, key noise.Key, s *noise.Schedule) {
	a, b = a[:len(dst)], b[:len(dst)]
	for ctr := key.Counter(0); len(dst) > 0; ctr[0] += uint32(len(k.coins) / 4) {
		n := min(len(dst), 32*len(k.coins))
		k.words((n+31)/32, s, ctr)
		whole := n &^ 31
		if k.isa.pick == nil {
			whole = 0
		} else if whole > 0 {
			v := &k.vec
			v.dst, v.x[0], v.x[1], v.x[2], v.n = ptr(dst, 0), ptr(a, 0), ptr(b, 0), unsafe.Pointer(&k.coins), whole
			k.isa.pick(v)
		}
		pick(dst[whole:n], a[whole:n], b[whole:n], k.coins[whole/32:])
		dst, a, b = dst[n:], a[n:], b[n:]
	}
}

// words writes at least n words of a stream, from counter c on, to k.coins.
func (k *Kernels) words(n int, s *noise.Schedule, c [4]uint32) {
	if k.isa.words != nil {
		k.noise = noiseArgs{dst: unsafe.Pointer(&k.coins), tiles: (n + noise.Tile - 1) / noise.Tile, keys: s, block: c[0],
			lead: leadOf(s, c)}
		k.isa.words(&k.noise)
		return
	}
	for at := 0; at < n; at += 4 {
		*(*[4]uint32)(k.coins[at:]) = s.Block(c)
		c[0]++
	}
}

// pick is the portable variant.
func pick(dst, a, b []float32, coins []uint32) {
	for at := 0; at < len(dst); at += 32 {
		hi := min(at+32, len(dst))
		pickWord(dst[at:hi], a[at:hi], b[at:hi], coins[at/32])
	}
}

// pickWord picks the elements of a word. It has no branches, since coins are unpredictable.
func pickWord(dst, a, b []float32, word uint32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		x, y := math.Float32bits(a[i]), math.Float32bits(b[i])
		dst[i] = math.Float32frombits(x ^ (x^y)&-(word&1))
		word >>= 1
	}
}
