// Package noise is the only randomness of brood: pure functions of an address. Philox4x32-10 (Salmon et al., SC 2011)
// is keyed by seed, purpose and the high half of the round; its counter is (block, stream, member, low half of the
// round). There is no state, so any tile can be computed anywhere, and every platform computes the same bits: each
// product is rounded to float32 before it is added, so that the compiler cannot fuse them. The golden vectors in the
// tests freeze all of it: a change breaks every recorded session.
package noise

import (
	"math"
	"math/bits"
)

// Purpose separates streams that must never share counters. The numbers are recorded: only append new ones.
type Purpose uint32

const (
	Init      Purpose = 1 // initial parameters
	Order     Purpose = 2 // data order
	Candidate Purpose = 3 // candidate perturbations
	Pair      Purpose = 4 // pairings of gossip
	Mutate    Purpose = 5
	Select    Purpose = 6 // selection and crossover
	Direction Purpose = 7 // search directions of hybrid methods, axes that a search begins with, amounts along axes
	Dropout   Purpose = 8
	Data      Purpose = 9 // synthetic data
	Split     Purpose = 10
	Thermal   Purpose = 11 // Langevin noise
	Search    Purpose = 12 // settings of a sweep
	Sample    Purpose = 13 // bytes of a text that a model writes
)

// Key addresses a stream of words.
type Key struct {
	Seed    uint64
	Purpose Purpose
	Round   uint64
	Member  uint32
	Stream  uint32 // tensor, layer or sub-stream
}

// mix is the finaliser of SplitMix64.
func mix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// Schedule is the key schedule of Philox4x32-10: two words per cipher round.
type Schedule [20]uint32

// NewSchedule expands the cipher key.
func NewSchedule(k0, k1 uint32) *Schedule {
	s := new(Schedule)
	s.expand(k0, k1)
	return s
}

func (s *Schedule) expand(k0, k1 uint32) {
	for r := 0; r < 20; r += 2 {
		s[r], s[r+1] = k0, k1
		k0 += 0x9E3779B9
		k1 += 0xBB67AE85
	}
}

// Block computes the cipher: four words from four.
func (s *Schedule) Block(c [4]uint32) [4]uint32 {
	c0, c1, c2, c3 := c[0], c[1], c[2], c[3] // an array would go through memory in every round
	for r := 0; r < 20; r += 2 {
		p, q := uint64(c0)*0xD2511F53, uint64(c2)*0xCD9E8D57
		c0, c1, c2, c3 = uint32(q>>32)^c1^s[r], uint32(q), uint32(p>>32)^c3^s[r+1], uint32(p)
	}
	return [4]uint32{c0, c1, c2, c3}
}

// Schedule returns the cipher key of k, the same for all members and streams.
func (k Key) Schedule() *Schedule { return NewSchedule(k.cipher()) }

func (k Key) cipher() (k0, k1 uint32) {
	s := mix(k.Seed ^ mix(uint64(k.Purpose)<<32|k.Round>>32))
	return uint32(s), uint32(s >> 32)
}

// Counter returns the cipher's counter of k's block b.
func (k Key) Counter(b uint32) [4]uint32 {
	return [4]uint32{b, k.Stream, k.Member, uint32(k.Round)}
}

// Words returns block b of the stream. It does not allocate.
func (k Key) Words(b uint32) [4]uint32 {
	var s Schedule
	s.expand(k.cipher())
	return s.Block(k.Counter(b))
}

// Uint32 returns word i of the stream.
func (k Key) Uint32(i int) uint32 { return k.Words(uint32(i / 4))[i%4] }

// Below returns word i scaled to [0, n) by multiplication; its bias is below n/2^32.
func (k Key) Below(i, n int) int { return int(uint64(k.Uint32(i)) * uint64(n) >> 32) }

// Uniform returns word i as a float in [0, 1), a multiple of 2^-24.
func (k Key) Uniform(i int) float32 { return float32(k.Uint32(i)>>8) * (1.0 / (1 << 24)) }

// Shuffle returns the numbers 0 to n-1 in a random order (Fisher-Yates), uniform also for a small n, unlike Permute.
// Its first k numbers are a draw of k without replacement.
func (k Key) Shuffle(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	for i := range out {
		j := i + k.Below(i, n-i)
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// Permute maps x to its place under a keyed bijection of [0, n): a four-round Feistel network with cycle walking.
// It needs no table, so a data order survives joins, resizes and resume as one counter.
func (k Key) Permute(x, n uint64) uint64 {
	return k.Permutation(n).At(x)
}

// Permutation is a keyed bijection of [0, n) with its key schedule expanded.
type Permutation struct {
	s    *Schedule
	ctr  [4]uint32
	n    uint64
	half uint
}

// Permutation expands k for repeated use.
func (k Key) Permutation(n uint64) Permutation {
	return Permutation{k.Schedule(), k.Counter(0), n, uint(max(1, (bits.Len64(n-1)+1)/2))}
}

// Map replaces every x < n of xs by At(x). It processes two at a time, since the cipher is a chain of dependent
// operations.
func (p Permutation) Map(xs []uint64) {
	if p.n <= 1 {
		clear(xs)
		return
	}
	mask := uint64(1)<<p.half - 1
	for len(xs) > 1 {
		l, r, m, q := xs[0]>>p.half, xs[0]&mask, xs[1]>>p.half, xs[1]&mask
		for i := range uint32(4) {
			a, b := p.s.pair(uint32(r), uint32(q), p.ctr[1]^(i<<28), p.ctr[2], p.ctr[3])
			l, r, m, q = r, (l^uint64(a))&mask, q, (m^uint64(b))&mask
		}
		xs[0], xs[1] = l<<p.half|r, m<<p.half|q
		for i, x := range xs[:2] { // values outside the range continue their walk
			if x >= p.n {
				xs[i] = p.At(x)
			}
		}
		xs = xs[2:]
	}
	if len(xs) > 0 {
		xs[0] = p.At(xs[0])
	}
}

// pair returns the first word of two blocks whose counters differ in word 0.
func (s *Schedule) pair(a0, b0, c1, c2, c3 uint32) (uint32, uint32) {
	a1, a2, a3, b1, b2, b3 := c1, c2, c3, c1, c2, c3
	for r := 0; r < 20; r += 2 {
		k0, k1 := s[r], s[r+1]
		p, q := uint64(a0)*0xD2511F53, uint64(a2)*0xCD9E8D57
		t, u := uint64(b0)*0xD2511F53, uint64(b2)*0xCD9E8D57
		a0, a1, a2, a3 = uint32(q>>32)^a1^k0, uint32(q), uint32(p>>32)^a3^k1, uint32(p)
		b0, b1, b2, b3 = uint32(u>>32)^b1^k0, uint32(u), uint32(t>>32)^b3^k1, uint32(t)
	}
	return a0, b0
}

// At returns the image of x < n.
func (p Permutation) At(x uint64) uint64 {
	if p.n <= 1 {
		return 0
	}
	mask := uint64(1)<<p.half - 1
	for {
		l, r := x>>p.half, x&mask
		for i := range uint32(4) {
			c := p.ctr
			c[0], c[1] = uint32(r), c[1]^(i<<28)
			l, r = r, (l^uint64(p.s.Block(c)[0]))&mask
		}
		if x = l<<p.half | r; x < p.n {
			return x
		}
	}
}

var (
	logC = [...]float32{-2.000001907348633, 1.000022292137146, -0.6662901639938354, 0.49819502234458923,
		-0.40992698073387146, 0.3733559846878052, -0.2379191517829895}
	sinC = [...]float32{1.5707948207855225, -0.645920991897583, 0.07948773354291916, -0.004362513776868582}
	cosC = [...]float32{0.9999999403953552, -1.2336982488632202, 0.2536507546901703, -0.02081063948571682,
		0.0008581960573792458}
)

func mad(a, b, c float32) float32 { return float32(a*b) + c }

// Normals converts two words to two independent standard normals (Box-Muller): -2 ln u by a polynomial of degree 7
// around 1, the angle pi/2*v with v in [-1, 1], the cosine's sign from bit 0. It uses only correctly rounded
// operations.
func Normals(x, y uint32) (float32, float32) {
	f := float32(float32(int32(x>>1|1)) * (1.0 / (1 << 31)))
	b := int32(math.Float32bits(f))
	e := (b - 0x3f3504f3) >> 23
	t := math.Float32frombits(uint32(b-e<<23)) + -1
	q := logC[6]
	for i := 5; i >= 0; i-- {
		q = mad(q, t, logC[i])
	}
	w := float32(t * q)
	const m2l = float32(-2 * math.Ln2)
	w += float32(float32(e) * m2l)
	r := float32(math.Sqrt(float64(w)))
	v := float32(float32(int32(y)) * (1.0 / (1 << 31)))
	v2 := float32(v * v)
	c, s := cosC[4], sinC[3]
	for i := 3; i >= 0; i-- {
		c = mad(c, v2, cosC[i])
	}
	for i := 2; i >= 0; i-- {
		s = mad(s, v2, sinC[i])
	}
	s = float32(s * v)
	c = math.Float32frombits(math.Float32bits(c) ^ y<<31)
	return float32(r * c), float32(r * s)
}

// Tile is the width of a noise row: 32 normals from 8 counters.
const Tile = 32

// Row writes tile b of k's stream: Tile normals.
func (s *Schedule) Row(dst *[Tile]float32, k Key, b uint32) {
	for i := range uint32(8) {
		w := s.Block(k.Counter(8*b + i))
		dst[2*i], dst[16+2*i] = Normals(w[0], w[2])
		dst[2*i+1], dst[17+2*i] = Normals(w[1], w[3])
	}
}

// Gauss returns element i of the stream as one row of tiles.
func (k Key) Gauss(i int) float32 {
	var t [Tile]float32
	k.Schedule().Row(&t, k, uint32(i/Tile))
	return t[i%Tile]
}

// Each calls f with the noise of elements [lo, hi) of a matrix of cols columns, piece by piece in ascending order. A
// matrix row has its own ceil(cols/32) tiles, so that a kernel can compute any tile of any row. The slice is valid only
// during the call.
func (k Key) Each(lo, hi, cols int, f func(at int, eps []float32)) {
	s, tiles := k.Schedule(), (cols+Tile-1)/Tile
	var t [Tile]float32
	for at := lo; at < hi; {
		r, c := at/cols, at%cols
		lane := c % Tile
		n := min(Tile-lane, cols-c, hi-at)
		s.Row(&t, k, uint32(r*tiles+c/Tile))
		f(at, t[lane:lane+n])
		at += n
	}
}
