package main

import "fmt"

// Offsets of kernel.vecArgs.
const (
	vDst, vX, vN, vC, vLanes, vRows, vLd = 0, 8, 40, 48, 96, 104, 112
)

// each emits a loop over the elements of the inputs, four at a time and then one: body computes outs from ins, which
// are registers from 0 on, one per slice, with constants in the registers from 16 on, loaded by setup. A slice may be
// both input and output.
func (g *asm) each(name, doc string, ins, outs []int, setup, body func()) {
	g.begin(name, "vecArgs", doc)
	const n = 2
	in, out := make([]int, len(ins)), make([]int, len(outs))
	for i, off := range ins {
		in[i] = 3 + i
		g.p("MOVD %d(R0), R%d", off, in[i])
	}
	for i, off := range outs {
		out[i] = 3 + len(ins) + i
		g.p("MOVD %d(R0), R%d", off, out[i])
	}
	g.p("MOVD %d(R0), R%d", vN, n)
	if setup != nil {
		setup()
	}
	loop := func(label string, step int, load, store func(v vec, base int)) {
		g.label(label)
		for i, r := range in {
			load(vec(i), r)
		}
		body()
		for i, r := range out {
			store(vec(len(ins)+i), r)
		}
		g.p("SUBS $%d, R%d", step, n)
	}
	g.p("SUBS $4, R%d", n)
	g.p("BLT rest")
	loop("four", 4, g.next, g.put)
	g.p("BGE four")
	g.label("rest")
	g.p("ADDS $4, R%d", n)
	g.p("BEQ done")
	loop("one", 1, g.next1, g.put1)
	g.p("BNE one")
	g.label("done")
	g.ret()
}

// coefficients loads the argument's first n coefficients into registers from 16 on.
func (g *asm) coefficients(n int) func() {
	return func() {
		for i := range n {
			g.broadcast(vec(16+i), 0, vC+4*i)
		}
	}
}

func (g *asm) vectors() {
	x := func(n int) (offs []int) {
		for i := range n {
			offs = append(offs, vX+8*i)
		}
		return offs
	}
	dst := []int{vDst}
	for terms := 1; terms <= 3; terms++ {
		g.each(fmt.Sprint("lin", terms), "a linear statement.", x(terms), dst, g.coefficients(terms), func() {
			d := vec(terms)
			g.fmul(d, 16, 0)
			for i := 1; i < terms; i++ {
				g.fmul(8, vec(16+i), vec(i))
				g.fadd(d, d, 8)
			}
		})
	}
	g.each("relu", "max(0, x).", x(1), dst, nil, func() {
		g.mov(1, 0)
		g.rectify(1, 8)
	})
	g.each("gate", "x where y is above zero, else zero.", x(2), dst, nil, func() {
		g.mov(2, 0)
		g.gate(2, 1)
	})
	g.each("mul", "a product, element by element.", x(2), dst, nil, func() { g.fmul(2, 0, 1) })
	g.each("leaky", "x, or slope*x where its sign bit is set.", x(1), dst, g.coefficients(1), func() {
		g.sshr(8, 0, 31)
		g.fmul(9, 16, 0)
		g.mov(1, 0)
		g.op3(opBit, 1, 9, 8)
	})
	g.each("leakyBack", "dy where x is above zero, else slope*dy.", x(2), dst, g.coefficients(1), func() {
		g.op2(opFCmGtZ, 8, 1)
		g.fmul(2, 16, 0)
		g.op3(opBit, 2, 0, 8)
	})
	g.pick()
	g.adam()
	g.each("natural", "a natural step.", append([]int{vDst}, x(3)...), []int{vDst, vX}, func() {
		g.coefficients(2)()
		g.table()
	}, func() { // x, s, g, h in 0 to 3; x and s go to 4 and 5
		g.fmul(6, 1, 2)
		g.fmul(6, 16, 6)
		g.fadd(4, 0, 6)
		g.fmul(6, 17, 3)
		g.held(6, 7, 8)
		g.exp(6, 7, 8, 9)
		g.fmul(5, 1, 6)
	})
	g.colSum()
	g.squares()
	g.activations()
	g.layers()
}

// pick emits dst = x1 where the bits of x2, from the lowest on, are 1, else x0, for whole words of 32 elements.
func (g *asm) pick() {
	const dst, x0, x1, words, n = 3, 4, 5, 6, 2
	const word, bits = vec(15), vec(16) // bits are eight registers: the bit of each lane
	g.text.WriteString("\n")
	for i := range 16 {
		fmt.Fprintf(&g.text, "DATA bits<>+%d(SB)/8, $0x%08x%08x\n", 8*i, 1<<(2*i+1), 1<<(2*i))
	}
	g.text.WriteString("GLOBL bits<>(SB), RODATA|NOPTR, $128\n")
	g.begin("pick", "vecArgs", "elements of two vectors by bits.")
	for i, off := range []int{vDst, vX, vX + 8, vX + 16} {
		g.p("MOVD %d(R0), R%d", off, dst+i)
	}
	g.p("MOVD %d(R0), R%d", vN, n)
	g.p("MOVD $bits<>(SB), R17")
	for v := range vec(8) {
		g.ldr(bits+v, 17, 16*int(v))
	}
	g.label("word")
	g.nextWord(word, words)
	for v := range vec(8) {
		mask := 8 + v%4
		g.op3(opCmTst, mask, word, bits+v)
		g.next(0, x0)
		g.next(1, x1)
		g.op3(opBsl, mask, 1, 0)
		g.put(mask, dst)
	}
	g.p("SUBS $32, R%d", n)
	g.p("BNE word")
	g.ret()
}

// adam emits a step of Adam: x, m, v and g in registers 0 to 3, the new x, m and v in 4 to 6.
func (g *asm) adam() {
	const b1, b2, d1, d2, c1, c2, eta, eps, wd = 16, 17, 18, 19, 20, 21, 22, 23, 24
	g.each("adam", "a step of Adam.", []int{vDst, vX, vX + 8, vX + 16}, []int{vDst, vX, vX + 8},
		g.coefficients(9), func() {
			g.fmul(5, b1, 1)
			g.fmul(8, d1, 3)
			g.fadd(5, 5, 8)
			g.fmul(6, b2, 2)
			g.fmul(8, 3, 3)
			g.fmul(8, d2, 8)
			g.fadd(6, 6, 8)
			g.fmul(8, c1, 5)
			g.fmul(8, eta, 8)
			g.fmul(9, c2, 6)
			g.op2(opFSqrt, 9, 9)
			g.fadd(9, 9, eps)
			g.op3(opFDiv, 8, 8, 9)
			g.fmul(9, wd, 0)
			g.fsub(4, 0, 9)
			g.fsub(4, 4, 8)
		})
}

// colSum emits the sums of columns, sixteen, four and then one at a time, the rows in order.
func (g *asm) colSum() {
	g.begin("colSum", "vecArgs", "sums of columns.")
	const dst, src, n, rows, ld, p, left = 1, 2, 3, 4, 5, 6, 7
	for _, l := range [][2]int{{vDst, dst}, {vX, src}, {vN, n}, {vLd, ld}} {
		g.p("MOVD %d(R0), R%d", l[0], l[1])
	}
	g.p("MOVD %d(R0), R%d", vRows, rows)
	g.coefficients(2)()
	for _, width := range []int{16, 4, 1} {
		nv, load, store := max(1, width/4), g.ldr, g.str
		if width == 1 {
			load, store = g.ldr1, g.str1
		}
		g.label(fmt.Sprint("from", width))
		g.p("CMP $%d, R%d", width, n)
		g.p("BLT below%d", width)
		for v := range nv {
			g.zero(vec(v))
		}
		g.p("MOVD R%d, R%d", src, p)
		g.p("MOVD R%d, R%d", rows, left)
		g.label(fmt.Sprint("row", width))
		for v := range nv {
			load(vec(8+v), p, 16*v)
			g.fadd(vec(v), vec(v), vec(8+v))
		}
		g.p("ADD R%d, R%d", ld, p)
		g.p("SUBS $1, R%d", left)
		g.p("BNE row%d", width)
		for v := range nv {
			load(8, dst, 16*v)
			g.fmul(8, 16, 8)
			g.fmul(9, 17, vec(v))
			g.fadd(8, 8, 9)
			store(8, dst, 16*v)
		}
		g.p("ADD $%d, R%d", 4*width, dst)
		g.p("ADD $%d, R%d", 4*width, src)
		g.p("SUB $%d, R%d", width, n)
		g.p("B from%d", width)
		g.label(fmt.Sprint("below", width))
	}
	g.ret()
}

// squares emits sixteen sums of squared differences in float64, sixteen columns at a time.
func (g *asm) squares() {
	g.begin("squares", "vecArgs", "sums of squared differences in float64.")
	const dst, x, c, n, step = 1, 2, 3, 4, 5
	for _, l := range [][2]int{{vDst, dst}, {vX, x}, {vX + 8, c}, {vN, n}, {vLd, step}} {
		g.p("MOVD %d(R0), R%d", l[0], l[1])
	}
	for i := range vec(8) {
		g.zero(i)
	}
	g.label("columns")
	for i := range vec(4) {
		g.ldr(16, x, 16*int(i))
		g.ldr(17, c, 16*int(i))
		for half, long := range []uint32{opFCvtL, opFCvtL2} {
			a, b := vec(18+2*half), vec(19+2*half)
			g.op2(long, a, 16)
			g.op2(long, b, 17)
			g.op3(opFSubD, a, a, b)
			g.op3(opFMulD, a, a, a)
			g.op3(opFAddD, 2*i+vec(half), 2*i+vec(half), a)
		}
	}
	g.p("ADD $64, R%d", x)
	g.p("ADD R%d, R%d", step, c)
	g.p("SUBS $1, R%d", n)
	g.p("BNE columns")
	for i := range vec(8) {
		g.str(i, dst, 16*int(i))
	}
	g.ret()
}
