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
	r, mask := g.r, reg.R10
	u, w, y, floor := r[8], r[9], r[10], r[14]
	coef := append(append([]reg.VecPhysical{}, r[11:14]...), r[:3]...) // the last three where there are no sums
	vectors := 128 / g.bytes()                                         // of a row
	// walk emits the loops. The coefficients in use are broadcast; with sums the accumulators, vectors of each sum,
	// continue from stored ones.
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
		each := func(f func(acc reg.VecPhysical, mem operand.Mem)) {
			// Sums of a channel are 128 bytes apart: four times the scaled index of 4 bytes.
			g.SHLQ(operand.Imm(2), index)
			for i := range sums {
				g.MOVQ(at(t, nmSums+8*i), ptr)
				for v := range vectors {
					f(r[vectors*i+v], atx(ptr, index, 8, v*g.bytes()))
				}
			}
			g.SHRQ(operand.Imm(2), index)
		}
		g.Label("channel")
		for _, i := range use {
			g.MOVQ(at(t, nmMean+8*i), ptr)
			g.VBROADCASTSS(atx(ptr, index, 1, 0), coef[i])
		}
		each(func(acc reg.VecPhysical, mem operand.Mem) { g.VMOVUPS(mem, acc) })
		g.XORQ(off, off)
		g.MOVQ(at(t, nmRows), rows)
		g.align()
		g.Label("row")
		for v := range vectors {
			row(v, func(base reg.Register) operand.Mem { return atx(base, off, 1, v*g.bytes()) })
		}
		g.ADDQ(imm(128), off)
		g.DECQ(rows)
		g.JNZ(ref("row"))
		each(func(acc reg.VecPhysical, mem operand.Mem) { g.VMOVUPS(acc, mem) })
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
		g.VMOVAPS(u, y)
		affine(y)
		g.positive(y, floor, w)
	}
	walk("normBackSums", "sums of gradients, and of their products with what was normalised.", []int{mean, a, b}, 2,
		func(v int, mem func(reg.Register) operand.Mem) {
			gated(mem)
			g.VSUBPS(coef[mean], u, u)
			g.VMULPS(w, u, u)
			g.VADDPS(w, r[v], r[v])
			g.VADDPS(u, r[vectors+v], r[vectors+v])
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
