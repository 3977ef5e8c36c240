package main

// Offsets of kernel.settleArgs after its vecArgs; rounding shifts need no half.
const sSign, sShift, sLo, sHi = 120, 128, 132, 136

// settle emits kernel.Settling, into bytes or, if wide, into words, for the columns that form whole vectors.
func (g *asm) settle(wide bool) {
	name, doc := "settle", "bytes of sums."
	if wide {
		name, doc = "settleWide", "words of sums."
	}
	g.begin(name, "settleArgs", doc)
	const dst, x, y, bias, rows, ld, cols, rest, to, b, left = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
	const a, t, sign, shift, lo, hi = vec(0), vec(1), vec(16), vec(17), vec(18), vec(19)
	for _, l := range [][2]int{{vDst, dst}, {vX, x}, {vX + 8, y}, {vX + 16, bias}, {vRows, rows}, {vLd, ld}, {vN, cols}} {
		g.p("MOVD %d(R0), R%d", l[0], l[1])
	}
	for _, l := range []struct {
		v  vec
		at int
	}{{sign, sSign}, {shift, sShift}, {lo, sLo}, {hi, sHi}} {
		g.broadcast(l.v, 0, l.at)
	}
	g.zero(t)
	g.op3(opSub, shift, t, shift)
	g.p("AND $3, R%d, R%d", cols, rest)
	g.p("LSL $2, R%d, R%d", rest, rest)
	g.p("LSR $2, R%d, R%d", cols, cols)
	g.label("row")
	g.p("MOVD R%d, R%d", dst, to)
	g.p("MOVD R%d, R%d", bias, b)
	g.p("MOVD R%d, R%d", cols, left)
	g.label("four")
	g.next(a, y)
	g.op3(opMul, a, a, sign)
	g.next(t, x)
	g.op3(opAdd, a, a, t)
	g.op3(opSRShl, a, a, shift)
	g.next(t, b)
	g.op3(opAdd, a, a, t)
	g.op3(opSMax, a, a, lo)
	g.op3(opSMin, a, a, hi)
	if wide {
		g.put(a, to)
	} else {
		g.op2(opXtnH, a, a)
		g.op2(opXtnB, a, a)
		g.put1(a, to)
	}
	g.p("SUBS $1, R%d", left)
	g.p("BNE four")
	g.p("ADD R%d, R%d", rest, x)
	g.p("ADD R%d, R%d", rest, y)
	g.p("ADD R%d, R%d", ld, dst)
	g.p("SUBS $1, R%d", rows)
	g.p("BNE row")
	g.ret()
}
