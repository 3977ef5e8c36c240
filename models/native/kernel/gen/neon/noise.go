package main

import "brood/models/native/kernel/gen/coef"

// Offsets of kernel.noiseArgs.
const (
	oDst, oTiles, oKeys, oBlock, oKeep, oLimit          = 0, 8, 16, 24, 28, 32
	oLeads, oWeights, oCount, oLeft, oRow, oBack, oLead = 40, 48, 56, 64, 72, 80, 88
)

// Registers of the loops over tiles.
const (
	rDst, rTiles, rKeys, rLeft, rRow, rBack, rLead, rWeights, rCount, rKey = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
)

// A tile of 32 is computed from eight counters, two vectors of four: the words of the first end up in registers 0 to 3,
// those of the second in 8 to 11.
const (
	vMul0, vMul1, vCtr, vKey0, vKey1, vFour = vec(28), vec(29), vec(30), vec(26), vec(27), vec(31)
	vTmp                                    = vec(25)
)

// noiseSetup loads what all noise kernels need; it leaves the counters of the first vector in vCtr.
func (g *asm) noiseSetup() {
	for _, l := range [][2]int{{oDst, rDst}, {oTiles, rTiles}, {oKeys, rKeys}} {
		g.p("MOVD %d(R0), R%d", l[0], l[1])
	}
	g.table()
	g.constant(vMul0, coef.M0)
	g.constant(vMul1, coef.M1)
	g.constant(vFour, 4)
	g.broadcast(vCtr, 0, oBlock)
	g.p("MOVD $counters<>(SB), R17")
	g.ldr(vTmp, 17, 0)
	g.op3(opAdd, vCtr, vCtr, vTmp)
}

// nextWord loads the word at R(rKey), or R(rLead), into all lanes, and advances.
func (g *asm) nextWord(v vec, base int) {
	g.word(0x4DDFC800|uint32(base)<<5|uint32(v), "ld1r v%d, (r%d), 4", v, base)
}

// philox computes the words of eight counters. Registers c+0 to c+3 of each half are the words; 4 to 7 are products.
// rLead points to a kernel.lead, the common part of the first three rounds, and past it afterwards.
func (g *asm) philox() {
	both := []vec{0, 8}
	product := func(c, x, m, p vec) { // the products of register x of a half, in p and p+1
		g.op3(opUMull, c+p, c+x, m)
		g.op3(opUMull2, c+p+1, c+x, m)
	}
	low := func(c, p, d vec) { g.op3(opUzp1, c+d, c+p, c+p+1) }
	high := func(c, p, d vec) { g.op3(opUzp2, c+d, c+p, c+p+1) }
	mix := func(c, d, with vec) { g.op3(opEor, c+d, c+d, with) }
	g.p("ADD $16, R%d, R%d", rKeys, rKey)
	g.mov(0, vCtr)
	g.op3(opAdd, 8, vCtr, vFour)
	g.op3(opAdd, vCtr, 8, vFour)
	// Round 1: c2 and c3 depend on the counter.
	g.nextWord(vKey0, rLead)
	for _, c := range both {
		product(c, 0, vMul0, 4)
		high(c, 4, 2)
		low(c, 4, 3)
		mix(c, 2, vKey0)
	}
	// Round 2: c0, c1 and c2.
	g.nextWord(vKey0, rLead)
	g.nextWord(vKey1, rLead)
	for _, c := range both {
		product(c, 2, vMul1, 4)
		high(c, 4, 0)
		low(c, 4, 1)
		mix(c, 0, vKey0)
		g.op3(opEor, c+2, c+3, vKey1)
	}
	// Round 3: the rest of the lead replaces c3.
	g.nextWord(vKey0, rKey)
	g.nextWord(vKey1, rLead)
	g.p("ADD $4, R%d", rKey)
	round := func(whole bool) { // whole: with a c3, else both use the key
		for _, c := range both {
			product(c, 0, vMul0, 4)
			product(c, 2, vMul1, 6)
			high(c, 6, 0)
			mix(c, 0, c+1)
			low(c, 6, 1)
			mix(c, 0, vKey0)
			high(c, 4, 2)
			if whole {
				mix(c, 2, c+3)
			}
			low(c, 4, 3)
			mix(c, 2, vKey1)
		}
	}
	round(false)
	for range 7 {
		g.nextWord(vKey0, rKey)
		g.nextWord(vKey1, rKey)
		round(true)
	}
}

// normals holds registers: words in u and w become normals, cosines in u, sines in f, with the operations of
// noise.Normals.
type normals struct{ u, f, w, e, q, v, c, sn, v2 vec }

// pairs are two normals computed at a time, from the words of one half.
var pairs = []normals{{16, 17, 18, 19, 20, 21, 22, 23, 24}, {4, 5, 6, 7, 12, 13, 14, 15, 0}}

// normals computes the normals of the half whose words begin at register c: elements 0 to 3 and 4 to 7 of pairs.
func (g *asm) normals(c vec) {
	a, b := pairs[0], pairs[1]
	g.op3(opZip1, a.u, c, c+1)
	g.op3(opZip1, a.w, c+2, c+3)
	g.op3(opZip2, b.u, c, c+1)
	g.op3(opZip2, b.w, c+2, c+3)
	each := func(f func(n normals)) { f(a); f(b) }
	with := func(x float32, op uint32, d, n func(normals) vec) {
		g.float(vTmp, x)
		each(func(p normals) { g.op3(op, d(p), n(p), vTmp) })
	}
	word := func(x uint32, op uint32) {
		g.constant(vTmp, x)
		each(func(p normals) { g.op3(op, p.f, p.f, vTmp) })
	}
	f := func(p normals) vec { return p.f }
	e := func(p normals) vec { return p.e }
	q := func(p normals) vec { return p.q }
	v := func(p normals) vec { return p.v }
	cs := func(p normals) vec { return p.c }
	sn := func(p normals) vec { return p.sn }
	v2 := func(p normals) vec { return p.v2 }
	mad := func(x func(normals) vec, k float32, y func(normals) vec) { // y = y*x + k
		each(func(p normals) { g.fmul(y(p), y(p), x(p)) })
		with(k, opFAdd, y, y)
	}
	each(func(p normals) {
		g.ushr(p.f, p.u, 1)
		g.op2(opSCvtF, p.v, p.w)
	})
	word(1, opOrr)
	with(coef.TwoM31, opFMul, v, v)
	each(func(p normals) {
		g.op2(opSCvtF, p.f, p.f)
		g.fmul(p.v2, p.v, p.v)
	})
	with(coef.Cos[4], opFMul, cs, v2)
	word(coef.RootHalf+31<<23, opSub)
	with(coef.Sin[3], opFMul, sn, v2)
	each(func(p normals) { g.sshr(p.e, p.f, 23) })
	with(coef.Cos[3], opFAdd, cs, cs)
	word(1<<23-1, opAnd)
	with(coef.Sin[2], opFAdd, sn, sn)
	word(coef.RootHalf, opAdd)
	each(func(p normals) { g.op2(opSCvtF, p.e, p.e) })
	with(-1, opFAdd, f, f)
	with(coef.Log[6], opFMul, q, f)
	with(coef.Log[5], opFAdd, q, q)
	for i := 2; i >= 0; i-- {
		mad(v2, coef.Cos[i], cs)
		mad(f, coef.Log[i+2], q)
		if i > 0 {
			mad(v2, coef.Sin[i-1], sn)
		}
	}
	mad(f, coef.Log[1], q)
	mad(f, coef.Log[0], q)
	with(coef.Minus2L, opFMul, e, e)
	each(func(p normals) {
		g.fmul(p.sn, p.v, p.sn)
		g.fmul(p.q, p.f, p.q)
		g.shl(p.w, p.w, 31)
		g.fadd(p.q, p.e, p.q)
		g.op3(opEor, p.c, p.c, p.w)
		g.op2(opFSqrt, p.q, p.q)
		g.fmul(p.u, p.q, p.c)
		g.fmul(p.f, p.q, p.sn)
	})
}

// integers converts the words of a half to noise.Integer of each: elements 0 to 3, 4 to 7, 16 to 19 and 20 to 23 of the
// half, in registers 16 to 19.
func (g *asm) integers(c vec) {
	for i, z := range []uint32{opZip1, opZip2} {
		g.op3(z, 16+vec(i), c, c+1)
		g.op3(z, 18+vec(i), c+2, c+3)
	}
	g.constant(20, 0x01000000)
	g.constant(21, 3)
	for v := vec(16); v < 20; v++ {
		g.op3(opOrr, v, v, 20)
		g.op2(opSAddLPB, v, v)
		g.op2(opSAddLPH, v, v)
		g.op3(opAdd, v, v, 21)
		g.sshr(v, v, 2)
	}
}

// halves are the offsets in bytes of the elements of the two halves of a tile.
var halves = []struct {
	c  vec
	at int
}{{0, 0}, {8, 32}}

// made is a computed vector of a half: its register, and its offset in bytes.
type made struct {
	v  vec
	at int
}

// ofNormals and ofIntegers are the results of normals and integers.
var (
	ofNormals  = []made{{pairs[0].u, 0}, {pairs[1].u, 16}, {pairs[0].f, 64}, {pairs[1].f, 80}}
	ofIntegers = []made{{16, 0}, {17, 16}, {18, 64}, {19, 80}}
)

// tiles emits a loop over tiles. With inRow a row's last tile is written whole, and the next row's first tile
// overwrites the excess.
func (g *asm) tiles(inRow bool, bytes int, body func()) {
	if inRow {
		for _, l := range [][2]int{{oLeft, rLeft}, {oRow, rRow}, {oBack, rBack}} {
			g.p("MOVD %d(R0), R%d", l[0], l[1])
		}
	}
	g.label("tile")
	body()
	g.p("ADD $%d, R%d", bytes, rDst)
	if inRow {
		g.p("SUBS $1, R%d", rLeft)
		g.p("BNE within")
		g.p("SUB R%d, R%d", rBack, rDst)
		g.p("MOVD R%d, R%d", rRow, rLeft)
		g.label("within")
	}
	g.p("SUBS $1, R%d", rTiles)
	g.p("BNE tile")
	g.ret()
}

// lead points rLead at the argument's lead.
func (g *asm) lead() { g.p("ADD $%d, R0, R%d", oLead, rLead) }

// scale converts integers to floats and multiplies by the argument's scale; it overwrites t.
func (g *asm) scale(v, t vec) {
	g.op2(opSCvtF, v, v)
	g.broadcast(t, 0, oKeep)
	g.fmul(v, v, t)
}

func (g *asm) noises() {
	g.text.WriteString("\nDATA counters<>+0(SB)/8, $0x0000000100000000\nDATA counters<>+8(SB)/8, $0x0000000300000002\n" +
		"GLOBL counters<>(SB), RODATA|NOPTR, $16\n")
	g.noiseFill("noiseFill", "tiles of normals.", ofNormals, g.normals, func(vec) {})
	g.noiseFill("noiseFloats", "tiles of whole numbers, scaled.", ofIntegers, g.integers, func(v vec) { g.scale(v, vTmp) })
	g.noiseBytes("noiseBytes", "tiles of whole numbers in bytes.", func(vec) {})
	g.noiseBytes("noiseRounded", "tiles of whole numbers, scaled and rounded, in bytes.", func(v vec) {
		g.scale(v, vTmp)
		g.broadcast(vTmp, 0, oLimit)
		g.fmul(v, v, vTmp)
		g.op2(opFCvtNS, v, v)
		g.constant(vTmp, 127)
		g.op3(opSMin, v, v, vTmp)
		g.constant(vTmp, -127&0xFFFFFFFF)
		g.op3(opSMax, v, v, vTmp)
	})
	g.noiseSum("noiseSum", ofNormals, g.normals, g.fmul, g.fadd)
	square := func(c vec) {
		g.normals(c)
		g.float(vTmp, -1)
		for _, m := range ofNormals {
			g.fmul(m.v, m.v, m.v)
			g.fadd(m.v, m.v, vTmp)
		}
	}
	g.noiseSum("noiseSquare", ofNormals, square, g.fmul, g.fadd)
	g.noiseSum("noiseWhole", ofIntegers, g.integers, func(d, n, m vec) { g.op3(opMul, d, n, m) },
		func(d, n, m vec) { g.op3(opAdd, d, n, m) })
	g.drop()
	g.streamWords()
}

// noiseFill emits a kernel that writes tiles of floats; finish is the last step.
func (g *asm) noiseFill(name, doc string, of []made, make func(c vec), finish func(v vec)) {
	g.begin(name, "noiseArgs", doc)
	g.noiseSetup()
	g.tiles(true, 128, func() {
		g.lead()
		g.philox()
		for _, h := range halves {
			make(h.c)
			for _, m := range of {
				finish(m.v)
				g.str(m.v, rDst, h.at+m.at)
			}
		}
	})
}

// noiseBytes emits a kernel that writes tiles of integers as bytes; finish is the last step.
func (g *asm) noiseBytes(name, doc string, finish func(v vec)) {
	g.begin(name, "noiseArgs", doc)
	g.noiseSetup()
	g.tiles(false, 32, func() {
		g.lead()
		g.philox()
		for i, h := range halves {
			g.integers(h.c)
			for j, m := range ofIntegers { // halfwords of a half: 4 and 5, then bytes of both: 6 and 7
				finish(m.v)
				to := 4 + vec(j/2)
				g.op2([]uint32{opXtnH, opXtnH2}[j%2], to, m.v)
			}
			for j := range vec(2) {
				g.op2([]uint32{opXtnB, opXtnB2}[i], 6+j, 4+j)
			}
		}
		g.str(6, rDst, 0)
		g.str(7, rDst, 16)
	})
}

// noiseSum emits tiles of the sum over members of weight*noise, in the order of the members. A tile's sum is in memory,
// in the first-level cache. Integers have sums in int32, which are then scaled.
func (g *asm) noiseSum(name string, of []made, make func(c vec), times, plus func(d, n, m vec)) {
	g.begin(name, "noiseArgs", "weighted sums of noise.")
	const start = vec(1)
	g.noiseSetup()
	g.tiles(false, 128, func() {
		for _, l := range [][2]int{{oLeads, rLead}, {oWeights, rWeights}, {oCount, rCount}} {
			g.p("MOVD %d(R0), R%d", l[0], l[1])
		}
		g.zero(start)
		for i := range 8 {
			g.str(start, rDst, 16*i)
		}
		g.label("member")
		g.philox()
		for _, h := range halves {
			make(h.c)
			g.word(0x4D40C800|uint32(rWeights)<<5|uint32(vTmp), "ld1r v%d, (r%d)", vTmp, rWeights)
			for _, m := range of {
				times(m.v, m.v, vTmp)
				g.ldr(start, rDst, h.at+m.at)
				plus(start, start, m.v)
				g.str(start, rDst, h.at+m.at)
			}
		}
		g.op3(opSub, vCtr, vCtr, vFour) // the next member has the same counters
		g.op3(opSub, vCtr, vCtr, vFour)
		g.p("ADD $4, R%d", rWeights)
		g.p("SUBS $1, R%d", rCount)
		g.p("BNE member")
		g.op3(opAdd, vCtr, vCtr, vFour)
		g.op3(opAdd, vCtr, vCtr, vFour)
		if name == "noiseWhole" {
			for i := range 8 {
				g.ldr(start, rDst, 16*i)
				g.scale(start, vTmp)
				g.str(start, rDst, 16*i)
			}
		}
	})
}

// drop emits dropout masks: the four words of a counter belong to consecutive elements.
func (g *asm) drop() {
	g.begin("drop", "noiseArgs", "masks of dropout.")
	const limit, keep = vec(24), vec(23)
	g.noiseSetup()
	g.broadcast(limit, 0, oLimit)
	g.broadcast(keep, 0, oKeep)
	g.inOrder(func(out vec) {
		g.ushr(out, out, 8)
		g.op3(opCmHi, out, limit, out)
		g.op3(opBic, out, keep, out)
	})
}

// streamWords emits words in the order of their stream.
func (g *asm) streamWords() {
	g.begin("words", "noiseArgs", "tiles of words.")
	g.noiseSetup()
	g.inOrder(func(vec) {})
}

// inOrder emits a loop over tiles of words in the order of their stream; finish is the last step of four.
func (g *asm) inOrder(finish func(out vec)) {
	const t, out = vec(16), vec(20)
	g.tiles(false, 128, func() {
		g.lead()
		g.philox()
		for i, h := range halves {
			c := h.c
			g.op3(opZip1, t, c, c+2)
			g.op3(opZip2, t+1, c, c+2)
			g.op3(opZip1, t+2, c+1, c+3)
			g.op3(opZip2, t+3, c+1, c+3)
			for j := range 4 {
				z := []uint32{opZip1, opZip2}[j%2]
				g.op3(z, out, t+vec(j/2), t+2+vec(j/2))
				finish(out)
				g.str(out, rDst, 64*i+16*j)
			}
		}
	})
}
