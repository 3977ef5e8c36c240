package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// layerNorm emits layer normalisation of one row: sums in sixteen lanes, and elementwise kernels. The order of
// operations is the same as in the portable variant.
func (g *gen) layerNorm() {
	t, dst := reg.RDI, reg.RDX
	src := []reg.Register{reg.RSI, reg.R8, reg.R9} // x and the other sources
	r := g.r
	mean, inverse, sum, product := r[8], r[9], r[10], r[11]
	begin := func(name, doc string) {
		g.begin(name, "vecArgs", doc)
		g.MOVQ(at(t, vDst), dst)
		for i, s := range src {
			g.MOVQ(at(t, vX+8*i), s)
		}
		for i, c := range []reg.VecPhysical{mean, inverse, sum, product} {
			g.VBROADCASTSS(at(t, vC+4*i), c)
		}
	}
	hat := func(x reg.VecPhysical) {
		g.VSUBPS(mean, x, x)
		g.VMULPS(inverse, x, x)
	}
	vectors := 16 / g.lanes
	// sums emits count sums: body stores in terms what an element adds to each sum; load loads a source.
	sums := func(name, doc string, count int, body func(terms []reg.VecPhysical, load func(i int, d reg.VecPhysical))) {
		begin(name, doc)
		n, off := reg.RCX, reg.RAX
		acc := func(s, v int) reg.VecPhysical { return r[2*s+v] }
		for s := range count {
			for v := range vectors {
				g.zero(acc(s, v))
			}
		}
		mask := []operand.Op{reg.K1}
		if g.wide {
			g.KMOVW(at(t, vBits), reg.K1)
		} else {
			g.MOVQ(at(t, vLanes), reg.R10)
			mask = []operand.Op{at(reg.R10, 0), at(reg.R10, 32)}
		}
		terms := r[4:6]
		step := func(mask []operand.Op) {
			for v := range vectors {
				body(terms, func(i int, d reg.VecPhysical) { g.loadMasked(atx(src[i], off, 1, v*g.bytes()), mask, v, d) })
				for s := range count {
					switch {
					case mask == nil:
					case g.wide:
						g.VMOVAPS_Z(terms[s], mask[v], terms[s])
					default:
						g.VANDPS(mask[v], terms[s], terms[s])
					}
					g.VADDPS(terms[s], acc(s, v), acc(s, v))
				}
			}
		}
		g.XORQ(off, off)
		g.MOVQ(at(t, vN), n)
		g.SUBQ(imm(16), n)
		g.JLT(ref("rest"))
		g.align()
		g.Label("whole")
		step(nil)
		g.ADDQ(imm(64), off)
		g.SUBQ(imm(16), n)
		g.JGE(ref("whole"))
		g.Label("rest")
		g.ADDQ(imm(16), n)
		g.JZ(ref("finished"))
		step(mask)
		g.Label("finished")
		for s := range count {
			g.fold(r[2*s:2*s+2], terms[0], func(x, y, z operand.Op) { g.VADDPS(x, y, z) })
			g.VMOVSS(acc(s, 0).AsX(), at(dst, 4*s))
		}
		g.end()
	}
	sums("layerSum", "the sum of a row.", 1,
		func(terms []reg.VecPhysical, load func(int, reg.VecPhysical)) { load(0, terms[0]) })
	sums("layerSquares", "squared distances to the mean.", 1,
		func(terms []reg.VecPhysical, load func(int, reg.VecPhysical)) {
			load(0, terms[0])
			g.VSUBPS(mean, terms[0], terms[0])
			g.VMULPS(terms[0], terms[0], terms[0])
		})
	sums("layerBackSums", "sums of gradients, and of their products with what was normalised.", 2,
		func(terms []reg.VecPhysical, load func(int, reg.VecPhysical)) {
			load(1, terms[0])
			load(2, r[6])
			g.VMULPS(r[6], terms[0], terms[0])
			load(0, terms[1])
			hat(terms[1])
			g.VMULPS(terms[0], terms[1], terms[1])
		})
	// each emits an elementwise kernel: the result is in r[0].
	each := func(name, doc string, body func(load func(i int, d reg.VecPhysical))) {
		begin(name, doc)
		g.sweep(t, 1, func(_ int, off reg.Register, mask []operand.Op) {
			body(func(i int, d reg.VecPhysical) { g.loadMasked(atx(src[i], off, 1, 0), mask, 0, d) })
			g.storeMasked(r[0], mask, 0, atx(dst, off, 1, 0))
		})
		g.end()
	}
	x, y := r[0], r[1]
	each("layerApply", "a normalised row.", func(load func(int, reg.VecPhysical)) {
		load(0, x)
		hat(x)
		load(1, y)
		g.VMULPS(y, x, x)
		load(2, y)
		g.VADDPS(y, x, x)
	})
	each("layerBack", "the gradient of a row.", func(load func(int, reg.VecPhysical)) {
		load(0, r[2])
		hat(r[2])
		g.VMULPS(product, r[2], r[2])
		load(1, x)
		load(2, y)
		g.VMULPS(y, x, x)
		g.VSUBPS(sum, x, x)
		g.VSUBPS(r[2], x, x)
		g.VMULPS(inverse, x, x)
	})
	each("layerScale", "the gradient of a scale.", func(load func(int, reg.VecPhysical)) {
		load(0, r[2])
		hat(r[2])
		load(1, y)
		g.VMULPS(r[2], y, y)
		load(2, x)
		g.VADDPS(y, x, x)
	})
}
