package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// pointwise emits elementwise kernels: relu, dst = max(0, x0); gate, dst = x0 where x1 > 0, else 0; and mul, dst =
// x0*x1.
func (g *gen) pointwise() {
	t, dst, x0, x1 := reg.RDI, reg.RDX, reg.RSI, reg.R8
	zero := g.r[12]
	emit := func(name, doc string, body func(x, y reg.VecPhysical, m func(dst reg.VecPhysical, base reg.Register))) {
		g.begin(name, "vecArgs", doc)
		g.MOVQ(at(t, vDst), dst)
		g.MOVQ(at(t, vX), x0)
		g.MOVQ(at(t, vX+8), x1)
		g.zero(zero)
		g.sweep(t, 4, func(n int, off reg.Register, mask []operand.Op) {
			for v := range n {
				x, y := g.r[2*v], g.r[2*v+1]
				body(x, y, func(d reg.VecPhysical, base reg.Register) { g.loadMasked(atx(base, off, 1, v*g.bytes()), mask, 0, d) })
				g.storeMasked(x, mask, 0, atx(dst, off, 1, v*g.bytes()))
			}
		})
		g.end()
	}
	emit("relu", "the positive part.", func(x, _ reg.VecPhysical, load func(reg.VecPhysical, reg.Register)) {
		load(x, x0)
		g.VMAXPS(x, zero, x) // this operand order keeps NaN
	})
	emit("gate", "the gradient through a relu.", func(x, y reg.VecPhysical, load func(reg.VecPhysical, reg.Register)) {
		load(x, x0)
		load(y, x1)
		g.positive(y, zero, x)
	})
	emit("mul", "products.", func(x, y reg.VecPhysical, load func(reg.VecPhysical, reg.Register)) {
		load(x, x0)
		load(y, x1)
		g.VMULPS(y, x, x)
	})
}

// pick emits dst = x1 where the bits of x2, from the lowest on, are 1, else x0, for whole words of 32 elements.
func (g *gen) pick() {
	g.begin("pick", "vecArgs", "elements of two vectors by bits.")
	t, dst, x0, x1, words, n := reg.RDI, reg.RDX, reg.RSI, reg.R8, reg.R9, reg.RCX
	g.MOVQ(at(t, vDst), dst)
	g.MOVQ(at(t, vX), x0)
	g.MOVQ(at(t, vX+8), x1)
	g.MOVQ(at(t, vX+16), words)
	g.MOVQ(at(t, vN), n)
	vectors, word := 32/g.lanes, g.r[8]
	left := g.r[9 : 9+vectors] // shifts that move the bit of each lane to the sign, which AVX2 blends by
	if !g.wide {
		for v, shifts := range left {
			var by []uint32
			for lane := range g.lanes {
				by = append(by, uint32(31-v*g.lanes-lane))
			}
			g.VMOVUPS(g.consts.list(fmt.Sprint("left", v), by...), shifts)
		}
	}
	g.align()
	g.Label("word")
	if !g.wide {
		g.VPBROADCASTD(at(words, 0), word)
	}
	for v := range vectors {
		x, bits, off := g.r[v], g.r[4+v], v*g.bytes()
		g.VMOVUPS(at(x0, off), x)
		if g.wide {
			k := []reg.OpmaskPhysical{reg.K1, reg.K2}[v]
			g.KMOVW(at(words, 2*v), k)
			g.VMOVUPS(at(x1, off), k, x)
		} else {
			g.VPSLLVD(left[v], word, bits)
			g.VBLENDVPS(bits, at(x1, off), x, x)
		}
	}
	for v := range vectors {
		g.VMOVUPS(g.r[v], at(dst, v*g.bytes()))
	}
	g.ADDQ(imm(4), words)
	for _, p := range []reg.Register{x0, x1, dst} {
		g.ADDQ(imm(128), p)
	}
	g.SUBQ(imm(32), n)
	g.JNZ(ref("word"))
	g.end()
}

// lookupBytes emits lookup with permutations of bytes (AVX512-VBMI), 64 at a time: x1 holds the lowest bytes of all
// values, then the next ones. Each of four permutations looks up the low six bits in 64 bytes, and the high two bits
// choose among them. 64 bytes take 26 operations that move lanes, for which Intel CPUs have one 512-bit port; lookup
// takes 48.
func (g *gen) lookupBytes() {
	g.begin("lookupBytes", "vecArgs", "a table of bytes by bytes.")
	t, dst, src, table, next, n := reg.RDI, reg.RDX, reg.RSI, reg.R8, reg.R9, reg.RCX
	g.MOVQ(at(t, vDst), dst)
	g.MOVQ(at(t, vX), src)
	g.MOVQ(at(t, vX+8), table)
	g.MOVQ(at(t, vX+16), next)
	g.MOVQ(at(t, vN), n)
	for i := range 16 {
		g.VMOVDQU64(at(table, 64*i), g.r[i])
	}
	// Bytes are interleaved into words within lanes of sixteen: lane l of the index has bytes 16q+4l to 16q+4l+3 for q
	// = 0 to 3.
	order, sixth, index, found, out := g.r[16], g.r[17], g.r[18], g.r[19:23], g.r[23:27]
	var turned []uint32
	for l := range uint32(4) {
		for q := range uint32(4) {
			turned = append(turned, 4*q+l)
		}
	}
	g.VMOVDQU32(g.consts.list("lookup", turned...), order)
	g.VPBROADCASTD(g.consts.word(0x40404040), sixth)
	g.align()
	g.Label("bytes")
	g.PREFETCHT0(at(next, 0))
	g.VPERMD(at(src, 0), order, index)
	g.VPTESTMB(sixth, index, reg.K1)
	g.VPMOVB2M(index, reg.K2)
	for b, d := range out {
		for q, f := range found {
			g.VPERMB(g.r[4*b+q], index, f)
		}
		g.VPBLENDMB(found[1], found[0], reg.K1, found[0])
		g.VPBLENDMB(found[3], found[2], reg.K1, found[2])
		g.VPBLENDMB(found[2], found[0], reg.K2, d)
	}
	low, high := found[:2], found[2:]
	for i := range 2 {
		g.VPUNPCKLBW(out[2*i+1], out[2*i], low[i])
		g.VPUNPCKHBW(out[2*i+1], out[2*i], high[i])
	}
	g.VPUNPCKLWD(low[1], low[0], out[0])
	g.VPUNPCKHWD(low[1], low[0], out[1])
	g.VPUNPCKLWD(high[1], high[0], out[2])
	g.VPUNPCKHWD(high[1], high[0], out[3])
	for i, r := range out {
		g.VMOVDQU32(r, at(dst, 64*i))
	}
	g.ADDQ(imm(64), src)
	g.ADDQ(imm(64), next)
	g.ADDQ(imm(256), dst)
	g.SUBQ(imm(64), n)
	g.JNZ(ref("bytes"))
	g.end()
}

// lookup emits dst[i] = x1[x0[i]] for bytes x0 and a table of 256 floats, and prefetches as many bytes of x2. AVX-512
// holds the table in sixteen registers: eight permutations look up the low five bits in 32 entries each, and the high
// three bits choose among them. AVX2 has nothing faster than a byte at a time.
func (g *gen) lookup() {
	g.begin("lookup", "vecArgs", "a table of bytes.")
	t, dst, src, table, next, n := reg.RDI, reg.RDX, reg.RSI, reg.R8, reg.R9, reg.RCX
	g.MOVQ(at(t, vDst), dst)
	g.MOVQ(at(t, vX), src)
	g.MOVQ(at(t, vX+8), table)
	g.MOVQ(at(t, vX+16), next)
	g.MOVQ(at(t, vN), n)
	for i := range 16 {
		g.VMOVUPS(at(table, 64*i), g.r[i])
	}
	index, found, bit := g.r[16], g.r[17:25], g.r[25:28]
	choose := []reg.OpmaskPhysical{reg.K1, reg.K2, reg.K3}
	for i := range bit {
		g.VPBROADCASTD(g.consts.word(32<<i), bit[i])
	}
	step := func(mask ...operand.Op) {
		if mask == nil {
			g.VPMOVZXBD(at(src, 0), index)
		} else {
			g.VPMOVZXBD_Z(at(src, 0), mask[0], index)
		}
		for i, k := range choose {
			g.VPTESTMD(bit[i], index, k)
		}
		for i, f := range found {
			g.VMOVDQA32(index, f)
			g.VPERMI2PS(g.r[2*i+1], g.r[2*i], f)
		}
		for i, half := range []int{4, 2, 1} {
			for j := range half {
				g.VBLENDMPS(found[2*j+1], found[2*j], choose[i], found[j])
			}
		}
		g.VMOVUPS(append(append([]operand.Op{found[0]}, mask...), at(dst, 0))...)
	}
	g.SUBQ(imm(16), n)
	g.JLT(ref("rest"))
	g.align()
	g.Label("whole")
	g.PREFETCHT0(at(next, 0))
	step()
	g.ADDQ(imm(16), src)
	g.ADDQ(imm(16), next)
	g.ADDQ(imm(64), dst)
	g.SUBQ(imm(16), n)
	g.JGE(ref("whole"))
	g.Label("rest")
	g.ADDQ(imm(16), n)
	g.JZ(ref("finished"))
	g.KMOVW(at(t, vBits), reg.K4)
	step(reg.K4)
	g.Label("finished")
	g.end()
}

// dropTiny sets numbers below 2^-55 to zero; tiny is twice its bits, which shifts out the sign. It overwrites tmp.
func (g *gen) dropTiny(x, tmp, tiny reg.VecPhysical, large reg.OpmaskPhysical) {
	const atLeast = operand.U8(5)
	g.VPADDD(x, x, tmp)
	g.VPCMPUD(atLeast, tiny, tmp, large)
	g.VMOVDQA32_Z(x, large, x)
}

// round16 emits the upper halves of numbers, rounded like kernel.BF16, by the CPU's conversion after numbers below
// 2^-55 are set to zero. (The conversion itself flushes only numbers below 2^-126 to zero, and keeps NaN.)
func (g *gen) round16() {
	g.begin("round16", "vecArgs", "numbers as bfloat16.")
	t, dst, src, to := reg.RDI, reg.RDX, reg.RSI, reg.R8
	g.MOVQ(at(t, vDst), dst)
	g.MOVQ(at(t, vX), src)
	tiny := g.r[16]
	g.VPBROADCASTD(g.consts.word((127-55)<<24), tiny)
	g.sweep(t, 4, func(n int, off reg.Register, mask []operand.Op) {
		g.MOVQ(off, to)
		g.SHRQ(operand.Imm(1), to)
		g.ADDQ(dst, to)
		for v := range n {
			x, y, large := g.r[2*v], g.r[2*v+1], []reg.OpmaskPhysical{reg.K2, reg.K3, reg.K4, reg.K5}[v]
			g.loadMasked(atx(src, off, 1, v*g.bytes()), mask, 0, x)
			g.dropTiny(x, y, tiny, large)
		}
		for v := 0; v < n; v += 2 {
			x := g.r[2*v]
			switch {
			case n > 1:
				g.roundPairs(x, g.r[2*v+2], x)
				g.VMOVUPS(x, at(to, v*g.bytes()/2))
			case mask == nil:
				g.roundHalf(x, x)
				g.VMOVUPS(x.AsY(), at(to, 0))
			default:
				g.roundHalf(x, x)
				g.VMOVDQU16(x.AsY(), mask[0], at(to, 0))
			}
		}
	})
	g.end()
}

// join16 emits words of two numbers rounded as in round16, the second vector in the upper halves; without a second
// vector the upper halves are zero.
func (g *gen) join16() {
	g.begin("join16", "vecArgs", "two vectors of numbers as words of bfloat16.")
	t, dst, first, second := reg.RDI, reg.RDX, reg.RSI, reg.R8
	g.MOVQ(at(t, vDst), dst)
	g.MOVQ(at(t, vX), first)
	g.MOVQ(at(t, vX+8), second)
	tiny, order := g.r[16], g.r[17]
	g.VPBROADCASTD(g.consts.word((127-55)<<24), tiny)
	turn := make([]uint32, 16)
	for i := range turn {
		turn[i] = uint32(i) | uint32(16+i)<<16
	}
	g.VMOVDQU32(g.consts.list("join", turn...), order)
	g.MOVQ(at(t, vN), reg.RCX)
	g.XORQ(reg.RAX, reg.RAX)
	load := func(from reg.Register, x, y reg.VecPhysical, large reg.OpmaskPhysical) {
		g.VMOVUPS(atx(from, reg.RAX, 1, 0), x)
		g.dropTiny(x, y, tiny, large)
	}
	loop := func(label string, paired bool) {
		x, y := g.r[0], g.r[1]
		g.zero(y)
		g.align()
		g.Label(label)
		load(first, x, g.r[2], reg.K2)
		if paired {
			load(second, y, g.r[3], reg.K3)
		}
		g.roundPairs(x, y, x)
		g.VPERMW(x, order, x)
		g.VMOVUPS(x, atx(dst, reg.RAX, 1, 0))
		g.ADDQ(imm(g.bytes()), reg.RAX)
		g.SUBQ(imm(g.lanes), reg.RCX)
		g.JNZ(ref(label))
		g.end()
	}
	g.TESTQ(second, second)
	g.JZ(ref("single"))
	loop("pair", true)
	loop("single", false)
}

// roundFloats emits numbers rounded like kernel.BF16, as floats, with neighbours swapped.
func (g *gen) roundFloats() {
	g.begin("roundFloats", "vecArgs", "numbers as bfloat16, as floats.")
	t, dst, src := reg.RDI, reg.RDX, reg.RSI
	g.MOVQ(at(t, vDst), dst)
	g.MOVQ(at(t, vX), src)
	top := len(g.r)
	size, one, half, tiny, infinite, none := g.r[top-2], g.r[top-3], g.r[top-4], g.r[top-5], g.r[top-6], g.r[top-7]
	for _, c := range []struct {
		word uint32
		r    reg.VecPhysical
	}{{1<<31 - 1, size}, {1, one}, {1<<15 - 1, half}, {(127 - 55) << 23, tiny}, {0xff << 23, infinite},
		{0x7fc00000, none}} {
		g.VPBROADCASTD(g.consts.word(c.word), c.r)
	}
	g.sweep(t, 2, func(n int, off reg.Register, mask []operand.Op) {
		for v := range n {
			x, y, cut := g.r[3*v], g.r[3*v+1], g.r[3*v+2]
			g.loadMasked(atx(src, off, 1, v*g.bytes()), mask, 0, x)
			g.VPSRLD(operand.Imm(16), x, y)
			if g.wide {
				const below, above = operand.U8(1), operand.U8(6)
				g.VPANDD(one, y, y)
				g.VPADDD(half, y, y)
				g.VPADDD(x, y, y)
				g.VPSRLD(operand.Imm(16), y, y)
				g.VPSLLD(operand.Imm(16), y, y)
				g.VPANDD(size, x, x)
				g.VPCMPUD(below, tiny, x, reg.K2)
				g.VPXORD(y, y, reg.K2, y)
				g.VPCMPUD(above, infinite, x, reg.K3)
				g.VMOVDQA32(none, reg.K3, y)
			} else {
				g.VPAND(one, y, y)
				g.VPADDD(half, y, y)
				g.VPADDD(x, y, y)
				g.VPSRLD(operand.Imm(16), y, y)
				g.VPSLLD(operand.Imm(16), y, y)
				g.VPAND(size, x, x)
				g.VPCMPGTD(x, tiny, cut)
				g.VPANDN(y, cut, y)
				g.VPCMPGTD(infinite, x, cut)
				g.VBLENDVPS(cut, none, y, y)
			}
			g.VPSHUFD(operand.Imm(0xb1), y, y)
			g.storeMasked(y, mask, 0, atx(dst, off, 1, v*g.bytes()))
		}
	})
	g.end()
}
