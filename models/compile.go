package models

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"brood/models/engine"
)

// Batch-norm constants, PyTorch's defaults.
const (
	NormMomentum = 0.1
	NormEpsilon  = 1e-5
)

// maxParams keeps every offset of a model far from overflow.
const maxParams = 1 << 31

// Model is a compiled spec: read-only, shared by engines.
type Model struct {
	Name, Doc string
	Input     []int // shape of a sample
	Features  int   // elements of a sample
	Classes   int
	Layers    []Layer
	Layout    engine.Layout
	inits     []start // one per tensor of the layout
}

// Layer is one layer with its shapes settled.
type Layer struct {
	Kind                Kind
	In, Out             []int // shapes of one sample: [n] or [channels, height, width]
	Kernel, Stride, Pad int
	Rate                float64 // dropout: the probability of zero
	Weight, Bias        int     // indices into Layout.Tensors, -1 when absent (batch-norm: scale and shift)
	Mean, Var           int     // indices into Layout.StatTensors, -1 when absent
}

// Bounds are what tasks on this model must fit, over a data set of so many samples.
func (m *Model) Bounds(samples int) engine.Bounds {
	b := engine.Bounds{Layout: &m.Layout, Samples: samples}
	for _, l := range m.Layers {
		b.Norms = b.Norms || l.Kind == BatchNorm
		b.Drops = b.Drops || l.Kind == Dropout && l.Rate > 0
	}
	return b
}

// Fits says whether samples of a data set's shape in so many classes are what the model takes.
func (m *Model) Fits(shape []int, classes int) error {
	flat := len(m.Input) == 1 && m.Features == Size(shape)
	if !flat && !slices.Equal(m.Input, shape) {
		return fmt.Errorf("model %s takes samples of %v, not of %v; choose a model and a data set that match", m.Name, m.Input, shape)
	}
	if m.Classes < classes {
		return fmt.Errorf("model %s has %d classes, the data %d; choose a model and a data set that match", m.Name, m.Classes, classes)
	}
	return nil
}

// Size is the number of elements of a shape.
func Size(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

func show(shape []int) string {
	s := make([]string, len(shape))
	for i, d := range shape {
		s[i] = strconv.Itoa(d)
	}
	return strings.Join(s, "x")
}

// compiler walks the layers; count numbers the layers of a kind for names such as conv2.
type compiler struct {
	m     *Model
	shape []int
	count map[Kind]int
}

// Compile settles shapes, the layout and the initial values. Its errors are SpecErrors of one sentence.
func Compile(s Spec) (*Model, error) {
	if s.Name == "" {
		return nil, &SpecError{What: "a model needs a name"}
	}
	if len(s.Input) != 1 && len(s.Input) != 3 {
		return nil, &SpecError{What: fmt.Sprintf("input has %d sizes; write [features] or [channels, height, width]", len(s.Input))}
	}
	for _, d := range s.Input {
		if d < 1 || d > 1<<16 {
			return nil, &SpecError{What: fmt.Sprintf("input %s: sizes lie in 1 to 65536", show(s.Input))}
		}
	}
	if s.Classes < 2 || s.Classes > 1<<16 {
		return nil, &SpecError{What: fmt.Sprintf("%d classes; a classifier needs 2 to 65536", s.Classes)}
	}
	if len(s.Layers) == 0 {
		return nil, &SpecError{What: "no [[layer]]; the least model is one dense layer"}
	}
	if Size(s.Input) >= maxParams {
		return nil, &SpecError{What: fmt.Sprintf("input %s is too large", show(s.Input))}
	}
	m := &Model{Name: s.Name, Doc: s.Doc, Input: slices.Clone(s.Input), Features: Size(s.Input), Classes: s.Classes}
	c := compiler{m, m.Input, map[Kind]int{}}
	for i := range s.Layers {
		if err := c.add(&s.Layers[i]); err != nil {
			return nil, &SpecError{i + 1, s.Layers[i].Kind, err.Error()}
		}
		if Size(c.shape) >= maxParams || m.Layout.Params >= maxParams {
			return nil, &SpecError{i + 1, s.Layers[i].Kind, fmt.Sprintf("the model grows beyond %d parameters or activations", maxParams)}
		}
	}
	if len(c.shape) != 1 || c.shape[0] != s.Classes {
		return nil, &SpecError{len(s.Layers), s.Layers[len(s.Layers)-1].Kind,
			fmt.Sprintf("the last layer gives %s, the model has %d classes; end with a dense layer of out = %d", show(c.shape), s.Classes, s.Classes)}
	}
	return m, nil
}

func (c *compiler) add(s *LayerSpec) error {
	allowed, known := s.Kind.keys()
	if !known {
		return fmt.Errorf("unknown kind %q; kinds are dense, conv, maxpool, batchnorm, relu, dropout, flatten and globalavgpool", s.Kind)
	}
	for _, k := range s.given() {
		if !slices.Contains(allowed, k) {
			return fmt.Errorf("takes no key %q", k)
		}
	}
	c.count[s.Kind]++
	l := Layer{Kind: s.Kind, In: c.shape, Out: c.shape, Weight: -1, Bias: -1, Mean: -1, Var: -1}
	if err := c.settle(&l, s); err != nil {
		return err
	}
	c.shape = l.Out
	c.m.Layers = append(c.m.Layers, l)
	return nil
}

func (c *compiler) settle(l *Layer, s *LayerSpec) error {
	n := c.count[s.Kind]
	switch s.Kind {
	case Dense:
		return c.dense(l, s, "fc"+strconv.Itoa(n))
	case Conv:
		return c.conv(l, s, "conv"+strconv.Itoa(n))
	case MaxPool:
		return pool(l, s)
	case BatchNorm:
		c.norm(l, "bn"+strconv.Itoa(n))
	case Dropout:
		if s.Rate == nil || !(*s.Rate >= 0 && *s.Rate < 1) {
			return fmt.Errorf("needs rate, at least 0 and below 1")
		}
		l.Rate = *s.Rate
	case Flatten:
		l.Out = []int{Size(l.In)}
	case GlobalAvg:
		if len(l.In) != 3 {
			return fmt.Errorf("needs an input of channels x height x width and gets %s", show(l.In))
		}
		l.Out = l.In[:1]
	}
	return nil
}

// size is a required or defaulted key (def 0 means required) of at least least.
func size(p *int, key string, def, least int) (int, error) {
	if p == nil {
		if def < least {
			return 0, fmt.Errorf("needs %s", key)
		}
		return def, nil
	}
	if *p < least || *p > 1<<20 {
		return 0, fmt.Errorf("%s = %d; it lies in %d to %d", key, *p, least, 1<<20)
	}
	return *p, nil
}

func (c *compiler) dense(l *Layer, s *LayerSpec, name string) error {
	out, err := size(s.Out, "out", 0, 1)
	if err != nil {
		return err
	}
	if len(l.In) != 1 {
		return fmt.Errorf("needs a flat input and gets %s; put a flatten layer before it", show(l.In))
	}
	l.Out = []int{out}
	return c.linear(l, s, name, []int{out, l.In[0]})
}

func (c *compiler) conv(l *Layer, s *LayerSpec, name string) (err error) {
	if len(l.In) != 3 {
		return fmt.Errorf("needs an input of channels x height x width and gets %s", show(l.In))
	}
	out, err := size(s.Out, "out", 0, 1)
	if err != nil {
		return err
	}
	if l.Pad, err = size(s.Pad, "pad", 0, 0); err != nil {
		return err
	}
	if err := window(l, s, out, 1); err != nil {
		return err
	}
	return c.linear(l, s, name, []int{out, l.In[0], l.Kernel, l.Kernel})
}

func pool(l *Layer, s *LayerSpec) error {
	if len(l.In) != 3 {
		return fmt.Errorf("needs an input of channels x height x width and gets %s", show(l.In))
	}
	return window(l, s, l.In[0], 0)
}

// window settles kernel and stride (0: the kernel) and the output of a sliding square.
func window(l *Layer, s *LayerSpec, out, stride int) (err error) {
	if l.Kernel, err = size(s.Kernel, "kernel", 0, 1); err != nil {
		return err
	}
	if stride == 0 {
		stride = l.Kernel
	}
	if l.Stride, err = size(s.Stride, "stride", stride, 1); err != nil {
		return err
	}
	h, w := l.In[1]+2*l.Pad-l.Kernel, l.In[2]+2*l.Pad-l.Kernel
	if h < 0 || w < 0 {
		return fmt.Errorf("a kernel of %d with padding %d does not fit an input of %s", l.Kernel, l.Pad, show(l.In))
	}
	if l.Pad >= l.Kernel {
		return fmt.Errorf("padding %d is not smaller than the kernel, %d", l.Pad, l.Kernel)
	}
	l.Out = []int{out, h/l.Stride + 1, w/l.Stride + 1}
	return nil
}
