package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Offsets of kernel.amxArgs.
const (
	xA, xB, xC, xBias, xSums, xConfig               = 0, 8, 16, 24, 32, 40
	xRowA, xLdc, xSteps, xBlocks, xRows             = 48, 56, 64, 72, 80
	xFlags, xBits, xAlpha, xDoneA, xDoneC, xDoneSum = 88, 96, 104, 112, 120, 128
	xNextSum                                        = 136
)

// amxRow is the bytes of a tile's row; amxPair the bytes of 16 rows of two adjacent tiles, as in sums and lines of B.
const amxRow, amxPair = 64, 2048

// amx emits the tile kernels for products of bytes and of pairs of bfloat16: with one or two tiles of 16 rows, and one
// or two of 16 columns.
func (g *gen) amx() {
	for _, name := range []string{"amxBytes", "amxPairs"} {
		for rows := 1; rows <= 2; rows++ {
			for columns := 1; columns <= 2; columns++ {
				g.amxPanel(name, rows, columns)
			}
		}
	}
	g.amxConv(1)
	g.amxConv(2)
	g.Function("issueDotAMX")
	g.Attributes(attr.NOSPLIT)
	g.SignatureExpr("func(n int)")
	g.Doc("issueDotAMX does n turns of 96 independent products of tiles of bytes.")
	g.MOVQ(operand.NewParamAddr("n", 0), reg.RCX)
	whole := make([]uint32, 16)
	whole[0] = 1
	for i := range 8 {
		whole[4+i/2] |= 64 << (16 * (i % 2)) // bytes per row
		whole[12+i/4] |= 16 << (8 * (i % 4)) // rows
	}
	g.LEAQ(g.consts.list("amx", whole...), reg.RSI)
	g.tileConfig(reg.RSI)
	for i := range 8 {
		g.tileZero(i)
	}
	g.Label("loop")
	for i := range issueRounds * 24 {
		g.tileDot("amxBytes", i%4, 4+i/2%2, 6+i%2)
	}
	g.DECQ(reg.RCX)
	g.JNZ(ref("loop"))
	g.tileRelease()
	g.RET()
}

// amxPanel emits a product of blocks of 32 rows of A, or of at most 16, with a panel of B of 32 columns, or of at most
// 16. A step takes 64 bytes of k: 16 words, with a line of 32 columns of B for each. Sums are stored by blocks; they
// continue from stored ones, stay there, or become C row by row.
func (g *gen) amxPanel(name string, rows, columns int) {
	g.begin(fmt.Sprintf("%s%dx%d", name, rows, columns), "amxArgs", "rows by a panel of a product, by tiles.")
	t, a0, a1, b0, b1 := reg.RDI, reg.RSI, reg.R8, reg.RDX, reg.RBX
	steps, rowA, ldb, sums, c, left := reg.RCX, reg.R9, reg.R10, reg.R11, reg.R15, reg.RAX
	flags, ldc := reg.R12, reg.R13
	a, b := []reg.GPPhysical{a0, a1}[:rows], []reg.GPPhysical{b0, b1}[:columns]
	sum := func(i, v int) int { return 2*i + v }
	// each calls f with the address of each tile of the block's sums.
	each := func(f func(tile int, at reg.GPPhysical)) {
		for i := range rows {
			for v := range columns {
				g.LEAQ(at(sums, i*amxPair+v*amxRow), a0)
				f(sum(i, v), a0)
			}
		}
	}
	g.MOVQ(at(t, xConfig), a0)
	g.tileConfig(a0)
	mask := []operand.Op{reg.K1, reg.K2}[:columns]
	g.MOVQ(at(t, xBits), a0)
	g.KMOVW(a0.As32(), reg.K1)
	if columns > 1 {
		g.SHRQ(operand.Imm(16), a0)
		g.KMOVW(a0.As32(), reg.K2)
	}
	g.MOVQ(imm(2*amxRow), ldb)
	g.MOVQ(at(t, xFlags), flags)
	g.MOVQ(at(t, xLdc), ldc)
	g.MOVQ(at(t, xRowA), rowA)

	g.Label("block")
	g.MOVQ(at(t, xSums), sums)
	g.ADDQ(at(t, xDoneSum), sums)
	g.BTQ(operand.Imm(flagLoad), flags)
	g.JCS(ref("goon"))
	each(func(tile int, _ reg.GPPhysical) { g.tileZero(tile) })
	g.JMP(ref("start"))
	g.Label("goon")
	each(func(tile int, at reg.GPPhysical) { g.tileLoad(tile, at, ldb) })
	g.Label("start")
	g.MOVQ(at(t, xB), b0)
	if columns > 1 {
		g.LEAQ(at(b0, amxRow), b1)
	}
	g.MOVQ(at(t, xA), a0)
	g.ADDQ(at(t, xDoneA), a0)
	if rows > 1 {
		g.MOVQ(rowA, a1)
		g.SHLQ(operand.Imm(4), a1)
		g.ADDQ(a0, a1)
	}
	g.MOVQ(at(t, xSteps), steps)
	g.align()
	g.Label("step")
	for v := range columns {
		g.tileLoad(6+v, b[v], ldb)
		for i := range rows {
			if v == 0 {
				g.tileStream(4+i, a[i], rowA)
			}
			g.tileDot(name, sum(i, v), 4+i, 6+v)
		}
	}
	for _, r := range a {
		g.ADDQ(operand.Imm(amxRow), r)
	}
	for _, r := range b {
		g.ADDQ(operand.U32(amxPair), r)
	}
	g.DECQ(steps)
	g.JNZ(ref("step"))
	each(func(tile int, at reg.GPPhysical) { g.tileStore(tile, at, ldb) })
	g.BTQ(operand.Imm(flagKeep), flags)
	g.JCS(ref("kept"))
	g.MOVQ(at(t, xC), c)
	g.ADDQ(at(t, xDoneC), c)
	g.MOVQ(at(t, xRows), left)
	g.amxRows(name, columns, mask, t, sums, c, ldc, left, flags, steps)
	g.SUBQ(at(t, xC), c)
	g.MOVQ(c, at(t, xDoneC))
	g.Label("kept")
	g.MOVQ(rowA, a0)
	g.SHLQ(operand.Imm(5), a0)
	g.ADDQ(a0, at(t, xDoneA))
	g.MOVQ(at(t, xNextSum), a0)
	g.ADDQ(a0, at(t, xDoneSum))
	g.DECQ(at(t, xBlocks))
	g.JNZ(ref("block"))
	g.tileRelease()
	g.end()
}

// amxRows emits the conversion of a block's sums to C: for bytes as in bytesTile, for pairs as in a tile's epilogue.
func (g *gen) amxRows(name string, columns int, mask []operand.Op, t, from, c, ldc, left, flags, aux reg.GPPhysical) {
	bias, alpha, zero := g.r[4:6], g.r[6], g.r[7]
	rows := func(label string, finish func(x reg.VecPhysical, v int)) {
		g.Label(label)
		for v := range columns {
			g.VMOVUPS(at(from, v*amxRow), g.r[v])
		}
		for v := range columns {
			finish(g.r[v], v)
			g.storeMasked(g.r[v], mask, v, at(c, v*amxRow))
		}
		g.ADDQ(operand.U32(2*amxRow), from)
		g.ADDQ(ldc, c)
		g.DECQ(left)
		g.JNZ(ref(label))
	}
	g.MOVQ(at(t, xBias), aux)
	if name == "amxBytes" {
		g.BTQ(operand.Imm(flagWhole), flags)
		g.JCC(ref("floats"))
		rows("whole", func(reg.VecPhysical, int) {})
		g.JMP(ref("stored"))
		g.Label("floats")
		for v := range columns {
			g.loadMasked(at(aux, v*amxRow), mask, v, bias[v])
		}
		g.VBROADCASTSS(at(t, xAlpha), alpha)
		rows("float", func(x reg.VecPhysical, v int) {
			g.VCVTDQ2PS(x, x)
			g.VMULPS(alpha, x, x)
			g.VADDPS(bias[v], x, x)
		})
		g.Label("stored")
		return
	}
	add := func(x reg.VecPhysical, v int) { g.VADDPS(bias[v], x, x) }
	rectify := func(x reg.VecPhysical, _ int) { g.VMAXPS(x, zero, x) } // this operand order keeps NaN
	g.zero(zero)
	g.BTQ(operand.Imm(flagBias), flags)
	g.JCC(ref("unbiased"))
	for v := range columns {
		g.loadMasked(at(aux, v*amxRow), mask, v, bias[v])
	}
	g.BTQ(operand.Imm(flagReLU), flags)
	g.JCC(ref("biased"))
	rows("both", func(x reg.VecPhysical, v int) { add(x, v); rectify(x, v) })
	g.JMP(ref("stored"))
	g.Label("biased")
	rows("bias", add)
	g.JMP(ref("stored"))
	g.Label("unbiased")
	g.BTQ(operand.Imm(flagReLU), flags)
	g.JCC(ref("plain"))
	rows("relu", rectify)
	g.JMP(ref("stored"))
	g.Label("plain")
	rows("sum", func(reg.VecPhysical, int) {})
	g.Label("stored")
}

// Offsets of kernel.amxConvArgs.
const (
	yA, yB, yC, yBias, yTab, yConfig        = 0, 8, 16, 24, 32, 40
	yRowA, yTapA, yLdb, yBlockB, yLdc       = 48, 56, 64, 72, 80
	yTaps, yBlocks, yPixels, yStepB, yStepC = 88, 96, 104, 112, 120
	yChannels, yFlags, yDoneB, yDoneC       = 128, 136, 144, 152
)

// amxConv emits a convolution of some pixels and up to 16 or 32 result channels, each with 32 samples. The table holds
// the first channel's taps: the number of each, and the offset of its input.
func (g *gen) amxConv(rows int) {
	g.begin(fmt.Sprintf("amxConv%d", rows), "amxConvArgs", "a convolution by tiles.")
	t, a0, a1, b0, b1 := reg.RDI, reg.RSI, reg.R8, reg.RDX, reg.RBX
	taps, rowA, ldb, tab, blocks, pixel, tmp, blockB := reg.RCX, reg.R9, reg.R10, reg.R11, reg.RAX, reg.R12,
		reg.R15, reg.R13
	a, b := []reg.GPPhysical{a0, a1}[:rows], []reg.GPPhysical{b0, b1}
	sum := func(i, v int) int { return 2*i + v }
	g.MOVQ(at(t, yConfig), a0)
	g.tileConfig(a0)
	g.Label("pixel")
	for i := range rows {
		for v := range 2 {
			g.tileZero(sum(i, v))
		}
	}
	g.MOVQ(at(t, yRowA), rowA)
	g.MOVQ(at(t, yLdb), ldb)
	g.MOVQ(at(t, yBlockB), blockB)
	g.MOVQ(at(t, yTab), tab)
	g.MOVQ(at(t, yB), pixel)
	g.ADDQ(at(t, yDoneB), pixel)
	g.MOVQ(at(t, yTaps), taps)
	g.TESTQ(taps, taps)
	g.JZ(ref("sums"))
	g.align()
	g.Label("tap")
	g.MOVLQSX(at(tab, 0), a0)
	g.IMULQ(at(t, yTapA), a0)
	g.ADDQ(at(t, yA), a0)
	if rows > 1 {
		g.MOVQ(rowA, a1)
		g.SHLQ(operand.Imm(4), a1)
		g.ADDQ(a0, a1)
	}
	g.MOVLQSX(at(tab, 4), b0)
	g.ADDQ(pixel, b0)
	g.LEAQ(at(b0, amxRow), b1)
	g.MOVQ(at(t, yBlocks), blocks)
	g.Label("block")
	for v := range 2 {
		g.tileLoad(6+v, b[v], ldb)
		for i := range rows {
			if v == 0 {
				g.tileLoad(4+i, a[i], rowA)
			}
			g.tileDot("amxPairs", sum(i, v), 4+i, 6+v)
		}
	}
	for _, r := range a {
		g.ADDQ(operand.Imm(amxRow), r)
	}
	for _, r := range b {
		g.ADDQ(blockB, r)
	}
	g.DECQ(blocks)
	g.JNZ(ref("block"))
	g.ADDQ(operand.Imm(8), tab)
	g.DECQ(taps)
	g.JNZ(ref("tap"))
	g.Label("sums")
	ldc, c := rowA, a0
	g.MOVQ(at(t, yLdc), ldc)
	g.MOVQ(at(t, yC), c)
	g.ADDQ(at(t, yDoneC), c)
	g.MOVQ(c, a1)
	for i := range rows {
		if i > 0 {
			g.MOVQ(ldc, tmp)
			g.SHLQ(operand.Imm(4), tmp)
			g.ADDQ(tmp, a1)
		}
		g.tileStore(sum(i, 0), a1, ldc)
		g.LEAQ(at(a1, amxRow), b0)
		g.tileStore(sum(i, 1), b0, ldc)
	}
	flags, bias := blocks, b1
	g.MOVQ(at(t, yFlags), flags)
	g.TESTQ(flags, flags)
	g.JZ(ref("done"))
	g.MOVQ(at(t, yChannels), taps)
	g.MOVQ(at(t, yBias), bias)
	g.zero(g.r[2])
	g.zero(g.r[3])
	g.Label("channel")
	g.BTQ(operand.Imm(flagBias), flags)
	g.JCC(ref("unbiased"))
	g.VBROADCASTSS(at(bias, 0), g.r[3])
	g.ADDQ(operand.Imm(4), bias)
	for v := range 2 {
		g.VADDPS(at(c, v*amxRow), g.r[3], g.r[v])
	}
	g.JMP(ref("rectify"))
	g.Label("unbiased")
	for v := range 2 {
		g.VMOVUPS(at(c, v*amxRow), g.r[v])
	}
	g.Label("rectify")
	g.BTQ(operand.Imm(flagReLU), flags)
	g.JCC(ref("linear"))
	for v := range 2 {
		g.VMAXPS(g.r[v], g.r[2], g.r[v]) // this operand order keeps NaN
	}
	g.Label("linear")
	for v := range 2 {
		g.VMOVUPS(g.r[v], at(c, v*amxRow))
	}
	g.ADDQ(ldc, c)
	g.DECQ(taps)
	g.JNZ(ref("channel"))
	g.Label("done")
	g.MOVQ(at(t, yStepB), tmp)
	g.ADDQ(tmp, at(t, yDoneB))
	g.MOVQ(at(t, yStepC), tmp)
	g.ADDQ(tmp, at(t, yDoneC))
	g.DECQ(at(t, yPixels))
	g.JNZ(ref("pixel"))
	g.tileRelease()
	g.end()
}

// Instructions on tiles.

func (g *gen) tileConfig(base reg.GPPhysical) { g.vexMemory(none, 0x49, 0, base, nil) }

func (g *gen) tileLoad(tile int, base, stride reg.GPPhysical) {
	g.vexMemory(pF2, 0x4b, tile, base, stride)
}

// tileStream is tileLoad without keeping the data in the first-level cache: rows of A are not needed again before the
// next panel of B.
func (g *gen) tileStream(tile int, base, stride reg.GPPhysical) {
	g.vexMemory(p66, 0x4b, tile, base, stride)
}

func (g *gen) tileStore(tile int, base, stride reg.GPPhysical) {
	g.vexMemory(pF3, 0x4b, tile, base, stride)
}

func (g *gen) tileZero(tile int) { g.vexRegisters(pF2, 0x49, tile, 0, 0) }

func (g *gen) tileRelease() { g.vexRegisters(none, 0x49, 0, 0, 0) }

// tileDot adds the product of tile a (rows) and tile b (words in columns) to tile c.
func (g *gen) tileDot(name string, c, a, b int) {
	if name == "amxBytes" {
		g.vexRegisters(p66, 0x5e, c, a, b) // TDPBUSD
		return
	}
	g.vexRegisters(pF3, 0x5c, c, a, b) // TDPBF16PS
}
