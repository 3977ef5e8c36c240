package gpu

import (
	"fmt"

	"brood/models"
)

// plan is a model as operations on activations.
type plan struct {
	model  *models.Model
	ops    []op
	floats []int  // number of floats per sample of each activation; the first is the input
	users  []int  // number of uses of each activation
	needs  []bool // whether parameters before each activation need its gradient
	kept   int    // additional floats per sample that layers store
	last   int    // index of the logits
}

// op is an operation of one layer.
type op struct {
	kind          models.Kind
	in, out, with int // activations; with is the second operand of a sum
	nIn, nOut     int
	weight, bias  int // tensors; bias -1: none
	// Rectify: a rectifier follows and is part of this op; rectified: this op's backward pass includes the rectifier
	// before it.
	rectify, rectified bool
	forward, backward  bool // a rectifier whose pass is not part of another op
	layer              int
	rate               float64
	slope              float32  // of a leaky rectifier, or the factor of a scale layer
	shape              []uint32 // of a convolution or of pooling windows, as the kernels take it
	channels, plane    int      // of the operand of a normalisation or a mean
	rows               int      // rows per sample of a dense layer or a row normalisation
	mean, variance     int      // offsets in a row of statistics
}

// UncoveredError reports a layer for which there are no kernels.
type UncoveredError struct {
	Model string
	Layer int // counted from 1; 0: the error is of no layer
	Why   string
}

func (e *UncoveredError) Error() string {
	if e.Layer == 0 {
		return fmt.Sprintf("model %s: %s has no kernels for a device yet: train it on the processor", e.Model, e.Why)
	}
	return fmt.Sprintf("model %s: layer %d: %s has no kernels for a device yet: train it on the processor", e.Model,
		e.Layer, e.Why)
}

// compile converts the model to a plan. It returns an UncoveredError if a part of the model has no kernels.
func compile(m *models.Model) (*plan, error) {
	if m.Int8 {
		return nil, &UncoveredError{m.Name, 1, "arithmetic = " + models.Int8}
	}
	if m.Smoothing > 0 {
		return nil, &UncoveredError{m.Name, 0, "a smoothing of labels"}
	}
	if m.Positions > 1 {
		return nil, &UncoveredError{m.Name, 0, "a loss at each position of a text"}
	}
	takers := m.Takers()
	p := &plan{model: m, floats: []int{m.Features}, users: []int{takers[0]}}
	results := []int{0} // the activation of each result
	for i := range m.Layers {
		out, err := p.layer(i, results)
		if err != nil {
			return nil, err
		}
		results = append(results, out)
		p.users[out] += takers[i+1]
	}
	p.last = results[len(results)-1]
	p.needs = make([]bool, len(p.floats))
	for _, o := range p.ops {
		p.needs[o.out] = p.needs[o.out] || o.weight >= 0 || o.bias >= 0 || p.needs[o.in] || o.kind == models.Add &&
			p.needs[o.with]
	}
	return p, nil
}

// layer appends layer i and returns the activation of its result.
func (p *plan) layer(i int, results []int) (int, error) {
	m := p.model
	l, in := &m.Layers[i], results[m.Layers[i].From]
	o := op{
		kind:   l.Kind,
		in:     in,
		nIn:    models.Size(l.In),
		nOut:   models.Size(l.Out),
		weight: l.Weight,
		bias:   l.Bias,
		layer:  i,
		rate:   l.Rate,
		slope:  float32(l.Slope + l.Factor),
		rows:   l.Rows,
	}
	before := p.before(in)
	switch l.Kind {
	case models.Flatten:
		return p.same(in), nil
	case models.Dense, models.Conv:
		if l.Filters != nil {
			return 0, &UncoveredError{m.Name, i + 1, "a convolution of given filters"}
		}
		if before != nil && before.kind == models.ReLU && l.Rows == 1 {
			o.rectified, before.backward = true, false
		}
		if l.Kind == models.Conv {
			o.shape = numbers(l.In[0], l.In[1], l.In[2], l.Out[0], l.Kernel, l.Stride, l.Pad, l.Out[1], l.Out[2], l.Groups)
			o.channels, o.plane = l.Out[0], l.Out[1]*l.Out[2]
		}
	case models.ReLU:
		o.backward = true
		switch {
		case before == nil || before.rectify:
		case before.kind == models.BatchNorm: // it includes the rectifier in both passes
			before.rectify = true
			return p.same(in), nil
		case (before.kind == models.Dense || before.kind == models.Conv) && before.rows == 1:
			before.rectify, o.out = true, p.same(in)
			p.ops = append(p.ops, o)
			return o.out, nil
		}
		o.forward = true
	case models.MaxPool, models.AvgPool:
		o.shape = numbers(l.In[0], l.In[1], l.In[2], l.Kernel, l.Stride, l.Out[1], l.Out[2], 0)
		o.channels = l.Kernel * l.Kernel
	case models.GlobalAvg:
		o.channels, o.plane = l.In[0], l.In[1]*l.In[2]
	case models.BatchNorm:
		o.channels, o.plane = l.In[0], models.Size(l.In)/l.In[0]
		o.mean, o.variance = m.Layout.StatTensors[l.Mean].Lo, m.Layout.StatTensors[l.Var].Lo
	case models.Dropout:
		if l.Rate == 0 {
			return p.same(in), nil
		}
	case models.Add:
		o.with, o.shape = results[l.With], addition(l, m.Shape(l.With))
	case models.Embedding, models.MinGRU, models.Attention:
		p.kept += keeps(m, l)
	case models.Constant, models.LayerNorm, models.LeakyReLU, models.Tanh, models.SiLU, models.GELU, models.Scale:
	default:
		return 0, &UncoveredError{m.Name, i + 1, fmt.Sprintf("a layer of kind %s", l.Kind)}
	}
	p.floats, p.users = append(p.floats, o.nOut), append(p.users, 0)
	o.out = len(p.floats) - 1
	p.ops = append(p.ops, o)
	return o.out, nil
}

// same returns in as the result of a layer that needs no op.
func (p *plan) same(in int) int {
	p.users[in]--
	return in
}

// before returns the op that computes activation in, if only the layer being compiled uses it, else nil. The layer's
// work may be merged into that op.
func (p *plan) before(in int) *op {
	if n := len(p.ops); n > 0 && p.users[in] == 1 && p.ops[n-1].out == in {
		return &p.ops[n-1]
	}
	return nil
}

// addition returns the shape of a sum with an image of which every stride-th pixel is used, with zeros for missing
// channels: height and width of the result, then channels, height, width and stride of the image. Equal shapes become
// an image of one pixel.
func addition(l *models.Layer, side []int) []uint32 {
	if l.Stride > 1 || models.Size(side) != models.Size(l.In) {
		return numbers(l.In[1], l.In[2], side[0], side[1], side[2], l.Stride)
	}
	return numbers(1, 1, models.Size(side), 1, 1, 1)
}

func numbers(n ...int) (out []uint32) {
	for _, x := range n {
		out = append(out, uint32(x))
	}
	return out
}

// widest returns the floats per sample of the largest activation.
func (p *plan) widest() (n int) {
	for _, f := range p.floats {
		n = max(n, f)
	}
	return n
}

// total returns the floats per sample of all activations and of what layers store.
func (p *plan) total() int {
	n := p.kept
	for _, f := range p.floats {
		n += f
	}
	return n
}
