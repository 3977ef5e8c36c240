package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"brood/models/native/kernel/gen/coef"
)

// noiseSetup loads what the streams share. AVX-512 computes a tile from one vector of eight counters, AVX2 from two.
func (g *gen) noiseSetup() {
	g.philoxSetup(g.consts.list("lanes", 0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0))
}

// philoxSetup is noiseSetup with the counters in a given order.
func (g *gen) philoxSetup(lanes operand.Mem) {
	t := reg.RDI
	g.MOVQ(at(t, nDst), reg.RDX)
	g.MOVQ(at(t, nTiles), reg.RCX)
	g.MOVQ(at(t, nKeys), reg.RSI)
	if !g.wide {
		g.allocFrame()
		g.VPBROADCASTD(at(t, nBlock), g.r[0])
		g.VPADDD(lanes, g.r[0], g.r[0])
		g.VMOVDQU(g.r[0], g.counter())
		return
	}
	g.VPBROADCASTD(g.consts.word(coef.M0), g.mul0())
	g.VPBROADCASTD(g.consts.word(coef.M1), g.mul1())
	g.VPBROADCASTD(at(t, nBlock), g.ctr())
	g.VPBROADCASTD(g.consts.word(uint32(g.lanes/2)), g.step())
	g.VPADDD(lanes, g.ctr(), g.ctr())
	g.MOVL(operand.U32(0x5555), reg.EAX) // the low halves
	g.KMOVW(reg.EAX, reg.K3)
}

// place returns the offsets of a stream's cosines and sines in a run of tiles.
func (g *gen) place(stream int) (cos, sin int) {
	if g.wide {
		return 128 * stream, 128*stream + 64
	}
	return 128*(stream/2) + 32*(stream%2), 128*(stream/2) + 64 + 32*(stream%2)
}

// noiseFill emits a kernel that writes tiles of 32 normals.
func (g *gen) noiseFill() {
	g.begin("noiseFill", "noiseArgs", "tiles of normals.")
	g.noiseSetup()
	g.rowSetup()
	g.tileLoop(func(_ int, streams []*stream) {
		for _, s := range streams {
			s.philox(at(reg.RDI, nLead))
			s.normals()
		}
		interleave(streams)
		for i, s := range streams {
			g.inRow(i, s.r[0], s.r[1])
		}
	})
	g.end()
}

// rowSetup loads the number of tiles in a row and the excess bytes of its last one.
func (g *gen) rowSetup() {
	t := reg.RDI
	g.MOVQ(at(t, nLeft), reg.R8)
	g.MOVQ(at(t, nRow), reg.R9)
	g.MOVQ(at(t, nBack), reg.R10)
}

// inRow writes the results of stream i, and advances after the last one of a tile. A row's last tile is written whole:
// the next row's first tile overwrites the excess.
func (g *gen) inRow(i int, cos, sin reg.VecPhysical) {
	dst, left, next := reg.RDX, reg.R8, reg.R11
	last := true
	place, half := 0, 64
	if !g.wide {
		place, last = 32*(i%2), i%2 == 1
	}
	g.VMOVUPS(cos, at(dst, place))
	g.VMOVUPS(sin, at(dst, place+half))
	if !last {
		return
	}
	g.ADDQ(imm(128), dst)
	g.MOVQ(dst, next)
	g.SUBQ(reg.R10, next)
	g.DECQ(left)
	g.CMOVQEQ(next, dst)
	g.CMOVQEQ(reg.R9, left)
}

// tilesAtOnce is the number of streams for which AVX-512 has registers.
const tilesAtOnce = 4

// tileLoop emits a loop of several tiles at a time in AVX-512, and a loop of single tiles. body gets the streams of its
// tiles.
func (g *gen) tileLoop(body func(tiles int, streams []*stream)) {
	const many = tilesAtOnce
	n := reg.RCX
	if g.wide {
		g.SUBQ(imm(many), n)
		g.JLT(ref("few"))
		g.align()
		g.Label("many")
		body(many, g.streams(many))
		g.SUBQ(imm(many), n)
		g.JGE(ref("many"))
		g.Label("few")
		g.ADDQ(imm(many), n)
		g.JZ(ref("finished"))
	}
	g.Label("one")
	body(1, g.streams(16/g.lanes))
	g.DECQ(n)
	g.JNZ(ref("one"))
	g.Label("finished")
}

// term is the summand of noiseSum.
type term int

const (
	normal term = iota // weight*eps
	square             // weight*(eps^2-1)
	whole              // weight*v, weights and sum in int32; the sum is then scaled
)

// noiseSum emits tiles of the sum of a term over members, in the order of the members.
func (g *gen) noiseSum(of term) {
	g.begin([]string{"noiseSum", "noiseSquare", "noiseWhole"}[of], "noiseArgs", "weighted sums of noise.")
	if of == whole {
		g.integerSetup()
	} else {
		g.noiseSetup()
	}
	t, dst, leads, weights, count := reg.RDI, reg.RDX, reg.R8, reg.R9, reg.R10
	shared, label := g.AllocLocal(2*max(tilesAtOnce*g.lanes/16, 2)*g.bytes()), 0
	g.tileLoop(func(tiles int, streams []*stream) {
		sums := func(i int) [2]operand.Mem { // in memory, since the streams leave no registers
			cos, sin := g.place(i)
			return [2]operand.Mem{at(dst, cos), at(dst, sin)}
		}
		g.MOVQ(at(t, nLeads), leads)
		g.MOVQ(at(t, nWeights), weights)
		g.MOVQ(at(t, nCount), count)
		for i, s := range streams { // all members share the first products
			s.counters()
			s.halves()
			g.VMOVUPS(s.r[3], shared.Offset(2*i*g.bytes()))
			g.VMOVUPS(s.r[2], shared.Offset((2*i+1)*g.bytes()))
			g.zero(s.r[0])
			for _, sum := range sums(i) {
				g.VMOVUPS(s.r[0], sum)
			}
		}
		loop := "member" + string(rune('a'+label))
		label++
		g.align()
		g.Label(loop)
		for i, s := range streams {
			s.do(func() { g.VMOVUPS(shared.Offset(2*i*g.bytes()), s.r[3]) })
			s.do(func() { g.VMOVUPS(shared.Offset((2*i+1)*g.bytes()), s.r[2]) })
			s.rounds(at(leads, 0))
			if of == whole {
				s.integers()
			} else {
				s.normals()
			}
			for j, sum := range sums(i) {
				s.weigh(of, s.r[j], sum)
			}
		}
		interleave(streams)
		g.ADDQ(operand.Imm(16), leads)
		g.ADDQ(operand.Imm(4), weights)
		g.DECQ(count)
		g.JNZ(ref(loop))
		for i, s := range streams {
			for j, sum := range sums(i) {
				if of == whole {
					g.VMOVUPS(sum, s.r[j])
					g.toScale(s.r[j], s.r[4])
					g.VMOVUPS(s.r[j], sum)
				}
			}
		}
		g.ADDQ(imm(128*tiles), dst)
	})
	g.end()
}

// weigh adds the term of a vector of noise to a sum; it overwrites r.
func (s *stream) weigh(of term, r reg.VecPhysical, sum operand.Mem) {
	weights, w := at(reg.R9, 0), s.spare
	if of == square {
		s.do(func() { s.VMULPS(r, r, r) })
		s.addf(-1, r, r)
	}
	switch {
	case of == whole && s.wide:
		s.do(func() { s.VPMULLD_BCST(weights, r, r) })
	case of == whole:
		s.do(func() { s.VPBROADCASTD(weights, w) })
		s.do(func() { s.VPMULLD(w, r, r) })
	case s.wide:
		s.do(func() { s.VMULPS_BCST(weights, r, r) })
	default:
		s.do(func() { s.VBROADCASTSS(weights, w) })
		s.do(func() { s.VMULPS(w, r, r) })
	}
	if of == whole {
		s.do(func() { s.VPADDD(sum, r, r) })
	} else {
		s.do(func() { s.VADDPS(sum, r, r) })
	}
	s.do(func() { s.VMOVUPS(r, sum) })
}
