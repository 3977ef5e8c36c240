package models

import (
	"slices"
	"strconv"
	"strings"

	"brood/models/data"
	"brood/models/engine"
	"brood/models/usererr"
)

// Model is a compiled spec. It is read-only and may be shared by engines.
type Model struct {
	Name, Doc string
	Input     []int // shape of a sample
	Features  int   // elements per sample
	Classes   int   // 0 unless the loss is CrossEntropy or BCE
	Outputs   int   // output values: the classes, the targets of a regression, or with Distance the features
	Loss      string
	// label smoothing in gradients: the share of the label spread over all classes; not used in evaluations
	Smoothing float64
	Eta       float64 // see [Spec]
	Int8      bool    // whole-number arithmetic, see the constant Int8
	// number of byte values that a text model accepts, from 0; Features is then the context length. 0: not a text model
	Vocabulary int
	// positions of a sample at which the loss is taken, each with Outputs values: the context of a text model whose last
	// layer keeps positions, whose class at position t is the byte behind it, else 1. The loss of a sample is their mean
	Positions int
	Layers    []Layer
	Layout    engine.Layout
	inits     []initValue // one per tensor of the layout
}

// Layer is a compiled layer. Results are numbered: 0 is the sample, i is the output of layer i, counted from 1.
type Layer struct {
	Kind                Kind
	From, With          int   // numbers of the input results; With is the second input of an add layer
	In, Out             []int // shapes of one sample: [n] or [channels, height, width]
	Kernel, Stride, Pad int
	Groups              int // groups of a convolution
	// constant weights of a convolution that is not trained, in the order of its weights; nil: trained weights. Read-only
	Filters []float32
	Rate    float64 // of dropout: probability of zero
	Slope   float64 // of a leaky ReLU, for negative inputs
	Factor  float64 // of a scale layer, rounded to float32
	// Indices into Layout.Tensors, -1 if absent. Normalisations: scale and shift; constant: only Bias; mingru: of the
	// gate; attention: of the input projection to q, k and v.
	Weight, Bias int
	State        [2]int // of mingru: weight and bias of the candidate state
	Heads        int    // number of attention heads
	Project      [2]int // of attention: weight and bias of the output projection
	// of dense and layernorm: rows per sample, each processed separately: the positions of a text, or 1 for all values
	Rows int
	// number of text positions in the result, which is a sequence of their values; 0: the result is not a sequence
	Steps     int
	Mean, Var int // indices into Layout.StatTensors, -1 if absent
}

// Takers returns, for each result, the number of layers that use it as input. The loss counts as a user of the last
// result and, with Distance, of the sample.
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

// Flops returns the multiplications and additions per sample in matrix products and convolutions: of an evaluation, and
// of a gradient. A gradient adds the products for the weights and, after the first layer with weights, those for the
// inputs. Products with padding are counted.
func (m *Model) Flops() (forward, gradient float64) {
	deep := make([]bool, len(m.Layers)+1) // results that depend on weights
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
		if l.Kind == MinGRU { // two matrices, applied at each position
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

// attentionFlops returns Flops of one attention layer. Masked scores are counted, since they are computed.
func (m *Model) attentionFlops(l *Layer, deep bool) (forward, gradient float64) {
	steps, queries, channels := m.Features, l.Queries(m), l.In[0]/m.Features
	before, rest := 2*steps*3*channels*channels, 2*2*queries*steps*channels+2*queries*channels*channels
	back := 2*before + 3*rest
	if deep {
		back += before
	}
	return float64(before + rest), float64(back)
}

// Queries returns the number of positions for which an attention layer computes results: all, or 1 for only the last.
func (l *Layer) Queries(m *Model) int { return l.Out[0] / (l.In[0] / m.Features) }

// Shape returns the shape of a result, by its number.
func (m *Model) Shape(result int) []int {
	if result == 0 {
		return m.Input
	}
	return m.Layers[result-1].Out
}

// Bounds returns the argument checks of tasks for this model and a data set.
func (m *Model) Bounds(d *data.Set) engine.Bounds {
	b := engine.Bounds{Layout: &m.Layout, Samples: d.Len(), Changes: d.Augment() != data.Augment{}}
	for _, l := range m.Layers {
		b.Norms = b.Norms || l.Kind == BatchNorm
		b.Drops = b.Drops || l.Kind == Dropout && l.Rate > 0
	}
	return b
}

// Regression reports whether the model predicts numbers.
func (m *Model) Regression() bool { return m.Loss == MSE || m.Loss == Huber }

// MultiLabel reports whether a sample may belong to any number of classes.
func (m *Model) MultiLabel() bool { return m.Loss == BCE }

// Targeted reports whether the loss compares outputs with targets of the data instead of a class label.
func (m *Model) Targeted() bool { return m.Regression() || m.MultiLabel() }

// Context returns the number of bytes from which a text model predicts the next; 0 for other models.
func (m *Model) Context() int {
	if m.Vocabulary == 0 {
		return 0
	}
	return m.Features
}

// Fits returns an error if the samples of a data set, their classes or their targets do not fit the model.
func (m *Model) Fits(d data.Info) error {
	shape, classes, outputs := d.Shape, d.Classes, d.Outputs
	switch {
	case m.Vocabulary > 0 && !d.Text:
		return usererr.Errorf("model %s reads text by its embedding, and the data are none; "+
			"choose data such as tales or a .txt file, or another model", m.Name)
	case m.Vocabulary == 0 && d.Text:
		return usererr.Errorf("model %s has no embedding, and the data are a text; "+
			"choose a model that begins with one, such as bytes-small, or other data", m.Name)
	case m.Vocabulary > 0 && m.Vocabulary < classes:
		return usererr.Errorf("model %s has the vocabulary %d, and the text has the byte %d; "+
			"choose a text of lower bytes, or give the embedding a larger vocabulary", m.Name, m.Vocabulary, classes-1)
	}
	flat := len(m.Input) == 1 && m.Features == Size(shape)
	if !flat && !slices.Equal(m.Input, shape) {
		return usererr.Errorf("model %s takes samples of %v, not of %v; choose a model and a data set that match",
			m.Name, m.Input, shape)
	}
	switch {
	case m.MultiLabel() && !d.MultiLabel:
		return usererr.Errorf("model %s tells several classes of a sample (loss %s), and the data have one for each, "+
			"or numbers; choose a model of the loss %s, or data with a column of 0 and 1 for each class",
			m.Name, BCE, CrossEntropy)
	case m.MultiLabel() && outputs != m.Classes:
		return usererr.Errorf("model %s has %d classes, the data %d; choose a model and a data set that match",
			m.Name, m.Classes, outputs)
	case m.MultiLabel():
	case d.MultiLabel:
		return usererr.Errorf("model %s tells no several classes of a sample, and the data have them; "+
			"choose a model of the loss %s", m.Name, BCE)
	case m.Regression() && classes > 0:
		return usererr.Errorf("model %s predicts numbers (loss %s), and the data have classes; "+
			"choose a model of the loss %s, or data whose labels are numbers", m.Name, m.Loss, CrossEntropy)
	case m.Regression() && outputs != m.Outputs:
		return usererr.Errorf("model %s predicts outputs = %d, and the data have %d; "+
			"choose a model and a data set that match", m.Name, m.Outputs, outputs)
	case m.Loss == CrossEntropy && outputs > 0:
		return usererr.Errorf("model %s has classes, and the labels of the data are numbers; "+
			"choose a model of the loss %s or %s", m.Name, MSE, Huber)
	case m.Loss != Distance && m.Classes < classes:
		return usererr.Errorf("model %s has %d classes, the data %d; choose a model and a data set that match",
			m.Name, m.Classes, classes)
	}
	return nil
}

// Size returns the number of elements of a shape.
func Size(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

func formatShape(shape []int) string {
	s := make([]string, len(shape))
	for i, d := range shape {
		s[i] = strconv.Itoa(d)
	}
	return strings.Join(s, "x")
}
