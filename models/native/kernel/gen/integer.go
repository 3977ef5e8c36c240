package main

import (
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

// byteOnes are bytes and words of one, in registers that no cipher and no sum uses.
func (g *gen) byteOnes() (bytes, words reg.VecPhysical) { return g.r[6], g.r[7] }

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

// noiseIntegers emits the writing of tiles of 32 whole numbers, as bytes or as floats times a scale.
func (g *gen) noiseIntegers(asBytes bool) {
	name, doc := "noiseFloats", "tiles of whole numbers, scaled."
	if asBytes {
		name, doc = "noiseBytes", "tiles of whole numbers in bytes."
	}
	g.begin(name, "noiseArgs", doc)
	g.integerSetup()
	if !asBytes {
		g.rowSetup()
	}
	g.tileLoop(3, func(tiles int) {
		g.eachStream(tiles, func(first int, streams []*stream) {
			for i, s := range streams {
				s.philox(at(reg.RDI, nLead))
				s.integers()
				lo, hi := g.place(first + i)
				for j, place := range []int{lo, hi} {
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

// narrow writes the lanes of r as bytes; r and tmp are lost.
func (g *gen) narrow(r, tmp reg.VecPhysical, to operand.Mem) {
	if g.wide {
		g.VPMOVDB(r, to)
		return
	}
	g.VPACKSSDW(r, r, r)
	g.VPACKSSWB(r, r, r)
	g.VEXTRACTI128(operand.U8(1), r, tmp.AsX())
	g.VPUNPCKLDQ(tmp.AsX(), r.AsX(), r.AsX())
	g.VMOVQ(r.AsX(), to)
}
