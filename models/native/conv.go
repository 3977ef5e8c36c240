package native

import (
	"brood/models"
	"brood/models/native/kernel"
)

// conv is a convolution, computed block by block. Groups are separate convolutions of adjacent channels.
type conv struct {
	wire
	c          *kernel.Conv // of one group
	groups     int
	rectify    bool      // a ReLU follows and is fused
	rectified  bool      // the input is the result of a ReLU whose backward pass is fused into this op
	wide, bias int       // tensors; -1 when absent
	filters    []float32 // constants used instead of a tensor
}

func (p *plan) conv(l *models.Layer, in int) (int, error) {
	c, err := kernel.NewConv(kernel.ConvShape{
		In:     l.In[0] / l.Groups,
		H:      l.In[1],
		W:      l.In[2],
		Out:    l.Out[0] / l.Groups,
		Kernel: l.Kernel,
		Stride: l.Stride,
		Pad:    l.Pad,
	})
	if err != nil {
		return 0, err
	}
	w := wire{in: in, with: -1, out: p.buffer(shaped(l.Out, true)), parameters: l.Weight >= 0}
	return p.to(&conv{
		wire:      w,
		c:         c,
		groups:    l.Groups,
		rectified: p.takeOver(in),
		wide:      l.Weight,
		bias:      l.Bias,
		filters:   l.Filters,
	}), nil
}

func (o *conv) forward(p *pass) { p.spread((*convForward)(o), p.blocks()) }

// backward processes a block completely while it is in the cache; on several threads it splits the weights by outputs,
// so that each sum over the blocks has the same order.
func (o *conv) backward(p *pass, input bool) {
	if o.wide >= 0 {
		clear(tensor(p.grad, p.plan.model, o.wide))
	}
	if o.bias >= 0 {
		clear(tensor(p.grad, p.plan.model, o.bias))
	}
	if len(p.helpers) == 0 {
		for b := range p.blocks() {
			if o.wide >= 0 {
				o.weights(p, p.k, b, 0, o.outputs())
			}
			if input {
				o.data(p, p.k, b)
			}
		}
		return
	}
	if o.wide >= 0 {
		p.spread((*convWeights)(o), o.outputs())
	}
	if input {
		p.spread((*convData)(o), p.blocks())
	}
}

// part returns group g of block b of an activation with this many floats per group.
func (o *conv) part(x []float32, b, g, floats int) []float32 {
	at := (b*o.groups + g) * floats
	return x[at : at+floats]
}

// of returns group g's part of a tensor in the flat vector.
func (o *conv) of(p *pass, flat []float32, i, g int) []float32 {
	if i < 0 {
		return nil
	}
	t := tensor(flat, p.plan.model, i)
	n := len(t) / o.groups
	return t[g*n : (g+1)*n]
}

// weight returns the weights of group g.
func (o *conv) weight(p *pass, g int) []float32 {
	if o.filters == nil {
		return o.of(p, p.params, o.wide, g)
	}
	n := o.c.Weights()
	return o.filters[g*n : (g+1)*n]
}

// outputs returns the number of units in which the weights are split: channels, or groups if there are several.
func (o *conv) outputs() int {
	if o.groups > 1 {
		return o.groups
	}
	return o.c.Out
}

func (o *conv) gemmScratch(*kernel.Kernels, int, bool) kernel.Scratch {
	return kernel.Scratch{Filters: o.c.Weights()}
}

func (o *conv) tables() int64 { return o.c.Bytes() }

// inBlocks reports whether candidates with products in this order use it for this convolution.
func (o *conv) inBlocks(order kernel.Order) bool {
	return order == kernel.Blocks && o.c.In >= kernel.LeastBlocks
}

type convForward conv

func (o *convForward) run(p *pass, k *kernel.Kernels, lo, hi int) {
	c := (*conv)(o)
	for b := lo; b < hi; b++ {
		for g := range o.groups {
			forward := (*kernel.Kernels).ConvForward
			if p.bf16 && c.inBlocks(p.order) {
				forward = (*kernel.Kernels).ConvBlocks
			}
			forward(k, o.c, c.part(p.act[o.out], b, g, o.c.Outputs()), c.part(p.act[o.in], b, g, o.c.Inputs()), c.weight(p, g),
				c.of(p, p.params, o.bias, g), o.rectify)
		}
	}
}

type convData conv

func (o *convData) run(p *pass, k *kernel.Kernels, lo, hi int) {
	for b := lo; b < hi; b++ {
		(*conv)(o).data(p, k, b)
	}
}

// data computes the gradient of a block of the input.
func (o *conv) data(p *pass, k *kernel.Kernels, b int) {
	for g := range o.groups {
		var gate []float32
		if o.rectified {
			gate = o.part(p.act[o.in], b, g, o.c.Inputs())
		}
		k.ConvData(o.c, o.part(p.dx, b, g, o.c.Inputs()), o.part(p.dy, b, g, o.c.Outputs()), o.weight(p, g), gate)
	}
}

type convWeights conv

func (o *convWeights) run(p *pass, k *kernel.Kernels, lo, hi int) {
	for b := range p.blocks() {
		(*conv)(o).weights(p, k, b, lo, hi)
	}
}

// weights adds a block's part of the gradient of weights and biases, for outputs [lo, hi).
func (o *conv) weights(p *pass, k *kernel.Kernels, b, lo, hi int) {
	first, last := 0, 1
	if o.groups > 1 {
		first, last, lo, hi = lo, hi, 0, o.c.Out
	}
	for g := first; g < last; g++ {
		dy := o.part(p.dy, b, g, o.c.Outputs())
		k.ConvWeights(o.c, lo, hi, o.of(p, p.grad, o.wide, g), dy, o.part(p.act[o.in], b, g, o.c.Inputs()), 1)
		if o.bias >= 0 {
			k.ConvBias(o.c, lo, hi, o.of(p, p.grad, o.bias, g), dy, 1)
		}
	}
}
