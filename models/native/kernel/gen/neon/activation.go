package main

import (
	"math"

	"brood/models/native/kernel/gen/coef"
)

// spare is the first scratch register of the bodies below.
const spare = vec(8)

// activations emits activations with an exponential, and their gradients, with the operation order of their portable
// variants: x, or dy and x, in registers from 0 on, then the result.
func (g *asm) activations() {
	forward := func(name, doc string, body func(x, y vec)) {
		g.each(name, doc, []int{vX}, []int{vDst}, g.table, func() { body(0, 1) })
	}
	back := func(name, doc string, body func(x, y vec)) {
		g.each(name, doc, []int{vX, vX + 8}, []int{vDst}, g.table, func() {
			body(1, 2)
			g.fmul(2, 0, 2)
		})
	}
	one, s, q := spare+6, spare+7, spare+8
	forward("tanh", "hyperbolic tangents.", g.tanh)
	back("tanhBack", "the gradient through a tanh.", func(x, y vec) {
		g.fmul(x, x, x)
		g.float(y, 1)
		g.fsub(y, y, x)
	})
	forward("silu", "x*sigmoid(x).", func(x, y vec) {
		g.sigmoid(y, x)
		g.bound(x, -coef.ExpLimit, spare, spare+1)
		g.fmul(y, x, y)
	})
	back("siluBack", "the gradient through a silu.", func(x, y vec) {
		g.sigmoid(s, x)
		g.float(one, 1)
		g.fsub(y, one, s)
		g.held(x, spare, spare+1)
		g.fmul(y, x, y)
		g.fadd(y, one, y)
		g.fmul(y, s, y)
	})
	forward("gelu", "x*Phi(x).", func(x, y vec) {
		g.phi(y, q, x)
		g.fmul(y, x, y)
	})
	back("geluBack", "the gradient through a gelu.", func(x, y vec) {
		g.phi(y, q, x)
		g.float(spare, coef.Density)
		g.fmul(q, q, spare)
		g.held(x, spare, spare+1)
		g.fmul(q, x, q)
		g.fadd(y, y, q)
	})
}

// bound limits x to at most c if c is positive, else to at least c; NaN stays NaN. It overwrites t and u.
func (g *asm) bound(x vec, c float32, t, u vec) {
	g.float(t, c)
	if c > 0 {
		g.op3(opFCmGt, u, x, t)
	} else {
		g.op3(opFCmGt, u, t, x)
	}
	g.op3(opBit, x, t, u)
}

// held limits x to the range of exp's arguments.
func (g *asm) held(x, t, u vec) {
	g.bound(x, coef.ExpLimit, t, u)
	g.bound(x, -coef.ExpLimit, t, u)
}

// exp computes e^x in place, with the steps of kernel.exp; it overwrites u, e and t.
func (g *asm) exp(x, u, e, t vec) {
	g.float(t, math.Log2E)
	g.fmul(u, x, t)
	g.float(t, coef.Round)
	g.fadd(e, u, t)
	g.fsub(x, e, t)
	g.fsub(u, u, x) // the fraction
	g.polynomial(x, u, coef.Exp2, t)
	g.shl(e, e, 23)
	g.float(t, 1)
	g.op3(opAdd, e, e, t)
	g.fmul(x, x, e)
}

// polynomial computes y = c[0] + x*(c[1] + ...) by Horner's rule; it overwrites t.
func (g *asm) polynomial(y, x vec, c []float32, t vec) {
	g.float(y, c[len(c)-1])
	for i := len(c) - 2; i >= 0; i-- {
		g.fmul(y, y, x)
		g.float(t, c[i])
		g.fadd(y, y, t)
	}
}

// sigmoid computes y = 1/(1 + e^-x).
func (g *asm) sigmoid(y, x vec) {
	g.float(spare, -1)
	g.fmul(y, x, spare)
	g.held(y, spare, spare+1)
	g.exp(y, spare, spare+1, spare+2)
	g.float(spare, 1)
	g.fadd(y, y, spare)
	g.op3(opFDiv, y, spare, y)
}

// tanh computes y = tanh(x).
func (g *asm) tanh(x, y vec) {
	a, small, u, e, t := spare, spare+1, spare+2, spare+3, spare+4
	g.fmul(a, x, x)
	g.polynomial(small, a, coef.Tanh, t)
	g.fmul(small, small, a)
	g.fmul(small, small, x)
	g.fadd(small, x, small)
	g.op2(opFAbs, a, x)
	g.fadd(y, a, a)
	g.bound(y, coef.ExpLimit, t, u)
	g.exp(y, u, e, t)
	g.float(t, 1)
	g.fadd(y, y, t)
	g.float(e, 2)
	g.op3(opFDiv, y, e, y)
	g.fsub(y, t, y)
	g.constant(t, 1<<31)
	g.op3(opBit, y, x, t) // the sign of x
	g.float(t, coef.TanhSmall)
	g.op3(opFCmGt, t, t, a)
	g.op3(opBit, y, small, t)
}

// phi computes y = Phi(x) and q = e^(-x*x/2).
func (g *asm) phi(y, q, x vec) {
	a, t, u, e := spare, spare+1, spare+2, spare+3
	g.fmul(q, x, x)
	g.float(t, -0.5)
	g.fmul(q, q, t)
	g.bound(q, -coef.ExpLimit, t, u)
	g.exp(q, u, e, t)
	g.op2(opFAbs, a, x)
	g.float(t, coef.PhiScale)
	g.fmul(a, a, t)
	g.float(u, 1)
	g.fadd(a, a, u)
	g.op3(opFDiv, a, u, a)
	g.polynomial(y, a, coef.Phi, t)
	g.fmul(y, y, a)
	g.fmul(y, y, q)
	g.fsub(u, u, y)
	g.sshr(t, x, 31)
	g.op3(opBif, y, u, t) // 1 - y where the sign bit of x is not set
}
