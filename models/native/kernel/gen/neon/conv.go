package main

import "fmt"

// Offsets of kernel.convArgs.
const (
	cA, cB, cC, cBias, cTab, cGate            = 0, 8, 16, 24, 32, 40
	cLdc, cK, cPixels, cStepB, cStepC, cFlags = 48, 56, 64, 72, 80, 88
)

// convRows is the number of channels of the largest tile.
const convRows = 12

// conv emits a tile of m channels by two vectors of samples, for a run of pixels. The table holds, for every k, the row
// of A, which is packed, and the offset of B's.
func (g *asm) conv(m int) {
	g.begin(fmt.Sprintf("conv%d", m), "convArgs", "a tile of a convolution, for a run of pixels.")
	const t, a, b, c, k, tab, ra, rb, wide, flags, p, ldc, gate, pixels = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13
	acc := func(i, v int) vec { return vec(2*i + v) }
	const av, bv = vec(24), vec(30)
	for _, l := range [][2]int{{cA, a}, {cB, b}, {cC, c}, {cFlags, flags}, {cLdc, ldc}, {cPixels, pixels}} {
		g.p("MOVD %d(R%d), R%d", l[0], t, l[1])
	}
	g.p("MOVD $%d, R%d", 4*m, wide)
	g.label("pixel")
	for i := range 2 * m {
		g.zero(vec(i))
	}
	g.p("MOVD %d(R%d), R%d", cTab, t, tab)
	g.p("MOVD %d(R%d), R%d", cK, t, k)
	g.p("CBZ R%d, done", k)
	g.label("tap")
	g.p("MOVW 0(R%d), R%d", tab, ra)
	g.p("MOVW 4(R%d), R%d", tab, rb)
	g.p("ADD $8, R%d", tab)
	g.p("MADD R%d, R%d, R%d, R%d", wide, a, ra, ra) // a + ra*wide
	g.p("ADD R%d, R%d", b, rb)
	g.pair(bv, bv+1, rb, 0)
	g.few(av, m, ra)
	for i := range m {
		x, lane := fewLane(av, m, i)
		for v := range 2 {
			g.fmlaLane(acc(i, v), bv+vec(v), x, lane)
		}
	}
	g.p("SUBS $1, R%d", k)
	g.p("BNE tap")
	g.label("done")

	const x = vec(30)
	g.unless(flags, flagBias, "unbiased")
	g.p("MOVD %d(R%d), R%d", cBias, t, p)
	for i := range m {
		g.broadcast(x, p, 4*i)
		for v := range 2 {
			g.fadd(acc(i, v), acc(i, v), x)
		}
	}
	g.label("unbiased")
	g.unless(flags, flagGate, "open")
	g.p("MOVD %d(R%d), R%d", cC, t, p) // no pointer past the gate may be in memory, where the collector would find it
	g.p("SUB R%d, R%d, R%d", p, c, gate)
	g.p("MOVD %d(R%d), R%d", cGate, t, p)
	g.p("ADD R%d, R%d", p, gate)
	for i := range m {
		for v := range 2 {
			g.ldr(x, gate, 16*v)
			g.gate(acc(i, v), x)
		}
		g.p("ADD R%d, R%d", ldc, gate)
	}
	g.label("open")
	g.unless(flags, flagReLU, "linear")
	for i := range 2 * m {
		g.rectify(vec(i), x)
	}
	g.label("linear")
	g.p("MOVD R%d, R%d", c, p)
	for i := range m {
		for v := range 2 {
			g.str(acc(i, v), p, 16*v)
		}
		g.p("ADD R%d, R%d", ldc, p)
	}
	g.p("MOVD %d(R%d), R%d", cStepB, t, ra)
	g.p("MOVD %d(R%d), R%d", cStepC, t, rb)
	g.p("ADD R%d, R%d", ra, b)
	g.p("ADD R%d, R%d", rb, c)
	g.p("SUBS $1, R%d", pixels)
	g.p("BNE pixel")
	g.ret()
}

// Offsets of kernel.dotArgs.
const (
	dA, dB, dC, dList, dEntries      = 0, 8, 16, 24, 32
	dLda, dLdb, dStepB, dLdcA, dLdcB = 40, 48, 56, 64, 72
	dAlpha, dSums                    = 96, 100
	dQuad                            = 4 * 28 // bytes of the sums of one quad
)

// dotShapes are the rows of A and of B of the largest tiles.
var dotShapes = [][2]int{{5, 5}, {5, 3}, {5, 1}}

// dot emits tiles of m x n dot products along segments of pixels: C[i][j] += alpha * sum of A[i]*B[j]. A dot product
// has sixteen sums, four of them per pass: four passes over data in the first-level cache. Their order is the order of
// kernel.sixteen.
func (g *asm) dot(m, n int) {
	g.begin(fmt.Sprintf("dot%dx%d", m, n), "dotArgs", "tiles of dot products.")
	const t, stepB, pixels, list, count, pa, pb, place, lda, ldb, quad, again, entries = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9,
		10, 11, 12
	rowA, rowB := []int{pa, 13, 14, 15, 16}, []int{pb, 19, 20, 21, 22}
	const sums = 23
	acc := func(i, j int) vec { return vec(n*i + j) }
	bv, x := vec(m*n), vec(m*n+n)
	for _, l := range [][2]int{{dLda, lda}, {dLdb, ldb}, {dStepB, stepB}, {dList, list}, {dEntries, entries}} {
		g.p("MOVD %d(R%d), R%d", l[0], t, l[1])
	}
	g.label("entry")
	g.p("MOVW 0(R%d), R%d", list, place)
	g.p("MOVD R%d, R%d", list, again)
	g.p("MOVD $0, R%d", quad)
	g.p("ADD $%d, R%d, R%d", dSums, t, sums)
	g.label("pass")
	for i := range m * n {
		g.zero(vec(i))
	}
	g.p("MOVW 4(R%d), R%d", again, count)
	g.p("ADD $8, R%d, R%d", again, list)
	g.label("segment")
	g.p("MOVW 0(R%d), R%d", list, pa)
	g.p("MOVW 4(R%d), R%d", list, pb)
	g.p("MOVW 8(R%d), R%d", list, pixels)
	for _, o := range [][2]int{{dA, pa}, {dB, pb}} {
		g.p("MOVD %d(R%d), R17", o[0], t)
		g.p("ADD R17, R%d", o[1])
		g.p("ADD R%d, R%d", quad, o[1])
	}
	for i := 1; i < m; i++ {
		g.p("ADD R%d, R%d, R%d", lda, rowA[i-1], rowA[i])
	}
	for j := 1; j < n; j++ {
		g.p("ADD R%d, R%d, R%d", ldb, rowB[j-1], rowB[j])
	}
	g.label("pixel")
	for _, half := range []int{0, 64} {
		for j := range n {
			g.ldr(bv+vec(j), rowB[j], half)
		}
		for i := range m {
			g.ldr(x, rowA[i], half)
			for j := range n {
				g.fmla(acc(i, j), x, bv+vec(j))
			}
		}
	}
	for i := range m {
		g.p("ADD $128, R%d", rowA[i])
	}
	for j := range n {
		g.p("ADD R%d, R%d", stepB, rowB[j])
	}
	g.p("SUBS $1, R%d", pixels)
	g.p("BNE pixel")
	g.p("ADD $12, R%d", list)
	g.p("SUBS $1, R%d", count)
	g.p("BNE segment")
	for i := range m * n { // (s0 + s2) + (s1 + s3)
		g.ext8(x, vec(i), vec(i))
		g.fadd(x, vec(i), x)
		g.word(0x7E30D800|uint32(x)<<5|uint32(x), "faddp s%d, v%d", x, x)
		g.str1(x, sums, 4*i)
	}
	g.p("ADD $%d, R%d", dQuad, sums)
	g.p("ADD $16, R%d", quad)
	g.p("CMP $64, R%d", quad)
	g.p("BNE pass")

	const c, p, ldcA, ldcB = pa, pb, 13, 14
	g.p("SUB $%d, R%d", 4*dQuad, sums)
	g.p("MOVD %d(R%d), R%d", dC, t, c)
	g.p("ADD R%d, R%d", place, c)
	g.p("MOVD %d(R%d), R%d", dLdcA, t, ldcA)
	g.p("MOVD %d(R%d), R%d", dLdcB, t, ldcB)
	g.ldr1(4, t, dAlpha)
	for i := range m {
		g.p("MOVD R%d, R%d", c, p)
		for j := range n {
			for q := range 4 {
				g.ldr1(vec(q), sums, q*dQuad+4*(n*i+j))
			}
			g.fadd(0, 0, 2)
			g.fadd(1, 1, 3)
			g.fadd(0, 0, 1)
			g.ldr1(1, p, 0)
			g.fmla(1, 0, 4)
			g.str1(1, p, 0)
			if j < n-1 {
				g.p("ADD R%d, R%d", ldcB, p)
			}
		}
		if i < m-1 {
			g.p("ADD R%d, R%d", ldcA, c)
		}
	}
	g.p("SUBS $1, R%d", entries)
	g.p("BNE entry")
	g.ret()
}
