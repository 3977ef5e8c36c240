package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// bytesTile emits a tile of m rows by 32 columns of a product of bytes: unsigned ones of A by rows, signed ones of B
// packed as [k/4][32][4], exact sums in int32. k counts words. The sums become floats, are multiplied by alpha and
// added to the bias, the product rounded; or they stay what they are.
func (g *gen) bytesTile(m int) {
	g.begin(fmt.Sprintf("bytes%dx32", m), "tileArgs", "a register tile of a product of bytes.")
	t, a0, a9, b, k := reg.RDI, reg.RSI, reg.R8, reg.RDX, reg.RCX
	l1, l3, l5, l7, c, bias := reg.R9, reg.R10, reg.R11, reg.R12, reg.R15, reg.RBX
	acc := func(i, v int) reg.VecPhysical { return g.r[2*i+v] }
	mask := g.masks(t, 2, true)
	g.MOVQ(at(t, tA), a0)
	g.MOVQ(at(t, tB), b)
	g.MOVQ(at(t, tRowA), l1)
	g.MOVQ(at(t, tK), k)
	for i := range 2 * m {
		g.zero(g.r[i])
	}
	if m > 3 {
		g.LEAQ(atx(l1, l1, 2, 0), l3)
	}
	if m > 5 {
		g.LEAQ(atx(l1, l1, 4, 0), l5)
	}
	if m > 7 {
		g.LEAQ(atx(l3, l1, 4, 0), l7)
	}
	if m > 9 {
		g.LEAQ(atx(a0, l1, 8, 0), a9)
		g.ADDQ(l1, a9)
	}
	g.align()
	g.Label("word")
	g.VMOVUPS(at(b, 0), g.r[30])
	g.VMOVUPS(at(b, 64), g.r[31])
	for i := range m {
		x := g.r[28+i%2]
		g.VPBROADCASTD(rowOf(i, a0, a9, l1, l3, l5, l7), x)
		for v := range 2 {
			g.VPDPBUSD(g.r[30+v], x, acc(i, v))
		}
	}
	g.ADDQ(operand.Imm(4), a0)
	if m > 9 {
		g.ADDQ(operand.Imm(4), a9)
	}
	g.ADDQ(operand.U32(128), b)
	g.DECQ(k)
	g.JNZ(ref("word"))
	g.MOVQ(at(t, tC), c)
	g.MOVQ(at(t, tLdc), l1)
	g.MOVQ(at(t, tFlags), k)
	rows := func(finish func(i, v int)) {
		for i := range m {
			for v := range 2 {
				finish(i, v)
				g.storeMasked(acc(i, v), mask, v, at(c, 64*v))
			}
			if i < m-1 {
				g.ADDQ(l1, c)
			}
		}
		g.end()
	}
	g.when(k, flagWhole, "floats", func() { rows(func(int, int) {}) })
	g.MOVQ(at(t, tBias), bias)
	for v := range 2 {
		g.loadMasked(at(bias, 64*v), mask, v, g.r[30+v])
	}
	g.VBROADCASTSS(at(t, tAlpha), g.r[28])
	rows(func(i, v int) {
		g.VCVTDQ2PS(acc(i, v), acc(i, v))
		g.VMULPS(g.r[28], acc(i, v), acc(i, v))
		g.VADDPS(g.r[30+v], acc(i, v), acc(i, v))
	})
}
