package native

import (
	"brood/models"
	"brood/models/native/kernel"
)

// activation is an elementwise function with a derivative that is not a gate. Its result has its own buffer: the
// backward pass reads the operand, or for tanh the result.
type activation struct {
	wire
	kind models.Kind
	by   float32 // slope of a leaky rectifier, or factor of a scale layer
}

func (p *plan) activation(l *models.Layer, in int) int {
	return p.to(&activation{wire{
		in:   in,
		with: -1,
		out:  p.buffer(p.buffers[in]),
		over: true,
	}, l.Kind, float32(l.Slope + l.Factor)})
}

func (o *activation) forward(p *pass) { p.spread((*activationForward)(o), p.blocks()) }

func (o *activation) backward(p *pass, input bool) {
	if input {
		p.spread((*activationBack)(o), p.blocks())
	}
}

type activationForward activation

func (o *activationForward) run(p *pass, k *kernel.Kernels, lo, hi int) {
	lo, hi = p.span(o.out, lo, hi)
	y, x := p.act[o.out][lo:hi], p.act[o.in][lo:hi]
	switch o.kind {
	case models.LeakyReLU:
		k.LeakyRelu(y, x, o.by)
	case models.Scale:
		k.Times(y, o.by, x)
	case models.Tanh:
		k.Tanh(y, x)
	case models.SiLU:
		k.Silu(y, x)
	case models.GELU:
		k.Gelu(y, x)
	}
}

type activationBack activation

func (o *activationBack) run(p *pass, k *kernel.Kernels, lo, hi int) {
	lo, hi = p.span(o.out, lo, hi)
	dx, dy, x := p.dx[lo:hi], p.dy[lo:hi], p.act[o.in][lo:hi]
	switch o.kind {
	case models.LeakyReLU:
		k.LeakyReluBack(dx, dy, x, o.by)
	case models.Scale:
		k.Times(dx, o.by, dy)
	case models.Tanh:
		k.TanhBack(dx, dy, p.act[o.out][lo:hi])
	case models.SiLU:
		k.SiluBack(dx, dy, x)
	case models.GELU:
		k.GeluBack(dx, dy, x)
	}
}
