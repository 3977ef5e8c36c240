package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Offsets of kernel.poolArgs.
const (
	pX, pY, pDX, pDY, pTab, pTaps        = 0, 8, 16, 24, 32, 40
	pCols, pRows, pStepX, pNextX, pScale = 48, 56, 64, 72, 80
	pA, pB, pFloor, pNormed              = 84, 88, 92, 96
)

// pool emits the pooling kernels. Each loops over rows x cols windows of 32 samples; a table has the offsets of a
// window's taps. Pixels of y are contiguous.
func (g *gen) pool() {
	vectors, last := 32/g.lanes, len(g.r)-1
	r := func(group, v int) reg.VecPhysical { return g.r[vectors*group+v] }
	x, y, dx, dy, tab, taps, cols, rows, off := reg.RSI, reg.RDX, reg.R8, reg.R9, reg.R10, reg.RCX, reg.RAX,
		reg.RBX, reg.R11
	begin := func(name, doc string) {
		g.begin(name, "poolArgs", doc)
		t := reg.RDI
		for i, p := range []reg.Register{x, y, dx, dy} {
			g.MOVQ(at(t, 8*i), p)
		}
		g.MOVQ(at(t, pRows), rows)
	}
	// windows emits the loops: first, then tap for each element of the window, then last.
	windows := func(first, tap, last func(), form string) {
		t := reg.RDI
		g.Label("row" + form)
		g.MOVQ(at(t, pCols), cols)
		g.Label("window" + form)
		g.MOVQ(at(t, pTab), tab)
		g.MOVQ(at(t, pTaps), taps)
		first()
		g.Label("tap" + form)
		g.MOVLQSX(at(tab, 0), off)
		tap()
		g.ADDQ(operand.Imm(4), tab)
		g.DECQ(taps)
		g.JNZ(ref("tap" + form))
		last()
		g.ADDQ(at(t, pStepX), x)
		g.ADDQ(at(t, pStepX), dx)
		g.ADDQ(imm(128), y)
		g.ADDQ(imm(128), dy)
		g.DECQ(cols)
		g.JNZ(ref("window" + form))
		g.ADDQ(at(t, pNextX), x)
		g.ADDQ(at(t, pNextX), dx)
		g.DECQ(rows)
		g.JNZ(ref("row" + form))
		g.end()
	}
	each := func(f func(v, disp int)) {
		for v := range vectors {
			f(v, v*g.bytes())
		}
	}
	// maxima emits the loops twice: over x, and over normApply of x. value returns an element; it may use tmp.
	maxima := func(name, doc string, loops func(value func(disp int, tmp reg.VecPhysical) operand.Op, form string)) {
		begin(name, doc)
		a, b, floor := g.r[last], g.r[last-1], g.r[last-2]
		g.CMPQ(at(reg.RDI, pNormed), operand.Imm(0))
		g.JNE(ref("normed"))
		loops(func(disp int, _ reg.VecPhysical) operand.Op { return atx(x, off, 1, disp) }, "")
		g.Label("normed")
		for i, c := range []reg.VecPhysical{a, b, floor} {
			g.VBROADCASTSS(at(reg.RDI, pA+4*i), c)
		}
		loops(func(disp int, tmp reg.VecPhysical) operand.Op {
			g.VMULPS(atx(x, off, 1, disp), a, tmp)
			g.VADDPS(b, tmp, tmp)
			g.VMAXPS(tmp, floor, tmp) // this operand order keeps NaN
			return tmp
		}, "normed")
	}
	maxima("maxPool", "the maximum of each window.", func(value func(int, reg.VecPhysical) operand.Op, form string) {
		windows(func() {
			g.MOVLQSX(at(tab, 0), off)
			each(func(v, d int) { g.VMOVUPS(value(d, r(1, v)), r(0, v)) })
		}, func() {
			each(func(v, d int) { g.VMAXPS(value(d, r(1, v)), r(0, v), r(0, v)) })
		}, func() {
			each(func(v, d int) { g.VMOVUPS(r(0, v), at(y, d)) })
		}, form)
	})
	// The first tap that equals the maximum takes the gradient, which is then cleared. If windows do not overlap, dx is
	// written instead of added to.
	for _, add := range []bool{true, false} {
		name := "maxPoolBack"
		if !add {
			name = "maxPoolSet"
		}
		maxima(name, "gradients go to the first maximum.", func(value func(int, reg.VecPhysical) operand.Op, form string) {
			windows(func() {
				each(func(v, d int) {
					g.VMOVUPS(at(y, d), r(0, v))
					g.VMOVUPS(at(dy, d), r(1, v))
				})
			}, func() {
				each(func(v, d int) {
					w := r(2, v)
					if g.wide {
						g.VCMPPS(operand.U8(0), value(d, w), r(0, v), reg.K1)
						g.VMOVAPS_Z(r(1, v), reg.K1, w)
					} else {
						g.VCMPPS(operand.U8(0), value(d, w), r(0, v), w)
						g.VANDPS(r(1, v), w, w)
					}
					g.VXORPS(w, r(1, v), r(1, v))
					if add {
						g.VADDPS(atx(dx, off, 1, d), w, w)
					}
					g.VMOVUPS(w, atx(dx, off, 1, d))
				})
			}, func() {}, form)
		})
	}
	scale := g.r[last]
	means := func(name, doc string, first, tap, last func()) {
		begin(name, doc)
		g.VBROADCASTSS(at(reg.RDI, pScale), scale)
		windows(first, tap, last, "")
	}
	means("meanPool", "the mean of each window.", func() {
		each(func(v, _ int) { g.zero(r(0, v)) })
	}, func() {
		each(func(v, d int) { g.VADDPS(atx(x, off, 1, d), r(0, v), r(0, v)) })
	}, func() {
		each(func(v, d int) {
			g.VMULPS(scale, r(0, v), r(0, v))
			g.VMOVUPS(r(0, v), at(y, d))
		})
	})
	means("meanPoolBack", "gradients are shared evenly.", func() {
		each(func(v, d int) { g.VMULPS(at(dy, d), scale, r(0, v)) })
	}, func() {
		each(func(v, d int) {
			g.VADDPS(atx(dx, off, 1, d), r(0, v), r(1, v))
			g.VMOVUPS(r(1, v), atx(dx, off, 1, d))
		})
	}, func() {})
}
