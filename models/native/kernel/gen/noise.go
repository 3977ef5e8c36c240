package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"brood/models/native/kernel/gen/coef"
)

// Offsets of kernel.noiseArgs.
const (
	nDst, nTiles, nKeys, nBlock, nKeep, nLimit = 0, 8, 16, 24, 28, 32
	nLeads, nWeights, nCount                   = 40, 48, 56
	nLeft, nRow, nBack, nLead                  = 64, 72, 80, 88
)

// stream is the instructions for one run of counters, in order, on seven own registers. One stream is a chain of about
// 150 cycles, of which a core's scheduler holds less than two: several streams are therefore interleaved. A single
// stream is busy in six of ten cycles, so four streams keep two ports busy. AVX2 has registers for two, and reads what
// they share from memory.
type stream struct {
	*gen
	r     []reg.VecPhysical
	spare reg.VecPhysical // AVX2 only
	ops   []func()
}

// streams returns n streams.
func (g *gen) streams(n int) (out []*stream) {
	for i := range n {
		s := &stream{gen: g, r: g.r[7*i : 7*i+7]}
		if !g.wide {
			s.spare = g.r[14+i]
		}
		out = append(out, s)
	}
	return out
}

func (s *stream) do(f func()) { s.ops = append(s.ops, f) }

// skew is the number of instructions by which each stream lags behind the previous one, so that they do not wait for
// their long chains at the same time.
const skew = 6

func interleave(streams []*stream) {
	for i, more := 0, true; more; i++ {
		more = false
		for j, s := range streams {
			at := i - j*skew
			if 0 <= at && at < len(s.ops) {
				s.ops[at]()
			}
			more = more || at < len(s.ops)
		}
	}
}

// with emits an instruction with the constant x as its first operand: broadcast from memory in AVX-512, a vector in
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
	s.with(math.Float32bits(x), func(x, y, z operand.Op) { s.VMULPS_BCST(x, y, z) },
		func(x, y, z operand.Op) { s.VMULPS(x, y, z) }, b, c)
}

func (s *stream) addf(x float32, b, c reg.VecPhysical) {
	s.with(math.Float32bits(x), func(x, y, z operand.Op) { s.VADDPS_BCST(x, y, z) },
		func(x, y, z operand.Op) { s.VADDPS(x, y, z) }, b, c)
}

// Registers shared by the streams of AVX-512.
func (g *gen) mul0() reg.VecPhysical { return g.r[len(g.r)-1] }
func (g *gen) mul1() reg.VecPhysical { return g.r[len(g.r)-2] }
func (g *gen) ctr() reg.VecPhysical  { return g.r[len(g.r)-3] }
func (g *gen) step() reg.VecPhysical { return g.r[len(g.r)-4] }

// The frame of AVX2 holds vectors on the stack: the counter, then each key from firstKey to lastKey.
const firstKey, lastKey = 4, 19

var frame reg.Register = reg.R12

func (g *gen) counter() operand.Mem        { return at(frame, 0) }
func (g *gen) keyVector(i int) operand.Mem { return at(frame, (1+i-firstKey)*g.bytes()) }

// allocFrame allocates the frame at a multiple of 32, the size of its vectors, and writes the keys to it.
func (g *gen) allocFrame() {
	memory := g.AllocLocal((3 + lastKey - firstKey) * g.bytes())
	g.LEAQ(memory.Offset(31), frame)
	g.ANDQ(operand.I8(-32), frame)
	for i := firstKey; i <= lastKey; i++ {
		g.VPBROADCASTD(at(reg.RSI, 4*i), g.r[0])
		g.VMOVDQU(g.r[0], g.keyVector(i))
	}
}

// philox computes, on six of the registers, the words of one vector of counters in r0 (words 0 and 1 of counter i in
// lanes 2i and 2i+1) and r2 (words 2 and 3). A 64-bit lane holds a word in its low half; the high halves are garbage,
// which the multiplication ignores, so that no shuffle is needed inside a round. lead is a kernel.lead, the common part
// of the first three rounds.
func (s *stream) philox(lead operand.Mem) {
	s.do(s.counters) // in one step, because the streams share the counter
	s.do(s.halves)
	s.rounds(lead)
}

// counters stores the first product, which does not depend on keys, in r3; halves stores its upper halves in r2.
func (s *stream) counters() {
	if s.wide {
		s.VPMULUDQ(s.ctr(), s.mul0(), s.r[3])
		s.VPADDD(s.step(), s.ctr(), s.ctr())
		return
	}
	s.VMOVDQU(s.counter(), s.r[3])
	s.VPADDD(s.consts.vector(uint32(s.lanes/2)), s.r[3], s.r[1])
	s.VMOVDQU(s.r[1], s.counter())
	s.VPMULUDQ(s.consts.vector(coef.M0), s.r[3], s.r[3])
}
func (s *stream) halves() { s.VPSRLQ(operand.Imm(32), s.r[3], s.r[2]) }

// rounds emits the rest of philox.
func (s *stream) rounds(lead operand.Mem) {
	c0, c2 := s.r[0], s.r[2]
	product := func(x reg.VecPhysical, m uint32, p reg.VecPhysical) { // p = x * m
		s.do(func() {
			switch {
			case !s.wide:
				s.VPMULUDQ(s.consts.vector(m), x, p)
			case m == coef.M0:
				s.VPMULUDQ(x, s.mul0(), p)
			default:
				s.VPMULUDQ(x, s.mul1(), p)
			}
		})
	}
	upper := func(p, c reg.VecPhysical) { s.do(func() { s.VPSRLQ(operand.Imm(32), p, c) }) }
	mix := func(word operand.Mem, a, b reg.VecPhysical) { // b = a ^ word
		if s.wide {
			s.do(func() { s.VPXORD_BCST(word, a, b) })
			return
		}
		s.do(func() { s.VPBROADCASTD(word, s.spare) })
		s.do(func() { s.VPXOR(s.spare, a, b) })
	}
	key := func(i int, a, b reg.VecPhysical) { // b ^= a ^ key; a, which may be overwritten, is known earlier than b
		if s.wide {
			s.do(func() { s.VPTERNLOGD_BCST(operand.U8(0x96), at(reg.RSI, 4*i), a, b) })
			return
		}
		s.do(func() { s.VPXOR(s.keyVector(i), a, a) })
		s.do(func() { s.VPXOR(a, b, b) })
	}
	c1, c3, p0, p1 := s.r[1], s.r[4], s.r[3], s.r[5]
	mix(lead, c2, c2)
	product(c2, coef.M1, p1)
	upper(p1, c0)
	mix(lead.Offset(4), c0, c0)
	mix(lead.Offset(8), p0, c2)
	product(c0, coef.M0, c3)
	product(c2, coef.M1, c1)
	upper(c1, c0)
	upper(c3, c2)
	key(4, p1, c0)
	mix(lead.Offset(12), c2, c2)
	for r := 3; r < 9; r++ {
		product(c0, coef.M0, p0)
		product(c2, coef.M1, p1)
		upper(p1, c0)
		upper(p0, c2)
		key(2*r, c1, c0)
		key(2*r+1, c3, c2)
		c1, c3, p0, p1 = p1, p0, c3, c1
	}
	product(c0, coef.M0, p0)
	product(c2, coef.M1, p1)
	if s.wide { // swaps halves; only the low ones are xored
		for i, w := range [][3]reg.VecPhysical{{p1, c1, c0}, {p0, c3, c2}} {
			s.do(func() { s.VPSHUFD(operand.U8(0xB1), w[0], w[2]) })
			s.do(func() { s.VPTERNLOGD_BCST(operand.U8(0x96), at(reg.RSI, 4*(18+i)), w[1], reg.K3, w[2]) })
		}
		return
	}
	upper(p1, c0)
	upper(p0, c2)
	key(18, c1, c0)
	key(19, c3, c2)
	for _, w := range [][2]reg.VecPhysical{{c0, p1}, {c2, p0}} {
		s.do(func() { s.VMOVSLDUP(w[1], w[1]) })
		s.do(func() { s.VBLENDPS(operand.U8(0xAA), w[1], w[0], w[0]) })
	}
}

// normals converts the words in r0 and r2 to normals with the operations of noise.Normals: cosines in r0, sines in r1.
// The factor 2^-31 of the first uniform is subtracted from the exponent's bits.
func (s *stream) normals() {
	u, f, w, v, v2, c, e := s.r[0], s.r[1], s.r[2], s.r[3], s.r[4], s.r[5], s.r[6]
	q, sn := u, w // no longer needed by then

	mad := func(x reg.VecPhysical, k float32, y reg.VecPhysical) { // y = y*x + k
		s.do(func() { s.VMULPS(x, y, y) })
		s.addf(k, y, y)
	}
	s.do(func() { s.VPSRLD(operand.Imm(1), u, f) })
	s.do(func() { s.VCVTDQ2PS(w, v) })
	s.with(1, func(x, y, z operand.Op) { s.VPORD_BCST(x, y, z) }, func(x, y, z operand.Op) { s.VPOR(x, y, z) }, f, f)
	s.mulf(coef.TwoM31, v, v)
	s.do(func() { s.VCVTDQ2PS(f, f) })
	s.do(func() { s.VMULPS(v, v, v2) })
	s.with(coef.RootHalf+31<<23, func(x, y, z operand.Op) { s.VPSUBD_BCST(x, y, z) },
		func(x, y, z operand.Op) { s.VPSUBD(x, y, z) }, f, f)
	s.mulf(coef.Cos[4], v2, c)
	s.do(func() { s.VPSRAD(operand.Imm(23), f, e) })
	s.with(1<<23-1, func(x, y, z operand.Op) { s.VPANDD_BCST(x, y, z) },
		func(x, y, z operand.Op) { s.VPAND(x, y, z) }, f, f)
	s.addf(coef.Cos[3], c, c)
	s.with(coef.RootHalf, func(x, y, z operand.Op) { s.VPADDD_BCST(x, y, z) },
		func(x, y, z operand.Op) { s.VPADDD(x, y, z) }, f, f)
	s.do(func() { s.VCVTDQ2PS(e, e) })
	s.addf(-1, f, f)
	mad(v2, coef.Cos[2], c)
	s.mulf(coef.Log[6], f, q)
	s.addf(coef.Log[5], q, q)
	mad(v2, coef.Cos[1], c)
	mad(f, coef.Log[4], q)
	s.do(func() { s.VPSLLD(operand.Imm(31), w, w) })
	mad(v2, coef.Cos[0], c)
	mad(f, coef.Log[3], q)
	s.do(func() { s.VXORPS(w, c, c) })
	s.mulf(coef.Sin[3], v2, sn)
	s.addf(coef.Sin[2], sn, sn)
	mad(f, coef.Log[2], q)
	mad(v2, coef.Sin[1], sn)
	mad(f, coef.Log[1], q)
	mad(v2, coef.Sin[0], sn)
	mad(f, coef.Log[0], q)
	s.mulf(coef.Minus2L, e, e)
	s.do(func() { s.VMULPS(f, q, q) })
	s.do(func() { s.VMULPS(v, sn, sn) })
	s.do(func() { s.VADDPS(e, q, q) })
	s.do(func() { s.VSQRTPS(q, q) })
	s.do(func() { s.VMULPS(q, sn, f) })
	s.do(func() { s.VMULPS(q, c, u) })
}
