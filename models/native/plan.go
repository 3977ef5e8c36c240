package native

import (
	"fmt"

	"brood/models"
	"brood/models/native/kernel"
)

// plan is a model compiled for the kernels: what is done in which order on which activations. It is immutable, and all
// lanes share it.
type plan struct {
	model   *models.Model
	ops     []op
	buffers []buffer // activations; the first is the input, the last the logits
	first   int      // the first op with parameters: nothing before it needs a gradient
	open    *relu    // a rectifier whose gradient the next op may take over, while compiling
}

// buffer is one activation: flat as [samples][channels*h*w], or in blocks of kernel.Lanes samples as
// [channels][kernel.Plane(h, w)][Lanes]. A vector is an image of one pixel.
type buffer struct {
	channels, h, w int
	block          bool
}

// shaped is the buffer of a layer's shape.
func shaped(shape []int, block bool) buffer {
	if len(shape) == 3 {
		return buffer{shape[0], shape[1], shape[2], block}
	}
	return buffer{shape[0], 1, 1, block}
}

// plane is the floats of a channel, per sample.
func (b buffer) plane() int {
	if b.block {
		return kernel.Plane(b.h, b.w)
	}
	return b.h * b.w
}

// floats of a sample.
func (b buffer) floats() int { return b.channels * b.plane() }

// op is a layer, or a change between the two forms of an activation.
type op interface {
	forward(p *pass)
	// backward adds the op's parameters to the gradient. p.dy is the gradient of its output; with input it becomes that
	// of its input.
	backward(p *pass, input bool)
}

// UncoveredError says that the kernels have nothing for a layer: another engine must take the model.
type UncoveredError struct {
	Model string
	Layer int // counted from 1
	Why   error
}

func (e *UncoveredError) Error() string {
	return fmt.Sprintf("model %s: layer %d: the native engine has no plan for it: %v", e.Model, e.Layer, e.Why)
}

func (e *UncoveredError) Unwrap() error { return e.Why }

// compile lays the model out. It fails with an UncoveredError.
func compile(m *models.Model) (*plan, error) {
	p := &plan{model: m, buffers: []buffer{shaped(m.Input, false)}, first: -1}
	for i := range m.Layers {
		if err := p.layer(i, &m.Layers[i]); err != nil {
			return nil, &UncoveredError{m.Name, i + 1, err}
		}
	}
	return p, nil
}

func (p *plan) layer(i int, l *models.Layer) error {
	switch l.Kind {
	case models.Dense:
		p.dense(l)
	case models.Conv:
		return p.conv(l)
	case models.MaxPool:
		return p.maxPool(l)
	case models.GlobalAvg:
		p.average(l)
	case models.BatchNorm:
		p.norm(l)
	case models.ReLU:
		p.rectifier()
	case models.Dropout:
		p.dropout(i, l)
	case models.Flatten:
		p.form(false)
		p.buffers[p.last()] = shaped(l.Out, false)
	default:
		return fmt.Errorf("kind %q", l.Kind)
	}
	return nil
}

// last is the newest activation.
func (p *plan) last() int { return len(p.buffers) - 1 }

// to appends an op and the activation that it writes, unless it works in place.
func (p *plan) to(o op, parameters bool, out ...buffer) {
	if parameters && p.first < 0 {
		p.first = len(p.ops)
	}
	p.ops, p.open = append(p.ops, o), nil
	p.buffers = append(p.buffers, out...)
}

// form makes the newest activation flat or blocked.
func (p *plan) form(block bool) {
	b := p.buffers[p.last()]
	if b.block != block {
		p.to(&reform{in: p.last(), block: block}, false, buffer{b.channels, b.h, b.w, block})
	}
}

// reform changes between the forms of an activation.
type reform struct {
	in    int
	block bool // to blocks
}

func (o *reform) forward(p *pass) { o.move(p, p.act[o.in+1], p.act[o.in], o.block) }

func (o *reform) backward(p *pass, input bool) {
	if input {
		o.move(p, p.dx, p.dy, !o.block)
		p.swap()
	}
}

func (o *reform) move(p *pass, dst, src []float32, block bool) {
	image := p.plan.buffers[o.in]
	flat, wide := image.channels*image.h*image.w, image.channels*kernel.Plane(image.h, image.w)*kernel.Lanes
	for b := range p.blocks() {
		lo, n := b*kernel.Lanes, p.live(b)
		if block {
			p.k.ToBlock(dst[b*wide:(b+1)*wide], src[lo*flat:], flat, n, image.channels, image.h, image.w)
		} else {
			p.k.FromBlock(dst[lo*flat:], flat, src[b*wide:(b+1)*wide], n, image.channels, image.h, image.w)
		}
	}
}
