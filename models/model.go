package models

import (
	"slices"
	"strconv"
	"strings"

	"brood/models/data"
	"brood/models/engine"
	"brood/models/usererr"
)

// Model is a compiled spec: read-only, shared by engines.
type Model struct {
	Name, Doc string
	Input     []int // shape of a sample
	Features  int   // elements of a sample
	Classes   int   // 0 where the loss is neither CrossEntropy nor BCE
	Outputs   int   // values of a result: the classes, the numbers that a regression predicts, with Distance the features
	Loss      string
	// share of the label that all classes have alike, where gradients are taken; evaluations have none of it
	Smoothing float64
	Eta       float64 // see [Spec]
	Int8      bool    // it computes in whole numbers, see [Int8]
	// the bytes of a text that the model knows are those below, and Features are the context; 0: it reads no text
	Vocabulary int
	Layers     []Layer
	Layout     engine.Layout
	inits      []start // one per tensor of the layout
}

// Layer is one layer with its shapes settled. Result 0 is the sample, result i that of layer i, counted from 1.
type Layer struct {
	Kind                Kind
	From, With          int   // the results that it takes; With is that of an add layer
	In, Out             []int // shapes of one sample: [n] or [channels, height, width]
	Kernel, Stride, Pad int
	Groups              int // of a convolution
	// of a convolution: constants in the order of its weights, in place of them; nil: it has weights. Never written
	Filters []float32
	Rate    float64 // dropout: the probability of zero
	Slope   float64 // of a leaky rectifier, below zero
	Factor  float64 // of a scale layer, taken as a float32
	// indices into Layout.Tensors, -1 when absent (normalisations: scale and shift; constant: Bias; mingru: the gate's;
	// attention: those that give q, k and v)
	Weight, Bias int
	State        [2]int // of mingru: weight and bias of the state that the gate lets in
	Heads        int    // of attention
	Project      [2]int // of attention: weight and bias of the projection of what its heads give
	// rows that a sample is to a dense layer or a layernorm: the positions of a text one by one, or 1, all values together
	Rows int
	// positions of a text that the result has values for, one after the other in it; 0: it is no sequence
	Steps     int
	Mean, Var int // indices into Layout.StatTensors, -1 when absent
}

// Takers counts, for each result, the layers that take it; the loss takes the last one, and with Distance the sample.
func (m *Model) Takers() []int {
	n := make([]int, len(m.Layers)+1)
	for i := range m.Layers {
		l := &m.Layers[i]
		n[l.From]++
		if l.Kind == Add {
			n[l.With]++
		}
	}
	n[len(m.Layers)]++
	if m.Loss == Distance {
		n[0]++
	}
	return n
}

// Flops is the multiplications and additions of a sample in the products of the model: of an evaluation, and of a
// gradient, which takes those of the weights and, behind the first layer with weights, those of the inputs besides.
// Products with padding count.
func (m *Model) Flops() (forward, gradient float64) {
	deep := make([]bool, len(m.Layers)+1) // results that have weights before them
	for i := range m.Layers {
		l := &m.Layers[i]
		deep[i+1] = deep[l.From] || l.Weight >= 0 || l.Kind == Add && deep[l.With]
		if l.Kind == Attention {
			f, g := m.attentionFlops(l, deep[l.From])
			forward, gradient = forward+f, gradient+g
			continue
		}
		if l.Kind != Dense && l.Kind != Conv && l.Kind != MinGRU {
			continue
		}
		n := 2 * float64(len(l.Filters)*l.Rows)
		if l.Weight >= 0 {
			n = 2 * float64(m.Layout.Tensors[l.Weight].Len*l.Rows)
		}
		if l.Kind == MinGRU { // two of them, at each position
			n *= 2 * float64(m.Features)
		}
		if l.Kind == Conv {
			n *= float64(l.Out[1] * l.Out[2])
		}
		forward += n
		if gradient += n; l.Weight >= 0 {
			gradient += n
		}
		if deep[l.From] {
			gradient += n
		}
	}
	return forward, gradient
}

// attentionFlops is Flops of one layer. Scores that are not looked at count, since they are computed.
func (m *Model) attentionFlops(l *Layer, deep bool) (forward, gradient float64) {
	steps, asked, channels := m.Features, l.Asked(m), l.In[0]/m.Features
	before, rest := 2*steps*3*channels*channels, 2*2*asked*steps*channels+2*asked*channels*channels
	back := 2*before + 3*rest
	if deep {
		back += before
	}
	return float64(before + rest), float64(back)
}

// Asked is the positions that attention gives results for: all of the text, or the last alone.
func (l *Layer) Asked(m *Model) int { return l.Out[0] / (l.In[0] / m.Features) }

// Shape is that of a result.
func (m *Model) Shape(result int) []int {
	if result == 0 {
		return m.Input
	}
	return m.Layers[result-1].Out
}

// Bounds are what tasks on this model and a data set must fit.
func (m *Model) Bounds(d *data.Set) engine.Bounds {
	b := engine.Bounds{Layout: &m.Layout, Samples: d.Len(), Changes: d.Augment() != data.Augment{}}
	for _, l := range m.Layers {
		b.Norms = b.Norms || l.Kind == BatchNorm
		b.Drops = b.Drops || l.Kind == Dropout && l.Rate > 0
	}
	return b
}

// Regression says that the model predicts numbers.
func (m *Model) Regression() bool { return m.Loss == MSE || m.Loss == Huber }

// MultiLabel says that a sample may be in several classes at once, or in none.
func (m *Model) MultiLabel() bool { return m.Loss == BCE }

// Targeted says that the loss compares results with targets of the data, and not with the one class of a sample.
func (m *Model) Targeted() bool { return m.Regression() || m.MultiLabel() }

// Context is the bytes of a text that the model reads to predict the one behind them; 0: it reads no text.
func (m *Model) Context() int {
	if m.Vocabulary == 0 {
		return 0
	}
	return m.Features
}

// Fits says whether the samples of a data set, and their classes or targets, are what the model takes.
func (m *Model) Fits(d data.Info) error {
	shape, classes, outputs := d.Shape, d.Classes, d.Outputs
	switch {
	case m.Vocabulary > 0 && !d.Text:
		return usererr.Errorf("model %s reads text by its embedding, and the data are none; choose data such as tales or a .txt file, or another model", m.Name)
	case m.Vocabulary == 0 && d.Text:
		return usererr.Errorf("model %s has no embedding, and the data are a text; choose a model that begins with one, such as bytes-small, or other data", m.Name)
	case m.Vocabulary > 0 && m.Vocabulary < classes:
		return usererr.Errorf("model %s has the vocabulary %d, and the text has the byte %d; choose a text of lower bytes, or give the embedding a larger vocabulary", m.Name, m.Vocabulary, classes-1)
	}
	flat := len(m.Input) == 1 && m.Features == Size(shape)
	if !flat && !slices.Equal(m.Input, shape) {
		return usererr.Errorf("model %s takes samples of %v, not of %v; choose a model and a data set that match", m.Name, m.Input, shape)
	}
	switch {
	case m.MultiLabel() && !d.MultiLabel:
		return usererr.Errorf("model %s tells several classes of a sample (loss %s), and the data have one for each, or numbers; choose a model of the loss %s, or data with a column of 0 and 1 for each class", m.Name, BCE, CrossEntropy)
	case m.MultiLabel() && outputs != m.Classes:
		return usererr.Errorf("model %s has %d classes, the data %d; choose a model and a data set that match", m.Name, m.Classes, outputs)
	case m.MultiLabel():
	case d.MultiLabel:
		return usererr.Errorf("model %s tells no several classes of a sample, and the data have them; choose a model of the loss %s", m.Name, BCE)
	case m.Regression() && classes > 0:
		return usererr.Errorf("model %s predicts numbers (loss %s), and the data have classes; choose a model of the loss %s, or data whose labels are numbers", m.Name, m.Loss, CrossEntropy)
	case m.Regression() && outputs != m.Outputs:
		return usererr.Errorf("model %s predicts outputs = %d, and the data have %d; choose a model and a data set that match", m.Name, m.Outputs, outputs)
	case m.Loss == CrossEntropy && outputs > 0:
		return usererr.Errorf("model %s has classes, and the labels of the data are numbers; choose a model of the loss %s or %s", m.Name, MSE, Huber)
	case m.Loss != Distance && m.Classes < classes:
		return usererr.Errorf("model %s has %d classes, the data %d; choose a model and a data set that match", m.Name, m.Classes, classes)
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
