package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// words emits tiles of 32 words of a stream in its order.
func (g *gen) words() {
	g.begin("words", "noiseArgs", "tiles of words.")
	g.inOrder(func() {}, func(s *stream, o reg.VecPhysical) {})
}

// drop emits tiles of 32 dropout masks, one for each word of the stream: keep, or zero if the word's upper 24 bits are
// below limit.
func (g *gen) drop() {
	g.begin("drop", "noiseArgs", "masks of dropout.")
	t, limit, keep := reg.RDI, g.r[6], g.r[13] // of two streams the last registers, which the cipher does not use
	setup := func() {
		g.VPBROADCASTD(at(t, nLimit), limit)
		if g.wide {
			g.VPSLLD(operand.Imm(8), limit, limit)
		} else {
			g.VBROADCASTSS(at(t, nKeep), keep)
		}
	}
	g.inOrder(setup, func(s *stream, o reg.VecPhysical) {
		s.do(func() {
			if s.wide {
				s.VPCMPUD(operand.U8(5), limit, o, reg.K1) // not below
				s.VBROADCASTSS_Z(at(t, nKeep), reg.K1, o)
				return
			}
			s.VPSRLD(operand.Imm(8), o, o)
			s.VPCMPGTD(o, limit, o)
			s.VANDNPS(keep, o, o)
		})
	})
}

// inOrder emits a loop over tiles of words in the order of their stream; finish is the last step of a vector. The
// counters are ordered so that unpacking puts their four words next to each other.
func (g *gen) inOrder(setup func(), finish func(s *stream, o reg.VecPhysical)) {
	if g.wide {
		g.philoxSetup(g.consts.list("lanes of 512", 0, 0, 4, 0, 1, 0, 5, 0, 2, 0, 6, 0, 3, 0, 7, 0))
	} else {
		g.philoxSetup(g.consts.list("lanes of 256", 0, 0, 2, 0, 1, 0, 3, 0))
	}
	setup()
	g.tileLoop(func(tiles int, streams []*stream) {
		for i, s := range streams {
			s.philox(at(reg.RDI, nLead))
			out := s.r[4:6]
			s.do(func() { s.VUNPCKLPD(s.r[2], s.r[0], out[0]) })
			s.do(func() { s.VUNPCKHPD(s.r[2], s.r[0], out[1]) })
			for half, o := range out {
				finish(s, o)
				s.do(func() { s.VMOVUPS(o, at(reg.RDX, (2*i+half)*s.bytes())) })
			}
		}
		interleave(streams)
		g.ADDQ(imm(128*tiles), reg.RDX)
	})
	g.end()
}
