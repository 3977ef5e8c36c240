package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"brood/models/native/kernel/gen/coef"
)

// Offsets of kernel.softArgs.
const (
	sX, sD, sMax, sSum        = 0, 8, 16, 24
	sLdx, sLdd, sRows, sUnits = 32, 40, 48, 56
	sBits, sLanes, sScale     = 64, 72, 80
)

// softmax emits rows of d = scale*softmax(x), with the maximum and the sum of each row. Sums have 16 lanes, folded by
// halves, in both instruction sets.
func (g *gen) softmax() {
	g.begin("softmax", "softArgs", "rows of softmax.")
	t, x, d, mx, sum, rows := reg.RDI, reg.RSI, reg.RDX, reg.R8, reg.R9, reg.RCX
	px, pd, n := reg.RBX, reg.R11, reg.RAX
	vectors := 16 / g.lanes
	for i, r := range []reg.Register{x, d, mx, sum} {
		g.MOVQ(at(t, 8*i), r)
	}
	g.MOVQ(at(t, sRows), rows)
	var mask []operand.Op
	if g.wide {
		g.KMOVW(at(t, sBits), reg.K1)
		mask = []operand.Op{reg.K1}
	} else {
		g.MOVQ(at(t, sLanes), reg.R10)
		mask = []operand.Op{at(reg.R10, 0), at(reg.R10, 32)}
	}
	// units runs body over the whole 16-lane units and then over the rest; it advances px and pd.
	units := func(label string, body func(v int, mask []operand.Op)) {
		step := func(mask []operand.Op) {
			for v := range vectors {
				body(v, mask)
			}
			g.ADDQ(imm(64), px)
			g.ADDQ(imm(64), pd)
		}
		g.MOVQ(x, px)
		g.MOVQ(d, pd)
		g.MOVQ(at(t, sUnits), n)
		g.TESTQ(n, n)
		g.JZ(ref(label + "rest"))
		g.Label(label)
		step(nil)
		g.DECQ(n)
		g.JNZ(ref(label))
		g.Label(label + "rest")
		g.CMPQ(at(t, sBits), operand.Imm(0))
		g.JE(ref(label + "end"))
		step(mask)
		g.Label(label + "end")
	}
	a, b, e, m := g.r[0], g.r[1], g.r[2], g.r[3]
	acc := g.r[4:6]
	// k holds constants that exp needs often; AVX2 has no registers for more.
	k := g.r[6:14]
	g.expConstants(k)
	g.float(float32(math.Inf(-1)), k[7])
	off := func(v int) int { return v * g.bytes() }

	g.Label("row")
	for v := range vectors {
		g.VMOVAPS(k[7], acc[v])
	}
	units("max", func(v int, mask []operand.Op) {
		switch {
		case mask == nil:
			g.VMOVUPS(at(px, off(v)), a)
		case g.wide:
			g.VMOVAPS(k[7], a)
			g.VMOVUPS(at(px, off(v)), mask[v], a)
		default:
			g.VMOVUPS(mask[v], b)
			g.VMASKMOVPS(at(px, off(v)), b, a)
			g.VBLENDVPS(b, a, k[7], a)
		}
		g.VMAXPS(a, acc[v], acc[v])
	})
	g.fold(acc, a, func(x, y, z operand.Op) { g.VMAXPS(x, y, z) })
	g.VMOVSS(acc[0].AsX(), at(mx, 0))
	g.VBROADCASTSS(acc[0].AsX(), m)

	for v := range vectors {
		g.zero(acc[v])
	}
	units("exp", func(v int, mask []operand.Op) {
		g.loadMasked(at(px, off(v)), mask, v, a)
		g.VSUBPS(m, a, a)
		g.float(-coef.ExpLimit, b)
		g.VMAXPS(a, b, a) // this operand order keeps NaN
		g.exp(a, b, e, k)
		if mask != nil {
			if g.wide {
				g.VMOVAPS_Z(b, mask[v], b)
			} else {
				g.VANDPS(mask[v], b, b)
			}
		}
		g.VADDPS(b, acc[v], acc[v])
		g.storeMasked(b, mask, v, at(pd, off(v)))
	})
	g.fold(acc, a, func(x, y, z operand.Op) { g.VADDPS(x, y, z) })
	g.VMOVSS(acc[0].AsX(), at(sum, 0))
	g.VMOVSS(at(t, sScale), a.AsX())
	g.VDIVSS(acc[0].AsX(), a.AsX(), a.AsX())
	g.VBROADCASTSS(a.AsX(), m)
	units("scale", func(v int, mask []operand.Op) {
		g.loadMasked(at(pd, off(v)), mask, v, a)
		g.VMULPS(m, a, a)
		g.storeMasked(a, mask, v, at(pd, off(v)))
	})
	g.ADDQ(at(t, sLdx), x)
	g.ADDQ(at(t, sLdd), d)
	g.ADDQ(operand.Imm(4), mx)
	g.ADDQ(operand.Imm(4), sum)
	g.DECQ(rows)
	g.JNZ(ref("row"))
	g.end()
}

// float broadcasts f to r.
func (g *gen) float(f float32, r reg.VecPhysical) { g.VBROADCASTSS(g.consts.float(f), r) }

// expConstants loads the first seven of k with constants that exp needs often.
func (g *gen) expConstants(k []reg.VecPhysical) {
	g.float(math.Log2E, k[0])
	for i := 1; i < 7; i++ {
		g.float(coef.Exp2[i], k[i])
	}
}

// exp emits b = e^a with the operations and the order of kernel.exp; it overwrites a and e.
func (g *gen) exp(a, b, e reg.VecPhysical, k []reg.VecPhysical) {
	g.VMULPS(k[0], a, a)
	g.float(1.5*(1<<23), b) // rounds to an integer, whose bits are the lowest
	g.VADDPS(b, a, e)
	g.VSUBPS(b, e, b)
	g.VSUBPS(b, a, a)
	g.VPSLLD(operand.Imm(23), e, e)
	g.VMOVAPS(k[6], b)
	for i := 5; i >= 0; i-- {
		g.VMULPS(a, b, b)
		if i > 0 {
			g.VADDPS(k[i], b, b)
		}
	}
	g.float(1, a) // the polynomial's last coefficient, and the bits of 2^0
	g.VADDPS(a, b, b)
	g.VPADDD(a, e, e)
	g.VMULPS(e, b, b)
}

// fold combines 16 lanes by halves into lane 0 of acc[0].
func (g *gen) fold(acc []reg.VecPhysical, tmp reg.VecPhysical, f func(x, y, z operand.Op)) {
	r := acc[0]
	if g.wide {
		g.VEXTRACTF64X4(operand.Imm(1), r, tmp.AsY())
		f(tmp.AsY(), r.AsY(), r.AsY())
	} else {
		f(acc[1], r, r)
	}
	if g.wide { // registers above 15 have no VEX form
		g.VEXTRACTF32X4(operand.Imm(1), r.AsY(), tmp.AsX())
	} else {
		g.VEXTRACTF128(operand.Imm(1), r.AsY(), tmp.AsX())
	}
	f(tmp.AsX(), r.AsX(), r.AsX())
	g.VPERMILPS(operand.U8(0x4E), r.AsX(), tmp.AsX())
	f(tmp.AsX(), r.AsX(), r.AsX())
	g.VPERMILPS(operand.U8(0xB1), r.AsX(), tmp.AsX())
	f(tmp.AsX(), r.AsX(), r.AsX())
}
