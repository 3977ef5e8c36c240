package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"brood/models/native/kernel/gen/coef"
)

// Offsets of kernel.vecArgs.
const (
	vDst, vX, vN, vC = 0, 8, 40, 48 // four operands, their length, coefficients
	vBits, vLanes    = 88, 96       // of the last, partial vector
	vRows, vLd       = 104, 112     // of ColSum
)

// sweep emits a loop over vN elements at a common offset: unrolled whole vectors, single vectors, a masked rest. body
// gets the number of vectors, the offset register and the mask (nil: whole). In AVX2 R10 holds the mask's address.
func (g *gen) sweep(t reg.Register, unroll int, body func(n int, off reg.Register, mask []operand.Op)) {
	g.sweeps(t, []int{unroll}, body)
}

// sweeps is sweep with several unroll factors, the largest first.
func (g *gen) sweeps(t reg.Register, unroll []int, body func(n int, off reg.Register, mask []operand.Op)) {
	n, off := reg.RCX, reg.RAX
	g.MOVQ(at(t, vN), n)
	g.XORQ(off, off)
	whole := func(label string, w int) {
		g.SUBQ(imm(w*g.lanes), n)
		g.JLT(ref(label + "end"))
		g.align()
		g.Label(label)
		body(w, off, nil)
		g.ADDQ(imm(w*g.bytes()), off)
		g.SUBQ(imm(w*g.lanes), n)
		g.JGE(ref(label))
		g.Label(label + "end")
		g.ADDQ(imm(w*g.lanes), n)
	}
	for i, w := range unroll {
		if w > 1 {
			whole([]string{"many", "two"}[i], w)
		}
	}
	whole("one", 1)
	g.TESTQ(n, n)
	g.JZ(ref("finished"))
	mask := []operand.Op{reg.K1}
	if g.wide {
		g.KMOVW(at(t, vBits), reg.K1)
	} else {
		g.MOVQ(at(t, vLanes), reg.R10)
		mask = []operand.Op{at(reg.R10, 0)}
	}
	body(1, off, mask)
	g.Label("finished")
}

// lin emits dst = c0*x0 + c1*x1 + ..., each product rounded, added from the left.
func (g *gen) lin(terms int) {
	g.begin(fmt.Sprintf("lin%d", terms), "vecArgs", "a linear statement.")
	t, dst := reg.RDI, reg.RDX
	src := []reg.Register{reg.RSI, reg.R8, reg.R9}[:terms]
	g.MOVQ(at(t, vDst), dst)
	for i, s := range src {
		g.MOVQ(at(t, vX+8*i), s)
		g.VBROADCASTSS(at(t, vC+4*i), g.r[12+i])
	}
	g.sweep(t, 4, func(n int, off reg.Register, mask []operand.Op) {
		for v := range n {
			x, y := g.r[2*v], g.r[2*v+1]
			for i, s := range src {
				d := y
				if i == 0 {
					d = x
				}
				g.loadMasked(atx(s, off, 1, v*g.bytes()), mask, 0, d)
				g.VMULPS(g.r[12+i], d, d)
				if i > 0 {
					g.VADDPS(y, x, x)
				}
			}
			g.storeMasked(x, mask, 0, atx(dst, off, 1, v*g.bytes()))
		}
	})
	g.end()
}

// adam emits one step; the order of operations is the same as in kernel.adam.
func (g *gen) adam() {
	g.begin("adam", "vecArgs", "one step of Adam.")
	t := reg.RDI
	x, m, v, grad := reg.RDX, reg.RSI, reg.R8, reg.R9
	for i, r := range []reg.Register{x, m, v, grad} {
		g.MOVQ(at(t, vDst+8*i), r)
	}
	const b1, b2, d1, d2, c1, c2, eta, eps, wd = 0, 1, 2, 3, 4, 5, 6, 7, 8
	coef := func(i int, d reg.VecPhysical) { g.VBROADCASTSS(at(t, vC+4*i), d) }
	// AVX2 has registers for seven of the nine coefficients.
	for i := range 7 {
		coef(i, g.r[8+i])
	}
	c := func(i int) reg.VecPhysical { return g.r[8+i] }
	g.sweep(t, 1, func(_ int, off reg.Register, mask []operand.Op) {
		gi, mi, vi, xi, s := g.r[0], g.r[1], g.r[2], g.r[3], g.r[4]
		g.loadMasked(atx(grad, off, 1, 0), mask, 0, gi)
		g.loadMasked(atx(m, off, 1, 0), mask, 0, mi)
		g.loadMasked(atx(v, off, 1, 0), mask, 0, vi)
		g.loadMasked(atx(x, off, 1, 0), mask, 0, xi)
		g.VMULPS(c(b1), mi, mi)
		g.VMULPS(gi, c(d1), s)
		g.VADDPS(s, mi, mi)
		g.VMULPS(gi, gi, gi)
		g.VMULPS(c(b2), vi, vi)
		g.VMULPS(gi, c(d2), gi)
		g.VADDPS(gi, vi, vi)
		g.storeMasked(mi, mask, 0, atx(m, off, 1, 0))
		g.storeMasked(vi, mask, 0, atx(v, off, 1, 0))
		g.VMULPS(c(c1), mi, mi)
		g.VMULPS(c(eta), mi, mi)
		g.VMULPS(c(c2), vi, vi)
		g.VSQRTPS(vi, vi)
		coef(eps, s)
		g.VADDPS(s, vi, vi)
		g.VDIVPS(vi, mi, mi)
		coef(wd, s)
		g.VMULPS(xi, s, s)
		g.VSUBPS(s, xi, xi)
		g.VSUBPS(mi, xi, xi)
		g.storeMasked(xi, mask, 0, atx(x, off, 1, 0))
	})
	g.end()
}

// natural emits a step of the natural gradient; the order of operations is the same as in kernel.NaturalStep.
func (g *gen) natural() {
	g.begin("natural", "vecArgs", "one step of the natural gradient.")
	t, x, s, grad, h := reg.RDI, reg.RDX, reg.RSI, reg.R8, reg.R9
	for i, r := range []reg.Register{x, s, grad, h} {
		g.MOVQ(at(t, vDst+8*i), r)
	}
	eta, rate, k := g.r[4], g.r[5], g.r[6:13]
	g.VBROADCASTSS(at(t, vC), eta)
	g.VBROADCASTSS(at(t, vC+4), rate)
	g.expConstants(k)
	g.sweep(t, 1, func(_ int, off reg.Register, mask []operand.Op) {
		load := func(base reg.Register, d reg.VecPhysical) { g.loadMasked(atx(base, off, 1, 0), mask, 0, d) }
		a, b, e, xi := g.r[0], g.r[1], g.r[2], g.r[3]
		load(h, a)
		g.VMULPS(rate, a, a)
		g.float(coef.ExpLimit, b)
		g.VMINPS(a, b, a) // this operand order keeps NaN
		g.float(-coef.ExpLimit, b)
		g.VMAXPS(a, b, a)
		g.exp(a, b, e, k)
		load(s, a)
		load(grad, e)
		load(x, xi)
		g.VMULPS(a, e, e)
		g.VMULPS(eta, e, e)
		g.VADDPS(e, xi, xi)
		g.VMULPS(a, b, b)
		g.storeMasked(xi, mask, 0, atx(x, off, 1, 0))
		g.storeMasked(b, mask, 0, atx(s, off, 1, 0))
	})
	g.end()
}

// colSum emits dst = c0*dst + c1 * (sum of the rows of src), rows in order.
func (g *gen) colSum() {
	g.begin("colSum", "vecArgs", "the sums of columns.")
	t, dst, src, ld, rows, p := reg.RDI, reg.RDX, reg.RSI, reg.R8, reg.R9, reg.RBX
	g.MOVQ(at(t, vDst), dst)
	g.MOVQ(at(t, vX), src)
	g.MOVQ(at(t, vLd), ld)
	g.VBROADCASTSS(at(t, vC), g.r[12])
	g.VBROADCASTSS(at(t, vC+4), g.r[13])
	// A column's sum is a chain of additions: in AVX-512 two at a time are the samples of a block.
	g.sweeps(t, []int{4, 2}, func(n int, off reg.Register, mask []operand.Op) {
		label := fmt.Sprintf("rows%d%v", n, mask != nil)
		for v := range n {
			g.zero(g.r[v])
		}
		g.LEAQ(atx(src, off, 1, 0), p)
		g.MOVQ(at(t, vRows), rows)
		g.Label(label)
		for v := range n {
			g.loadMasked(at(p, v*g.bytes()), mask, 0, g.r[8])
			g.VADDPS(g.r[8], g.r[v], g.r[v])
		}
		g.ADDQ(ld, p)
		g.DECQ(rows)
		g.JNZ(ref(label))
		for v := range n {
			g.loadMasked(atx(dst, off, 1, v*g.bytes()), mask, 0, g.r[8])
			g.VMULPS(g.r[12], g.r[8], g.r[8])
			g.VMULPS(g.r[13], g.r[v], g.r[v])
			g.VADDPS(g.r[v], g.r[8], g.r[8])
			g.storeMasked(g.r[8], mask, 0, atx(dst, off, 1, v*g.bytes()))
		}
	})
	g.end()
}

// squares emits sixteen sums of squared differences in float64, sixteen columns at a time.
func (g *gen) squares() {
	g.begin("squares", "vecArgs", "sums of squared differences in float64.")
	t, dst, x, c, n, step := reg.RDI, reg.RDX, reg.RSI, reg.R8, reg.RCX, reg.R9
	g.MOVQ(at(t, vDst), dst)
	g.MOVQ(at(t, vX), x)
	g.MOVQ(at(t, vX+8), c)
	g.MOVQ(at(t, vN), n)
	g.MOVQ(at(t, vLd), step)
	wide := g.lanes / 2
	sums := g.r[:16/wide]
	for _, r := range sums {
		g.zero(r)
	}
	g.align()
	g.Label("columns")
	for i, sum := range sums {
		a, b := g.r[len(sums)+2*(i%2)], g.r[len(sums)+2*(i%2)+1]
		g.VCVTPS2PD(at(x, 4*wide*i), a)
		g.VCVTPS2PD(at(c, 4*wide*i), b)
		g.VSUBPD(b, a, a)
		g.VMULPD(a, a, a)
		g.VADDPD(a, sum, sum)
	}
	g.ADDQ(imm(64), x)
	g.ADDQ(step, c)
	g.DECQ(n)
	g.JNZ(ref("columns"))
	for i, sum := range sums {
		g.VMOVUPD(sum, at(dst, 8*wide*i))
	}
	g.end()
}
