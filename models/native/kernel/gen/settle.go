package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Offsets of kernel.settleArgs after its vecArgs.
const sSign, sHalf, sShift, sLo, sHi, sWords = 120, 124, 128, 132, 136, 140

// settle emits kernel.Settling, into bytes or, if wide, into words.
func (g *gen) settle(wide bool) {
	name, doc := "settle", "bytes of sums."
	if wide {
		name, doc = "settleWide", "words of sums."
	}
	g.begin(name, "settleArgs", doc)
	t, dst, x, y, bias, rows, at4, place := reg.RDI, reg.RDX, reg.RSI, reg.R8, reg.R9, reg.RBX, reg.R11, reg.R13
	sign, half, shift, lo, hi := g.r[10], g.r[11], g.r[12], g.r[13], g.r[14]
	g.MOVQ(at(t, vDst), dst)
	for i, r := range []reg.Register{x, y, bias} {
		g.MOVQ(at(t, vX+8*i), r)
	}
	g.MOVQ(at(t, vRows), rows)
	g.MOVQ(at(t, vN), at4)
	for _, c := range []struct {
		at int
		r  reg.VecPhysical
	}{{sSign, sign}, {sHalf, half}, {sShift, shift}, {sLo, lo}, {sHi, hi}} {
		g.VPBROADCASTD(at(t, c.at), c.r)
	}
	if g.wide {
		g.KMOVW(at(t, sWords), reg.K2)
	}
	g.Label("row")
	g.sweep(t, 4, func(n int, off reg.Register, mask []operand.Op) {
		if !wide {
			g.MOVQ(off, place)
			g.SHRQ(operand.Imm(2), place)
		}
		for v := range n {
			a, b := g.r[2*v], g.r[2*v+1]
			load := func(base reg.Register, d reg.VecPhysical) { g.loadMasked(atx(base, off, 1, v*g.bytes()), mask, 0, d) }
			load(y, a)
			g.VPMULLD(sign, a, a)
			load(x, b)
			g.VPADDD(b, a, a)
			g.VPADDD(half, a, a)
			g.VPSRAVD(shift, a, a)
			load(bias, b)
			g.VPADDD(b, a, a)
			g.VPMAXSD(lo, a, a)
			g.VPMINSD(hi, a, a)
			if wide {
				g.storeMasked(a, mask, 0, atx(dst, off, 1, v*g.bytes()))
			} else {
				g.storeBytes(a, b, mask != nil, atx(dst, place, 1, v*g.lanes))
			}
		}
	})
	g.LEAQ(atx(x, at4, 4, 0), x)
	g.LEAQ(atx(y, at4, 4, 0), y)
	g.ADDQ(at(t, vLd), dst)
	g.DECQ(rows)
	g.JNZ(ref("row"))
	g.end()
}

// storeBytes writes the lanes of r, which are bytes; with last, RCX lanes of a partial vector are used, and whole words
// are written. It overwrites r and tmp.
func (g *gen) storeBytes(r, tmp reg.VecPhysical, last bool, to operand.Mem) {
	switch {
	case g.wide && last:
		g.VPMOVDB(r, reg.K2, to)
		return
	case g.wide:
		g.VPMOVDB(r, to)
		return
	}
	g.VPACKUSDW(r, r, r)
	g.VPACKUSWB(r, r, r)
	if last {
		g.VMOVD(r.AsX(), to)
		g.CMPQ(reg.RCX, operand.Imm(4))
		g.JLE(ref("finished"))
	}
	g.VEXTRACTI128(operand.U8(1), r, tmp.AsX())
	g.VPUNPCKLDQ(tmp.AsX(), r.AsX(), r.AsX())
	g.VMOVQ(r.AsX(), to)
}

// powerSums emits kernel.PowerSums, sixteen numbers at a time: a permutation looks up their powers.
func (g *gen) powerSums() {
	g.begin("powerSums", "vecArgs", "the largest of rows, and sums of powers.")
	t, most, z, sums, rows, p, n := reg.RDI, reg.RDX, reg.RSI, reg.R8, reg.RBX, reg.R9, reg.RCX
	top, tmp, diff, odd := g.r[0], g.r[1], g.r[2], g.r[3]
	powers, total, shift := g.r[4:6], g.r[6:8], g.r[8:10]
	g.MOVQ(at(t, vDst), most)
	g.MOVQ(at(t, vX), z)
	g.MOVQ(at(t, vX+8), p)
	g.MOVQ(at(t, vX+16), sums)
	g.MOVQ(at(t, vRows), rows)
	g.KMOVW(at(t, vBits), reg.K1)
	g.KSHIFTRW(operand.Imm(8), reg.K1, reg.K2)
	for i, r := range powers {
		g.VMOVDQU64(at(p, 64*i), r)
	}
	// each emits a loop over the numbers of a row.
	each := func(label string, body func(mask bool)) {
		g.MOVQ(z, p)
		g.MOVQ(at(t, vN), n)
		g.SUBQ(imm(16), n)
		g.JLT(ref(label + "rest"))
		g.Label(label)
		body(false)
		g.ADDQ(imm(64), p)
		g.SUBQ(imm(16), n)
		g.JGE(ref(label))
		g.Label(label + "rest")
		g.ADDQ(imm(16), n)
		g.JZ(ref(label + "end"))
		body(true)
		g.Label(label + "end")
	}
	// halve adds, or compares, the halves of a vector repeatedly, down to lanes of this many words.
	halve := func(r reg.VecPhysical, words int, op func(a, b, d operand.Op)) {
		g.VEXTRACTI64X4(operand.U8(1), r, tmp.AsY())
		op(tmp.AsY(), r.AsY(), r.AsY())
		g.VEXTRACTI128(operand.U8(1), r.AsY(), tmp.AsX())
		op(tmp.AsX(), r.AsX(), r.AsX())
		for _, order := range []uint8{0x4E, 0xB1}[:3-words] {
			g.VPSHUFD(operand.U8(order), r.AsX(), tmp.AsX())
			op(tmp.AsX(), r.AsX(), r.AsX())
		}
	}
	g.Label("row")
	g.VPBROADCASTD(at(z, 0), top)
	each("largest", func(mask bool) {
		if mask {
			g.VPMAXSD(at(p, 0), top, reg.K1, top)
		} else {
			g.VPMAXSD(at(p, 0), top, top)
		}
	})
	halve(top, 1, func(a, b, d operand.Op) { g.VPMAXSD(a, b, d) })
	g.VMOVD(top.AsX(), at(most, 0))
	g.VPBROADCASTD(top.AsX(), top)
	for _, r := range total {
		g.zero(r)
	}
	each("power", func(mask bool) {
		if mask {
			g.VPSUBD_Z(at(p, 0), top, reg.K1, diff)
		} else {
			g.VPSUBD(at(p, 0), top, diff)
		}
		g.VEXTRACTI64X4(operand.U8(1), diff, odd.AsY())
		g.VPMOVZXDQ(diff.AsY(), diff)
		g.VPMOVZXDQ(odd.AsY(), odd)
		for i, d := range []reg.VecPhysical{diff, odd} {
			g.VPSRLQ(operand.Imm(4), d, shift[i])
			g.VPERMI2Q(powers[1], powers[0], d)
			if mask {
				g.VPSRLVQ_Z(shift[i], d, []reg.OpmaskPhysical{reg.K1, reg.K2}[i], d)
			} else {
				g.VPSRLVQ(shift[i], d, d)
			}
			g.VPADDQ(d, total[i], total[i])
		}
	})
	g.VPADDQ(total[1], total[0], total[0])
	halve(total[0], 2, func(a, b, d operand.Op) { g.VPADDQ(a, b, d) })
	g.VMOVQ(total[0].AsX(), at(sums, 0))
	g.ADDQ(imm(4), most)
	g.ADDQ(imm(8), sums)
	g.MOVQ(at(t, vN), n)
	g.LEAQ(atx(z, n, 4, 0), z)
	g.DECQ(rows)
	g.JNZ(ref("row"))
	g.end()
}
