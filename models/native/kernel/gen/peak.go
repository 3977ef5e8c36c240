package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// peak emits the register-only multiply-add loop that everything is compared with.
func (g *gen) peak() {
	g.Function("peak" + g.name)
	g.Attributes(attr.NOSPLIT)
	g.SignatureExpr("func(n int)")
	g.Doc("peak" + g.name + " does n turns of independent multiply-adds: 24 in AVX-512, 12 in AVX2.")
	g.MOVQ(operand.NewParamAddr("n", 0), reg.RCX)
	for _, r := range g.r {
		g.zero(r)
	}
	chains := len(g.r) * 3 / 4
	g.align()
	g.Label("loop")
	for i := range chains {
		g.VFMADD231PS(g.r[chains], g.r[chains+1], g.r[i])
	}
	g.DECQ(reg.RCX)
	g.JNZ(ref("loop"))
	g.end()
}
