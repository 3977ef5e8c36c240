package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// integers converts the words in r0 and r2 to noise.Integer of each, in r0 and r1.
func (s *stream) integers() {
	ones, pairs := s.byteOnes()
	for i, w := range []reg.VecPhysical{s.r[0], s.r[2]} {
		s.with(0x01000000, func(x, y, z operand.Op) { s.VPORD_BCST(x, y, z) },
			func(x, y, z operand.Op) { s.VPOR(x, y, z) }, w, w)
		s.do(func() { s.VPMADDUBSW(w, ones, w) })
		s.do(func() { s.VPMADDWD(pairs, w, w) })
		s.with(3, func(x, y, z operand.Op) { s.VPADDD_BCST(x, y, z) }, func(x, y, z operand.Op) { s.VPADDD(x, y, z) }, w, w)
		s.do(func() { s.VPSRAD(operand.Imm(2), w, s.r[i]) })
	}
}

// byteOnes returns registers with bytes and words of one that neither the cipher nor sums use: the last ones of two
// streams.
func (g *gen) byteOnes() (bytes, words reg.VecPhysical) { return g.r[6], g.r[13] }

// integerSetup is noiseSetup for integers.
func (g *gen) integerSetup() {
	g.noiseSetup()
	ones, pairs := g.byteOnes()
	g.VPBROADCASTD(g.consts.word(0x01010101), ones)
	g.VPBROADCASTD(g.consts.word(0x00010001), pairs)
}

// toScale converts r to floats and multiplies by the argument's scale; it overwrites tmp.
func (g *gen) toScale(r, tmp reg.VecPhysical) {
	g.VCVTDQ2PS(r, r)
	if g.wide {
		g.VMULPS_BCST(at(reg.RDI, nKeep), r, r)
		return
	}
	g.VBROADCASTSS(at(reg.RDI, nKeep), tmp)
	g.VMULPS(tmp, r, r)
}

// drawn is the form in which integers are stored.
type drawn int

const (
	scaled  drawn = iota // floats, times a scale
	plain                // bytes
	rounded              // bytes: the integers nearest to the values times two scales
)

// noiseIntegers emits kernels that write tiles of 32 integers.
func (g *gen) noiseIntegers(as drawn) {
	g.begin([]string{"noiseFloats", "noiseBytes", "noiseRounded"}[as], "noiseArgs",
		[]string{"tiles of whole numbers, scaled.", "tiles of whole numbers in bytes.",
			"tiles of whole numbers, scaled and rounded, in bytes."}[as])
	asBytes := as != scaled
	g.integerSetup()
	if !asBytes {
		g.rowSetup()
	}
	g.tileLoop(func(tiles int, streams []*stream) {
		for i, s := range streams {
			s.philox(at(reg.RDI, nLead))
			s.integers()
			lo, hi := g.place(i)
			for j, place := range []int{lo, hi} {
				if as == rounded {
					s.round(s.r[j], s.r[4])
				}
				if asBytes {
					s.do(func() { g.narrow(s.r[j], s.r[4], at(reg.RDX, place/4)) })
				} else {
					s.do(func() { g.toScale(s.r[j], s.r[4]) })
				}
			}
		}
		interleave(streams)
		for i, s := range streams {
			if !asBytes {
				g.inRow(i, s.r[0], s.r[1])
			}
		}
		if asBytes {
			g.ADDQ(imm(32*tiles), reg.RDX)
		}
	})
	g.end()
}

// round rounds r times both scales of the argument to integers, each product rounded first, and limits them to at least
// -127; it overwrites tmp. narrow applies the upper limit.
func (s *stream) round(r, tmp reg.VecPhysical) {
	s.do(func() {
		s.toScale(r, tmp)
		if s.wide {
			s.VMULPS_BCST(at(reg.RDI, nLimit), r, r)
			return
		}
		s.VBROADCASTSS(at(reg.RDI, nLimit), tmp)
		s.VMULPS(tmp, r, r)
	})
	s.with(math.Float32bits(-127), func(x, y, z operand.Op) { s.VMAXPS_BCST(x, y, z) },
		func(x, y, z operand.Op) { s.VMAXPS(x, y, z) }, r, r)
	s.do(func() { s.VCVTPS2DQ(r, r) })
}

// narrow writes the lanes of r as bytes, limited to [-128, 127]; it overwrites r and tmp.
func (g *gen) narrow(r, tmp reg.VecPhysical, to operand.Mem) {
	if g.wide {
		g.VPMOVSDB(r, to)
		return
	}
	g.VPACKSSDW(r, r, r)
	g.VPACKSSWB(r, r, r)
	g.VEXTRACTI128(operand.U8(1), r, tmp.AsX())
	g.VPUNPCKLDQ(tmp.AsX(), r.AsX(), r.AsX())
	g.VMOVQ(r.AsX(), to)
}
