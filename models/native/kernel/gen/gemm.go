package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Offsets of kernel.tileArgs.
const (
	tA, tB, tC, tGate, tBias           = 0, 8, 16, 24, 32
	tRowA, tStepA, tLdb, tLdc, tLdGate = 40, 48, 56, 64, 72
	tK, tFlags, tBits, tLanes, tAlpha  = 80, 88, 96, 104, 112
	tAhead                             = 128
)

// Bits of kernel.tileArgs.flags.
const (
	flagLoad, flagBias, flagGate, flagAdd, flagReLU, flagWhole, flagKeep = 0, 1, 2, 3, 4, 5, 6
)

// gemm emits all tiles. AVX-512: 1 to 14 rows by 32 or 16 columns; B is read in whole vectors, since a masked load
// takes one of Intel's two multiply-add ports, everything else under masks, which cost nothing. AVX2: 1 to 6 rows by 16
// columns, each whole and masked, because its masked stores are slow on some machines.
func (g *gen) gemm() {
	if g.wide {
		for m := 1; m <= 14; m++ {
			g.tile("tile", m, 2, true)
			g.tile("tile", m, 1, true)
		}
		for m := 1; m <= 14; m++ {
			g.tile("pairs", m, 2, true)
			g.tile("pairs", m, 1, true)
		}
		return
	}
	for m := 1; m <= 6; m++ {
		g.tile("tile", m, 2, false)
		g.tile("tile", m, 2, true)
	}
}

// tile emits one register tile of m rows by nv vectors of C. Element (i, k) of A is at a + i*rowA + k*stepA; one of the
// two strides is an element, whether A is stored by rows, by columns or packed. Each element of C is one chain of
// multiply-adds in the order of k. An element of a tile of pairs is a word of two bfloat16, and a step of k is two
// multiply-adds, see dotPairs.
func (g *gen) tile(name string, m, nv int, masked bool) {
	kind := ""
	if masked && !g.wide {
		kind = "Masked"
	}
	doc := "a register tile of a product."
	if name == "pairs" {
		doc = "a register tile of a product of pairs."
	}
	g.begin(fmt.Sprintf("%s%dx%d%s", name, m, nv*g.lanes, kind), "tileArgs", doc)
	t, a0, a9, b, k := reg.RDI, reg.RSI, reg.R8, reg.RDX, reg.RCX
	l1, l3, l5, l7 := reg.R9, reg.R10, reg.R11, reg.R12
	step, ldb, ldb3, flags, c := reg.R13, reg.RBX, reg.R15, reg.RAX, reg.R15
	top := len(g.r)
	acc := func(i, v int) reg.VecPhysical { return g.r[i*nv+v] }
	bv := g.r[top-2:]
	tmp := g.r[top-4 : top-2]
	mask := g.masks(t, nv, masked)
	maskB := mask
	if g.wide {
		maskB = nil
	}

	g.MOVQ(at(t, tA), a0)
	g.MOVQ(at(t, tB), b)
	g.MOVQ(at(t, tC), c)
	g.MOVQ(at(t, tRowA), l1)
	g.MOVQ(at(t, tStepA), step)
	g.MOVQ(at(t, tLdb), ldb)
	g.MOVQ(at(t, tK), k)
	g.MOVQ(at(t, tFlags), flags)

	g.MOVQ(at(t, tLdc), l3)
	for i := range m {
		for v := range nv {
			g.PREFETCHT0(at(c, v*g.bytes()))
			g.zero(acc(i, v))
		}
		if i < m-1 {
			g.ADDQ(l3, c)
		}
	}
	g.when(flags, flagLoad, "start", func() {
		g.MOVQ(at(t, tC), c)
		for i := range m {
			for v := range nv {
				g.loadMasked(at(c, v*g.bytes()), mask, v, acc(i, v))
			}
			if i < m-1 {
				g.ADDQ(l3, c)
			}
		}
	})
	g.TESTQ(k, k)
	g.JZ(ref("done"))

	g.LEAQ(atx(ldb, ldb, 2, 0), ldb3)
	g.CMPQ(step, operand.Imm(4))
	g.JNE(ref("columns"))

	// A by rows: addresses of nine rows from one base, using the multiples 1 to 8 of the stride.
	if m > 3 {
		g.LEAQ(atx(l1, l1, 2, 0), l3)
	}
	if m > 5 {
		g.LEAQ(atx(l1, l1, 4, 0), l5)
	}
	if m > 7 {
		g.LEAQ(atx(l3, l1, 4, 0), l7)
	}
	if m > 9 {
		g.LEAQ(atx(a0, l1, 8, 0), a9)
		g.ADDQ(l1, a9)
	}
	four := func(p, l, l3 reg.Register) []operand.Mem {
		return []operand.Mem{at(p, 0), atx(p, l, 1, 0), atx(p, l, 2, 0), atx(p, l3, 1, 0)}
	}
	rowsOfB := four(b, ldb, ldb3)
	// fetch prefetches what hardware prefetchers miss: eight steps from p, the bytes from disp on.
	fetch := func(u int, p, l, l3, far reg.Register, disps ...int) {
		if m*nv < 12 {
			return
		}
		if u == 0 {
			g.LEAQ(atx(p, l, 8, 0), far)
		}
		for _, d := range disps {
			mem := four(far, l, l3)[u]
			mem.Disp = d
			g.PREFETCHT0(mem)
		}
	}
	multiply := func(u int, a func(i int) operand.Mem) {
		for v := range nv {
			b := rowsOfB[u]
			b.Disp += v * g.bytes()
			g.loadMasked(b, maskB, v, bv[v])
		}
		for i := range m {
			if nv == 1 && name == "tile" {
				g.VFMADD231PS_BCST(a(i), bv[0], acc(i, 0))
				continue
			}
			x := tmp[i%2]
			g.VBROADCASTSS(a(i), x)
			for v := range nv {
				if name == "pairs" {
					g.dotPairs(x, bv[v], acc(i, v))
					continue
				}
				g.VFMADD231PS(x, bv[v], acc(i, v))
			}
		}
	}
	g.byFour(k, "row", func(u int) {
		if g.wide {
			fetch(u, b, ldb, ldb3, step, []int{0, g.bytes()}[:nv]...)
		}
		multiply(u, func(i int) operand.Mem {
			a := rowOf(i, a0, a9, l1, l3, l5, l7)
			a.Disp += 4 * u
			return a
		})
	}, func(u int) {
		g.ADDQ(operand.Imm(uint64(4*u)), a0)
		if m > 9 {
			g.ADDQ(operand.Imm(uint64(4*u)), a9)
		}
		g.LEAQ(atx(b, ldb, uint8(u), 0), b)
	})
	g.JMP(ref("done"))

	// A by columns: the tile's rows are adjacent.
	g.Label("columns")
	step3, ahead := l3, l7
	g.LEAQ(atx(step, step, 2, 0), step3)
	next := g.wide && m*nv >= 12 // prefetches the next panel, a line per round
	if next {
		g.MOVQ(at(t, tAhead), ahead)
	}
	columnsOfA := four(a0, step, step3)
	edges := []int{0, 4*m - 4}
	if !g.wide {
		edges = edges[:1] // few rows seldom span two lines
	}
	g.byFour(k, "column", func(u int) {
		fetch(u, a0, step, step3, l5, edges...)
		if u == 3 && next {
			g.PREFETCHT1(at(ahead, 0))
			g.ADDQ(operand.Imm(64), ahead)
		}
		multiply(u, func(i int) operand.Mem {
			a := columnsOfA[u]
			a.Disp += 4 * i
			return a
		})
	}, func(u int) {
		g.LEAQ(atx(a0, step, uint8(u), 0), a0)
		g.LEAQ(atx(b, ldb, uint8(u), 0), b)
	})
	g.Label("done")
	g.epilogue(m, nv, mask)
	g.end()
}

// byFour emits a loop of four steps of k at a time and a loop for the rest; advance moves the pointers by u steps.
func (g *gen) byFour(k reg.Register, label string, step, advance func(u int)) {
	g.SUBQ(operand.Imm(4), k)
	g.JLT(ref(label + "rest"))
	g.align()
	g.Label(label + "four")
	for u := range 4 {
		step(u)
	}
	advance(4)
	g.SUBQ(operand.Imm(4), k)
	g.JGE(ref(label + "four"))
	g.Label(label + "rest")
	g.ADDQ(operand.Imm(4), k)
	g.JZ(ref("done"))
	g.Label(label + "one")
	step(0)
	advance(1)
	g.DECQ(k)
	g.JNZ(ref(label + "one"))
}

// rowOf returns the address of row i, given the multiples 1, 3, 5 and 7 of the stride and row 9's own base.
func rowOf(i int, base, base9, l1, l3, l5, l7 reg.Register) operand.Mem {
	if i >= 9 {
		base, i = base9, i-9
	}
	switch i {
	case 0:
		return at(base, 0)
	case 3:
		return atx(base, l3, 1, 0)
	case 5:
		return atx(base, l5, 1, 0)
	case 6:
		return atx(base, l3, 2, 0)
	case 7:
		return atx(base, l7, 1, 0)
	}
	return atx(base, l1, uint8(i), 0)
}

// epilogue converts the accumulators to C: a flag enables each step.
func (g *gen) epilogue(m, nv int, mask []operand.Op) {
	t, flags, c, aux, ldc, ldaux := reg.RDI, reg.RAX, reg.R15, reg.R9, reg.R11, reg.R10
	acc := func(i, v int) reg.VecPhysical { return g.r[i*nv+v] }
	x, y := g.r[len(g.r)-1], g.r[len(g.r)-2]
	rows := func(base reg.Register, stride reg.Register, body func(i, v int, mem operand.Mem)) {
		for i := range m {
			for v := range nv {
				body(i, v, at(base, v*g.bytes()))
			}
			if i < m-1 {
				g.ADDQ(stride, base)
			}
		}
	}
	g.MOVQ(at(t, tLdc), ldc)
	g.when(flags, flagBias, "unbiased", func() {
		g.MOVQ(at(t, tBias), aux)
		for v := range nv {
			g.loadMasked(at(aux, v*g.bytes()), mask, v, x)
			for i := range m {
				g.VADDPS(x, acc(i, v), acc(i, v))
			}
		}
	})
	g.when(flags, flagGate, "open", func() {
		g.MOVQ(at(t, tGate), aux)
		g.MOVQ(at(t, tLdGate), ldaux)
		g.zero(y)
		rows(aux, ldaux, func(i, v int, mem operand.Mem) {
			g.loadMasked(mem, mask, v, x)
			g.positive(x, y, acc(i, v))
		})
	})
	g.when(flags, flagAdd, "plain", func() {
		g.MOVQ(at(t, tC), c)
		g.VBROADCASTSS(at(t, tAlpha), y)
		rows(c, ldc, func(i, v int, mem operand.Mem) {
			g.loadMasked(mem, mask, v, x)
			g.VFMADD213PS(x, y, acc(i, v))
		})
	})
	g.when(flags, flagReLU, "linear", func() {
		g.zero(y)
		for i := range m * nv {
			g.VMAXPS(g.r[i], y, g.r[i]) // this operand order keeps NaN
		}
	})
	g.MOVQ(at(t, tC), c)
	rows(c, ldc, func(i, v int, mem operand.Mem) { g.storeMasked(acc(i, v), mask, v, mem) })
}
