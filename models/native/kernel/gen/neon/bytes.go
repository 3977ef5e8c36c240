package main

import "fmt"

// tStart is an offset of kernel.tileArgs, flagWhole a bit of its flags.
const tStart, flagWhole = 120, 5

// turnedSign is xored with four bytes of A: it converts an unsigned byte a to the signed byte a - 128.
const turnedSign = 0x80808080

// byteTile emits a tile of m rows by 16 columns of a product of bytes: unsigned ones of A by rows, signed ones of B
// packed as [k/4][16][4], exact sums in int32, all columns used. k counts words of four bytes. The sums are converted
// to floats, multiplied by alpha and added to the bias, with the product rounded; or they are stored as int32.
//
// SDOT multiplies signed bytes only, so each byte of A becomes a - 128, and sums start at the correction from
// byteStart.
func (g *asm) byteTile(m int) {
	const nv = 4
	g.begin(fmt.Sprintf("bytes%dx16", m), "tileArgs", "a register tile of a product of bytes.")
	const t, b, c, rowA, k, flags, ldc = 0, 2, 3, 4, 7, 8, 14
	a := []int{1, 9, 10, 11, 12, 13}[:m]
	acc := func(i, v int) vec { return vec(i*nv + v) }
	const av, bv = vec(24), vec(30)
	for _, l := range [][2]int{{tA, a[0]}, {tB, b}, {tStart, c}, {tRowA, rowA}, {tK, k}, {tFlags, flags}, {tLdc, ldc}} {
		g.p("MOVD %d(R%d), R%d", l[0], t, l[1])
	}
	g.table()
	for v := range nv {
		g.ldr(acc(0, v), c, 16*v)
		for i := 1; i < m; i++ {
			g.mov(acc(i, v), acc(0, v))
		}
	}
	for i := 1; i < m; i++ {
		g.p("ADD R%d, R%d, R%d", rowA, a[i-1], a[i])
	}
	// words multiplies n words of each row, loaded by load.
	words := func(n int, load func(v vec, base int)) {
		for i, p := range a {
			load(av+vec(i), p)
		}
		g.constant(bv, turnedSign)
		for i := range m {
			g.op3(opEor, av+vec(i), av+vec(i), bv)
		}
		for u := range n {
			for v := 0; v < nv; v += 2 {
				g.pair(bv, bv+1, b, 16*v)
				for i := range m {
					g.sdotLane(acc(i, v), bv, av+vec(i), u)
					g.sdotLane(acc(i, v+1), bv+1, av+vec(i), u)
				}
			}
			g.p("ADD $64, R%d", b)
		}
	}
	g.p("SUBS $4, R%d", k)
	g.p("BLT rest")
	g.label("four")
	words(4, g.next)
	g.p("SUBS $4, R%d", k)
	g.p("BGE four")
	g.label("rest")
	g.p("ADDS $4, R%d", k)
	g.p("BEQ done")
	g.label("one")
	words(1, g.next1)
	g.p("SUBS $1, R%d", k)
	g.p("BNE one")

	g.label("done")
	const alpha, bias = vec(24), vec(26)
	g.p("TBNZ $%d, R%d, whole", flagWhole, flags)
	g.broadcast(alpha, t, tAlpha)
	g.p("MOVD %d(R%d), R%d", tBias, t, b)
	for v := range nv {
		g.ldr(bias+vec(v), b, 16*v)
		for i := range m {
			g.op2(opSCvtF, acc(i, v), acc(i, v))
			g.fmul(acc(i, v), acc(i, v), alpha)
			g.fadd(acc(i, v), acc(i, v), bias+vec(v))
		}
	}
	g.label("whole")
	g.p("MOVD %d(R%d), R%d", tC, t, c)
	for i := range m {
		for v := range nv {
			g.str(acc(i, v), c, 16*v)
		}
		if i < m-1 {
			g.p("ADD R%d, R%d", ldc, c)
		}
	}
	g.ret()
}

// byteStart emits the computation of kernel.tileArgs.start: 128 times the sum of each column of B.
func (g *asm) byteStart() {
	g.begin("byteStart", "tileArgs", "128 times the sums of the columns of a panel of bytes.")
	const b, start, k = 2, 3, 7
	const bv, by = vec(4), vec(8)
	for _, l := range [][2]int{{tB, b}, {tStart, start}, {tK, k}} {
		g.p("MOVD %d(R0), R%d", l[0], l[1])
	}
	g.table()
	g.constant(by, 0x40404040) // 64, since 128 is not a signed byte
	for v := range vec(4) {
		g.zero(v)
	}
	g.label("word")
	for v := range vec(4) {
		g.next(bv+v, b)
		g.sdot(v, bv+v, by)
	}
	g.p("SUBS $1, R%d", k)
	g.p("BNE word")
	for v := range vec(4) {
		g.shl(v, v, 1)
		g.str(v, start, 16*int(v))
	}
	g.ret()
}

// sdot adds to each word of d the products of the four bytes of a word of n and of m; sdotLane uses m[lane].
func (g *asm) sdot(d, n, m vec) { g.op3(opSDot, d, n, m) }

func (g *asm) sdotLane(d, n, m vec, lane int) {
	g.word(0x4F80E000|uint32(lane&1)<<21|uint32(lane>>1)<<11|uint32(m)<<16|uint32(n)<<5|uint32(d),
		"sdot v%d, v%d, v%d[%d]", d, n, m, lane)
}
