package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"brood/models/native/kernel/gen/coef"
)

const signBit = 1 << 31

// activations emits activations and their gradients, with the operation order of their portable variants.
func (g *gen) activations() {
	t, dst, x0, x1 := reg.RDI, reg.RDX, reg.RSI, reg.R8
	r, k, slope := g.r, g.r[6:13], g.r[13]
	// x is the operand, or the operand of the derivative; the result is y. The body may use the other registers.
	x, y := r[0], r[1]
	emit := func(name, doc string, back bool, body func()) {
		g.begin(name, "vecArgs", doc)
		g.MOVQ(at(t, vDst), dst)
		g.MOVQ(at(t, vX), x0)
		g.MOVQ(at(t, vX+8), x1)
		g.VBROADCASTSS(at(t, vC), slope)
		g.expConstants(k)
		g.sweep(t, 1, func(_ int, off reg.Register, mask []operand.Op) {
			g.loadMasked(atx(x1, off, 1, 0), mask, 0, x)
			if body(); back {
				g.loadMasked(atx(x0, off, 1, 0), mask, 0, x)
				g.VMULPS(y, x, y)
			}
			g.storeMasked(y, mask, 0, atx(dst, off, 1, 0))
		})
		g.end()
	}
	emit("leaky", "a leaky relu.", false, func() {
		g.VMULPS(x, slope, r[2])
		g.negative(x, r[2], x, y)
	})
	emit("leakyBack", "the gradient through a leaky relu.", true, func() {
		g.zero(r[2])
		g.float(1, r[3])
		g.above(x, r[2], r[3], slope, y)
	})
	emit("tanh", "hyperbolic tangents.", false, func() { g.tanh(x, y, r[2:6], k) })
	emit("tanhBack", "the gradient through a tanh.", true, func() {
		g.VMULPS(x, x, x)
		g.float(1, y)
		g.VSUBPS(x, y, y)
	})
	emit("silu", "x*sigmoid(x).", false, func() {
		g.sigmoid(x, y, r[2:4], k)
		g.atLeast(-coef.ExpLimit, x, r[2])
		g.VMULPS(y, x, y)
	})
	emit("siluBack", "the gradient through a silu.", true, func() {
		s := r[4]
		g.sigmoid(x, s, r[2:4], k)
		g.float(1, r[2])
		g.VSUBPS(s, r[2], y)
		g.held(x, r[3])
		g.VMULPS(y, x, y)
		g.VADDPS(y, r[2], y)
		g.VMULPS(y, s, y)
	})
	emit("gelu", "x*Phi(x).", false, func() {
		g.phi(x, y, r[2], r[3:6], k)
		g.VMULPS(y, x, y)
	})
	emit("geluBack", "the gradient through a gelu.", true, func() {
		q := r[2]
		g.phi(x, y, q, r[3:6], k)
		g.mulFloat(coef.Density, q, q)
		g.held(x, r[3])
		g.VMULPS(q, x, q)
		g.VADDPS(q, y, y)
	})
}

// mulFloat emits c = b*x and addFloat c = b + x for a constant x.
func (g *gen) mulFloat(x float32, b, c reg.VecPhysical) {
	if g.wide {
		g.VMULPS_BCST(g.consts.float(x), b, c)
	} else {
		g.VMULPS(g.consts.vector(math.Float32bits(x)), b, c)
	}
}

func (g *gen) addFloat(x float32, b, c reg.VecPhysical) {
	if g.wide {
		g.VADDPS_BCST(g.consts.float(x), b, c)
	} else {
		g.VADDPS(g.consts.vector(math.Float32bits(x)), b, c)
	}
}

// andWord emits c = b & x and orVector c = a | b, bitwise.
func (g *gen) andWord(x uint32, b, c reg.VecPhysical) {
	if g.wide {
		g.VPANDD_BCST(g.consts.word(x), b, c)
	} else {
		g.VANDPS(g.consts.vector(x), b, c)
	}
}

func (g *gen) orVector(a, b, c reg.VecPhysical) {
	if g.wide {
		g.VPORD(a, b, c)
	} else {
		g.VORPS(a, b, c)
	}
}

// negative emits d = a if the sign of x is set, else b; d must not be an operand.
func (g *gen) negative(x, a, b, d reg.VecPhysical) {
	if g.wide {
		g.VPMOVD2M(x, reg.K3)
		g.VMOVAPS(b, d)
		g.VMOVAPS(a, reg.K3, d)
		return
	}
	g.VBLENDVPS(x, a, b, d)
}

// above emits d = a if x > y, else b; it overwrites x, and d must not be an operand.
func (g *gen) above(x, y, a, b, d reg.VecPhysical) {
	const greater = operand.U8(30) // ordered and quiet: NaN is not above anything
	if g.wide {
		g.VCMPPS(greater, y, x, reg.K3)
		g.VMOVAPS(b, d)
		g.VMOVAPS(a, reg.K3, d)
		return
	}
	g.VCMPPS(greater, y, x, x)
	g.VBLENDVPS(x, a, b, d)
}

// polynomial emits y = c[0] + x*(c[1] + ...) by Horner's rule.
func (g *gen) polynomial(c []float32, x, y reg.VecPhysical) {
	g.float(c[len(c)-1], y)
	for i := len(c) - 2; i >= 0; i-- {
		g.VMULPS(x, y, y)
		g.addFloat(c[i], y, y)
	}
}

// atLeast and atMost emit x = max(c, x) and x = min(c, x), with operand orders that keep NaN; they overwrite tmp.
func (g *gen) atLeast(c float32, x, tmp reg.VecPhysical) {
	g.float(c, tmp)
	g.VMAXPS(x, tmp, x)
}

func (g *gen) atMost(c float32, x, tmp reg.VecPhysical) {
	g.float(c, tmp)
	g.VMINPS(x, tmp, x)
}

// held emits kernel.held; it overwrites tmp.
func (g *gen) held(x, tmp reg.VecPhysical) {
	g.atMost(coef.ExpLimit, x, tmp)
	g.atLeast(-coef.ExpLimit, x, tmp)
}

// sigmoid emits y = 1/(1 + e^-x).
func (g *gen) sigmoid(x, y reg.VecPhysical, r, k []reg.VecPhysical) {
	a, e := r[0], r[1]
	g.mulFloat(-1, x, a)
	g.held(a, y)
	g.exp(a, y, e, k)
	g.addFloat(1, y, a)
	g.float(1, y)
	g.VDIVPS(a, y, y)
}

// tanh emits y = tanh(x); it overwrites x.
func (g *gen) tanh(x, y reg.VecPhysical, r, k []reg.VecPhysical) {
	a, b, e, small := r[0], r[1], r[2], r[3]
	g.VMULPS(x, x, a)
	g.polynomial(coef.Tanh, a, b)
	g.VMULPS(a, b, b)
	g.VMULPS(x, b, b)
	g.VADDPS(b, x, small)
	g.andWord(signBit-1, x, a)
	g.VADDPS(a, a, a)
	g.atMost(coef.ExpLimit, a, b)
	g.exp(a, b, e, k)
	g.addFloat(1, b, b)
	g.float(2, a)
	g.VDIVPS(b, a, a)
	g.float(1, b)
	g.VSUBPS(a, b, b)
	g.andWord(signBit, x, a)
	g.orVector(a, b, b)
	g.andWord(signBit-1, x, x)
	g.float(coef.TanhSmall, a)
	g.above(a, x, small, b, y)
}

// phi emits y = Phi(x) and q = e^(-x*x/2).
func (g *gen) phi(x, y, q reg.VecPhysical, r, k []reg.VecPhysical) {
	a, e, t := r[0], r[1], r[2]
	g.VMULPS(x, x, a)
	g.mulFloat(-0.5, a, a)
	g.atLeast(-coef.ExpLimit, a, y)
	g.exp(a, q, e, k)
	g.andWord(signBit-1, x, a)
	g.mulFloat(coef.PhiScale, a, a)
	g.addFloat(1, a, a)
	g.float(1, t)
	g.VDIVPS(a, t, t)
	g.polynomial(coef.Phi, t, a)
	g.VMULPS(t, a, a)
	g.VMULPS(q, a, a)
	g.float(1, t)
	g.VSUBPS(a, t, t)
	g.negative(x, a, t, y)
}
