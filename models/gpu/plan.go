package gpu

import (
	"fmt"

	"brood/models"
)

// plan is a model as operations on activations, each of which takes the one before it.
type plan struct {
	model  *models.Model
	ops    []op
	floats []int // of a sample of each activation; the first is the input
	first  int   // the first op with parameters, len(ops): none
}

// op is a layer.
type op struct {
	kind               models.Kind
	in, out            int // activations
	nIn, nOut          int
	weight, bias       int  // tensors of a dense layer; bias -1: none
	rectify, rectified bool // a dense layer that is followed by a rectifier, and one behind a rectifier, whose gradient it takes over
	forward, backward  bool // a rectifier that is nobody else's work
	layer              int
	rate               float64
	shape              []uint32 // of a convolution or of windows, as kernels have it
	channels, plane    int      // of what a normalisation or a mean takes
	mean, variance     int      // where statistics begin in a row of them
}

// UncoveredError says that there are no kernels for a layer yet.
type UncoveredError struct {
	Model string
	Layer int // counted from 1; 0: not of one layer
	Why   string
}

func (e *UncoveredError) Error() string {
	if e.Layer == 0 {
		return fmt.Sprintf("model %s: %s has no kernels for a device yet: train it on the processor", e.Model, e.Why)
	}
	return fmt.Sprintf("model %s: layer %d: %s has no kernels for a device yet: train it on the processor", e.Model, e.Layer, e.Why)
}

// compile lays the model out.
func compile(m *models.Model) (*plan, error) {
	p := &plan{model: m, floats: []int{m.Features}}
	if m.Loss != models.CrossEntropy {
		return nil, &UncoveredError{m.Name, 0, "the loss " + m.Loss}
	}
	at := 0
	for i := range m.Layers {
		l := &m.Layers[i]
		if l.From != i {
			return nil, &UncoveredError{m.Name, i + 1, "a layer that does not take the result before it"}
		}
		if n := m.Takers()[i]; n > 1 {
			return nil, &UncoveredError{m.Name, i + 1, "a result that is taken twice"}
		}
		o := op{kind: l.Kind, in: at, nIn: models.Size(l.In), nOut: models.Size(l.Out), weight: l.Weight, bias: l.Bias, layer: i, rate: l.Rate}
		switch last := len(p.ops) - 1; l.Kind {
		case models.Flatten:
			continue
		case models.Dense, models.Conv:
			if last >= 0 && p.ops[last].kind == models.ReLU {
				o.rectified, p.ops[last].backward = true, false
			}
			if l.Kind == models.Conv {
				o.shape = numbers(l.In[0], l.In[1], l.In[2], l.Out[0], l.Kernel, l.Stride, l.Pad, l.Out[1], l.Out[2], l.Groups)
				o.channels, o.plane = l.Out[0], l.Out[1]*l.Out[2]
			}
		case models.ReLU:
			o.forward, o.backward = true, true
			if last >= 0 && !p.ops[last].rectify && p.ops[last].kind == models.BatchNorm { // which does all of it
				p.ops[last].rectify = true
				continue
			}
			if last >= 0 && !p.ops[last].rectify && (p.ops[last].kind == models.Dense || p.ops[last].kind == models.Conv) {
				p.ops[last].rectify, o.forward = true, false
			}
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
				continue
			}
		default:
			return nil, &UncoveredError{m.Name, i + 1, fmt.Sprintf("a layer of kind %s", l.Kind)}
		}
		if o.out = at; l.Kind != models.ReLU || o.forward {
			p.floats = append(p.floats, o.nOut)
			o.out = len(p.floats) - 1
		}
		at = o.out
		p.ops = append(p.ops, o)
	}
	p.first = len(p.ops)
	for i, o := range p.ops {
		if o.weight >= 0 {
			p.first = i
			break
		}
	}
	return p, nil
}

func numbers(n ...int) (out []uint32) {
	for _, x := range n {
		out = append(out, uint32(x))
	}
	return out
}

// widest is the floats of a sample of the largest activation.
func (p *plan) widest() (n int) {
	for _, f := range p.floats {
		n = max(n, f)
	}
	return n
}

// total is the floats of a sample of all activations.
func (p *plan) total() (n int) {
	for _, f := range p.floats {
		n += f
	}
	return n
}
