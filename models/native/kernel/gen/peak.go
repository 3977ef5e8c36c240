package main

import (
	"bytes"
	"fmt"
	"go/format"
	"slices"
	"strings"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// kinds of vector instructions by execution unit, in the order of kernel.Op, whose last one is loads of any instruction.
var kinds = []struct {
	name string
	// Emits an instruction that depends on none of the others.
	emit func(g *gen, c [2]reg.VecPhysical, r reg.VecPhysical)
	// opcode prefixes of this kind; the last kind takes all others
	opcodes []string
}{
	{"MultiplyAdd", func(g *gen, c [2]reg.VecPhysical, r reg.VecPhysical) { g.VFMADD231PS(c[0], c[1], r) },
		[]string{"VFMADD", "VMULPS", "VADDPS", "VSUBPS", "VCVTDQ2PS"}},
	{"Multiply", func(g *gen, c [2]reg.VecPhysical, r reg.VecPhysical) { g.VPMULUDQ(c[0], c[1], r) },
		[]string{"VPMULUDQ", "VPMULLD", "VPMADD"}},
	{"Shift", func(g *gen, c [2]reg.VecPhysical, r reg.VecPhysical) { g.VPSRLQ(operand.Imm(32), c[0], r) },
		[]string{"VPSRL", "VPSRA", "VPSLL"}},
	{"Root", func(g *gen, c [2]reg.VecPhysical, r reg.VecPhysical) { g.VSQRTPS(c[0], r) }, []string{"VSQRTPS"}},
	{"Dot", func(g *gen, c [2]reg.VecPhysical, r reg.VecPhysical) {
		if g.wide {
			g.VPDPBUSD(c[0], c[1], r)
			return
		}
		tmp := g.r[len(g.r)-1] // after c, which takes two registers in AVX2
		g.VPMADDWD(c[0], c[1], tmp)
		g.VPADDD(tmp, r, r)
	}, []string{"VPDPBUSD"}},
	{"Logic", func(g *gen, c [2]reg.VecPhysical, r reg.VecPhysical) {
		if g.wide {
			g.VPXORD(c[0], c[1], r)
		} else {
			g.VPXOR(c[0], c[1], r)
		}
	}, nil},
}

// issueRounds is the number of instructions per register in a turn of issue: a shorter loop takes longer at some
// addresses.
const issueRounds = 4

// issue emits, for each kind, a loop of independent instructions without memory access, which measures the limit of the
// ports. It uses three quarters of the registers.
func (g *gen) issue() {
	for _, k := range kinds {
		g.Function("issue" + k.name + g.name)
		g.Attributes(attr.NOSPLIT)
		g.SignatureExpr("func(n int)")
		g.Doc("issue" + k.name + g.name + " does n turns of independent instructions: 96 in AVX-512, 48 in AVX2.")
		g.MOVQ(operand.NewParamAddr("n", 0), reg.RCX)
		for _, r := range g.r {
			g.zero(r)
		}
		independent := len(g.r) * 3 / 4
		g.align()
		g.Label("loop")
		for i := range issueRounds * independent {
			k.emit(g, [2]reg.VecPhysical(g.r[independent:]), g.r[i%independent])
		}
		g.DECQ(reg.RCX)
		g.JNZ(ref("loop"))
		g.end()
	}
}

// issueLoad emits the same loop for loads of whole vectors in turn, from memory in the first-level cache.
func (g *gen) issueLoad() {
	g.Function("issueLoad" + g.name)
	g.Attributes(attr.NOSPLIT)
	g.SignatureExpr("func(n int)")
	g.Doc("issueLoad" + g.name + " does n turns of loads: 96 in AVX-512, 48 in AVX2.")
	g.MOVQ(operand.NewParamAddr("n", 0), reg.RCX)
	independent := len(g.r) * 3 / 4
	g.LEAQ(g.consts.list("zeros", make([]uint32, (independent+1)*16)...).Offset(63), reg.RSI)
	g.ANDQ(operand.I8(-64), reg.RSI)
	g.align()
	g.Label("loop")
	for i := range issueRounds * independent {
		g.VMOVUPS(at(reg.RSI, i%independent*g.bytes()), g.r[i%independent])
	}
	g.DECQ(reg.RCX)
	g.JNZ(ref("loop"))
	g.end()
}

// read emits loads of a vector's elements, eight registers a turn, of which their number must be a multiple.
func (g *gen) read() {
	g.begin("read", "vecArgs", "loads of a vector.")
	t, x, n := reg.RDI, reg.RSI, reg.RCX
	g.MOVQ(at(t, vX), x)
	g.MOVQ(at(t, vN), n)
	g.align()
	g.Label("loop")
	for i, r := range g.r[:8] {
		g.VMOVUPS(at(x, i*g.bytes()), r)
	}
	g.ADDQ(imm(8*g.bytes()), x)
	g.SUBQ(imm(8*g.lanes), n)
	g.JG(ref("loop"))
	g.end()
}

// issueDots emits the same loop for AVX-VNNI products of bytes.
func (g *gen) issueDots() {
	g.Function("issueDots" + g.name)
	g.Attributes(attr.NOSPLIT)
	g.SignatureExpr("func(n int)")
	g.Doc("issueDots" + g.name + " does n turns of 48 independent products of bytes.")
	g.MOVQ(operand.NewParamAddr("n", 0), reg.RCX)
	for _, r := range g.r {
		g.zero(r)
	}
	g.align()
	g.Label("loop")
	for i := range issueRounds * 12 {
		g.dotBytes(g.r[12], g.r[13], g.r[i%12])
	}
	g.DECQ(reg.RCX)
	g.JNZ(ref("loop"))
	g.end()
}

// chain emits a loop of dependent additions.
func (g *gen) chain() {
	g.Function("chain")
	g.Attributes(attr.NOSPLIT)
	g.SignatureExpr("func(n int)")
	g.Doc("chain does n turns of 32 additions that wait for each other.")
	g.MOVQ(operand.NewParamAddr("n", 0), reg.RCX)
	g.MOVQ(reg.RCX, reg.RAX)
	g.align()
	g.Label("loop")
	for range 32 {
		g.ADDQ(reg.RAX, reg.RAX)
	}
	g.DECQ(reg.RCX)
	g.JNZ(ref("loop"))
	g.RET()
}

// counted are the inner loops whose instructions are counted: their name, the functions of AVX-512 and of AVX2 without
// the variant, the labels of the loops, and the values computed per turn: of noise, or multiply-adds of the largest
// tile.
var counted = []struct {
	name                   string
	wideIn, slimIn         string
	wide, slim             string
	wideValues, slimValues int
}{
	{"noiseFill", "noiseFill", "noiseFill", "many", "one", 128, 32},
	{"noiseSum", "noiseSum", "noiseSum", "membera", "membera", 128, 32},
	{"noiseBytes", "noiseBytes", "noiseBytes", "many", "one", 128, 32},
	{"noiseWhole", "noiseWhole", "noiseWhole", "membera", "membera", 128, 32},
	{"drop", "drop", "drop", "many", "one", 128, 32},
	{"product", "tile14x32", "tile6x16", "columnfour", "columnfour", 4 * 14 * 32, 4 * 6 * 16},
	{"conv", "conv14", "conv6", "tapfour", "tapfour", 4 * 14 * 32, 4 * 6 * 16},
	{"dot", "dot5x5", "dot4x3", "pixel", "pixel", 5 * 5 * 32, 4 * 3 * 16},
}

// portsFile is the file of the counts.
const portsFile = "ports_amd64.go"

// ports returns the text of portsFile: vector instructions of each kind per value, for each counted loop.
func ports(f *ir.File) ([]byte, error) {
	var out bytes.Buffer
	out.WriteString("// Code generated by command: go generate. DO NOT EDIT.\n\npackage kernel\n\n")
	out.WriteString("// ports are the vector instructions of each kind, in the order of Op, " +
		"that a value of a loop takes.\n")
	out.WriteString("var ports = map[Variant]map[string][Ops]float64{\n")
	for _, variant := range []string{"AVX2", "AVX512"} {
		fmt.Fprintf(&out, "%s: {\n", variant)
		for _, c := range counted {
			function, label, values := c.slimIn, c.slim, c.slimValues
			if variant == "AVX512" {
				function, label, values = c.wideIn, c.wide, c.wideValues
			}
			n, err := loop(f, function+variant, label)
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&out, "%q: {", c.name)
			for _, x := range n {
				fmt.Fprintf(&out, "%d. / %d, ", x, values)
			}
			out.WriteString("},\n")
		}
		out.WriteString("},\n")
	}
	out.WriteString("}\n")
	return format.Source(out.Bytes())
}

// loop counts the vector instructions of each kind, and last all loads, between a label and the jump back to it.
func loop(f *ir.File, function, label string) ([]int, error) {
	count, within := make([]int, len(kinds)+1), false
	for _, fn := range f.Functions() {
		if fn.Name != function {
			continue
		}
		for _, node := range fn.Nodes {
			switch node := node.(type) {
			case ir.Label:
				within = within || string(node) == label
			case *ir.Instruction:
				if !within {
					continue
				}
				if node.IsBranch && len(node.Operands) == 1 && node.Operands[0] == ref(label) {
					return count, nil
				}
				if at := kind(node); at >= 0 {
					count[at]++
				}
				if loads(node) {
					count[len(kinds)]++
				}
			}
		}
	}
	return nil, fmt.Errorf("gen: %s has no loop %q", function, label)
}

// loads reports whether an instruction reads or prefetches memory.
func loads(i *ir.Instruction) bool {
	return i.Opcode != "LEAQ" && slices.ContainsFunc(i.Inputs, operand.IsMem)
}

// kind returns the kind of a vector instruction, or -1 for moves between registers and memory.
func kind(i *ir.Instruction) int {
	if !strings.HasPrefix(i.Opcode, "V") || strings.HasPrefix(i.Opcode, "VMOVU") ||
		strings.HasPrefix(i.Opcode, "VPBROADCAST") || strings.HasPrefix(i.Opcode, "VBROADCAST") {
		return -1
	}
	for at, k := range kinds {
		for _, beginning := range k.opcodes {
			if strings.HasPrefix(i.Opcode, beginning) {
				return at
			}
		}
	}
	return len(kinds) - 1
}
