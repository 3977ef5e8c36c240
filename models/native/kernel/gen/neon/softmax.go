package main

import (
	"fmt"
	"math"

	"brood/models/native/kernel/gen/coef"
)

// Offsets of kernel.softArgs.
const (
	sX, sD, sMax, sSum, sLdx, sLdd, sRows, sUnits, sBits, sLanes, sScale = 0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80
)

// sixteen loads the rest of a row, n%16 floats at R(base), into four registers from v on, with zeros in unused lanes.
// R(left) holds n%16; it overwrites R(left), R(base) and R17.
func (g *asm) sixteen(v vec, base, left int, label string) {
	for i := range vec(4) {
		g.zero(v + i)
	}
	for i := range 16 {
		g.p("CMP $%d, R%d", i, left)
		g.p("BEQ %s", label)
		g.lane(v+vec(i/4), i%4, base)
	}
	g.label(label)
}

// masks loads the words that mark the used lanes of the rest into four registers from v on.
func (g *asm) masks(v vec, at int) {
	g.p("MOVD %d(R0), R17", at)
	for i := range 4 {
		g.ldr(v+vec(i), 17, 16*i)
	}
}

// fold adds the sixteen lanes of four registers from v on by halves, into lane 0 of v; it overwrites t.
func (g *asm) fold(v, t vec) {
	g.fadd(v, v, v+2)
	g.fadd(v+1, v+1, v+3)
	g.fadd(v, v, v+1)
	g.ext8(t, v, v)
	g.fadd(v, v, t)
	g.word(0x7E30D800|uint32(v)<<5|uint32(v), "faddp s%d, v%d", v, v)
}

// softmax emits rows of d = scale*softmax(x), with the maximum and the sum of each row. Sums have sixteen lanes, folded
// by halves.
func (g *asm) softmax() {
	g.begin("softmax", "softArgs", "rows of softmax.")
	const x, d, mx, sum, ldx, ldd, rows, units, rest, px, pd, n, p = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13
	const in, lane, top, mask, t = vec(0), vec(4), vec(16), vec(20), vec(8)
	for _, l := range [][2]int{{sX, x}, {sD, d}, {sMax, mx}, {sSum, sum}, {sLdx, ldx}, {sLdd, ldd}, {sRows, rows},
		{sUnits, units}, {sBits, rest}} {
		g.p("MOVD %d(R0), R%d", l[0], l[1])
	}
	g.table()
	g.masks(mask, sLanes)
	// The number of bits is the number of remaining floats.
	g.p("MOVD $0, R%d", n)
	g.label("count")
	g.p("CBZ R%d, counted", rest)
	g.p("LSR $1, R%d", rest)
	g.p("ADD $1, R%d", n)
	g.p("B count")
	g.label("counted")
	g.p("MOVD R%d, R%d", n, rest)

	pass := func(name string, whole, left func()) {
		g.p("MOVD R%d, R%d", x, px)
		g.p("MOVD R%d, R%d", d, pd)
		g.p("MOVD R%d, R%d", units, n)
		g.p("CBZ R%d, %srest", n, name)
		g.label(name)
		whole()
		g.p("SUBS $1, R%d", n)
		g.p("BNE %s", name)
		g.label(name + "rest")
		g.p("CBZ R%d, %sdone", rest, name)
		left()
		g.label(name + "done")
	}
	exponentials := func() {
		for v := range vec(4) {
			g.fsub(in+v, in+v, top)
			g.bound(in+v, -coef.ExpLimit, t, t+1)
			g.exp(in+v, t, t+1, t+2)
		}
	}
	store := func(name string) { // the rest, from registers to memory, by lanes
		g.p("MOVD R%d, R%d", rest, n)
		for i := range 16 {
			g.p("CMP $%d, R%d", i, n)
			g.p("BEQ %s", name)
			g.word(0x0D9F8000|uint32(i%4>>1)<<30|uint32(i%4&1)<<12|uint32(pd)<<5|uint32(in+vec(i/4)), "st1 v%d[%d], (r%d), 4",
				in+vec(i/4), i%4, pd)
		}
		g.label(name)
	}
	load := func(base int, label string) {
		g.p("MOVD R%d, R%d", rest, n)
		g.sixteen(in, base, n, label)
	}
	g.label("row")
	for v := range vec(4) {
		g.float(top+v, float32(math.Inf(-1)))
	}
	larger := func(v, than vec) { // NaN is not a maximum
		g.op3(opFCmGt, t, v, than)
		g.op3(opBit, than, v, t)
	}
	pass("max", func() {
		for v := range vec(4) {
			g.next(in+v, px)
			larger(in+v, top+v)
		}
	}, func() {
		load(px, "maxloaded")
		for v := range vec(4) {
			g.op3(opFCmGt, t, in+v, top+v)
			g.op3(opAnd, t, t, mask+v)
			g.op3(opBit, top+v, in+v, t)
		}
	})
	for _, h := range []vec{2, 1} {
		for v := range h {
			larger(top+v+h, top+v)
		}
	}
	g.ext8(t+1, top, top)
	larger(t+1, top)
	g.word(0x4E0C0400|uint32(top)<<5|uint32(t+1), "dup v%d, v%d[1]", t+1, top)
	larger(t+1, top)
	g.word(0x4E040400|uint32(top)<<5|uint32(top), "dup v%d, v%d[0]", top, top)
	g.put1(top, mx)

	for v := range vec(4) {
		g.zero(lane + v)
	}
	pass("exp", func() {
		for v := range vec(4) {
			g.next(in+v, px)
		}
		exponentials()
		for v := range vec(4) {
			g.fadd(lane+v, lane+v, in+v)
			g.put(in+v, pd)
		}
	}, func() {
		load(px, "exploaded")
		exponentials()
		for v := range vec(4) {
			g.op3(opAnd, in+v, in+v, mask+v)
			g.fadd(lane+v, lane+v, in+v)
		}
		store("expstored")
	})
	g.fold(lane, t)
	g.put1(lane, sum)
	g.ldr1(t, 0, sScale)
	g.op3(opFDiv, t, t, lane)
	g.word(0x4E040400|uint32(t)<<5|uint32(t), "dup v%d, v%d[0]", t, t)
	pass("scale", func() {
		for v := range 4 {
			g.ldr(in+vec(v), pd, 16*v)
		}
		for v := range vec(4) {
			g.fmul(in+v, in+v, t)
			g.put(in+v, pd)
		}
	}, func() {
		g.p("MOVD R%d, R%d", pd, p)
		load(p, "scaleloaded")
		for v := range vec(4) {
			g.fmul(in+v, in+v, t)
		}
		store("scalestored")
	})
	g.p("ADD R%d, R%d", ldx, x)
	g.p("ADD R%d, R%d", ldd, d)
	g.p("SUBS $1, R%d", rows)
	g.p("BNE row")
	g.ret()
}

// Coefficients of a layer, in the order of kernel.vecArgs.c.
const lMean, lInverse, lSum, lProduct = vec(16), vec(17), vec(18), vec(19)

// layers emits layer normalisation of a row: xhat = (x - mean)*inverse.
func (g *asm) layers() {
	all := []int{vX, vX + 8, vX + 16}
	hat := func(x vec) {
		g.fsub(x, x, lMean)
		g.fmul(x, x, lInverse)
	}
	g.each("layerApply", "xhat*scale + shift.", all, []int{vDst}, g.coefficients(2), func() {
		hat(0)
		g.fmul(3, 0, 1)
		g.fadd(3, 3, 2)
	})
	g.each("layerBack", "the gradient of a row.", all, []int{vDst}, g.coefficients(4), func() {
		hat(0)
		g.fmul(3, 1, 2)
		g.fsub(3, 3, lSum)
		g.fmul(0, 0, lProduct)
		g.fsub(3, 3, 0)
		g.fmul(3, lInverse, 3)
	})
	g.each("layerScale", "the gradient of a scale, added.", all, []int{vDst}, g.coefficients(2), func() {
		hat(0)
		g.fmul(0, 1, 0)
		g.fadd(3, 2, 0)
	})
	g.rowSums("layerSum", "the sum of a row.", 1, 1, func(v vec) { g.fadd(4+v, 4+v, v) })
	g.rowSums("layerSquares", "the sum of squared distances of a row.", 1, 1, func(v vec) {
		g.fsub(v, v, lMean)
		g.fmul(v, v, v)
		g.op3(opAnd, v, v, 24+v)
		g.fadd(4+v, 4+v, v)
	})
	g.rowSums("layerBackSums", "the sums of gradients, and of their products with xhat.", 3, 2, func(v vec) {
		g.fmul(12+v, 12+v, 20+v)
		g.fadd(4+v, 4+v, 12+v)
		hat(v)
		g.fmul(v, 12+v, v)
		g.op3(opAnd, v, v, 24+v)
		g.fadd(8+v, 8+v, v)
	})
}

// rowSums emits one or two sums of a row, of sixteen lanes each, in registers 4 to 7 and 8 to 11. For sixteen floats of
// each input (x, dy, scale), in 0 to 3, 12 to 15 and 20 to 23, body adds a vector; 24 to 27 mark the used lanes.
func (g *asm) rowSums(name, doc string, ins, outs int, body func(v vec)) {
	g.begin(name, "vecArgs", doc)
	const n, units, dst, left = 5, 6, 7, 8
	regs := []vec{0, 12, 20}[:ins]
	g.p("MOVD %d(R0), R%d", vDst, dst)
	for i := range ins {
		g.p("MOVD %d(R0), R%d", vX+8*i, 1+i)
	}
	g.p("MOVD %d(R0), R%d", vN, n)
	g.broadcast(lMean, 0, vC)
	g.broadcast(lInverse, 0, vC+4)
	for v := range vec(4 * outs) {
		g.zero(4 + v)
	}
	for v := range vec(4) {
		g.op3(opFCmEq, 24+v, 4, 4) // all used
	}
	g.p("LSR $4, R%d, R%d", n, units)
	g.p("AND $15, R%d", n)
	g.p("CBZ R%d, rest", units)
	g.label("unit")
	for i, r := range regs {
		for v := range vec(4) {
			g.next(r+v, 1+i)
		}
	}
	for v := range vec(4) {
		body(v)
	}
	g.p("SUBS $1, R%d", units)
	g.p("BNE unit")
	g.label("rest")
	g.p("CBZ R%d, done", n)
	g.masks(24, vLanes)
	for i, r := range regs {
		g.p("MOVD R%d, R%d", n, left)
		g.sixteen(r, 1+i, left, fmt.Sprint("loaded", i))
	}
	for v := range vec(4) {
		body(v)
	}
	g.label("done")
	for i := range outs {
		g.fold(4+vec(4*i), 28)
		g.str1(4+vec(4*i), dst, 4*i)
	}
	g.ret()
}
