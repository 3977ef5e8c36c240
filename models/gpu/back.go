package gpu

import (
	"fmt"

	"brood/models"
)

// backwardPass builds the backward pass of a pass. has reports for each activation whether grads holds a part of its
// gradient.
type backwardPass struct {
	*pass
	grads []Memory
	has   []bool
	g     place // rows of the parameters' gradients
}

// gradients allocates memory for the gradients of the activations that need one.
func (p *pass) gradients() (grads []Memory, err error) {
	e := p.e
	grads = make([]Memory, len(e.plan.floats))
	for i, f := range e.plan.floats {
		if !e.plan.needs[i] && i != e.plan.last {
			continue
		}
		name := fmt.Sprintf("gradient of activation %d", i)
		if grads[i], err = e.scratchMemory(name, 4*p.entries*p.most*f); err != nil {
			return nil, err
		}
	}
	return grads, nil
}

// backward appends the gradients of all parameters into rows of g, starting from the gradient of the logits in grads.
// If an activation has several users, the parts of its gradient are added in the order of the backward pass.
func (p *pass) backward(grads []Memory, g place) error {
	plan := p.e.plan
	b := &backwardPass{pass: p, grads: grads, has: make([]bool, len(grads)), g: g}
	b.has[plan.last] = true
	for i := len(plan.ops) - 1; i >= 0; i-- {
		if o := &plan.ops[i]; plan.needs[o.out] && b.has[o.out] {
			if err := b.op(o); err != nil {
				return err
			}
		}
	}
	return nil
}

// op appends the backward pass of an op.
func (b *backwardPass) op(o *op) error {
	dy, input := b.grads[o.out], b.e.plan.needs[o.in]
	n := b.entries * b.most * o.nOut
	switch o.kind {
	case models.ReLU:
		if o.backward {
			b.b.launch("gate", n, 1, dy, b.acts[o.out].m, uint64(n))
		}
	case models.Dropout:
		b.drop(o, dy, dy)
	case models.BatchNorm:
		b.normBack(o, dy, b.g, input)
	case models.LayerNorm:
		b.layerNormBack(o, dy, b.g, input)
	case models.LeakyReLU, models.Tanh, models.SiLU, models.GELU, models.Scale:
		if input {
			b.activationBack(o, dy)
		}
	case models.Constant:
		row := b.tensor(b.g, 0, o.bias)
		b.b.launch("column_sums", o.nOut, b.entries, wordsHere{}, b.sizes, uint32(o.nOut), dy, uint64(b.most*o.nOut), row.m,
			row.at, row.step)
		return nil
	case models.Add:
		b.secondOperand(o, dy)
	default:
		return b.ownGradient(o, dy, input)
	}
	if input {
		b.deliver(o.in, o.out)
	}
	return nil
}

// deliver adds the gradient of activation out, which has the same size as in, to the gradient of in, or makes it that
// gradient.
func (b *backwardPass) deliver(in, out int) {
	switch {
	case in == out:
	case b.has[in]:
		b.sum(in, b.grads[out])
	default: // the gradient of out is no longer used
		b.grads[in], b.grads[out], b.has[in] = b.grads[out], b.grads[in], true
	}
}

// sum adds part to the gradient of an activation.
func (b *backwardPass) sum(in int, part Memory) {
	n := b.entries * b.most * b.e.plan.floats[in]
	b.b.launch("plus", n, 1, b.grads[in], part, uint64(n))
}

// secondOperand appends the gradient of a sum's second operand.
func (b *backwardPass) secondOperand(o *op, dy Memory) {
	if !b.e.plan.needs[o.with] {
		return
	}
	more, f := uint32(0), b.e.plan.floats[o.with]
	if b.has[o.with] {
		more = 1
	}
	b.has[o.with] = true
	b.b.launch("add_back", b.most*f, b.entries, wordsHere{}, b.b.list(o.shape...), b.sizes, uint32(f), more, dy,
		uint64(b.most*o.nOut), uint32(o.nOut), b.grads[o.with], uint64(b.most*f))
}

// ownGradient appends the backward pass of an op whose operand has another size than its result.
func (b *backwardPass) ownGradient(o *op, dy Memory, input bool) error {
	dx := b.grads[o.in]
	if input && b.has[o.in] {
		var err error
		if dx, err = b.e.scratchMemory("part of a gradient", 4*b.entries*b.most*b.e.plan.widest()); err != nil {
			return err
		}
	}
	switch o.kind {
	case models.Dense:
		if o.rows > 1 {
			b.alongBack(o, dy, dx, b.g, input)
		} else {
			b.denseBack(o, dy, dx, b.g, input)
		}
	case models.Embedding:
		b.embedBack(o, dy, b.g)
	case models.MinGRU:
		b.recurBack(o, dy, dx, b.g, input)
	case models.Attention:
		b.attendBack(o, dy, dx, b.g, input)
	case models.Conv:
		b.convBack(o, dy, dx, b.g, input)
	case models.MaxPool, models.AvgPool:
		if input {
			b.poolBack(o, dy, dx)
		}
	case models.GlobalAvg:
		if input {
			b.b.launch("average_back", b.most*o.nIn, b.entries, wordsHere{}, b.sizes, uint32(o.channels), uint32(o.plane), dy,
				uint64(b.most*o.nOut), dx, uint64(b.most*o.nIn))
		}
	}
	if input && b.has[o.in] {
		b.sum(o.in, dx)
	}
	b.has[o.in] = true
	return nil
}

// denseBack appends the gradients of a dense layer's weights and bias and, with input, of its input.
func (p *pass) denseBack(o *op, dy, dx Memory, g place, input bool) {
	d := place{m: dy, step: uint64(p.most * o.nOut), list: none, down: o.nOut, across: 1}
	turned := d
	turned.down, turned.across = 1, o.nOut
	w := p.tensor(g, 0, o.weight)
	w.down, w.across = o.nIn, 1
	p.b.gemm(p.entries, product{
		m:     o.nOut,
		n:     o.nIn,
		k:     p.most,
		sizes: p.sizes,
		sized: 2,
		a:     turned,
		b:     p.acts[o.in],
		c:     w,
	})
	if o.bias >= 0 {
		bias := p.tensor(g, 0, o.bias)
		p.b.launch("column_sums", o.nOut, p.entries, wordsHere{}, p.sizes, uint32(o.nOut), dy, d.step, bias.m, bias.at,
			bias.step)
	}
	if !input {
		return
	}
	back := p.tensor(p.params, p.lo, o.weight)
	back.down, back.across = o.nIn, 1
	x := place{m: dx, step: uint64(p.most * o.nIn), list: none, down: o.nIn, across: 1}
	f := product{m: p.most, n: o.nIn, k: o.nOut, sizes: p.sizes, sized: 1, a: d, b: back, c: x}
	if o.rectified {
		gate := p.acts[o.in]
		f.gate = &gate
	}
	p.b.gemm(p.entries, f)
}
