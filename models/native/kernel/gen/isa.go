package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// gen emits code for one instruction set.
type gen struct {
	*build.Context
	wide   bool // AVX-512
	name   string
	lanes  int
	r      []reg.VecPhysical // vector registers
	consts *consts
	types  map[string]string // of each function's argument: avo cannot refer to a type of the package
}

func newAVX2(ctx *build.Context, c *consts, types map[string]string) *gen {
	return &gen{ctx, false, "AVX2", 8, []reg.VecPhysical{
		reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7,
		reg.Y8, reg.Y9, reg.Y10, reg.Y11, reg.Y12, reg.Y13, reg.Y14, reg.Y15,
	}, c, types}
}

func newAVX512(ctx *build.Context, c *consts, types map[string]string) *gen {
	return &gen{ctx, true, "AVX512", 16, []reg.VecPhysical{
		reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7,
		reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15,
		reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20, reg.Z21, reg.Z22, reg.Z23,
		reg.Z24, reg.Z25, reg.Z26, reg.Z27, reg.Z28, reg.Z29, reg.Z30, reg.Z31,
	}, c, types}
}

// bytes is the size of a vector.
func (g *gen) bytes() int { return 4 * g.lanes }

// begin starts a function with one pointer argument, which is loaded into RDI.
func (g *gen) begin(name, args, doc string) {
	g.Function(name + g.name)
	g.Attributes(attr.NOSPLIT)
	g.SignatureExpr("func(t *byte)")
	g.types[name+g.name] = args
	g.Pragma("noescape")
	g.Doc(name + g.name + ": " + doc)
	g.MOVQ(operand.NewParamAddr("t", 0), reg.RDI)
}

func (g *gen) end() {
	g.VZEROUPPER()
	g.RET()
}

// align pads so that a loop starts a fetch block; avo lacks the directive, so a raw instruction emits it.
func (g *gen) align() {
	g.Instruction(&ir.Instruction{Opcode: "PCALIGN", Operands: []operand.Op{operand.Imm(32)}})
}

func (g *gen) zero(r reg.VecPhysical) {
	if g.wide {
		g.VPXORD(r, r, r)
	} else {
		g.VXORPS(r, r, r)
	}
}

// when emits body, executed only if bit is set in flags.
func (g *gen) when(flags reg.Register, bit int, label string, body func()) {
	g.BTQ(operand.Imm(uint64(bit)), flags)
	g.JCC(ref(label))
	body()
	g.Label(label)
}

func ref(label string) operand.LabelRef { return operand.LabelRef(label) }

func at(base reg.Register, disp int) operand.Mem { return operand.Mem{Base: base, Disp: disp} }

func atx(base, index reg.Register, scale uint8, disp int) operand.Mem {
	return operand.Mem{Base: base, Index: index, Scale: scale, Disp: disp}
}

func imm(n int) operand.Op { return operand.U32(uint32(n)) }

// consts is a table of words in read-only memory that grows as constants are first used.
type consts struct {
	ctx   *build.Context
	mem   operand.Mem
	off   map[uint32]int
	lists map[string]operand.Mem
	size  int
}

func newConsts(ctx *build.Context) *consts {
	c := &consts{ctx: ctx, off: map[uint32]int{}, lists: map[string]operand.Mem{}, mem: ctx.StaticGlobal("words")}
	ctx.DataAttributes(attr.RODATA | attr.NOPTR)
	return c
}

// word returns the address of four bytes x, for a broadcast.
func (c *consts) word(x uint32) operand.Mem {
	if _, ok := c.off[x]; !ok {
		c.off[x] = c.size
		c.table(x)
	}
	return c.mem.Offset(c.off[x])
}

func (c *consts) float(x float32) operand.Mem { return c.word(math.Float32bits(x)) }

// table returns the address of contiguous words.
func (c *consts) table(words ...uint32) operand.Mem {
	m := c.mem.Offset(c.size)
	for _, x := range words {
		c.ctx.AddDatum(c.size, operand.U32(x))
		c.size += 4
	}
	return m
}

// vector returns the address of eight words x.
func (c *consts) vector(x uint32) operand.Mem {
	return c.list(fmt.Sprint("vector", x), x, x, x, x, x, x, x, x)
}

// list returns the address of the named list of words, at a multiple of AVX2's vectors, so that loads of them never
// take two cache lines.
func (c *consts) list(name string, words ...uint32) operand.Mem {
	if _, ok := c.lists[name]; !ok {
		for c.size%32 > 0 {
			c.table(0)
		}
		c.lists[name] = c.table(words...)
	}
	return c.lists[name]
}
