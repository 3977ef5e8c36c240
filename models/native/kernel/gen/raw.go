package main

import (
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Instructions that the assembler lacks, as bytes. All have map 0F38, W0, and one of these prefixes.
const none, p66, pF3, pF2 = 0, 1, 2, 3

// raw emits bytes, the lowest first.
func (g *gen) raw(op string, n int) {
	g.Instruction(&ir.Instruction{Opcode: op, Operands: []operand.Op{operand.U64(uint64(n))}})
}

// number returns a register's number in an instruction.
func number(r reg.Physical) int { return int(r.PhysicalIndex()) }

func not(bit int) int { return bit&1 ^ 1 }

// vexRegisters emits a 128-bit instruction, as for tiles, with operands reg, rm and vvvv.
func (g *gen) vexRegisters(pp, op, r, rm, v int) {
	g.raw("LONG", 0xc4|0xe2<<8|(^v&15<<3|pp)<<16|op<<24)
	g.raw("BYTE", 0xc0|r<<3|rm)
}

// vexMemory emits an instruction with an operand at base, or at base by rows of a stride; index is the stride or nil,
// and not SP. base must not be BP or R13, whose addresses are encoded differently.
func (g *gen) vexMemory(pp, op, r int, base, index reg.GPPhysical) {
	at, by := number(base), 4 // no index
	if index != nil {
		by = number(index)
	}
	g.raw("LONG", 0xc4|(0x82|not(by>>3)<<6|not(at>>3)<<5)<<8|(0x78|pp)<<16|op<<24)
	g.raw("WORD", 4|r<<3|(by&7<<3|at&7)<<8)
}

// dotBytes emits VPDPBUSD z, y, x of AVX-VNNI, in 256 bits: the assembler supports it for AVX-512 only.
func (g *gen) dotBytes(z, y, x reg.VecPhysical) {
	a, b, c := number(x), number(y), number(z)
	g.raw("LONG", 0xc4|(0x42|not(a>>3)<<7|not(c>>3)<<5)<<8|(^b&15<<3|4|p66)<<16|0x50<<24)
	g.raw("BYTE", 0xc0|a&7<<3|c&7)
}

// evex emits a 512-bit instruction with operands reg, rm and vvvv.
func (g *gen) evex(pp, op, r, rm, v int) {
	p0 := not(r>>3)<<7 | not(rm>>4)<<6 | not(rm>>3)<<5 | not(r>>4)<<4 | 2
	p1 := (^v&15)<<3 | 4 | pp
	p2 := 2<<5 | not(v>>4)<<3
	g.raw("LONG", 0x62|p0<<8|p1<<16|p2<<24)
	g.raw("WORD", op|(0xc0|r&7<<3|rm&7)<<8)
}

// dotPairs emits VDPBF16PS z, y, x: it adds to each lane of x the product of the upper halves of that lane's words of y
// and z, then of the lower halves, each rounded once.
func (g *gen) dotPairs(z, y, x reg.VecPhysical) { g.evex(pF3, 0x52, number(x), number(z), number(y)) }

// roundPairs emits VCVTNE2PS2BF16: x becomes z and then y as bfloat16, to nearest, ties to even.
func (g *gen) roundPairs(z, y, x reg.VecPhysical) { g.evex(pF2, 0x72, number(x), number(z), number(y)) }

// roundHalf emits VCVTNEPS2BF16: the lower half of x becomes z as bfloat16.
func (g *gen) roundHalf(z, x reg.VecPhysical) { g.evex(pF3, 0x72, number(x), number(z), 0) }
