package main

import "fmt"

// Offsets of kernel.poolArgs.
const (
	pX, pY, pDx, pDy, pTab, pTaps        = 0, 8, 16, 24, 32, 40
	pCols, pRows, pStepX, pNextX, pScale = 48, 56, 64, 72, 80
	pA, pB, pFloor, pNormed              = 84, 88, 92, 96
)

// Registers of a loop over windows: the slices, then offsets and counters.
const (
	wx, wy, wdx, wdy, wtab, wtaps            = 1, 2, 3, 4, 5, 6
	wcols, wrows, wstep, wnext, wcol, wentry = 7, 8, 9, 10, 11, 12
	wleft, wfrom, wto                        = 13, 14, 15
)

// loader reads a vector of x.
type loader func(d vec, base, off int)

// window emits a loop over the windows of one channel and, in each, over its taps, for half of the samples at a time.
// begin and end process a window, tap a tap, with wfrom at its samples of x and wto at those of dx. With normed the
// loop is emitted twice: over x, and over normApply of x.
func (g *asm) window(name, doc string, used []int, scaled, normed bool, begin, tap func(v int, load loader),
	end func(v int)) {
	g.begin(name, "poolArgs", doc)
	offs := map[int]int{wx: pX, wy: pY, wdx: pDx, wdy: pDy}
	for _, r := range used {
		g.p("MOVD %d(R0), R%d", offs[r], r)
	}
	for _, l := range [][2]int{{pTab, wtab}, {pTaps, wtaps}, {pCols, wcols}, {pRows, wrows}, {pStepX, wstep},
		{pNextX, wnext}} {
		g.p("MOVD %d(R0), R%d", l[0], l[1])
	}
	if scaled {
		g.broadcast(31, 0, pScale)
	}
	if !normed {
		g.windows(used, "", g.ldr, begin, tap, end)
		return
	}
	const a, b, floor, below = vec(28), vec(29), vec(30), vec(27)
	g.p("MOVD %d(R0), R17", pNormed)
	g.p("CBNZ R17, normed")
	g.windows(used, "", g.ldr, begin, tap, end)
	g.label("normed")
	g.broadcast(a, 0, pA)
	g.broadcast(b, 0, pB)
	g.broadcast(floor, 0, pFloor)
	g.windows(used, "normed", func(d vec, base, off int) {
		g.ldr(d, base, off)
		g.fmul(d, a, d)
		g.fadd(d, d, b)
		g.op3(opFCmGt, below, floor, d)
		g.op3(opBit, d, floor, below)
	}, begin, tap, end)
}

// windows emits one form of these loops.
func (g *asm) windows(used []int, form string, load loader, begin, tap func(v int, load loader), end func(v int)) {
	inner := func(r int) bool { return r == wx || r == wdx }
	advance := func(by string, of func(r int) bool) {
		for _, r := range used {
			if of(r) {
				g.p("ADD %s, R%d", by, r)
			}
		}
	}
	g.label("row" + form)
	g.p("MOVD R%d, R%d", wcols, wcol)
	g.label("window" + form)
	for half, label := range []string{"low" + form, "high" + form} {
		for v := range 4 {
			begin(v, load)
		}
		g.p("MOVD R%d, R%d", wtab, wentry)
		g.p("MOVD R%d, R%d", wtaps, wleft)
		g.label(label)
		g.p("MOVW (R%d), R17", wentry)
		g.p("ADD $4, R%d", wentry)
		for _, r := range used {
			switch r {
			case wx:
				g.p("ADD R17, R%d, R%d", wx, wfrom)
			case wdx:
				g.p("ADD R17, R%d, R%d", wdx, wto)
			}
		}
		for v := range 4 {
			tap(v, load)
		}
		g.p("SUBS $1, R%d", wleft)
		g.p("BNE %s", label)
		for v := range 4 {
			end(v)
		}
		if half == 0 {
			advance("$64", func(int) bool { return true })
		}
	}
	advance("$64", func(r int) bool { return !inner(r) })
	g.p("SUB $64, R%d, R17", wstep)
	advance("R17", inner)
	g.p("SUBS $1, R%d", wcol)
	g.p("BNE window%s", form)
	advance(fmt.Sprint("R", wnext), inner)
	g.p("SUBS $1, R%d", wrows)
	g.p("BNE row%s", form)
	g.ret()
}

// pools emits pooling.
func (g *asm) pools() {
	nothing := func(int) {}
	const t, u = vec(16), vec(17)
	g.window("maxPool", "the maximum of each window.", []int{wx, wy}, false, true,
		func(v int, load loader) { load(vec(v), wx, 16*v) }, func(v int, load loader) {
			load(t, wfrom, 16*v)
			g.op3(opFCmGt, u, vec(v), t)
			g.op3(opBif, vec(v), t, u)
		}, func(v int) { g.str(vec(v), wy, 16*v) })
	for _, add := range []bool{true, false} {
		name, doc := "maxPoolBack", "the gradient of the maxima, added."
		if !add {
			name, doc = "maxPoolSet", "the gradient of the maxima of windows that do not meet."
		}
		g.window(name, doc, []int{wx, wy, wdx, wdy}, false, true, func(v int, _ loader) {
			g.ldr(vec(v), wdy, 16*v)
			g.ldr(vec(4+v), wy, 16*v)
		}, func(v int, load loader) {
			load(t, wfrom, 16*v)
			g.op3(opFCmEq, t, t, vec(4+v))
			g.op3(opAnd, u, vec(v), t)
			g.op3(opBic, vec(v), vec(v), t)
			if add {
				g.ldr(t, wto, 16*v)
				g.fadd(u, t, u)
			}
			g.str(u, wto, 16*v)
		}, nothing)
	}
	g.window("meanPool", "the mean of each window.", []int{wx, wy}, true, false, func(v int, _ loader) { g.zero(vec(v)) },
		func(v int, _ loader) {
			g.ldr(t, wfrom, 16*v)
			g.fadd(vec(v), vec(v), t)
		}, func(v int) {
			g.fmul(vec(v), vec(v), 31)
			g.str(vec(v), wy, 16*v)
		})
	g.window("meanPoolBack", "the gradient of the means.", []int{wdx, wdy}, true, false, func(v int, _ loader) {
		g.ldr(vec(v), wdy, 16*v)
		g.fmul(vec(v), vec(v), 31)
	}, func(v int, _ loader) {
		g.ldr(t, wto, 16*v)
		g.fadd(t, t, vec(v))
		g.str(t, wto, 16*v)
	}, nothing)
}
