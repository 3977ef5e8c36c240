package native

import "brood/models/native/kernel"

// relu is max(0, x). A product or a normalisation before it may include its forward pass, a product after it its
// backward pass.
type relu struct {
	wire
	fused, without bool // forward is part of the previous op; backward is part of the following op
}

// rectifier works in place if nothing else uses the activation. A normalisation includes all of it.
func (p *plan) rectifier(in int) int {
	o := &relu{wire: wire{in: in, with: -1, out: in, over: true}}
	switch before := p.before(in).(type) {
	case *norm:
		if before.pool == nil {
			before.rectify = true
			return p.same(in)
		}
	case *dense:
		before.rectify, o.fused = true, true
	case *conv:
		before.rectify, o.fused = true, true
	}
	if p.users[in] == 1 {
		p.same(in)
	} else {
		o.out = p.buffer(p.buffers[in])
	}
	return p.to(o)
}

// takeOver reports whether an activation is the result of a rectifier whose backward pass the caller must include.
func (p *plan) takeOver(in int) bool {
	o, ok := p.before(in).(*relu)
	if ok {
		o.without = true
	}
	return ok
}

func (o *relu) forward(p *pass) {
	if !o.fused {
		p.spread((*reluForward)(o), p.blocks())
	}
}

func (o *relu) backward(p *pass, input bool) {
	if input && (!o.without || &p.dx[0] != &p.dy[0]) {
		p.spread((*reluBack)(o), p.blocks())
	}
}

type reluForward relu

func (o *reluForward) run(p *pass, k *kernel.Kernels, lo, hi int) {
	lo, hi = p.span(o.out, lo, hi)
	k.Relu(p.act[o.out][lo:hi], p.act[o.in][lo:hi])
}

type reluBack relu

// run may repeat the gate of the following op, which changes nothing.
func (o *reluBack) run(p *pass, k *kernel.Kernels, lo, hi int) {
	lo, hi = p.span(o.out, lo, hi)
	k.Gate(p.dx[lo:hi], p.dy[lo:hi], p.act[o.out][lo:hi])
}
