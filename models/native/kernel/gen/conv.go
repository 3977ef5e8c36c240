package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Offsets of kernel.convArgs.
const (
	cA, cB, cC, cBias, cTab, cGate            = 0, 8, 16, 24, 32, 40
	cLdc, cK, cPixels, cStepB, cStepC, cFlags = 48, 56, 64, 72, 80, 88
)

// ahead is the number of taps by which samples are prefetched: their distance is too large for hardware prefetchers. A
// tap of a large tile takes 14 cycles, an access to a third-level cache about 200. The table has as many extra entries.
const ahead = 16

// conv emits a tile of m channels by two vectors of samples, for a run of pixels. The table holds, for every k, the row
// of A, which is packed, and the offset of B's: a tap's samples are contiguous everywhere, so activations are never
// packed, and padding only shortens the table. With flagLoad the sums continue from C.
func (g *gen) conv(m int) {
	g.begin(fmt.Sprintf("conv%d", m), "convArgs", "a tile of a convolution, for a run of pixels.")
	t, a, b, c, k, tab, ra, rb, next := reg.RDI, reg.RSI, reg.RDX, reg.R15, reg.RCX, reg.R13, reg.RBX, reg.RAX, reg.R8
	top := len(g.r)
	acc := func(i, v int) reg.VecPhysical { return g.r[2*i+v] }
	bv, tmp := g.r[top-2:], g.r[top-4:top-2]

	g.MOVQ(at(t, cA), a)
	g.MOVQ(at(t, cB), b)
	g.MOVQ(at(t, cC), c)
	g.Label("pixel")
	for i := range 2 * m {
		g.zero(g.r[i])
	}
	g.MOVQ(at(t, cFlags), rb)
	g.when(rb, flagLoad, "fresh", func() {
		g.MOVQ(c, next)
		for i := range m {
			for v := range 2 {
				g.VMOVUPS(at(next, v*g.bytes()), acc(i, v))
			}
			g.ADDQ(at(t, cLdc), next)
		}
	})
	g.MOVQ(at(t, cTab), tab)
	g.MOVQ(at(t, cK), k)
	g.byFour(k, "tap", func(entry int) {
		scale := g.loadRow(m, at(tab, 8*entry), ra)
		g.MOVLQSX(at(tab, 8*entry+4), rb)
		g.MOVLQSX(at(tab, 8*(entry+ahead)+4), next)
		for v := range 2 {
			g.VMOVUPS(atx(b, rb, 1, v*g.bytes()), bv[v])
		}
		for disp := 0; disp < 2*g.bytes(); disp += 64 {
			g.PREFETCHT0(atx(b, next, 1, disp))
		}
		for i := range m {
			x := tmp[i%2]
			g.VBROADCASTSS(atx(a, ra, scale, 4*i), x)
			for v := range 2 {
				g.VFMADD231PS(x, bv[v], acc(i, v))
			}
		}
	}, func(u int) { g.ADDQ(operand.Imm(uint64(8*u)), tab) })
	g.Label("done")

	gate, p, zero, x := ra, next, bv[0], bv[1]
	g.MOVQ(at(t, cFlags), rb)
	g.when(rb, flagBias, "unbiased", func() {
		g.MOVQ(at(t, cBias), p)
		for i := range m {
			g.VBROADCASTSS(at(p, 4*i), x)
			for v := range 2 {
				g.VADDPS(x, acc(i, v), acc(i, v))
			}
		}
	})
	g.zero(zero)
	g.when(rb, flagGate, "open", func() {
		g.MOVQ(c, gate) // no pointer past the gate may be in memory, where the collector would find it
		g.SUBQ(at(t, cC), gate)
		g.ADDQ(at(t, cGate), gate)
		for i := range m {
			for v := range 2 {
				g.VMOVUPS(at(gate, v*g.bytes()), x)
				g.positive(x, zero, acc(i, v))
			}
			g.ADDQ(at(t, cLdc), gate)
		}
	})
	g.when(rb, flagReLU, "linear", func() {
		for i := range 2 * m {
			g.VMAXPS(g.r[i], zero, g.r[i])
		}
	})
	g.MOVQ(c, p)
	for i := range m {
		for v := range 2 {
			g.VMOVUPS(acc(i, v), at(p, v*g.bytes()))
		}
		g.ADDQ(at(t, cLdc), p)
	}
	g.ADDQ(at(t, cStepB), b)
	g.ADDQ(at(t, cStepC), c)
	g.DECQ(at(t, cPixels))
	g.JNZ(ref("pixel"))
	g.end()
}

// loadRow loads the number of a row of m words into r, and returns the scale at which it addresses the row. In AVX2 a
// multiplication would take a port of the multiply-adds, of which a tap has too few to hide it.
func (g *gen) loadRow(m int, number operand.Mem, r reg.GPPhysical) (scale uint8) {
	if g.wide {
		g.IMUL3L(operand.U8(4*m), number, r.As32())
		return 1
	}
	g.MOVLQSX(number, r)
	by := []struct{ factor, scale uint8 }{1: {1, 4}, {1, 8}, {3, 4}, {2, 8}, {5, 4}, {3, 8}}[m]
	if by.factor > 1 {
		g.LEAQ(atx(r, r, by.factor-1, 0), r)
	}
	return by.scale
}

// convRow emits a tile of one channel by two vectors of samples for four pixels at a time; their number must be a
// multiple of four. A single pixel, as in a depthwise convolution, would wait for each of its additions. A sum runs
// over the taps in the same order as in conv.
func (g *gen) convRow() {
	const pixels = 4
	g.begin("convRow", "convArgs", "one channel of a convolution, for a run of pixels.")
	t, a, c, k, tab, ra, rb := reg.RDI, reg.RSI, reg.R15, reg.RCX, reg.R13, reg.RBX, reg.RAX
	b := []reg.Register{reg.RDX, reg.R9, reg.R10, reg.R11}
	acc := func(p, v int) reg.VecPhysical { return g.r[2*p+v] }
	w, zero, x := g.r[2*pixels], g.r[2*pixels+1], g.r[2*pixels+2]

	g.MOVQ(at(t, cA), a)
	g.MOVQ(at(t, cB), b[0])
	g.MOVQ(at(t, cC), c)
	g.zero(zero)
	g.Label("pixel")
	for p := 1; p < pixels; p++ {
		g.MOVQ(b[p-1], b[p])
		g.ADDQ(at(t, cStepB), b[p])
	}
	for i := range 2 * pixels {
		g.zero(g.r[i])
	}
	g.MOVQ(at(t, cTab), tab)
	g.MOVQ(at(t, cK), k)
	g.byFour(k, "tap", func(entry int) {
		g.MOVLQSX(at(tab, 8*entry), ra)
		g.MOVLQSX(at(tab, 8*entry+4), rb)
		g.VBROADCASTSS(atx(a, ra, 4, 0), w)
		for p := range pixels {
			for v := range 2 {
				g.VFMADD231PS(atx(b[p], rb, 1, v*g.bytes()), w, acc(p, v))
			}
		}
	}, func(u int) { g.ADDQ(operand.Imm(uint64(8*u)), tab) })
	g.Label("done")
	flags, gate := rb, ra
	g.MOVQ(at(t, cFlags), flags)
	g.when(flags, flagBias, "unbiased", func() {
		g.MOVQ(at(t, cBias), gate)
		g.VBROADCASTSS(at(gate, 0), x)
		for i := range 2 * pixels {
			g.VADDPS(x, g.r[i], g.r[i])
		}
	})
	g.when(flags, flagGate, "open", func() {
		g.MOVQ(c, gate) // no pointer past the gate may be in memory, where the collector would find it
		g.SUBQ(at(t, cC), gate)
		g.ADDQ(at(t, cGate), gate)
		for p := range pixels {
			for v := range 2 {
				g.VMOVUPS(at(gate, v*g.bytes()), x)
				g.positive(x, zero, acc(p, v))
			}
			g.ADDQ(at(t, cStepC), gate)
		}
	})
	g.when(flags, flagReLU, "linear", func() {
		for i := range 2 * pixels {
			g.VMAXPS(g.r[i], zero, g.r[i])
		}
	})
	for p := range pixels {
		for v := range 2 {
			g.VMOVUPS(acc(p, v), at(c, v*g.bytes()))
		}
		g.ADDQ(at(t, cStepC), c)
	}
	g.MOVQ(b[pixels-1], b[0])
	g.ADDQ(at(t, cStepB), b[0])
	g.SUBQ(operand.Imm(pixels), at(t, cPixels))
	g.JNZ(ref("pixel"))
	g.end()
}
