package models

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// resolve computes the shapes of a layer and adds its tensors.
func (c *compiler) resolve(l *Layer, s *LayerSpec) error {
	n := c.count[s.Kind]
	switch s.Kind {
	case Dense:
		return c.dense(l, s, "fc"+strconv.Itoa(n))
	case Conv:
		return c.conv(l, s, "conv"+strconv.Itoa(n))
	case MaxPool, AvgPool:
		return pool(l, s)
	case Add:
		return c.sum(l, s)
	case Constant:
		return c.constant(l, s, "constant"+strconv.Itoa(n))
	case BatchNorm:
		c.norm(l, "bn"+strconv.Itoa(n))
	case LayerNorm:
		return c.layerNorm(l, s, "ln"+strconv.Itoa(n))
	case Dropout:
		if s.Rate == nil || !(*s.Rate >= 0 && *s.Rate < 1) {
			return fmt.Errorf("needs rate, at least 0 and below 1")
		}
		l.Rate = *s.Rate
	case LeakyReLU:
		if l.Slope = LeakySlope; s.Slope != nil {
			l.Slope = *s.Slope
		}
		if !(l.Slope >= 0 && l.Slope <= 1) {
			return fmt.Errorf("slope = %v; it must be in 0 to 1", l.Slope)
		}
	case Scale:
		if s.Factor != nil {
			l.Factor = *s.Factor
		}
		if v := float32(l.Factor); v-v != 0 || v == 0 {
			return fmt.Errorf("needs factor, a number other than 0, such as 0.5")
		}
	case Embedding:
		return c.embedding(l, s, "embed"+strconv.Itoa(n))
	case MinGRU:
		return c.mingru(l, s, "mingru"+strconv.Itoa(n))
	case Attention:
		return c.attention(l, s, "attention"+strconv.Itoa(n))
	case Last:
		if l.Steps == 0 {
			return fmt.Errorf("takes the last position of a text, and its input has none; " +
				"put it behind an embedding, or what keeps its positions")
		}
		l.Out, l.Steps = []int{l.In[0] / l.Steps}, 0
	case Flatten:
		l.Out = []int{Size(l.In)}
	case GlobalAvg:
		if len(l.In) != 3 {
			return fmt.Errorf("needs an input of channels x height x width and gets %s", formatShape(l.In))
		}
		l.Out = l.In[:1]
	}
	return nil
}

// size returns the value of a key, which must be at least least, or def if it is not set. A def below least means that
// the key is required.
func size(p *int, key string, def, least int) (int, error) {
	if p == nil {
		if def < least {
			return 0, fmt.Errorf("needs %s", key)
		}
		return def, nil
	}
	if *p < least || *p > 1<<20 {
		return 0, fmt.Errorf("%s = %d; it must be in %d to %d", key, *p, least, 1<<20)
	}
	return *p, nil
}

func (c *compiler) dense(l *Layer, s *LayerSpec, name string) error {
	out, err := size(s.Out, "out", 0, 1)
	if err != nil {
		return err
	}
	if len(l.In) != 1 {
		return fmt.Errorf("needs a flat input and gets %s; put a flatten layer before it", formatShape(l.In))
	}
	if err := resolvePositions(l, s); err != nil {
		return err
	}
	if l.Out = []int{l.Rows * out}; s.Positions == nil || !*s.Positions {
		l.Steps = 0
	}
	return c.linear(l, s, name, []int{out, l.In[0] / l.Rows})
}

// resolvePositions sets Rows if the layer processes the positions of a text separately.
func resolvePositions(l *Layer, s *LayerSpec) error {
	if s.Positions == nil || !*s.Positions {
		return nil
	}
	if l.Steps == 0 {
		return fmt.Errorf("has positions = true, and its input has no positions of a text; " +
			"put it behind an embedding, or what keeps its positions, or leave the key out")
	}
	l.Rows = l.Steps
	return nil
}

func (c *compiler) conv(l *Layer, s *LayerSpec, name string) (err error) {
	if len(l.In) != 3 {
		return fmt.Errorf("needs an input of channels x height x width and gets %s", formatShape(l.In))
	}
	out, err := size(s.Out, "out", 0, 1)
	if err != nil {
		return err
	}
	if l.Pad, err = size(s.Pad, "pad", 0, 0); err != nil {
		return err
	}
	if l.Groups, err = size(s.Groups, "groups", 1, 1); err != nil {
		return err
	}
	if l.In[0]%l.Groups != 0 || out%l.Groups != 0 {
		return fmt.Errorf("%d groups do not divide %d channels to %d; take a divisor of both", l.Groups, l.In[0], out)
	}
	if err := resolveWindow(l, s, out, 1); err != nil {
		return err
	}
	if s.Filters != nil {
		return resolveFilters(l, s)
	}
	return c.linear(l, s, name, []int{out, l.In[0] / l.Groups, l.Kernel, l.Kernel})
}

// resolveFilters checks and sets the constant weights of a convolution that is not trained.
func resolveFilters(l *Layer, s *LayerSpec) error {
	if s.Init != nil || s.Bias != nil {
		return fmt.Errorf("has filters, which are constants, and a bias or an init, which are of what is trained; " +
			"leave these out")
	}
	rows, cols := l.Out[0], l.In[0]/l.Groups*l.Kernel*l.Kernel
	if len(s.Filters) != rows {
		return fmt.Errorf("filters has %d rows, and out = %d; give a row for each output", len(s.Filters), rows)
	}
	for i, row := range s.Filters {
		if len(row) != cols {
			return fmt.Errorf("row %d of filters has %d numbers; an output takes %d: the channels, of each the kernel by rows",
				i+1, len(row), cols)
		}
		for _, x := range row {
			if v := float32(x); v-v != 0 {
				return fmt.Errorf("row %d of filters has %v, which is no float32; give finite numbers", i+1, x)
			}
			l.Filters = append(l.Filters, float32(x))
		}
	}
	return nil
}

// sum compiles a residual sum.
func (c *compiler) sum(l *Layer, s *LayerSpec) (err error) {
	if s.With == nil {
		return fmt.Errorf("needs with, the name of the layer whose result is added")
	}
	if l.With, err = c.result(s.With, "with", 0); err != nil {
		return err
	}
	if l.Stride, err = size(s.Stride, "stride", 1, 1); err != nil {
		return err
	}
	if l.Steps == 0 && l.With > 0 {
		l.Steps = c.m.Layers[l.With-1].Steps
	}
	w, k := c.m.Shape(l.With), l.Stride
	image := len(w) == 3 && len(l.In) == 3
	switch {
	case k == 1 && slices.Equal(w, l.In):
		return nil
	case image && w[0] <= l.In[0] && (w[1]+k-1)/k == l.In[1] && (w[2]+k-1)/k == l.In[2]:
		return nil
	}
	return fmt.Errorf("%s with stride %d cannot be added to %s; "+
		"give a stride that fits, or project it by a 1x1 convolution",
		formatShape(w), k, formatShape(l.In))
}

func (c *compiler) constant(l *Layer, s *LayerSpec, name string) error {
	out, err := size(s.Out, "out", 0, 1)
	if err != nil {
		return err
	}
	l.Out = []int{out}
	l.From, l.In = 0, c.m.Input // it does not use the result of a layer
	l.Bias, l.Steps = c.tensor(name, l.Out, initValue{bound: 1}), 0
	return nil
}

// embedding compiles an embedding: a table row for each byte of a window, in the order of the text. Element i*out+j of
// the result is value j of byte i.
func (c *compiler) embedding(l *Layer, s *LayerSpec, name string) error {
	out, err := size(s.Out, "out", 0, 1)
	if err != nil {
		return err
	}
	vocabulary, err := size(s.Vocabulary, "vocabulary", Bytes, 2)
	switch {
	case err != nil:
		return err
	case vocabulary > Bytes:
		return fmt.Errorf("vocabulary = %d; there are %d bytes", vocabulary, Bytes)
	case l.From != 0 || len(l.In) != 1:
		return fmt.Errorf("takes the sample itself, a window of a text: " +
			"write input = [context], and put the layer first or give it from = \"input\"")
	case c.m.Vocabulary > 0 && c.m.Vocabulary != vocabulary:
		return fmt.Errorf("vocabulary = %d, where that of an embedding before it is %d; a model has one vocabulary",
			vocabulary, c.m.Vocabulary)
	}
	c.m.Vocabulary = vocabulary
	l.Out, l.Steps = []int{l.In[0] * out}, l.In[0]
	l.Weight = c.tensor(name+".weight", []int{vocabulary, out}, c.embeddingStart())
	c.m.Layout.Tensors[l.Weight].Table = true
	return nil
}

// mingru compiles the recurrence of Feng et al. (2024, arXiv 2410.01201, algorithm 1) over the positions t of a text,
// with an initial state of zeros:
//
//	z[t] = sigmoid(W_z x[t] + b_z),  c[t] = W_c x[t] + b_c,  h[t] = h[t-1] + z[t]*(c[t] - h[t-1])
//
// The result is the last state or, with sequence, all states in order.
func (c *compiler) mingru(l *Layer, s *LayerSpec, name string) error {
	out, err := size(s.Out, "out", 0, 1)
	if err != nil {
		return err
	}
	steps := l.Steps
	if steps == 0 {
		return fmt.Errorf("goes along the positions of a text, and its input has none; " +
			"put it behind an embedding, or a mingru with sequence = true")
	}
	shape := []int{out, l.In[0] / steps}
	if err := c.linear(l, s, name+".state", shape); err != nil {
		return err
	}
	l.State = [2]int{l.Weight, l.Bias}
	if err := c.linear(l, s, name+".gate", shape); err != nil {
		return err
	}
	if l.Out, l.Steps = []int{out}, 0; s.Sequence != nil && *s.Sequence {
		l.Out, l.Steps = []int{steps * out}, steps
	}
	return nil
}

// attention compiles causal multi-head self-attention (Vaswani et al. 2017, section 3.2): a position attends to itself
// and earlier positions. At each position, q, k and v are the thirds of W x + b, and head j has an equal share of their
// channels. With d channels per head,
//
//	head j = softmax(q k' / sqrt(d)) v,  result = W_o [head 1, head 2, ...] + b_o
//
// at all positions or, without sequence, only at the last. Tensors and initialisation are those of PyTorch's
// MultiheadAttention.
func (c *compiler) attention(l *Layer, s *LayerSpec, name string) (err error) {
	steps := l.Steps
	if steps == 0 {
		return fmt.Errorf("goes along the positions of a text, and its input has none; " +
			"put it behind an embedding, or what keeps its positions")
	}
	channels := l.In[0] / steps
	if l.Heads, err = size(s.Heads, "heads", 1, 1); err != nil {
		return err
	}
	if channels%l.Heads != 0 {
		return fmt.Errorf("%d heads do not divide the %d channels of a position; take a divisor", l.Heads, channels)
	}
	if 3*channels*channels >= maxParams || l.Heads*steps*steps >= maxParams {
		return fmt.Errorf("heads = %d over %d positions of %d channels are too many; take fewer", l.Heads, steps, channels)
	}
	within := func(squared float64) initValue { return initValue{bound: float32(math.Sqrt(squared))} }
	l.Weight = c.tensor(name+".in_proj_weight", []int{3 * channels, channels}, within(6/float64(4*channels)))
	l.Bias = c.tensor(name+".in_proj_bias", []int{3 * channels}, initValue{})
	l.Project[0] = c.tensor(name+".out_proj.weight", []int{channels, channels}, within(1/float64(channels)))
	l.Project[1] = c.tensor(name+".out_proj.bias", []int{channels}, initValue{})
	if s.Sequence == nil || !*s.Sequence {
		l.Out, l.Steps = []int{channels}, 0
	}
	return nil
}

func pool(l *Layer, s *LayerSpec) error {
	if len(l.In) != 3 {
		return fmt.Errorf("needs an input of channels x height x width and gets %s", formatShape(l.In))
	}
	return resolveWindow(l, s, l.In[0], 0)
}

// resolveWindow sets the kernel, the stride and the output shape of a sliding square window. stride is the default
// stride; 0 means the kernel size.
func resolveWindow(l *Layer, s *LayerSpec, out, stride int) (err error) {
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
		return fmt.Errorf("a kernel of %d with padding %d does not fit an input of %s", l.Kernel, l.Pad, formatShape(l.In))
	}
	if l.Pad >= l.Kernel {
		return fmt.Errorf("padding %d is not smaller than the kernel, %d", l.Pad, l.Kernel)
	}
	l.Out = []int{out, h/l.Stride + 1, w/l.Stride + 1}
	return nil
}
