package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Offsets of kernel.normArgs.
const (
	nmX, nmDY, nmOut, nmSums, nmMore     = 0, 8, 16, 24, 32
	nmMean, nmA, nmB, nmK, nmC, nmD      = 40, 48, 56, 64, 72, 80
	nmRows, nmChannels, nmPlane, nmFloor = 88, 96, 104, 112
	nmBits, nmLanes                      = 120, 128
)

// norm emits batch normalisation: each kernel loops over the channels of a block, and over the rows of 32 samples of
// each. Sums have a lane per sample. Each operation rounds, in the order of the portable variant.
func (g *gen) norm() {
	const mean, a, b, k, c, d = 0, 1, 2, 3, 4, 5 // coefficients, one for each channel
	r := g.r
	coef, floor, mask := r[6:12], r[12], reg.R10
	// walk emits the loops. The coefficients in use are broadcast; with sums the accumulators r[0:sums] continue from
	// stored ones.
	walk := func(name, doc string, use []int, sums int, row func(v int, mem func(base reg.Register) operand.Mem)) {
		g.begin(name, "normArgs", doc)
		t, x, dy, out, off, rows, ptr := reg.RDI, reg.RSI, reg.RDX, reg.R8, reg.RAX, reg.RCX, reg.R9
		for i, p := range []reg.Register{x, dy, out} {
			g.MOVQ(at(t, nmX+8*i), p)
		}
		index := reg.R11 // of the channel, in bytes
		g.XORQ(index, index)
		g.VBROADCASTSS(at(t, nmFloor), floor)
		if g.wide {
			g.KMOVW(at(t, nmBits), reg.K1)
			g.KMOVW(at(t, nmBits+2), reg.K2)
		} else {
			g.MOVQ(at(t, nmLanes), mask)
		}
		g.Label("channel")
		for _, i := range use {
			g.MOVQ(at(t, nmMean+8*i), ptr)
			g.VBROADCASTSS(atx(ptr, index, 1, 0), coef[i])
		}
		for group := 0; group < 128; group += 2 * g.bytes() {
			label := "row" + string(rune('a'+group/64))
			each := func(f func(i int, mem operand.Mem)) {
				for i := range sums {
					g.MOVQ(at(t, nmSums+8*i), ptr)
					for v := range 2 {
						mem := atx(ptr, index, 8, group+v*g.bytes())
						f(2*i+v, mem)
					}
				}
			}
			// Sums of a channel are 128 bytes apart: four times the scaled index of 4 bytes.
			g.SHLQ(operand.Imm(2), index)
			each(func(i int, mem operand.Mem) { g.VMOVUPS(mem, r[i]) })
			g.XORQ(off, off)
			g.MOVQ(at(t, nmRows), rows)
			g.align()
			g.Label(label)
			for v := range 2 {
				row(v, func(base reg.Register) operand.Mem { return atx(base, off, 1, group+v*g.bytes()) })
			}
			g.ADDQ(imm(128), off)
			g.DECQ(rows)
			g.JNZ(ref(label))
			each(func(i int, mem operand.Mem) { g.VMOVUPS(r[i], mem) })
			g.SHRQ(operand.Imm(2), index)
			if !g.wide { // the other half of the lanes
				g.ADDQ(operand.Imm(64), mask)
			}
		}
		if !g.wide {
			g.SUBQ(imm(128), mask)
		}
		for _, p := range []reg.Register{x, dy, out} {
			g.ADDQ(at(t, nmPlane), p)
		}
		g.ADDQ(imm(4), index)
		g.DECQ(at(t, nmChannels))
		g.JNZ(ref("channel"))
		g.end()
	}
	x, dy, out := reg.RSI, reg.RDX, reg.R8
	live := func(v int, y reg.VecPhysical) { // clears the lanes without a sample
		if g.wide {
			g.VMOVAPS_Z(y, []reg.OpmaskPhysical{reg.K1, reg.K2}[v], y)
		} else {
			g.VANDPS(at(mask, v*g.bytes()), y, y)
		}
	}
	u, w := r[4], r[5]
	walk("normSums", "sums of channels.", nil, 1, func(v int, mem func(reg.Register) operand.Mem) {
		g.VMOVUPS(mem(x), u)
		live(v, u)
		g.VADDPS(u, r[v], r[v])
	})
	walk("normSquares", "squared distances to the means.", []int{mean}, 1,
		func(v int, mem func(reg.Register) operand.Mem) {
			g.VMOVUPS(mem(x), u)
			g.VSUBPS(coef[mean], u, u)
			g.VMULPS(u, u, u)
			live(v, u)
			g.VADDPS(u, r[v], r[v])
		})
	affine := func(u reg.VecPhysical) {
		g.VMULPS(coef[a], u, u)
		g.VADDPS(coef[b], u, u)
	}
	walk("normApply", "normalised channels.", []int{a, b}, 0, func(v int, mem func(reg.Register) operand.Mem) {
		g.VMOVUPS(mem(x), u)
		affine(u)
		g.VMAXPS(u, floor, u) // this operand order keeps NaN
		g.VMOVUPS(u, mem(out))
	})
	// gated loads dy into w, zero where the result was not above the floor, and x into u.
	gated := func(mem func(reg.Register) operand.Mem) {
		g.VMOVUPS(mem(x), u)
		g.VMOVUPS(mem(dy), w)
		g.VMOVAPS(u, r[13])
		affine(r[13])
		g.positive(r[13], floor, w)
	}
	walk("normBackSums", "sums of gradients, and of their products with what was normalised.", []int{mean, a, b}, 2,
		func(v int, mem func(reg.Register) operand.Mem) {
			gated(mem)
			g.VSUBPS(coef[mean], u, u)
			g.VMULPS(w, u, u)
			g.VADDPS(w, r[v], r[v])
			g.VADDPS(u, r[2+v], r[2+v])
		})
	walk("normBack", "gradients of the input.", []int{mean, a, b, k, c, d}, 0,
		func(v int, mem func(reg.Register) operand.Mem) {
			gated(mem)
			g.VSUBPS(coef[mean], u, u)
			g.VMULPS(coef[k], w, w)
			g.VMULPS(coef[c], u, u)
			g.VADDPS(u, w, w)
			g.VADDPS(coef[d], w, w)
			live(v, w)
			g.VMOVUPS(w, mem(out))
		})
}
