package native

import "brood/models/native/kernel"

// relu is max(0, x). A product or a normalisation before it does the forward half on its way, a product behind it the
// backward half.
type relu struct {
	wire
	fused, without bool // forward is done by the op before; backward by the op behind
}

// rectifier works in place where nothing else takes the activation. A normalisation takes over all of it.
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

// takeOver says whether an activation comes straight from a rectifier, whose gradient the caller then does.
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

// run gates once more what the op behind has gated, which changes nothing.
func (o *reluBack) run(p *pass, k *kernel.Kernels, lo, hi int) {
	lo, hi = p.span(o.out, lo, hi)
	k.Gate(p.dx[lo:hi], p.dy[lo:hi], p.act[o.out][lo:hi])
}
