package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Offsets of kernel.moveArgs.
const (
	mDst, mSrc, mLdd, mLds, mRows, mCols   = 0, 8, 16, 24, 32, 40
	mLoad, mStore, mLoadLanes, mStoreLanes = 48, 52, 56, 64
	mAllLanes                              = 72
)

// transpose emits dst[c][r] = src[r][c] for rows r of at most a vector and any number of columns, block by block.
// Missing rows are zero; lines are written under the store mask, the load mask is for the columns of the last, partial
// block.
func (g *gen) transpose() {
	g.begin("transpose", "moveArgs", "the transpose of a strip of rows.")
	t, dst, src, ldd, lds, rows, cols := reg.RDI, reg.RDX, reg.RSI, reg.R8, reg.R9, reg.RCX, reg.RBX
	from, lines := reg.R13, reg.RAX
	n := g.lanes
	g.MOVQ(at(t, mDst), dst)
	g.MOVQ(at(t, mSrc), src)
	g.MOVQ(at(t, mLdd), ldd)
	g.MOVQ(at(t, mLds), lds)
	g.MOVQ(at(t, mCols), cols)
	in, out := g.r[:n], g.r[:n]
	var load, store []operand.Op
	if g.wide {
		g.MOVL(operand.U32(0xFFFF), reg.EAX)
		g.KMOVW(reg.EAX, reg.K1)
		g.KMOVW(at(t, mStore), reg.K2)
		load, store = []operand.Op{reg.K1}, []operand.Op{reg.K2}
	} else {
		g.MOVQ(at(t, mAllLanes), reg.R10)
		g.MOVQ(at(t, mStoreLanes), reg.R11)
		load, store = []operand.Op{at(reg.R10, 0)}, []operand.Op{at(reg.R11, 0)}
	}
	g.Label("block")
	g.MOVQ(imm(n), lines)
	g.CMPQ(cols, lines)
	g.JGE(ref("whole"))
	g.MOVQ(cols, lines)
	if g.wide {
		g.KMOVW(at(t, mLoad), reg.K1)
	} else {
		g.MOVQ(at(t, mLoadLanes), reg.R10)
	}
	g.Label("whole")
	g.SUBQ(lines, cols)
	g.MOVQ(at(t, mRows), rows)
	g.MOVQ(src, from)
	for i := range n {
		g.zero(in[i])
	}
	for i := range n {
		g.loadMasked(at(from, 0), load, 0, in[i])
		if i < n-1 {
			g.ADDQ(lds, from)
			g.DECQ(rows)
			g.JZ(ref("read"))
		}
	}
	g.Label("read")
	if g.wide {
		g.transpose16()
	} else {
		out = g.transpose8()
	}
	if !g.wide { // masked stores of AVX2 are slow on some machines: whole lines of whole blocks avoid them
		g.CMPQ(lines, imm(n))
		g.JNE(ref("masked"))
		g.CMPQ(reg.R10, reg.R11)
		g.JNE(ref("masked"))
		for i := range n {
			g.VMOVUPS(out[i], at(dst, 0))
			g.ADDQ(ldd, dst)
		}
		g.JMP(ref("written"))
		g.Label("masked")
	}
	for i := range n {
		g.storeMasked(out[i], store, 0, at(dst, 0))
		g.ADDQ(ldd, dst)
		if i < n-1 {
			g.DECQ(lines)
			g.JZ(ref("written"))
		}
	}
	g.Label("written")
	g.ADDQ(imm(g.bytes()), src)
	g.TESTQ(cols, cols)
	g.JNZ(ref("block"))
	g.end()
}

// transpose16 transposes registers 0 to 15 in place, using 16 to 31.
func (g *gen) transpose16() {
	lo, hi := g.r[:16], g.r[16:]
	for i := 0; i < 16; i += 2 {
		g.VUNPCKLPS(lo[i+1], lo[i], hi[i])
		g.VUNPCKHPS(lo[i+1], lo[i], hi[i+1])
	}
	for i := 0; i < 16; i += 4 {
		g.VUNPCKLPD(hi[i+2], hi[i], lo[i])
		g.VUNPCKHPD(hi[i+2], hi[i], lo[i+1])
		g.VUNPCKLPD(hi[i+3], hi[i+1], lo[i+2])
		g.VUNPCKHPD(hi[i+3], hi[i+1], lo[i+3])
	}
	// Lane q of lo[4g+j] holds column 4q+j of rows 4g..4g+3.
	const even, odd = operand.U8(0x88), operand.U8(0xdd)
	for j := range 4 {
		g.VSHUFF32X4(even, lo[4+j], lo[j], hi[j])
		g.VSHUFF32X4(odd, lo[4+j], lo[j], hi[4+j])
		g.VSHUFF32X4(even, lo[12+j], lo[8+j], hi[8+j])
		g.VSHUFF32X4(odd, lo[12+j], lo[8+j], hi[12+j])
	}
	for j := range 4 {
		g.VSHUFF32X4(even, hi[8+j], hi[j], lo[j])
		g.VSHUFF32X4(odd, hi[8+j], hi[j], lo[8+j])
		g.VSHUFF32X4(even, hi[12+j], hi[4+j], lo[4+j])
		g.VSHUFF32X4(odd, hi[12+j], hi[4+j], lo[12+j])
	}
}

// transpose8 transposes registers 0 to 7, using 8 to 15, and returns the registers of the lines.
func (g *gen) transpose8() []reg.VecPhysical {
	lo, hi := g.r[:8], g.r[8:]
	for i := 0; i < 8; i += 2 {
		g.VUNPCKLPS(lo[i+1], lo[i], hi[i])
		g.VUNPCKHPS(lo[i+1], lo[i], hi[i+1])
	}
	for i := 0; i < 8; i += 4 {
		g.VUNPCKLPD(hi[i+2], hi[i], lo[i])
		g.VUNPCKHPD(hi[i+2], hi[i], lo[i+1])
		g.VUNPCKLPD(hi[i+3], hi[i+1], lo[i+2])
		g.VUNPCKHPD(hi[i+3], hi[i+1], lo[i+3])
	}
	// Half h of lo[4g+j] holds column 4h+j of rows 4g to 4g+3. Lines go to registers from 8 on, except the last line,
	// since storing needs the last register for its mask.
	out := append([]reg.VecPhysical(nil), hi...)
	out[7] = lo[0]
	const low, high = operand.U8(0x20), operand.U8(0x31)
	for _, j := range []int{0, 1, 2, 3} {
		g.VPERM2F128(low, lo[4+j], lo[j], out[j])
	}
	for _, j := range []int{0, 1, 2, 3} {
		g.VPERM2F128(high, lo[4+j], lo[j], out[4+j])
	}
	return out
}

// copyRows emits the copy of rows of at most a vector, under the load mask. AVX2 writes whole vectors, whose excess the
// next row overwrites.
func (g *gen) copyRows() {
	g.begin("copyRows", "moveArgs", "rows of at most a vector, copied.")
	t, dst, src, ldd, lds, rows := reg.RDI, reg.RDX, reg.RSI, reg.R8, reg.R9, reg.RCX
	g.MOVQ(at(t, mDst), dst)
	g.MOVQ(at(t, mSrc), src)
	g.MOVQ(at(t, mLdd), ldd)
	g.MOVQ(at(t, mLds), lds)
	g.MOVQ(at(t, mRows), rows)
	if g.wide {
		g.KMOVW(at(t, mLoad), reg.K1)
	} else {
		g.MOVQ(at(t, mLoadLanes), reg.R10)
		g.VMOVUPS(at(reg.R10, 0), g.r[1])
	}
	g.Label("loop")
	g.PREFETCHT0(atx(src, lds, 8, 0))
	if g.wide {
		g.VMOVUPS_Z(at(src, 0), reg.K1, g.r[0])
		g.VMOVUPS(g.r[0], reg.K1, at(dst, 0))
	} else {
		g.VMASKMOVPS(at(src, 0), g.r[1], g.r[0])
		g.VMOVUPS(g.r[0], at(dst, 0))
	}
	g.ADDQ(lds, src)
	g.ADDQ(ldd, dst)
	g.DECQ(rows)
	g.JNZ(ref("loop"))
	g.end()
}

// copyPanel emits the packing of rows of two vectors under the load mask; unused lanes become zero.
func (g *gen) copyPanel() {
	g.begin("copyPanel", "moveArgs", "rows of two vectors, packed.")
	t, dst, src, ldd, lds, rows := reg.RDI, reg.RDX, reg.RSI, reg.R8, reg.R9, reg.RCX
	g.MOVQ(at(t, mDst), dst)
	g.MOVQ(at(t, mSrc), src)
	g.MOVQ(at(t, mLdd), ldd)
	g.MOVQ(at(t, mLds), lds)
	g.MOVQ(at(t, mRows), rows)
	mask := []operand.Op{reg.K1, reg.K2}
	if g.wide {
		g.KMOVW(at(t, mLoad), reg.K1)
		g.KMOVW(at(t, mLoad+2), reg.K2)
	} else {
		g.MOVQ(at(t, mLoadLanes), reg.R10)
		mask = []operand.Op{at(reg.R10, 0), at(reg.R10, 32)}
	}
	g.Label("loop")
	for v := range 2 {
		g.loadMasked(at(src, v*g.bytes()), mask, v, g.r[v])
	}
	g.PREFETCHT0(atx(src, lds, 8, 0))
	for v := range 2 {
		g.VMOVUPS(g.r[v], at(dst, v*g.bytes()))
	}
	g.ADDQ(lds, src)
	g.ADDQ(ldd, dst)
	g.DECQ(rows)
	g.JNZ(ref("loop"))
	g.end()
}
