package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// masks prepares the edge masks of nv vectors: mask registers in AVX-512, addresses in AVX2, nil if every lane is used.
func (g *gen) masks(t reg.Register, nv int, masked bool) []operand.Op {
	switch {
	case !masked:
		return nil
	case g.wide:
		g.KMOVW(at(t, tBits), reg.K1)
		if nv == 2 {
			g.KMOVW(at(t, tBits+2), reg.K2)
		}
		return []operand.Op{reg.K1, reg.K2}
	}
	g.MOVQ(at(t, tLanes), reg.R12)
	return []operand.Op{at(reg.R12, 0), at(reg.R12, 32)}
}

// loadMasked reads a vector; unused lanes become zero and their memory is not accessed.
func (g *gen) loadMasked(mem operand.Mem, mask []operand.Op, v int, dst reg.VecPhysical) {
	switch {
	case mask == nil:
		g.VMOVUPS(mem, dst)
	case g.wide:
		g.VMOVUPS_Z(mem, mask[v], dst)
	default:
		g.VMOVUPS(mask[v], dst)
		g.VMASKMOVPS(mem, dst, dst)
	}
}

// storeMasked writes the used lanes; in AVX2 it overwrites the last register.
func (g *gen) storeMasked(src reg.VecPhysical, mask []operand.Op, v int, mem operand.Mem) {
	switch {
	case mask == nil:
		g.VMOVUPS(src, mem)
	case g.wide:
		g.VMOVUPS(src, mask[v], mem)
	default:
		m := g.r[len(g.r)-1]
		g.VMOVUPS(mask[v], m)
		g.VMASKMOVPS(src, m, mem)
	}
}

// positive clears the lanes of y where x is not above zero; it overwrites x.
func (g *gen) positive(x, zero, y reg.VecPhysical) {
	const greater = operand.U8(30) // ordered and quiet: NaN is not above zero
	if g.wide {
		g.VCMPPS(greater, zero, x, reg.K3)
		g.VMOVAPS_Z(y, reg.K3, y)
		return
	}
	g.VCMPPS(greater, zero, x, x)
	g.VANDPS(x, y, y)
}
