package main

// Offsets of kernel.normArgs.
const (
	nX, nDy, nOut, nSums, nCoef             = 0, 8, 16, 24, 40
	nRows, nChannels, nPlane, nFloor, nLive = 88, 96, 104, 112, 128
)

// Coefficients of a channel, in the order of kernel.normArgs.
const (
	coefMean, coefA, coefB, coefK, coefC, coefD = 0, 1, 2, 3, 4, 5
)

// channels is a loop over channels; within it, a pass over the rows for each half of the 32 samples, four vectors at a
// time.
type channels struct {
	name, doc  string
	coefs      []int  // of the channel, in registers from 24 on
	floor      bool   // is in register 30
	sums       int    // number of sums, in registers 0 to 3 and 4 to 7
	x, dy, out bool   // the slices that are used
	live       bool   // registers 16 to 19 are masks of existing samples
	row        func() // works on half a row, at cpx, cpdy and cpout
}

// Registers that hold pointers in a loop over channels.
const (
	cx, cdy, cout, crows, cleft, coff  = 1, 2, 3, 4, 5, 6
	cchan, cplane, chalf, cp, cs0, cs1 = 7, 8, 9, 10, 11, 12
	cpx, cpdy, cpout                   = 13, 14, 15
)

func (g *asm) channels(c channels) {
	g.begin(c.name, "normArgs", c.doc)
	for _, l := range []struct {
		on     bool
		off, r int
	}{{c.x, nX, cx}, {c.dy, nDy, cdy}, {c.out, nOut, cout}, {true, nRows, crows}, {true, nChannels, cchan},
		{true, nPlane, cplane}, {c.sums > 0, nSums, cs0}, {c.sums > 1, nSums + 8, cs1}} {
		if l.on {
			g.p("MOVD %d(R0), R%d", l.off, l.r)
		}
	}
	if c.floor {
		g.broadcast(30, 0, nFloor)
	}
	g.p("MOVD $0, R%d", coff)
	g.label("channel")
	for i, at := range c.coefs {
		g.p("MOVD %d(R0), R%d", nCoef+8*at, cp)
		g.p("ADD R%d, R%d", coff, cp)
		g.broadcast(vec(24+i), cp, 0)
	}
	g.p("MOVD $0, R%d", chalf)
	g.label("half")
	if c.live {
		g.p("MOVD %d(R0), R%d", nLive, cp)
		g.p("ADD R%d, R%d", chalf, cp)
		for v := range 4 {
			g.ldr(vec(16+v), cp, 16*v)
		}
	}
	for i := range c.sums {
		for v := range 4 {
			g.ldr(vec(4*i+v), cs0+i, 16*v)
		}
	}
	for _, l := range []struct {
		on      bool
		from, p int
	}{{c.x, cx, cpx}, {c.dy, cdy, cpdy}, {c.out, cout, cpout}} {
		if l.on {
			g.p("ADD R%d, R%d, R%d", chalf, l.from, l.p)
		}
	}
	g.p("MOVD R%d, R%d", crows, cleft)
	g.label("row")
	c.row()
	for _, l := range []struct {
		on bool
		p  int
	}{{c.x, cpx}, {c.dy, cpdy}, {c.out, cpout}} {
		if l.on {
			g.p("ADD $128, R%d", l.p)
		}
	}
	g.p("SUBS $1, R%d", cleft)
	g.p("BNE row")
	for i := range c.sums {
		for v := range 4 {
			g.str(vec(4*i+v), cs0+i, 16*v)
		}
		g.p("ADD $64, R%d", cs0+i)
	}
	g.p("ADD $64, R%d", chalf)
	g.p("CMP $128, R%d", chalf)
	g.p("BNE half")
	for _, l := range []struct {
		on bool
		p  int
	}{{c.x, cx}, {c.dy, cdy}, {c.out, cout}} {
		if l.on {
			g.p("ADD R%d, R%d", cplane, l.p)
		}
	}
	g.p("ADD $4, R%d", coff)
	g.p("SUBS $1, R%d", cchan)
	g.p("BNE channel")
	g.ret()
}

// norms emits batch normalisation.
func (g *asm) norms() {
	const x, d, tmp = vec(8), vec(9), vec(10)
	g.channels(channels{name: "normSums", doc: "sums of live samples.", sums: 1, x: true, live: true, row: func() {
		for v := range vec(4) {
			g.ldr(x, cpx, 16*int(v))
			g.add(v, x, 16+v, tmp)
		}
	}})
	g.channels(channels{name: "normSquares", doc: "sums of squared distances of live samples.", coefs: []int{coefMean},
		sums: 1, x: true, live: true, row: func() {
			for v := range vec(4) {
				g.ldr(x, cpx, 16*int(v))
				g.fsub(x, x, 24)
				g.fmul(x, x, x)
				g.add(v, x, 16+v, tmp)
			}
		}})
	g.channels(channels{name: "normApply", doc: "a*x + b, not below a floor.", coefs: []int{coefA, coefB}, x: true,
		out: true, floor: true, row: func() {
			for v := range 4 {
				g.ldr(x, cpx, 16*v)
				g.fmul(x, 24, x)
				g.fadd(x, x, 25)
				g.op3(opFCmGt, d, 30, x)
				g.op3(opBit, x, 30, d)
				g.str(x, cpout, 16*v)
			}
		}})
	// through loads x and the gradient where the result was above the floor, with a and b in 24 and 25.
	through := func(v int) {
		g.ldr(x, cpx, 16*v)
		g.ldr(d, cpdy, 16*v)
		g.fmul(tmp, 24, x)
		g.fadd(tmp, tmp, 25)
		g.op3(opFCmGt, tmp, tmp, 30)
		g.op3(opAnd, d, d, tmp)
	}
	g.channels(channels{name: "normBackSums", doc: "sums of gradients, and of their products with x.",
		coefs: []int{coefA, coefB, coefMean}, sums: 2,
		x: true, dy: true, floor: true, row: func() {
			for v := range vec(4) {
				through(int(v))
				g.fadd(v, v, d)
				g.fsub(x, x, 26)
				g.fmul(x, d, x)
				g.fadd(4+v, 4+v, x)
			}
		}})
	g.channels(channels{name: "normBack", doc: "the gradient of the input.",
		coefs: []int{coefA, coefB, coefMean, coefK, coefC, coefD}, x: true, dy: true, out: true,
		live: true, floor: true, row: func() {
			for v := range vec(4) {
				through(int(v))
				g.fsub(x, x, 26)
				g.fmul(d, 27, d)
				g.fmul(x, 28, x)
				g.fadd(x, d, x)
				g.fadd(x, x, 29)
				g.op3(opAnd, x, x, 16+v)
				g.str(x, cpout, 16*int(v))
			}
		}})
}

// add adds x to a sum in the lanes of a mask, and keeps the sum in the others.
func (g *asm) add(sum, x, mask, tmp vec) {
	g.fadd(tmp, sum, x)
	g.op3(opBit, sum, tmp, mask)
}
