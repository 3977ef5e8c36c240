package native

import (
	"brood/models"
	"brood/models/native/kernel"
)

// sum adds a second activation: of the same shape, or an image of which every stride-th pixel is used, with zeros for
// missing channels.
type sum struct {
	wire
	stride      int // 0: the shapes are equal
	image, side buffer
}

func (p *plan) sum(l *models.Layer, in int) int {
	o := &sum{}
	block := p.buffers[in].block
	shape := p.model.Shape(l.With)
	if l.Stride > 1 || models.Size(shape) != models.Size(l.In) {
		o.stride, block = l.Stride, true
	}
	in = p.form(in, l.In, block)
	with := p.form(p.results[l.With], shape, block)
	o.image, o.side = shaped(l.In, block), shaped(shape, block)
	o.wire = wire{in: in, with: with, out: p.buffer(o.image), over: true}
	return p.to(o)
}

func (o *sum) forward(p *pass) { p.spread((*sumForward)(o), p.blocks()) }

func (o *sum) backward(p *pass, input bool) {
	if input && &p.dx[0] != &p.dy[0] {
		copy(p.dx[:len(p.all(o.out))], p.dy)
	}
}

type sumForward sum

func (o *sumForward) run(p *pass, k *kernel.Kernels, lo, hi int) {
	from, to := p.span(o.out, lo, hi)
	y, x, z := p.act[o.out], p.act[o.in], p.act[o.with]
	if o.stride == 0 {
		k.Add(y[from:to], x[from:to], z[from:to])
		return
	}
	copy(y[from:to], x[from:to])
	(*sum)(o).pixels(lo, hi, func(a, b int) { k.Add(y[a:a+kernel.Lanes], y[a:a+kernel.Lanes], z[b:b+kernel.Lanes]) })
}

// sideGradient writes the gradient of the second operand; with more it adds it.
func (o *sum) sideGradient(p *pass, dst []float32, more bool) {
	p.sideJob = sideJob{o, dst, more}
	p.spread(&p.sideJob, p.blocks())
}

// sideJob is the job of sideGradient.
type sideJob struct {
	o    *sum
	dst  []float32
	more bool
}

func (s *sideJob) run(p *pass, k *kernel.Kernels, lo, hi int) {
	from, to := p.span(s.o.with, lo, hi)
	dy, dst := p.dy, s.dst
	switch {
	case s.o.stride == 0 && s.more:
		k.Add(dst[from:to], dst[from:to], dy[from:to])
		return
	case s.o.stride == 0:
		copy(dst[from:to], dy[from:to])
		return
	case !s.more:
		clear(dst[from:to])
	}
	s.o.pixels(lo, hi, func(a, b int) { k.Add(dst[b:b+kernel.Lanes], dst[b:b+kernel.Lanes], dy[a:a+kernel.Lanes]) })
}

// pixels calls f with the offsets of each used pixel of the second operand: in the result, and in the operand.
func (o *sum) pixels(lo, hi int, f func(a, b int)) {
	for b := lo; b < hi; b++ {
		for c := range o.side.channels {
			for y := range o.image.h {
				for x := range o.image.w {
					at := b*o.image.floats() + c*o.image.plane() + y*o.image.w + x
					side := b*o.side.floats() + c*o.side.plane() + y*o.stride*o.side.w + x*o.stride
					f(at*kernel.Lanes, side*kernel.Lanes)
				}
			}
		}
	}
}

// constant is a row of parameters for every sample.
type constant struct {
	wire
	n, at int
}

func (p *plan) constant(l *models.Layer, in int) int {
	return p.to(&constant{wire{in: in, with: -1, out: p.buffer(shaped(l.Out, false)), parameters: true}, l.Out[0], l.Bias})
}

func (o *constant) forward(p *pass) {
	row, y := tensor(p.params, p.plan.model, o.at), p.act[o.out]
	for s := range p.n {
		copy(y[s*o.n:(s+1)*o.n], row)
	}
}

func (o *constant) backward(p *pass, _ bool) {
	p.k.ColSum(tensor(p.grad, p.plan.model, o.at), 0, p.dy, o.n, p.n, 1)
}
