package graph

import (
	"math"
	"slices"
	"strconv"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"brood/models"
)

func (b *builder) layer(i int) {
	l := &b.m.Layers[i]
	switch l.Kind {
	case models.Dense:
		b.dense(l)
	case models.Conv:
		b.conv(i, l)
	case models.MaxPool:
		k, s := l.Kernel, l.Stride
		b.to(func() (*G.Node, error) {
			return G.MaxPool2D(b.x, tensor.Shape{k, k}, []int{0, 0}, []int{s, s})
		})
	case models.BatchNorm:
		b.norm(i, l)
	case models.ReLU:
		b.to(func() (*G.Node, error) { return G.Rectify(b.x) })
	case models.LayerNorm:
		b.layerNorm(i, l)
	case models.LeakyReLU:
		b.to(func() (*G.Node, error) { return G.LeakyRelu(b.x, l.Slope) })
	case models.Scale:
		b.times(float32(l.Factor))
	case models.Tanh:
		b.to(func() (*G.Node, error) { return G.Tanh(b.x) })
	case models.SiLU:
		x := b.x
		b.to(func() (*G.Node, error) { return G.Sigmoid(b.x) })
		b.to(func() (*G.Node, error) { return G.HadamardProd(x, b.x) })
	case models.GELU:
		x := b.x
		b.times(1 / math.Sqrt2)
		b.to(func() (*G.Node, error) { return G.ApplyOp(erf{}, b.x) })
		b.to(func() (*G.Node, error) { return G.Add(b.x, G.NewConstant(float32(1))) })
		b.to(func() (*G.Node, error) { return G.HadamardProd(x, b.x) })
		b.times(0.5)
	case models.Dropout:
		b.dropout(i, l)
	case models.Last:
		in, out := l.In[0], l.Out[0]
		pick := b.fixed("last"+strconv.Itoa(i), unitRows(out, in, in-out), out, in)
		b.to(func() (*G.Node, error) { return G.Mul(pick, b.x) })
	case models.Flatten:
		if len(l.In) == 3 && (l.From > 0 || b.images) {
			b.reshape(b.net.samples, models.Size(l.In))
			b.to(func() (*G.Node, error) { return G.Transpose(b.x, 1, 0) })
		}
	case models.AvgPool: // gorgonia's operator is wrong (TestTrapAveragePool)
		c, area := l.In[0], float32(l.Kernel*l.Kernel)
		b.diagonal(i, c, c, l.Kernel, l.Stride, 1/area)
	case models.Add:
		b.sum(i, l)
	case models.Constant:
		v, n := b.param(l.Bias, l.Out[0], 1), b.net.samples
		zero := b.fixed("zero"+strconv.Itoa(i), make([]float32, l.Out[0]*n), l.Out[0], n)
		b.to(func() (*G.Node, error) { return G.BroadcastAdd(zero, v, nil, []byte{1}) })
	case models.Attention:
		b.attention(i, l)
	case models.MinGRU:
		b.minGRU(i, l)
	case models.Embedding:
		w := b.param(l.Weight, b.m.Vocabulary, l.Out[0]/l.In[0])
		b.to(func() (*G.Node, error) { return G.Mul(b.x, w) })
		b.reshape(b.net.samples, l.Out[0])
		b.to(func() (*G.Node, error) { return G.Transpose(b.x, 1, 0) })
	case models.GlobalAvg:
		n, c := b.net.samples, l.In[0]
		b.reshape(n*c, l.In[1]*l.In[2])
		b.to(func() (*G.Node, error) { return G.Mean(b.x, 1) })
		b.reshape(n, c)
		b.to(func() (*G.Node, error) { return G.Transpose(b.x, 1, 0) })
	}
}

func (b *builder) dense(l *models.Layer) {
	in, out := l.In[0]/l.Rows, l.Out[0]/l.Rows
	if l.Rows > 1 {
		b.byPosition(l.Rows, in)
	}
	w := b.param(l.Weight, out, in)
	b.to(func() (*G.Node, error) { return G.Mul(w, b.x) })
	if l.Bias >= 0 {
		v := b.param(l.Bias, out, 1)
		b.to(func() (*G.Node, error) { return G.BroadcastAdd(b.x, v, nil, []byte{1}) })
	}
	if l.Rows > 1 {
		b.bySample(l.Rows, out)
	}
}

func (b *builder) conv(i int, l *models.Layer) {
	shape := []int{l.Out[0], l.In[0], l.Kernel, l.Kernel}
	var w *G.Node
	if l.Filters != nil {
		w = b.fixed("filters"+strconv.Itoa(i), slices.Clone(l.Filters), shape...)
	} else {
		w = b.param(l.Weight, shape...)
	}
	b.to(func() (*G.Node, error) {
		return G.Conv2d(b.x, w, tensor.Shape{l.Kernel, l.Kernel}, []int{l.Pad, l.Pad}, []int{l.Stride, l.Stride}, []int{1, 1})
	})
	if l.Bias >= 0 {
		v := b.param(l.Bias, 1, l.Out[0], 1, 1)
		b.to(func() (*G.Node, error) { return G.BroadcastAdd(b.x, v, nil, []byte{0, 2, 3}) })
	}
}

// sum adds another result; a 1x1 convolution with weights of ones and zeros selects every stride-th pixel of an image
// and adds missing channels.
func (b *builder) sum(i int, l *models.Layer) {
	main, shape := b.x, b.m.Shape(l.With)
	b.x = b.results[l.With]
	if l.Stride > 1 || shape[0] != l.In[0] {
		b.diagonal(i, shape[0], l.In[0], 1, l.Stride, 1)
	}
	b.to(func() (*G.Node, error) { return G.Add(main, b.x) })
}

// diagonal is a convolution without parameters: each channel with a square of equal weights; channels beyond the last
// are zero.
func (b *builder) diagonal(i, in, out, kernel, stride int, weight float32) {
	area := kernel * kernel
	w := make([]float32, out*in*area)
	for c := range min(in, out) {
		for j := range area {
			w[(c*in+c)*area+j] = weight
		}
	}
	v := b.fixed("diagonal"+strconv.Itoa(i), w, out, in, kernel, kernel)
	b.to(func() (*G.Node, error) {
		return G.Conv2d(b.x, v, tensor.Shape{kernel, kernel}, []int{0, 0}, []int{stride, stride}, []int{1, 1})
	})
}

// fixed returns an input whose value never changes.
func (b *builder) fixed(name string, value []float32, shape ...int) *G.Node {
	v := tensor.New(tensor.WithShape(shape...), tensor.WithBacking(value))
	return G.NewTensor(b.g, G.Float32, len(shape), G.WithShape(shape...), G.WithName(name), G.WithValue(v))
}

// norm uses gorgonia's operator, whose statistics are defined as in PyTorch: biased variance to normalise, unbiased for
// the running value. A flat activation is passed as samples x features, an image as samples x channels x 1 x places:
// the gradients of scale and shift are sums over axes 0 and 3, which gorgonia computes correctly, unlike those over 0
// and 2 of a column.
func (b *builder) norm(i int, l *models.Layer) {
	c := l.In[0]
	shape := []int{1, c, 1, 1}[:len(l.In)+1]
	scale, shift := b.param(l.Weight, shape...), b.param(l.Bias, shape...)
	momentum := float64(models.NormMomentum)
	if b.net.mode == batchStats {
		momentum = 1
	}
	flat := len(l.In) == 1
	if flat {
		b.to(func() (*G.Node, error) { return G.Transpose(b.x, 1, 0) })
	} else {
		b.reshape(b.net.samples, c, 1, l.In[1]*l.In[2])
	}
	b.to(func() (*G.Node, error) {
		y, _, _, op, err := G.BatchNorm(b.x, scale, shift, momentum, models.NormEpsilon)
		b.net.norms = append(b.net.norms, norm{i, op})
		return y, err
	})
	if flat {
		b.to(func() (*G.Node, error) { return G.Transpose(b.x, 1, 0) })
	} else {
		b.reshape(b.net.samples, c, l.In[1], l.In[2])
	}
}

// minGRU processes the positions one by one. It selects the values of a position, and inserts a state, by products with
// ones and zeros: the gradients of products are correct.
func (b *builder) minGRU(i int, l *models.Layer) {
	steps := b.m.Features
	in, units := l.In[0]/steps, b.m.Layout.Tensors[l.Bias].Len
	gate, state := b.param(l.Weight, units, in), b.param(l.State[0], units, in)
	biases := [2]*G.Node{b.param(l.Bias, units, 1), b.param(l.State[1], units, 1)}
	x := b.x
	var before, result *G.Node
	for t := range steps {
		label := strconv.Itoa(i) + "." + strconv.Itoa(t)
		place := b.fixed("place"+label, unitRows(in, l.In[0], t*in), in, l.In[0])
		product := func(w, bias *G.Node) *G.Node {
			b.x = x
			b.to(func() (*G.Node, error) { return G.Mul(place, b.x) })
			b.to(func() (*G.Node, error) { return G.Mul(w, b.x) })
			b.to(func() (*G.Node, error) { return G.BroadcastAdd(b.x, bias, nil, []byte{1}) })
			return b.x
		}
		c := product(state, biases[1])
		product(gate, biases[0])
		b.to(func() (*G.Node, error) { return G.Sigmoid(b.x) })
		z := b.x
		b.x = c
		if before != nil {
			b.to(func() (*G.Node, error) { return G.Sub(b.x, before) })
		}
		b.to(func() (*G.Node, error) { return G.HadamardProd(z, b.x) })
		if before != nil {
			b.to(func() (*G.Node, error) { return G.Add(before, b.x) })
		}
		if before = b.x; l.Steps == 0 {
			continue
		}
		turned := make([]float32, steps*units*units)
		for j := range units {
			turned[(t*units+j)*units+j] = 1
		}
		into := b.fixed("into"+label, turned, steps*units, units)
		b.to(func() (*G.Node, error) { return G.Mul(into, b.x) })
		if result != nil {
			b.to(func() (*G.Node, error) { return G.Add(result, b.x) })
		}
		result = b.x
	}
	if result != nil {
		b.x = result
	}
}

// unitRows returns rows of ones and zeros, rows x cols: row r has its one in column first+r.
func unitRows(rows, cols, first int) []float32 {
	w := make([]float32, rows*cols)
	for i := range rows {
		w[i*cols+first+i] = 1
	}
	return w
}

// times multiplies by a number.
func (b *builder) times(c float32) {
	b.to(func() (*G.Node, error) { return G.HadamardProd(b.x, G.NewConstant(c)) })
}

// layerNorm computes means by products: a row of 1/n adds up the features of each sample, and a column of ones copies
// the sum to all of them. Their gradients are correct for any shape, unlike those of sums along an axis.
func (b *builder) layerNorm(i int, l *models.Layer) {
	n, samples := models.Size(l.In)/l.Rows, b.net.samples*l.Rows
	image := len(l.In) == 3
	if l.Rows > 1 {
		b.byPosition(l.Rows, n)
	}
	if image {
		b.reshape(samples, n)
		b.to(func() (*G.Node, error) { return G.Transpose(b.x, 1, 0) })
	}
	even := func(name string, value float32, rows, cols int) *G.Node {
		v := make([]float32, rows*cols)
		for i := range v {
			v[i] = value
		}
		return b.fixed(name+strconv.Itoa(i), v, rows, cols)
	}
	mean, each, ones := even("mean", 1/float32(n), 1, n), even("each", 1, n, 1), even("ones", 1, 1, samples)
	scale, shift := b.param(l.Weight, n, 1), b.param(l.Bias, n, 1)
	x := b.x
	b.to(func() (*G.Node, error) { return G.Mul(mean, b.x) })
	b.to(func() (*G.Node, error) { return G.Mul(each, b.x) })
	b.to(func() (*G.Node, error) { return G.Sub(x, b.x) })
	x = b.x
	b.to(func() (*G.Node, error) { return G.Square(b.x) })
	b.to(func() (*G.Node, error) { return G.Mul(mean, b.x) })
	b.to(func() (*G.Node, error) { return G.Add(b.x, G.NewConstant(float32(models.NormEpsilon))) })
	b.to(func() (*G.Node, error) { return G.Sqrt(b.x) }) // the gradient of InverseSqrt is wrong (TestTrapInverseSqrt)
	b.to(func() (*G.Node, error) { return G.Mul(each, b.x) })
	b.to(func() (*G.Node, error) { return G.HadamardDiv(x, b.x) })
	x = b.x
	b.to(func() (*G.Node, error) { return G.Mul(scale, ones) })
	b.to(func() (*G.Node, error) { return G.HadamardProd(x, b.x) })
	b.to(func() (*G.Node, error) { return G.BroadcastAdd(b.x, shift, nil, []byte{1}) })
	if image {
		b.to(func() (*G.Node, error) { return G.Transpose(b.x, 1, 0) })
		b.reshape(samples, l.In[0], l.In[1], l.In[2])
	}
	if l.Rows > 1 {
		b.bySample(l.Rows, n)
	}
}

// dropout multiplies by a mask that is an input: gorgonia's operator would draw one.
func (b *builder) dropout(i int, l *models.Layer) {
	if b.net.mode != training || l.Rate == 0 {
		return
	}
	v := b.node("mask"+strconv.Itoa(i), b.x.Shape()...)
	b.net.masks = append(b.net.masks, mask{i, v})
	b.to(func() (*G.Node, error) { return G.HadamardProd(b.x, v) })
}
