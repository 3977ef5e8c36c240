package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Offsets of kernel.noiseArgs.
const (
	nDst, nTiles, nKeys, nCtr  = 0, 8, 16, 24
	nMembers, nWeights, nCount = 40, 48, 56
)

// The coefficients of noise.Normals; a test compares the bits.
var (
	logC = []float32{-2.000001907348633, 1.000022292137146, -0.6662901639938354, 0.49819502234458923, -0.40992698073387146, 0.3733559846878052, -0.2379191517829895}
	sinC = []float32{1.5707948207855225, -0.645920991897583, 0.07948773354291916, -0.004362513776868582}
	cosC = []float32{0.9999999403953552, -1.2336982488632202, 0.2536507546901703, -0.02081063948571682, 0.0008581960573792458}
)

const (
	m0, m1  = 0xD2511F53, 0xCD9E8D57
	twoM31  = float32(1) / (1 << 31)
	minus2L = float32(-2 * math.Ln2)
)

// stream is the instructions of one run of counters, in order, on nine registers of its own. One stream is a chain of some
// 150 cycles, of which a core's scheduler holds hardly two: several streams are therefore interleaved.
type stream struct {
	*gen
	r   []reg.VecPhysical
	ops []func()
}

func (s *stream) do(f func()) { s.ops = append(s.ops, f) }

func interleave(streams []*stream) {
	for i := 0; ; i++ {
		more := false
		for _, s := range streams {
			if i < len(s.ops) {
				s.ops[i]()
				more = true
			}
		}
		if !more {
			return
		}
	}
}

// with calls an instruction with the constant x as its first operand: broadcast from memory in AVX-512, a vector in
// memory in AVX2.
func (s *stream) with(x uint32, wide, narrow func(a, b, c operand.Op), b, c reg.VecPhysical) {
	s.do(func() {
		if s.wide {
			wide(s.consts.word(x), b, c)
		} else {
			narrow(s.consts.vector(x), b, c)
		}
	})
}

func (s *stream) mulf(x float32, b, c reg.VecPhysical) {
	s.with(math.Float32bits(x), func(x, y, z operand.Op) { s.VMULPS_BCST(x, y, z) }, func(x, y, z operand.Op) { s.VMULPS(x, y, z) }, b, c)
}

func (s *stream) addf(x float32, b, c reg.VecPhysical) {
	s.with(math.Float32bits(x), func(x, y, z operand.Op) { s.VADDPS_BCST(x, y, z) }, func(x, y, z operand.Op) { s.VADDPS(x, y, z) }, b, c)
}

// Registers that the streams share.
func (g *gen) mul0() reg.VecPhysical { return g.r[len(g.r)-1] }
func (g *gen) mul1() reg.VecPhysical { return g.r[len(g.r)-2] }
func (g *gen) ctr() reg.VecPhysical  { return g.r[len(g.r)-3] }
func (g *gen) step() reg.VecPhysical { return g.r[len(g.r)-4] }
func (g *gen) key() reg.VecPhysical  { return g.r[len(g.r)-5] } // AVX2 only

// philox leaves the words of one vector of counters in r0 (words 0 and 1 of counter i in lanes 2i and 2i+1) and r2 (words
// 2 and 3). A 64-bit lane holds a word in its low half; the high halves are garbage, which the multiplication ignores,
// so that no shuffle is needed inside a round.
func (s *stream) philox(member operand.Mem) {
	t, keys := reg.RDI, reg.RSI
	c0, c1, c2, c3, p0, p1 := s.r[0], s.r[1], s.r[2], s.r[3], s.r[4], s.r[5]
	s.do(func() { // in one step, because the streams share the counter
		s.VMOVUPS(s.ctr(), c0)
		s.VPADDD(s.step(), s.ctr(), s.ctr())
	})
	s.do(func() { s.VPBROADCASTD(at(t, nCtr+4), c1) })
	s.do(func() { s.VPBROADCASTD(member, c2) })
	s.do(func() { s.VPBROADCASTD(at(t, nCtr+12), c3) })
	xor := func(key int, a, b reg.VecPhysical) {
		if s.wide {
			s.do(func() { s.VPTERNLOGD_BCST(operand.U8(0x96), at(keys, 4*key), a, b) })
			return
		}
		s.do(func() { s.VPBROADCASTD(at(keys, 4*key), s.key()) })
		s.do(func() { s.VPXOR(a, b, b) })
		s.do(func() { s.VPXOR(s.key(), b, b) })
	}
	for r := range 10 {
		c1, c3, p0, p1 := c1, c3, p0, p1
		if r%2 == 1 {
			c1, p1 = p1, c1
			c3, p0 = p0, c3
		}
		s.do(func() { s.VPMULUDQ(c0, s.mul0(), p0) })
		s.do(func() { s.VPMULUDQ(c2, s.mul1(), p1) })
		s.do(func() { s.VPSRLQ(operand.Imm(32), p1, c0) })
		s.do(func() { s.VPSRLQ(operand.Imm(32), p0, c2) })
		xor(2*r, c1, c0)
		xor(2*r+1, c3, c2)
	}
	for _, w := range [][2]reg.VecPhysical{{c0, c1}, {c2, c3}} {
		if s.wide {
			s.do(func() { s.VMOVSLDUP(w[1], reg.K3, w[0]) })
			continue
		}
		s.do(func() { s.VMOVSLDUP(w[1], w[1]) })
		s.do(func() { s.VBLENDPS(operand.U8(0xAA), w[1], w[0], w[0]) })
	}
}

// normals turns the words in r0 and r2 into normals, the operations being those of noise.Normals: cosines in r0, sines
// in r1.
func (s *stream) normals() {
	u, f, w, e, q, v, c, sn, v2 := s.r[0], s.r[1], s.r[2], s.r[3], s.r[4], s.r[5], s.r[6], s.r[7], s.r[8]
	mad := func(x reg.VecPhysical, k float32, y reg.VecPhysical) { // y = y*x + k
		s.do(func() { s.VMULPS(x, y, y) })
		s.addf(k, y, y)
	}
	top := func(k []float32, y reg.VecPhysical) {
		s.do(func() { s.VBROADCASTSS(s.consts.float(k[len(k)-1]), y) })
	}
	s.do(func() { s.VPSRLD(operand.Imm(1), u, f) })
	s.do(func() { s.VCVTDQ2PS(w, v) })
	s.with(1, func(x, y, z operand.Op) { s.VPORD_BCST(x, y, z) }, func(x, y, z operand.Op) { s.VPOR(x, y, z) }, f, f)
	s.mulf(twoM31, v, v)
	s.do(func() { s.VCVTDQ2PS(f, f) })
	s.do(func() { s.VMULPS(v, v, v2) })
	s.mulf(twoM31, f, f)
	top(cosC, c)
	s.with(0x3f3504f3, func(x, y, z operand.Op) { s.VPSUBD_BCST(x, y, z) }, func(x, y, z operand.Op) { s.VPSUBD(x, y, z) }, f, e)
	top(sinC, sn)
	s.do(func() { s.VPSRAD(operand.Imm(23), e, e) })
	mad(v2, cosC[3], c)
	s.do(func() { s.VPSLLD(operand.Imm(23), e, q) })
	mad(v2, sinC[2], sn)
	s.do(func() { s.VPSUBD(q, f, f) })
	s.do(func() { s.VCVTDQ2PS(e, e) })
	s.addf(-1, f, f)
	top(logC, q)
	mad(f, logC[5], q)
	mad(v2, cosC[2], c)
	mad(f, logC[4], q)
	mad(v2, sinC[1], sn)
	mad(f, logC[3], q)
	mad(v2, cosC[1], c)
	mad(f, logC[2], q)
	mad(v2, sinC[0], sn)
	mad(f, logC[1], q)
	mad(v2, cosC[0], c)
	mad(f, logC[0], q)
	s.mulf(minus2L, e, e)
	s.do(func() { s.VMULPS(v, sn, sn) })
	s.do(func() { s.VMULPS(f, q, q) })
	s.do(func() { s.VPSLLD(operand.Imm(31), w, w) })
	s.do(func() { s.VADDPS(e, q, q) })
	s.do(func() { s.VXORPS(w, c, c) })
	s.do(func() { s.VSQRTPS(q, q) })
	s.do(func() { s.VMULPS(q, c, u) })
	s.do(func() { s.VMULPS(q, sn, f) })
}
