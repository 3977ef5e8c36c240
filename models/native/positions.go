package native

import (
	"brood/models"
	"brood/models/native/kernel"
)

// projection is Y = X W' + b of rows of X, one for each position of a text. Columns [lo, hi) are in units of strips.
type projection struct {
	nIn, nOut, weight, bias int // tensors; bias is -1 when absent
}

func (o *projection) forward(p *pass, k *kernel.Kernels, rows int, y, x []float32, lo, hi int) {
	lo, hi = strip*lo, min(strip*hi, o.nOut)
	m, ep := p.plan.model, kernel.Epilogue{}
	if o.bias >= 0 {
		ep.Bias = tensor(p.params, m, o.bias)[lo:hi]
	}
	k.Gemm(kernel.NT, rows, hi-lo, o.nIn, x, o.nIn, tensor(p.params, m, o.weight)[lo*o.nIn:], o.nIn, y[lo:], o.nOut, &ep)
}

// weights writes the gradients of weight and bias.
func (o *projection) weights(p *pass, k *kernel.Kernels, rows int, dy, x []float32, lo, hi int) {
	lo, hi = strip*lo, min(strip*hi, o.nOut)
	m := p.plan.model
	k.Gemm(kernel.TN, hi-lo, o.nIn, rows, dy[lo:], o.nOut, x, o.nIn, tensor(p.grad, m, o.weight)[lo*o.nIn:], o.nIn, nil)
	if o.bias >= 0 {
		k.ColSum(tensor(p.grad, m, o.bias)[lo:hi], 0, dy[lo:], o.nOut, rows, 1)
	}
}

// data writes the gradient of X.
func (o *projection) data(p *pass, k *kernel.Kernels, rows int, dx, dy []float32, lo, hi int) {
	lo, hi = strip*lo, min(strip*hi, o.nIn)
	k.Gemm(kernel.NN, rows, hi-lo, o.nOut, dy, o.nOut, tensor(p.params, p.plan.model, o.weight)[lo:], o.nIn, dx[lo:],
		o.nIn, nil)
}

func (o *projection) gemmScratch(k *kernel.Kernels, rows int, gradients bool) kernel.Scratch {
	r := k.GemmScratch(kernel.NT, rows, o.nOut, o.nIn, o.nIn, o.nIn)
	if gradients {
		r = r.Max(k.GemmScratch(kernel.TN, o.nOut, o.nIn, rows, o.nOut, o.nIn)).
			Max(k.GemmScratch(kernel.NN, rows, o.nIn, o.nOut, o.nOut, o.nIn))
	}
	return r
}

// along is a dense layer applied to each position.
type along struct {
	wire
	projection
	steps int
}

func (p *plan) along(l *models.Layer, in int) int {
	w := wire{in: in, with: -1, out: p.buffer(shaped(l.Out, false)), parameters: true}
	return p.to(&along{w, projection{l.In[0] / l.Rows, l.Out[0] / l.Rows, l.Weight, l.Bias}, l.Rows})
}

func (o *along) gemmScratch(k *kernel.Kernels, samples int, gradients bool) kernel.Scratch {
	return o.projection.gemmScratch(k, samples*o.steps, gradients)
}

func (o *along) forward(p *pass) { p.spread((*alongForward)(o), strips(o.nOut)) }

func (o *along) backward(p *pass, input bool) {
	p.spread((*alongWeights)(o), strips(o.nOut))
	if input {
		p.spread((*alongData)(o), strips(o.nIn))
	}
}

// lastPosition copies the last position of each sample.
type lastPosition struct {
	wire
	nIn, nOut int
}

func (p *plan) lastPosition(l *models.Layer, in int) int {
	w := wire{in: in, with: -1, out: p.buffer(shaped(l.Out, false))}
	return p.to(&lastPosition{w, l.In[0], l.Out[0]})
}

func (o *lastPosition) forward(p *pass) {
	for s := range p.n {
		copy(p.act[o.out][s*o.nOut:(s+1)*o.nOut], p.act[o.in][(s+1)*o.nIn-o.nOut:])
	}
}

func (o *lastPosition) backward(p *pass, input bool) {
	if !input {
		return
	}
	clear(p.dx[:p.n*o.nIn])
	for s := range p.n {
		copy(p.dx[(s+1)*o.nIn-o.nOut:(s+1)*o.nIn], p.dy[s*o.nOut:])
	}
}

type alongForward along

func (o *alongForward) run(p *pass, k *kernel.Kernels, lo, hi int) {
	o.projection.forward(p, k, p.n*o.steps, p.act[o.out], p.act[o.in], lo, hi)
}

type alongWeights along

func (o *alongWeights) run(p *pass, k *kernel.Kernels, lo, hi int) {
	o.projection.weights(p, k, p.n*o.steps, p.dy, p.act[o.in], lo, hi)
}

type alongData along

func (o *alongData) run(p *pass, k *kernel.Kernels, lo, hi int) {
	o.projection.data(p, k, p.n*o.steps, p.dx, p.dy, lo, hi)
}
