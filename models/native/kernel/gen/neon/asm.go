package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// vec is a vector register, V0 to V31, of four floats. General registers are numbers; R18, R27 and R28 are reserved.
type vec int

// asm collects the text of functions. General instructions use Go's assembler syntax; of float vector arithmetic it
// supports only the fused multiply-add, so other instructions are emitted as words, with a comment.
type asm struct {
	text  strings.Builder
	stubs strings.Builder
	name  string
	words []uint32 // of the table of constants, four times each
}

// begin starts a function with one pointer argument, which is loaded into R0.
func (g *asm) begin(name, args, doc string) {
	g.name = name + "NEON"
	fmt.Fprintf(&g.text, "\n// func %s(t *%s)\nTEXT ·%s(SB), NOSPLIT, $0-8\n", g.name, args, g.name)
	fmt.Fprintf(&g.stubs, "\n// %s: %s\n//\n//go:noescape\nfunc %s(t *%s)\n", g.name, doc, g.name, args)
	g.p("MOVD t+0(FP), R0")
}

// p writes a line of Go's assembler.
func (g *asm) p(format string, args ...any) {
	fmt.Fprintf(&g.text, "\t"+format+"\n", args...)
}

func (g *asm) label(name string) { fmt.Fprintf(&g.text, "%s:\n", name) }

func (g *asm) ret() { g.p("RET") }

// word emits an instruction by its bits.
func (g *asm) word(bits uint32, format string, args ...any) {
	fmt.Fprintf(&g.text, "\tWORD $0x%08x // %s\n", bits, fmt.Sprintf(format, args...))
}

// Operations on four floats or words, arrangement 4S: d = n op m.
const (
	opFAdd, opFSub, opFMul, opFDiv   = 0x4E20D400, 0x4EA0D400, 0x6E20DC00, 0x6E20FC00
	opFMla, opFMls                   = 0x4E20CC00, 0x4EA0CC00
	opFCmGt, opFCmGe, opFCmEq        = 0x6EA0E400, 0x6E20E400, 0x4E20E400
	opAnd, opBic, opOrr, opEor       = 0x4E201C00, 0x4E601C00, 0x4EA01C00, 0x6E201C00
	opBsl, opBit, opBif              = 0x6E601C00, 0x6EA01C00, 0x6EE01C00
	opAdd, opSub, opMul              = 0x4EA08400, 0x6EA08400, 0x4EA09C00
	opTrn1, opTrn2, opZip1, opZip2   = 0x4E802800, 0x4E806800, 0x4E803800, 0x4E807800
	opUzp1, opUzp2                   = 0x4E801800, 0x4E805800
	opZip1D, opZip2D                 = 0x4EC03800, 0x4EC07800
	opUMull, opUMull2                = 0x2EA0C000, 0x6EA0C000
	opCmHi, opCmTst                  = 0x6EA03400, 0x4EA08C00
	opFCmGtZ, opFCmLtZ, opFAbs       = 0x4EA0C800, 0x4EA0E800, 0x4EA0F800
	opFSqrt, opSCvtF, opFCvtNS       = 0x6EA1F800, 0x4E21D800, 0x4E21A800
	opSRShl, opSMax, opSMin          = 0x4EA05400, 0x4EA06400, 0x4EA06C00
	opSAddLPB, opSAddLPH             = 0x4E202800, 0x4E602800
	opXtnH, opXtnH2, opXtnB, opXtnB2 = 0x0E612800, 0x4E612800, 0x0E212800, 0x4E212800
	opSDot                           = 0x4E809400
	opFAddD, opFSubD, opFMulD        = 0x4E60D400, 0x4EE0D400, 0x6E60DC00
	opFCvtL, opFCvtL2                = 0x0E617800, 0x4E617800
)

var names = map[uint32]string{
	opFAdd: "fadd", opFSub: "fsub", opFMul: "fmul", opFDiv: "fdiv", opFMla: "fmla", opFMls: "fmls",
	opFCmGt: "fcmgt", opFCmGe: "fcmge", opFCmEq: "fcmeq", opAnd: "and", opBic: "bic", opOrr: "orr", opEor: "eor",
	opBsl: "bsl", opBit: "bit", opBif: "bif", opAdd: "add", opSub: "sub", opMul: "mul", opTrn1: "trn1", opTrn2: "trn2",
	opZip1: "zip1", opZip2: "zip2", opUzp1: "uzp1", opUzp2: "uzp2", opZip1D: "zip1.2d", opZip2D: "zip2.2d",
	opUMull: "umull", opUMull2: "umull2", opCmHi: "cmhi", opCmTst: "cmtst",
	opFCmGtZ: "fcmgt 0", opFCmLtZ: "fcmlt 0", opFAbs: "fabs", opFSqrt: "fsqrt", opSCvtF: "scvtf", opFCvtNS: "fcvtns",
	opSDot: "sdot", opSRShl: "srshl", opSMax: "smax", opSMin: "smin",
	opFAddD: "fadd.2d", opFSubD: "fsub.2d", opFMulD: "fmul.2d", opFCvtL: "fcvtl", opFCvtL2: "fcvtl2",
	opSAddLPB: "saddlp.8h", opSAddLPH: "saddlp.4s", opXtnH: "xtn.4h", opXtnH2: "xtn2.8h", opXtnB: "xtn.8b",
	opXtnB2: "xtn2.16b",
}

// op3 writes d = n op m.
func (g *asm) op3(op uint32, d, n, m vec) {
	g.word(op|uint32(m)<<16|uint32(n)<<5|uint32(d), "%s v%d, v%d, v%d", names[op], d, n, m)
}

// op2 writes d = op n.
func (g *asm) op2(op uint32, d, n vec) {
	g.word(op|uint32(n)<<5|uint32(d), "%s v%d, v%d", names[op], d, n)
}

func (g *asm) fadd(d, n, m vec) { g.op3(opFAdd, d, n, m) }
func (g *asm) fsub(d, n, m vec) { g.op3(opFSub, d, n, m) }
func (g *asm) fmul(d, n, m vec) { g.op3(opFMul, d, n, m) }

// fmla emits d += n*m, rounded once.
func (g *asm) fmla(d, n, m vec) { g.op3(opFMla, d, n, m) }

// fmlaLane emits d += n*m[lane].
func (g *asm) fmlaLane(d, n, m vec, lane int) {
	g.word(0x4F801000|uint32(lane&1)<<21|uint32(lane>>1)<<11|uint32(m)<<16|uint32(n)<<5|uint32(d),
		"fmla v%d, v%d, v%d[%d]", d, n, m, lane)
}

func (g *asm) zero(d vec)   { g.op3(opEor, d, d, d) }
func (g *asm) mov(d, n vec) { g.op3(opOrr, d, n, n) }

// ext8 combines the upper half of n and the lower half of m.
func (g *asm) ext8(d, n, m vec) {
	g.word(0x6E004000|uint32(m)<<16|uint32(n)<<5|uint32(d), "ext v%d, v%d, v%d, 8", d, n, m)
}

// broadcast loads the word at R(base)+off into all lanes; it overwrites R17.
func (g *asm) broadcast(d vec, base, off int) {
	g.p("ADD $%d, R%d, R17", off, base)
	g.word(0x4D40C800|17<<5|uint32(d), "ld1r v%d, (r17)", d)
}

// table loads the address of the constants into R25, which constant and float need.
func (g *asm) table() { g.p("MOVD $words<>(SB), R25") }

// constant loads the word x into all lanes, float the number x.
func (g *asm) constant(d vec, x uint32) {
	i := slices.Index(g.words, x)
	if i < 0 {
		i, g.words = len(g.words), append(g.words, x)
	}
	g.ldr(d, 25, 16*i)
}

func (g *asm) float(d vec, x float32) { g.constant(d, math.Float32bits(x)) }

// constants writes the table.
func (g *asm) constants() {
	g.text.WriteString("\n")
	for i, x := range g.words {
		for half := range 2 {
			fmt.Fprintf(&g.text, "DATA words<>+%d(SB)/8, $0x%08x%08x\n", 16*i+8*half, x, x)
		}
	}
	fmt.Fprintf(&g.text, "GLOBL words<>(SB), RODATA|NOPTR, $%d\n", 16*len(g.words))
}

// shl, ushr and sshr emit d = n shifted left, right logically, and right arithmetically.
func (g *asm) shl(d, n vec, by int) {
	g.word(0x4F005400|uint32(32+by)<<16|uint32(n)<<5|uint32(d), "shl v%d, v%d, %d", d, n, by)
}

func (g *asm) ushr(d, n vec, by int) {
	g.word(0x6F000400|uint32(64-by)<<16|uint32(n)<<5|uint32(d), "ushr v%d, v%d, %d", d, n, by)
}

func (g *asm) sshr(d, n vec, by int) {
	g.word(0x4F000400|uint32(64-by)<<16|uint32(n)<<5|uint32(d), "sshr v%d, v%d, %d", d, n, by)
}

// move emits loads and stores of one, two and four floats at R(base)+off; off must be a non-negative multiple of the
// size.
func (g *asm) move(op uint32, what string, size int, v vec, base, off int) {
	if off < 0 || off%size != 0 || off/size >= 1<<12 {
		panic(fmt.Sprintf("%s: %s at %d", g.name, what, off))
	}
	g.word(op|uint32(off/size)<<10|uint32(base)<<5|uint32(v), "%s%d, %d(r%d)", what, v, off, base)
}

func (g *asm) ldr(v vec, base, off int)  { g.move(0x3DC00000, "ldr q", 16, v, base, off) }
func (g *asm) str(v vec, base, off int)  { g.move(0x3D800000, "str q", 16, v, base, off) }
func (g *asm) ldr2(v vec, base, off int) { g.move(0xFD400000, "ldr d", 8, v, base, off) }
func (g *asm) ldr1(v vec, base, off int) { g.move(0xBD400000, "ldr s", 4, v, base, off) }
func (g *asm) str1(v vec, base, off int) { g.move(0xBD000000, "str s", 4, v, base, off) }

// pair loads four floats each into v and w.
func (g *asm) pair(v, w vec, base, off int) {
	g.word(0xAD400000|uint32(off/16)&0x7f<<15|uint32(w)<<10|uint32(base)<<5|uint32(v), "ldp q%d, q%d, %d(r%d)", v, w,
		off, base)
}

// next and next1 load four floats, or one, and advance the base.
func (g *asm) next(v vec, base int) {
	g.word(0x3CC00400|16<<12|uint32(base)<<5|uint32(v), "ldr q%d, (r%d), 16", v, base)
}

func (g *asm) next1(v vec, base int) {
	g.word(0xBC400400|4<<12|uint32(base)<<5|uint32(v), "ldr s%d, (r%d), 4", v, base)
}

// put and put1 store four floats, or one, and advance the base.
func (g *asm) put(v vec, base int) {
	g.word(0x3C800400|16<<12|uint32(base)<<5|uint32(v), "str q%d, (r%d), 16", v, base)
}

func (g *asm) put1(v vec, base int) {
	g.word(0xBC000400|4<<12|uint32(base)<<5|uint32(v), "str s%d, (r%d), 4", v, base)
}

// few loads n contiguous floats into registers from v on, four in each, and reads no further.
func (g *asm) few(v vec, n, base int) {
	off := 0
	for ; n >= 4; n -= 4 {
		g.ldr(v, base, off)
		v, off = v+1, off+16
	}
	switch n {
	case 1:
		g.ldr1(v, base, off)
	case 2:
		g.ldr2(v, base, off)
	case 3:
		g.ldr2(v, base, off)
		g.ldr1(v+1, base, off+8)
	}
}

// fewLane returns the register and lane of element i of n loaded by few.
func fewLane(v vec, n, i int) (vec, int) {
	if n%4 == 3 && i == n-1 {
		return v + vec(i/4) + 1, 0
	}
	return v + vec(i/4), i % 4
}

// lane loads a float into one lane of v, and keeps the others.
func (g *asm) lane(v vec, lane, base int) {
	g.word(0x0DDF8000|uint32(lane>>1)<<30|uint32(lane&1)<<12|uint32(base)<<5|uint32(v), "ld1 v%d[%d], (r%d), 4", v,
		lane, base)
}

// unless jumps to the label if a bit of a register is not set.
func (g *asm) unless(r, bit int, label string) { g.p("TBZ $%d, R%d, %s", bit, r, label) }

// rectify computes max(0, d); NaN and minus zero stay unchanged.
func (g *asm) rectify(d, tmp vec) {
	g.op2(opFCmLtZ, tmp, d)
	g.op3(opBic, d, d, tmp)
}

// gate keeps d where y > 0, else zero; it overwrites y.
func (g *asm) gate(d, y vec) {
	g.op2(opFCmGtZ, y, y)
	g.op3(opAnd, d, d, y)
}
