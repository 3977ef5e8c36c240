package native

import (
	"brood/models"
	"brood/models/native/kernel"
)

// dense is Y = X W' + b, with W as PyTorch stores it: [out][in].
type dense struct {
	l          *models.Layer
	in         int
	nIn, nOut  int
	rectify    bool // a ReLU that follows at once
	rectified  bool // the input is what a ReLU gave, whose gradient this op takes over
	wide, bias int  // tensors; bias is -1 when absent
}

func (p *plan) dense(l *models.Layer) {
	o := &dense{l: l, in: p.last(), nIn: l.In[0], nOut: l.Out[0], rectified: p.takeOver(), wide: l.Weight, bias: l.Bias}
	p.to(o, true, shaped(l.Out, false))
}

func (o *dense) forward(p *pass) {
	m := p.plan.model
	ep := kernel.Epilogue{ReLU: o.rectify}
	if o.bias >= 0 {
		ep.Bias = tensor(p.params, m, o.bias)
	}
	p.k.Gemm(kernel.NT, p.n, o.nOut, o.nIn, p.act[o.in], o.nIn, tensor(p.params, m, o.wide), o.nIn, p.act[o.in+1], o.nOut, &ep)
}

func (o *dense) backward(p *pass, input bool) {
	m, x := p.plan.model, p.act[o.in]
	p.k.Gemm(kernel.TN, o.nOut, o.nIn, p.n, p.dy, o.nOut, x, o.nIn, tensor(p.grad, m, o.wide), o.nIn, nil)
	if o.bias >= 0 {
		p.k.ColSum(tensor(p.grad, m, o.bias), 0, p.dy, o.nOut, p.n, 1)
	}
	if !input {
		return
	}
	var ep kernel.Epilogue
	if o.rectified {
		ep.Gate, ep.LDGate = x, o.nIn
	}
	p.k.Gemm(kernel.NN, p.n, o.nIn, o.nOut, p.dy, o.nOut, tensor(p.params, m, o.wide), o.nIn, p.dx, o.nIn, &ep)
	p.swap()
}
