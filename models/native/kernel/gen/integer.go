package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// integers turns the words in r0 and r2 into whole numbers, noise.Integer of each, in r0 and r1.
func (s *stream) integers() {
	ones, pairs := s.byteOnes()
	for i, w := range []reg.VecPhysical{s.r[0], s.r[2]} {
		s.with(0x01000000, func(x, y, z operand.Op) { s.VPORD_BCST(x, y, z) }, func(x, y, z operand.Op) { s.VPOR(x, y, z) }, w, w)
		s.do(func() { s.VPMADDUBSW(w, ones, w) })
		s.do(func() { s.VPMADDWD(pairs, w, w) })
		s.with(3, func(x, y, z operand.Op) { s.VPADDD_BCST(x, y, z) }, func(x, y, z operand.Op) { s.VPADDD(x, y, z) }, w, w)
		s.do(func() { s.VPSRAD(operand.Imm(2), w, s.r[i]) })
	}
}

// byteOnes are bytes and words of one, in registers that no cipher and no sum uses: in AVX-512 the last ones of two
// streams.
func (g *gen) byteOnes() (bytes, words reg.VecPhysical) {
	if g.wide {
		return g.r[6], g.r[13]
	}
	return g.r[6], g.r[7]
}

// integerSetup is noiseSetup for integers.
func (g *gen) integerSetup() {
	g.noiseSetup()
	ones, pairs := g.byteOnes()
	g.VPBROADCASTD(g.consts.word(0x01010101), ones)
	g.VPBROADCASTD(g.consts.word(0x00010001), pairs)
}

// toScale turns r into floats, times the argument's scale; tmp is lost.
func (g *gen) toScale(r, tmp reg.VecPhysical) {
	g.VCVTDQ2PS(r, r)
	if g.wide {
		g.VMULPS_BCST(at(reg.RDI, nKeep), r, r)
		return
	}
	g.VBROADCASTSS(at(reg.RDI, nKeep), tmp)
	g.VMULPS(tmp, r, r)
}

// drawn is what becomes of whole numbers.
type drawn int

const (
	scaled  drawn = iota // floats, times a scale
	plain                // bytes
	rounded              // bytes, the whole numbers that are nearest to them times two scales
)

// noiseIntegers emits the writing of tiles of 32 whole numbers.
func (g *gen) noiseIntegers(as drawn) {
	g.begin([]string{"noiseFloats", "noiseBytes", "noiseRounded"}[as], "noiseArgs",
		[]string{"tiles of whole numbers, scaled.", "tiles of whole numbers in bytes.", "tiles of whole numbers, scaled and rounded, in bytes."}[as])
	asBytes := as != scaled
	g.integerSetup()
	if !asBytes {
		g.rowSetup()
	}
	g.tileLoop(func(tiles int) {
		g.eachStream(tiles, func(first int, streams []*stream) {
			for i, s := range streams {
				s.philox(at(reg.RDI, nLead))
				s.integers()
				lo, hi := g.place(first + i)
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
					g.inRow(first+i, s.r[0], s.r[1])
				}
			}
		})
		if asBytes {
			g.ADDQ(imm(32*tiles), reg.RDX)
		}
	})
	g.end()
}

// round makes r the whole numbers that are nearest to it times both scales of the argument, each product rounded, and
// at least -127; tmp is lost. narrow sees to the other bound.
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
	s.with(math.Float32bits(-127), func(x, y, z operand.Op) { s.VMAXPS_BCST(x, y, z) }, func(x, y, z operand.Op) { s.VMAXPS(x, y, z) }, r, r)
	s.do(func() { s.VCVTPS2DQ(r, r) })
}

// narrow writes the lanes of r as bytes, held to [-128, 127]; r and tmp are lost.
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
