package native

import (
	"brood/models"
	"brood/models/native/kernel"
)

// dense is Y = X W' + b, with W as PyTorch stores it: [out][in].
type dense struct {
	wire
	nIn, nOut  int
	rectify    bool // a ReLU follows and is fused
	rectified  bool // the input is the result of a ReLU whose backward pass is fused into this op
	wide, bias int  // tensors; bias is -1 when absent
}

// strip is the unit in which the columns of a product are divided among threads: the columns of a tile.
const strip = 32

// strips returns the number of strips.
func strips(columns int) int { return (columns + strip - 1) / strip }

func (p *plan) dense(l *models.Layer, in int) int {
	w := wire{in: in, with: -1, out: p.buffer(shaped(l.Out, false)), parameters: true}
	return p.to(&dense{wire: w, nIn: l.In[0], nOut: l.Out[0], rectified: p.takeOver(in), wide: l.Weight, bias: l.Bias})
}

func (o *dense) forward(p *pass) { p.spread((*denseForward)(o), strips(o.nOut)) }

func (o *dense) backward(p *pass, input bool) {
	p.spread((*denseWeights)(o), strips(o.nOut))
	if input {
		p.spread((*denseData)(o), strips(o.nIn))
	}
}

func (o *dense) gemmScratch(k *kernel.Kernels, samples int, gradients bool) kernel.Scratch {
	r := k.GemmScratch(kernel.NT, samples, o.nOut, o.nIn, o.nIn, o.nIn)
	if gradients {
		r = r.Max(k.GemmScratch(kernel.TN, o.nOut, o.nIn, samples, o.nOut, o.nIn)).
			Max(k.GemmScratch(kernel.NN, samples, o.nIn, o.nOut, o.nOut, o.nIn))
	}
	return r
}

type denseForward dense

func (o *denseForward) run(p *pass, k *kernel.Kernels, lo, hi int) {
	lo, hi = strip*lo, min(strip*hi, o.nOut)
	m := p.plan.model
	ep := kernel.Epilogue{ReLU: o.rectify}
	if o.bias >= 0 {
		ep.Bias = tensor(p.params, m, o.bias)[lo:hi]
	}
	p.multiply(k, hi-lo, o.nIn, p.act[o.in], tensor(p.params, m, o.wide)[lo*o.nIn:], p.act[o.out][lo:], o.nOut, &ep)
}

// multiply computes y = x W' of the current samples.
func (p *pass) multiply(k *kernel.Kernels, outputs, inputs int, x, w, y []float32, ldy int, ep *kernel.Epilogue) {
	if p.bf16 {
		k.GemmBF16(p.order, p.n, outputs, inputs, x, inputs, w, inputs, y, ldy, ep)
		return
	}
	k.Gemm(kernel.NT, p.n, outputs, inputs, x, inputs, w, inputs, y, ldy, ep)
}

type denseWeights dense

func (o *denseWeights) run(p *pass, k *kernel.Kernels, lo, hi int) {
	lo, hi = strip*lo, min(strip*hi, o.nOut)
	m := p.plan.model
	k.Gemm(kernel.TN, hi-lo, o.nIn, p.n, p.dy[lo:], o.nOut, p.act[o.in], o.nIn, tensor(p.grad, m, o.wide)[lo*o.nIn:],
		o.nIn, nil)
	if o.bias >= 0 {
		k.ColSum(tensor(p.grad, m, o.bias)[lo:hi], 0, p.dy[lo:], o.nOut, p.n, 1)
	}
}

type denseData dense

func (o *denseData) run(p *pass, k *kernel.Kernels, lo, hi int) {
	lo, hi = strip*lo, min(strip*hi, o.nIn)
	var ep kernel.Epilogue
	if o.rectified {
		ep.Gate, ep.LDGate = p.act[o.in][lo:], o.nIn
	}
	k.Gemm(kernel.NN, p.n, hi-lo, o.nOut, p.dy, o.nOut, tensor(p.params, p.plan.model, o.wide)[lo:], o.nIn, p.dx[lo:],
		o.nIn, &ep)
}
