package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// bytesTile emits a tile of m rows by two vectors of columns of a product of bytes: unsigned ones of A by rows, signed
// ones of B packed as [k/4][columns][4], exact sums in int32. k counts words of four bytes. The sums are converted to
// floats, multiplied by alpha and added to the bias, with the product rounded; or they are stored as int32.
//
// AVX2 has no such product. (Its VPMADDUBSW adds two products in 16 bits with saturation, which 2*255*127 exceeds.) Its
// tiles take operands widened by widen, A as 16 bits and B packed as [k/2][columns][2] of them: VPMADDWD multiplies
// these and adds pairs in int32, exactly. All their columns are used.
//
// With AVX-VNNI, AVX2 has VPDPBUSD, and the tiles called dots need no widening.
func (g *gen) bytesTile(name string, m int) {
	g.begin(fmt.Sprintf("%s%dx%d", name, m, 2*g.lanes), "tileArgs", "a register tile of a product of bytes.")
	sixteen := !g.wide && name == "bytes" // bits of an operand
	t, a0, a9, b, k := reg.RDI, reg.RSI, reg.R8, reg.RDX, reg.RCX
	l1, l3, l5, l7, c, bias := reg.R9, reg.R10, reg.R11, reg.R12, reg.R15, reg.RBX
	acc := func(i, v int) reg.VecPhysical { return g.r[2*i+v] }
	top := len(g.r)
	tmp, bv := g.r[top-4:top-2], g.r[top-2:]
	mask := g.masks(t, 2, g.wide)
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
	steps := 1
	if sixteen {
		steps = 2
	}
	g.align()
	g.Label("word")
	for u := range steps {
		for v := range 2 {
			g.VMOVUPS(at(b, (2*u+v)*g.bytes()), bv[v])
		}
		for i := range m {
			a := rowOf(i, a0, a9, l1, l3, l5, l7)
			a.Disp += 4 * u
			if !sixteen {
				x := tmp[i%2]
				g.VPBROADCASTD(a, x)
				for v := range 2 {
					if g.wide {
						g.VPDPBUSD(bv[v], x, acc(i, v))
					} else {
						g.dotBytes(bv[v], x, acc(i, v))
					}
				}
				continue
			}
			g.VPBROADCASTD(a, tmp[1])
			for v := range 2 {
				g.VPMADDWD(bv[v], tmp[1], tmp[v])
				g.VPADDD(tmp[v], acc(i, v), acc(i, v))
			}
		}
	}
	g.ADDQ(operand.Imm(uint64(4*steps)), a0)
	if m > 9 {
		g.ADDQ(operand.Imm(4), a9)
	}
	g.ADDQ(operand.U32(uint32(2*steps*g.bytes())), b)
	g.DECQ(k)
	g.JNZ(ref("word"))
	g.MOVQ(at(t, tC), c)
	g.MOVQ(at(t, tLdc), l1)
	g.MOVQ(at(t, tFlags), k)
	rows := func(finish func(i, v int)) {
		for i := range m {
			for v := range 2 {
				finish(i, v)
				g.storeMasked(acc(i, v), mask, v, at(c, v*g.bytes()))
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
		g.loadMasked(at(bias, v*g.bytes()), mask, v, bv[v])
	}
	g.VBROADCASTSS(at(t, tAlpha), tmp[0])
	rows(func(i, v int) {
		g.VCVTDQ2PS(acc(i, v), acc(i, v))
		g.VMULPS(tmp[0], acc(i, v), acc(i, v))
		g.VADDPS(bv[v], acc(i, v), acc(i, v))
	})
}

// widen emits the widening of rows of bytes to 16 bits each; columns are counted in words of four bytes.
func (g *gen) widen(signed bool) {
	name, widen := "widen", func(from, to operand.Op) { g.VPMOVZXBW(from, to) }
	if signed {
		name, widen = "widenSigned", func(from, to operand.Op) { g.VPMOVSXBW(from, to) }
	}
	g.begin(name, "moveArgs", "rows of bytes as numbers of 16 bits.")
	t, dst, src, ldd, lds, rows := reg.RDI, reg.RDX, reg.RSI, reg.R8, reg.R9, reg.RBX
	from, to, left, x := reg.R10, reg.R11, reg.RCX, g.r[0]
	g.MOVQ(at(t, mDst), dst)
	g.MOVQ(at(t, mSrc), src)
	g.MOVQ(at(t, mLdd), ldd)
	g.MOVQ(at(t, mLds), lds)
	g.MOVQ(at(t, mRows), rows)
	g.Label("row")
	g.MOVQ(src, from)
	g.MOVQ(dst, to)
	g.MOVQ(at(t, mCols), left)
	g.SUBQ(operand.Imm(4), left)
	g.JLT(ref("rest"))
	g.Label("four")
	widen(at(from, 0), x)
	g.VMOVUPS(x, at(to, 0))
	g.ADDQ(operand.Imm(16), from)
	g.ADDQ(operand.Imm(32), to)
	g.SUBQ(operand.Imm(4), left)
	g.JGE(ref("four"))
	g.Label("rest")
	g.ADDQ(operand.Imm(4), left)
	g.JZ(ref("next"))
	g.Label("one")
	g.VMOVD(at(from, 0), x.AsX())
	widen(x.AsX(), x.AsX())
	g.VMOVQ(x.AsX(), at(to, 0))
	g.ADDQ(operand.Imm(4), from)
	g.ADDQ(operand.Imm(8), to)
	g.DECQ(left)
	g.JNZ(ref("one"))
	g.Label("next")
	g.ADDQ(lds, src)
	g.ADDQ(ldd, dst)
	g.DECQ(rows)
	g.JNZ(ref("row"))
	g.end()
}
