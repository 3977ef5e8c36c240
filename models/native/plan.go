package native

import (
	"fmt"

	"brood/models"
	"brood/models/native/kernel"
)

// plan is a model compiled for the kernels: an ordered list of operations on numbered activations. It is immutable and
// shared by all threads.
type plan struct {
	model   *models.Model
	ops     []op
	buffers []buffer // activations; the first is the input
	results []int    // activation of each result of the model; the last is the logits
	users   []int    // per activation: the number of its uses as input
	turns   []turn   // the steps of the backward pass
	lead    int      // number of ops before the first with parameters; candidates of a batch share their results
	slots   []int    // floats per sample of each gradient buffer
}

// buffer is one activation: flat as [samples][channels*h*w], or in blocks of kernel.Lanes samples as
// [channels][kernel.Plane(h, w)][Lanes]. A vector is an image of one pixel.
type buffer struct {
	channels, h, w int
	block          bool
}

// shaped returns the buffer for a shape.
func shaped(shape []int, block bool) buffer {
	if len(shape) == 3 {
		return buffer{shape[0], shape[1], shape[2], block}
	}
	return buffer{shape[0], 1, 1, block}
}

// plane returns the floats per channel and sample.
func (b buffer) plane() int {
	if b.block {
		return kernel.Plane(b.h, b.w)
	}
	return b.h * b.w
}

// floats returns the floats per sample.
func (b buffer) floats() int { return b.channels * b.plane() }

// op is an operation of a plan: a layer, or a conversion between the two forms of an activation.
type op interface {
	wiring() wire
	forward(p *pass)
	// backward writes the gradient of the op's parameters. p.dy is the gradient of its result. If input is set, it also
	// writes the gradient of its first operand to p.dx.
	backward(p *pass, input bool)
}

// wire is the input and output activations of an op, which embeds it.
type wire struct {
	in, with, out int  // with is the second operand; -1: none
	over          bool // dx may share the memory of dy
	parameters    bool
}

func (w wire) wiring() wire { return w }

// UncoveredError reports a layer without kernels. The model needs another engine.
type UncoveredError struct {
	Model string
	Layer int // counted from 1
	Why   error
}

func (e *UncoveredError) Error() string {
	return fmt.Sprintf("model %s: layer %d: the native engine has no plan for it: %v", e.Model, e.Layer, e.Why)
}

func (e *UncoveredError) Unwrap() error { return e.Why }

// compile returns the plan of a model. The error is an UncoveredError.
func compile(m *models.Model) (*plan, error) {
	takers := m.Takers()
	p := &plan{model: m, buffers: []buffer{shaped(m.Input, false)}, results: []int{0}, users: []int{takers[0]}}
	for i := range m.Layers {
		l := &m.Layers[i]
		out, err := p.layer(i, l, p.results[l.From])
		if err != nil {
			return nil, &UncoveredError{m.Name, i + 1, err}
		}
		if i == len(m.Layers)-1 {
			out = p.form(out, l.Out, false)
		}
		p.results = append(p.results, out)
		p.users[out] += takers[i+1]
	}
	p.schedule()
	for p.lead < len(p.ops) && !p.ops[p.lead].wiring().parameters {
		p.lead++
	}
	return p, nil
}

// first returns the first op with parameters if it is a dense layer.
func (p *plan) first() (o *dense, ok bool) {
	if p.lead < len(p.ops) {
		o, ok = p.ops[p.lead].(*dense)
	}
	return o, ok
}

// layer appends the ops of a layer with input activation in, and returns its output activation.
func (p *plan) layer(i int, l *models.Layer, in int) (int, error) {
	switch l.Kind {
	case models.Dense:
		if l.Rows > 1 {
			return p.along(l, p.form(in, l.In, false)), nil
		}
		return p.dense(l, p.form(in, l.In, false)), nil
	case models.Conv:
		return p.conv(l, p.form(in, l.In, true))
	case models.MaxPool, models.AvgPool:
		return p.pool(l, p.form(in, l.In, true))
	case models.GlobalAvg:
		return p.form(p.average(l, p.form(in, l.In, true)), l.Out, false), nil
	case models.BatchNorm:
		return p.norm(l, p.form(in, l.In, true)), nil
	case models.LayerNorm:
		return p.layerNorm(l, p.form(in, l.In, false)), nil
	case models.ReLU:
		return p.rectifier(in), nil
	case models.LeakyReLU, models.Tanh, models.SiLU, models.GELU, models.Scale:
		return p.activation(l, in), nil
	case models.Dropout:
		if l.Rate == 0 {
			return p.same(in), nil
		}
		return p.dropout(i, l, in), nil
	case models.Flatten:
		if p.buffers[in].block {
			return p.form(in, l.In, false), nil
		}
		return p.same(in), nil
	case models.Add:
		return p.sum(l, in), nil
	case models.Constant:
		return p.constant(l, in), nil
	case models.Embedding:
		return p.embedding(l, in), nil
	case models.MinGRU:
		return p.minGRU(l, p.form(in, l.In, false)), nil
	case models.Attention:
		return p.attention(l, p.form(in, l.In, false)), nil
	case models.Last:
		return p.lastPosition(l, p.form(in, l.In, false)), nil
	}
	return 0, fmt.Errorf("kind %q", l.Kind)
}

// same returns the input activation as the output of a layer that has no op.
func (p *plan) same(in int) int {
	p.users[in]--
	return in
}

// buffer appends an activation and returns its number.
func (p *plan) buffer(b buffer) int {
	p.buffers, p.users = append(p.buffers, b), append(p.users, 0)
	return len(p.buffers) - 1
}

// to appends an op and returns its output activation.
func (p *plan) to(o op) int {
	p.ops = append(p.ops, o)
	return o.wiring().out
}

// before returns the last op if it computes activation in and only the layer being compiled uses it, else nil. The two
// may then be fused.
func (p *plan) before(in int) op {
	if n := len(p.ops); n > 0 && p.users[in] == 1 && p.ops[n-1].wiring().out == in {
		return p.ops[n-1]
	}
	return nil
}

// form returns activation in, converted to flat or block form if necessary.
func (p *plan) form(in int, shape []int, block bool) int {
	if p.buffers[in].block == block {
		return in
	}
	image := shaped(shape, block)
	out := p.buffer(image)
	p.users[out] = 1
	return p.to(&reform{wire{in: in, with: -1, out: out}, image, block})
}

// reform is the op that converts between the forms of an activation.
type reform struct {
	wire
	image buffer
	block bool // to blocks
}

func (o *reform) forward(p *pass) {
	p.spread(&p.mover, p.movement(o, p.act[o.out], p.act[o.in], o.block))
}

func (o *reform) backward(p *pass, input bool) {
	if input {
		p.spread(&p.mover, p.movement(o, p.dx, p.dy, !o.block))
	}
}

// mover is the job of a reform.
type mover struct {
	o        *reform
	dst, src []float32
	block    bool
}

// movement sets up p.mover and returns the number of its units, the blocks.
func (p *pass) movement(o *reform, dst, src []float32, block bool) int {
	p.mover = mover{o, dst, src, block}
	return p.blocks()
}

func (m *mover) run(p *pass, k *kernel.Kernels, lo, hi int) {
	image := m.o.image
	flat, wide := image.channels*image.h*image.w, image.channels*kernel.Plane(image.h, image.w)*kernel.Lanes
	for b := lo; b < hi; b++ {
		first, n := b*kernel.Lanes, p.live(b)
		if m.block {
			k.ToBlock(m.dst[b*wide:(b+1)*wide], m.src[first*flat:], flat, n, image.channels, image.h, image.w)
		} else {
			k.FromBlock(m.dst[first*flat:], flat, m.src[b*wide:(b+1)*wide], n, image.channels, image.h, image.w)
		}
	}
}
