package native

import (
	"brood/models"
	"brood/models/native/kernel"
)

// conv is a convolution, block by block.
type conv struct {
	c          *kernel.Conv
	in         int
	rectify    bool // a ReLU that follows at once
	rectified  bool // the input is what a ReLU gave, whose gradient this op takes over
	wide, bias int  // tensors; bias is -1 when absent
}

func (p *plan) conv(l *models.Layer) error {
	c, err := kernel.NewConv(kernel.ConvShape{In: l.In[0], H: l.In[1], W: l.In[2], Out: l.Out[0], Kernel: l.Kernel, Stride: l.Stride, Pad: l.Pad})
	if err != nil {
		return err
	}
	p.form(true)
	p.to(&conv{c: c, in: p.last(), rectified: p.takeOver(), wide: l.Weight, bias: l.Bias}, true, shaped(l.Out, true))
	return nil
}

func (o *conv) forward(p *pass) {
	m := p.plan.model
	w, in, out := tensor(p.params, m, o.wide), o.c.Inputs(), o.c.Outputs()
	var bias []float32
	if o.bias >= 0 {
		bias = tensor(p.params, m, o.bias)
	}
	for b := range p.blocks() {
		p.k.ConvForward(o.c, p.act[o.in+1][b*out:(b+1)*out], p.act[o.in][b*in:(b+1)*in], w, bias, o.rectify)
	}
}

func (o *conv) backward(p *pass, input bool) {
	m := p.plan.model
	w, in, out := tensor(p.params, m, o.wide), o.c.Inputs(), o.c.Outputs()
	dw := tensor(p.grad, m, o.wide)
	clear(dw)
	var db []float32
	if o.bias >= 0 {
		db = tensor(p.grad, m, o.bias)
		clear(db)
	}
	for b := range p.blocks() {
		x, dy := p.act[o.in][b*in:(b+1)*in], p.dy[b*out:(b+1)*out]
		p.k.ConvWeights(o.c, dw, dy, x, 1)
		if db != nil {
			p.k.ConvBias(o.c, db, dy, 1)
		}
		if input {
			var gate []float32
			if o.rectified {
				gate = x
			}
			p.k.ConvData(o.c, p.dx[b*in:(b+1)*in], dy, w, gate)
		}
	}
	if input {
		p.swap()
	}
}
