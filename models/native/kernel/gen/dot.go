package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Offsets of kernel.dotArgs.
const (
	dA, dB, dC, dList, dEntries      = 0, 8, 16, 24, 32
	dLda, dLdb, dStepB, dLdcA, dLdcB = 40, 48, 56, 64, 72
	dPlace, dAgain, dAlpha, dSums    = 80, 88, 96, 100
)

// dot emits tiles of m x n dot products along segments of pixels, for weight gradients: C[i][j] += alpha * sum of
// A[i]*B[j]. Both operands are loaded as vectors, ten loads for 25 multiply-adds. The list has an entry per tap: its
// offset in C, the number of segments, and for each segment the offsets in A and B and the number of pixels. A dot
// product has sixteen sums in both instruction sets, computed by AVX2 in two passes; their order is the order of
// kernel.sixteen.
func (g *gen) dot(m, n int) {
	g.begin(fmt.Sprintf("dot%dx%d", m, n), "dotArgs", "tiles of dot products.")
	t, stepB, pixels, list, count := reg.RDI, reg.RSI, reg.RCX, reg.RBX, reg.RAX
	pa, pb, lda, lda3, lda5, lda7, ldb, ldb3 := reg.R8, reg.R9, reg.R10, reg.R11, reg.R12, reg.R13, reg.R15, reg.RDX
	acc := g.r[:m*n]
	bv, spare := g.r[m*n:m*n+n], g.r[m*n+n:]
	g.MOVQ(at(t, dLda), lda)
	g.MOVQ(at(t, dLdb), ldb)
	g.MOVQ(at(t, dStepB), stepB)
	g.MOVQ(at(t, dList), list)
	g.LEAQ(atx(lda, lda, 2, 0), lda3)
	g.LEAQ(atx(lda, lda, 4, 0), lda5)
	g.LEAQ(atx(lda3, lda, 4, 0), lda7)
	g.LEAQ(atx(ldb, ldb, 2, 0), ldb3)
	if g.wide { // the halves that sumLanes takes of a second vector
		g.MOVL(operand.U32(0xcccc), reg.EAX)
		g.KMOVW(reg.EAX, reg.K1)
		g.MOVL(operand.U32(0xff00), reg.EAX)
		g.KMOVW(reg.EAX, reg.K2)
	}
	g.Label("entry")
	passes := 16 / g.lanes
	for pass := range passes {
		label := func(name string) string {
			if pass > 0 {
				return fmt.Sprint(name, pass)
			}
			return name
		}
		for _, r := range acc {
			g.zero(r)
		}
		if pass == 0 {
			g.MOVLQSX(at(list, 0), pa)
			g.MOVQ(pa, at(t, dPlace))
			if passes > 1 {
				g.MOVQ(list, at(t, dAgain))
			}
		} else {
			g.MOVQ(at(t, dAgain), list)
		}
		g.MOVLQSX(at(list, 4), count)
		g.ADDQ(operand.Imm(8), list)
		g.Label(label("segment"))
		g.MOVLQSX(at(list, 0), pa)
		g.MOVLQSX(at(list, 4), pb)
		g.MOVLQSX(at(list, 8), pixels)
		g.ADDQ(at(t, dA), pa)
		g.ADDQ(at(t, dB), pb)
		g.align()
		g.Label(label("pixel"))
		for v := pass; v < 32/g.lanes; v += passes {
			for j := range n {
				b := rowOf(j, pb, nil, ldb, ldb3, nil, nil)
				b.Disp += v * g.bytes()
				g.VMOVUPS(b, bv[j])
			}
			for i := range m {
				x := spare[i%min(len(spare), 2)]
				a := rowOf(i, pa, nil, lda, lda3, lda5, lda7)
				a.Disp += v * g.bytes()
				g.VMOVUPS(a, x)
				for j := range n {
					g.VFMADD231PS(x, bv[j], acc[n*i+j])
				}
			}
		}
		g.ADDQ(imm(128), pa)
		g.ADDQ(stepB, pb)
		g.DECQ(pixels)
		g.JNZ(ref(label("pixel")))
		g.ADDQ(operand.Imm(12), list)
		g.DECQ(count)
		g.JNZ(ref(label("segment")))

		if g.wide {
			for first := 0; first < m*n; first += 16 {
				sums := g.sumLanes(append([]reg.VecPhysical(nil), acc[first:min(first+16, m*n)]...), bv[0])
				g.VMOVUPS(sums, at(t, dSums+4*first))
			}
			continue
		}
		// Four sums of lanes at a time; an incomplete group is filled with spare registers of any content.
		for first := 0; first < m*n; first += 4 {
			four := append([]reg.VecPhysical(nil), acc[first:min(first+4, m*n)]...)
			four = append(four, spare[0], spare[0], spare[0])[:4]
			g.sumQuads(four, bv[0])
			if pass < passes-1 {
				g.VMOVUPS(four[0], at(t, dSums+8*first))
				continue
			}
			g.VADDPS(at(t, dSums+8*first), four[0], four[0])
			g.VEXTRACTF128(operand.Imm(1), four[0], bv[0].AsX())
			g.VADDPS(bv[0].AsX(), four[0].AsX(), four[0].AsX())
			g.VMOVUPS(four[0].AsX(), at(t, dSums+4*first))
		}
	}
	c, p, ldc, alpha, x := pa, pb, count, bv[0], spare[0]
	g.MOVQ(at(t, dC), c)
	g.ADDQ(at(t, dPlace), c)
	g.MOVQ(at(t, dLdcB), ldc)
	g.VMOVSS(at(t, dAlpha), alpha.AsX())
	for i := range m {
		g.MOVQ(c, p)
		for j := range n {
			g.VMOVSS(at(p, 0), x.AsX())
			g.VFMADD231SS(at(t, dSums+4*(n*i+j)), alpha.AsX(), x.AsX())
			g.VMOVSS(x.AsX(), at(p, 0))
			if j < n-1 {
				g.ADDQ(ldc, p)
			}
		}
		if i < m-1 {
			g.ADDQ(at(t, dLdcA), c)
		}
	}
	g.DECQ(at(t, dEntries))
	g.JNZ(ref("entry"))
	g.end()
}

// sumLanes adds the sixteen lanes of each of at most sixteen vectors: by halves in each quad, then the quads by halves.
// Lane i of the result is the sum of vector i. Four times, two vectors become one with half as many lanes each. It
// prefers a shuffle and a blend to two shuffles: of Intel's two ports that add, only one shuffles.
func (g *gen) sumLanes(r []reg.VecPhysical, tmp reg.VecPhysical) reg.VecPhysical {
	half := func(distance int, x, y reg.VecPhysical) {
		switch distance {
		case 2: // x0+x2 x1+x3 y2+y0 y3+y1 in each quad
			g.VSHUFPS(operand.U8(0x4e), y, x, tmp)
			g.VMOVAPS(y, reg.K1, x)
		case 1: // x0+x1 x2+x3 y0+y1 y2+y3
			g.VSHUFPS(operand.U8(0x88), y, x, tmp)
			g.VSHUFPS(operand.U8(0xdd), y, x, x)
		case 8: // the same of quads
			g.VSHUFF32X4(operand.U8(0x4e), y, x, tmp)
			g.VMOVAPS(y, reg.K2, x)
		case 4:
			g.VSHUFF32X4(operand.U8(0x88), y, x, tmp)
			g.VSHUFF32X4(operand.U8(0xdd), y, x, x)
		}
		g.VADDPS(tmp, x, x)
	}
	for _, distance := range []int{2, 1, 8, 4} {
		var next []reg.VecPhysical
		for i := 0; i < len(r); i += 2 {
			half(distance, r[i], r[min(i+1, len(r)-1)])
			next = append(next, r[i])
		}
		r = next
	}
	return r[0]
}

// sumQuads adds the four lanes of each quad of four vectors by halves: each quad of r[0] holds the four sums.
func (g *gen) sumQuads(r []reg.VecPhysical, tmp reg.VecPhysical) {
	for i := 0; i < 4; i += 2 {
		g.VUNPCKLPS(r[i+1], r[i], tmp)
		g.VUNPCKHPS(r[i+1], r[i], r[i])
		g.VADDPS(tmp, r[i], r[i])
	}
	g.VUNPCKLPD(r[2], r[0], tmp)
	g.VUNPCKHPD(r[2], r[0], r[0])
	g.VADDPS(tmp, r[0], r[0])
}

// dots emits the tiles that fit the registers; kernel.table lists the same.
func (g *gen) dots() {
	shapes := [][2]int{{5, 5}, {8, 3}, {8, 1}}
	if !g.wide {
		shapes = [][2]int{{4, 3}, {6, 2}, {4, 1}}
	}
	for _, s := range shapes {
		for m := 1; m <= s[0]; m++ {
			g.dot(m, s[1])
		}
	}
}
