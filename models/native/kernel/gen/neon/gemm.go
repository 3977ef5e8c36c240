package main

import "fmt"

// Offsets of kernel.tileArgs.
const (
	tA, tB, tC, tGate, tBias           = 0, 8, 16, 24, 32
	tRowA, tStepA, tLdb, tLdc, tLdGate = 40, 48, 56, 64, 72
	tK, tFlags, tAlpha                 = 80, 88, 112
)

// Bits of the flags of kernel.tileArgs and kernel.convArgs.
const (
	flagLoad, flagBias, flagGate, flagAdd, flagReLU = 0, 1, 2, 3, 4
)

// tileRows is the number of rows of the largest tile: with four vectors of columns they take 24 of the 32 registers.
const tileRows = 6

// tile emits a register tile of m rows by nv vectors of C, all columns of which are used. Element (i, k) of A is at a +
// i*rowA + k*stepA; one of the two strides is an element. Each element of C is one chain of multiply-adds in the order
// of k.
func (g *asm) tile(m, nv int) {
	g.begin(fmt.Sprintf("tile%dx%d", m, 4*nv), "tileArgs", "a register tile of a product.")
	const t, b, c, rowA, step, ldb, k, flags, ldc = 0, 2, 3, 4, 5, 6, 7, 8, 14
	a := []int{1, 9, 10, 11, 12, 13}[:m]
	acc := func(i, v int) vec { return vec(i*nv + v) }
	const av, bv = vec(24), vec(30)
	for _, l := range [][2]int{{tA, a[0]}, {tB, b}, {tRowA, rowA}, {tStepA, step}, {tLdb, ldb}, {tK, k}, {tFlags, flags},
		{tLdc, ldc}} {
		g.p("MOVD %d(R%d), R%d", l[0], t, l[1])
	}
	for i := range m * nv {
		g.zero(vec(i))
	}
	rows := func(base, stride int, body func(i, v int)) {
		for i := range m {
			for v := range nv {
				body(i, v)
			}
			if i < m-1 {
				g.p("ADD R%d, R%d", stride, base)
			}
		}
	}
	g.unless(flags, flagLoad, "start")
	g.p("MOVD %d(R%d), R%d", tC, t, c)
	rows(c, ldc, func(i, v int) { g.ldr(acc(i, v), c, 16*v) })
	g.label("start")
	g.p("CBZ R%d, done", k)
	g.p("CMP $4, R%d", step)
	g.p("BNE columns")

	// A by rows: four steps of k are a vector of each row.
	for i := 1; i < m; i++ {
		g.p("ADD R%d, R%d, R%d", rowA, a[i-1], a[i])
	}
	multiply := func(a func(i int) (vec, int)) {
		for v := 0; v < nv; v += 2 {
			g.pair(bv, bv+1, b, 16*v)
			for i := range m {
				x, lane := a(i)
				g.fmlaLane(acc(i, v), bv, x, lane)
				g.fmlaLane(acc(i, v+1), bv+1, x, lane)
			}
		}
		g.p("ADD R%d, R%d", ldb, b)
	}
	g.p("SUBS $4, R%d", k)
	g.p("BLT rowrest")
	g.label("rowfour")
	for i, p := range a {
		g.next(av+vec(i), p)
	}
	for u := range 4 {
		multiply(func(i int) (vec, int) { return av + vec(i), u })
	}
	g.p("SUBS $4, R%d", k)
	g.p("BGE rowfour")
	g.label("rowrest")
	g.p("ADDS $4, R%d", k)
	g.p("BEQ done")
	g.label("rowone")
	for i, p := range a {
		g.next1(av+vec(i), p)
	}
	multiply(func(i int) (vec, int) { return av + vec(i), 0 })
	g.p("SUBS $1, R%d", k)
	g.p("BNE rowone")
	g.p("B done")

	// A by columns: the tile's rows are adjacent.
	g.label("columns")
	column := func() {
		g.few(av, m, a[0])
		g.p("ADD R%d, R%d", step, a[0])
		multiply(func(i int) (vec, int) { return fewLane(av, m, i) })
	}
	g.p("SUBS $2, R%d", k)
	g.p("BLT columnrest")
	g.label("columntwo")
	column()
	column()
	g.p("SUBS $2, R%d", k)
	g.p("BGE columntwo")
	g.label("columnrest")
	g.p("ADDS $2, R%d", k)
	g.p("BEQ done")
	column()

	g.label("done")
	const x, y = vec(24), vec(31)
	g.unless(flags, flagBias, "unbiased")
	g.p("MOVD %d(R%d), R%d", tBias, t, b)
	for v := range nv {
		g.ldr(x, b, 16*v)
		for i := range m {
			g.fadd(acc(i, v), acc(i, v), x)
		}
	}
	g.label("unbiased")
	g.unless(flags, flagGate, "open")
	g.p("MOVD %d(R%d), R%d", tGate, t, b)
	g.p("MOVD %d(R%d), R%d", tLdGate, t, ldb)
	rows(b, ldb, func(i, v int) {
		g.ldr(x, b, 16*v)
		g.gate(acc(i, v), x)
	})
	g.label("open")
	g.unless(flags, flagAdd, "plain")
	g.p("MOVD %d(R%d), R%d", tC, t, c)
	g.broadcast(y, t, tAlpha)
	rows(c, ldc, func(i, v int) {
		g.ldr(x, c, 16*v)
		g.fmla(x, acc(i, v), y)
		g.mov(acc(i, v), x)
	})
	g.label("plain")
	g.unless(flags, flagReLU, "linear")
	for i := range m * nv {
		g.rectify(vec(i), x)
	}
	g.label("linear")
	g.p("MOVD %d(R%d), R%d", tC, t, c)
	rows(c, ldc, func(i, v int) { g.str(acc(i, v), c, 16*v) })
	g.ret()
}

// turn emits the transposition of four rows, of whole blocks of four columns.
func (g *asm) turn() {
	const dst, ldd, lds, cols, s0, s1, s2, s3 = 1, 2, 3, 4, 5, 6, 7, 8
	g.begin("turn", "moveArgs", "four rows turned, of whole blocks of four columns.")
	for _, l := range [][2]int{{0, dst}, {8, s0}, {16, ldd}, {24, lds}, {40, cols}} {
		g.p("MOVD %d(R0), R%d", l[0], l[1])
	}
	for i := s1; i <= s3; i++ {
		g.p("ADD R%d, R%d, R%d", lds, i-1, i)
	}
	g.label("block")
	for i := range 4 {
		g.next(vec(i), s0+i)
	}
	g.op3(opTrn1, 4, 0, 1)
	g.op3(opTrn2, 5, 0, 1)
	g.op3(opTrn1, 6, 2, 3)
	g.op3(opTrn2, 7, 2, 3)
	g.op3(opZip1D, 0, 4, 6)
	g.op3(opZip1D, 1, 5, 7)
	g.op3(opZip2D, 2, 4, 6)
	g.op3(opZip2D, 3, 5, 7)
	for i := range 4 {
		g.str(vec(i), dst, 0)
		g.p("ADD R%d, R%d", ldd, dst)
	}
	g.p("SUBS $4, R%d", cols)
	g.p("BNE block")
	g.ret()
}

// issue emits a loop of independent instructions of a kind without memory access, which measures the limit of the
// ports.
func (g *asm) issue(kind, what string, emit func(d, n, m vec)) {
	fmt.Fprintf(&g.text, "\n// func issue%[1]sNEON(turns int)\nTEXT ·issue%[1]sNEON(SB), NOSPLIT, $0-8\n", kind)
	fmt.Fprintf(&g.stubs, "\n// issue%[1]sNEON: 24 %[2]s a turn, without memory.\nfunc issue%[1]sNEON(turns int)\n",
		kind, what)
	g.p("MOVD turns+0(FP), R1")
	for i := range 26 {
		g.zero(vec(i))
	}
	g.label("turn")
	for i := range 24 {
		emit(vec(i), 24, 25)
	}
	g.p("SUBS $1, R1")
	g.p("BNE turn")
	g.ret()
}

// chain emits a loop of dependent additions.
func (g *asm) chain() {
	fmt.Fprintf(&g.text, "\n// func chain(turns int)\nTEXT ·chain(SB), NOSPLIT, $0-8\n")
	fmt.Fprintf(&g.stubs, "\n// chain: 32 additions a turn that wait for each other.\nfunc chain(turns int)\n")
	g.p("MOVD turns+0(FP), R1")
	g.p("MOVD R1, R2")
	g.label("link")
	for range 32 {
		g.p("ADD R2, R2")
	}
	g.p("SUBS $1, R1")
	g.p("BNE link")
	g.ret()
}
