package graph

import (
	"fmt"
	"sync"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"brood/models"
)

// mode is the purpose of a graph.
type mode uint8

const (
	training   mode = iota // dropout masks, batch statistics that also update the running ones, gradients
	batchStats             // no dropout; statistics of the batch itself
	running                // no dropout; given statistics
)

// net is a compiled graph for a number of samples. Flat activations are features x samples, so that a weight in
// PyTorch's layout multiplies from the left without transposition; images are samples x channels x height x width. The
// bytes of a text are one-hot, samples*context x vocabulary.
type net struct {
	samples int
	mode    mode
	vm      G.VM
	input   *G.Node
	target  *G.Node // one-hot times weight, in the shape of the logits; for a regression the targets, outputs x samples
	masks   []mask
	params  []*G.Node // in layout order
	norms   []norm
	grads   []G.Value // receives the gradients
	logits  G.Value   // classes x samples, or classes x samples*positions
	result  *G.Node   // node of the logits
	graph   *G.ExprGraph
}

type mask struct {
	layer int
	node  *G.Node
}

type norm struct {
	layer int
	op    *G.BatchNormOp
}

// builder adds layers to a graph; after the first error every method does nothing.
type builder struct {
	m       *models.Model
	net     *net
	g       *G.ExprGraph
	x       *G.Node
	results []*G.Node // results of the layers so far, the sample first
	images  bool      // whether the sample is an image
	err     error
}

// building guards a global counter of gorgonia that every new graph of the process advances.
var building sync.Mutex

// build compiles the engine's model for that many samples.
func (e *Engine) build(samples int, md mode) (n *net, err error) {
	m := e.model
	building.Lock()
	defer building.Unlock()
	defer func() { // gorgonia panics if a graph does not compile
		if p := recover(); p != nil {
			err = fmt.Errorf("graph of %s for %d samples: %v", m.Name, samples, p)
		}
	}()
	b := &builder{m: m, g: G.NewGraph(),
		net: &net{samples: samples, mode: md, params: make([]*G.Node, len(m.Layout.Tensors))}}
	b.images = e.images
	switch {
	case m.Vocabulary > 0:
		b.net.input = b.node("input", samples*m.Features, m.Vocabulary)
	case b.images:
		b.net.input = b.node("input", samples, m.Input[0], m.Input[1], m.Input[2])
	default:
		b.net.input = b.node("input", m.Features, samples)
	}
	b.results = []*G.Node{b.net.input}
	if e.own != nil {
		if b.ownGraph(e.own); b.err != nil {
			return nil, fmt.Errorf("graph of %s: %w", m.Name, b.err)
		}
	}
	for i := range m.Layers {
		b.x = b.results[m.Layers[i].From]
		if b.layer(i); b.err != nil {
			return nil, fmt.Errorf("graph of %s, layer %d (%s): %w", m.Name, i+1, m.Layers[i].Kind, b.err)
		}
		b.results = append(b.results, b.x)
	}
	if m.Positions > 1 {
		b.byPosition(m.Positions, m.Classes)
	}
	b.net.graph, b.net.result = b.g, b.x
	G.Read(b.x, &b.net.logits)
	if md == training {
		if b.loss(); b.err != nil {
			return nil, fmt.Errorf("graph of %s, loss: %w", m.Name, b.err)
		}
	}
	var opts []G.VMOpt
	if md == running {
		opts = append(opts, G.EvalMode())
	}
	b.net.vm = G.NewTapeMachine(b.g, opts...)
	return b.net, nil
}

// images reports whether the graph's input is images. It is features x samples if the sample is only used flat.
func images(m *models.Model) bool {
	if len(m.Input) != 3 {
		return false
	}
	for i := range m.Layers {
		l := &m.Layers[i]
		if l.From == 0 && l.Kind != models.Flatten && l.Kind != models.Constant || l.Kind == models.Add && l.With == 0 {
			return true
		}
	}
	return false
}

// node returns an input of the graph.
func (b *builder) node(name string, shape ...int) *G.Node {
	return G.NewTensor(b.g, G.Float32, len(shape), G.WithShape(shape...), G.WithName(name))
}

// param returns tensor i of the layout as a node, with another shape of the same size if given.
func (b *builder) param(i int, shape ...int) *G.Node {
	b.net.params[i] = b.node(b.m.Layout.Tensors[i].Name, shape...)
	return b.net.params[i]
}

// do stores the first error and returns the node.
func (b *builder) do(n *G.Node, err error) *G.Node {
	if b.err == nil {
		b.err = err
	}
	return n
}

// to sets the next activation; it does not call f after an error.
func (b *builder) to(f func() (*G.Node, error)) {
	if b.err == nil {
		b.x = b.do(f())
	}
}

func (b *builder) reshape(shape ...int) {
	b.to(func() (*G.Node, error) { return G.Reshape(b.x, tensor.Shape(shape)) })
}

// loss adds the mean loss and its gradients. Only the gradients are read: the loss itself is computed from the logits
// in float64. The softmax runs over axis 0: over the last axis it overflows (TestTrapSoftMaxMaximum).
func (b *builder) loss() {
	factor := 1 / float32(b.net.samples*b.m.Positions)
	switch {
	case b.m.MultiLabel():
		factor /= float32(b.m.Outputs)
		b.net.target = b.node("target", b.m.Outputs, b.net.samples)
		z := b.x
		b.to(func() (*G.Node, error) { return G.Softplus(z) })
		soft := b.x
		b.to(func() (*G.Node, error) { return G.HadamardProd(z, b.net.target) })
		in := b.x
		b.to(func() (*G.Node, error) { return G.Sub(soft, in) })
	case b.m.Regression():
		factor /= float32(b.m.Outputs)
		b.net.target = b.node("target", b.m.Outputs, b.net.samples)
		b.to(func() (*G.Node, error) { return G.Sub(b.x, b.net.target) })
		if b.m.Loss == models.Huber {
			b.huber()
		} else {
			b.to(func() (*G.Node, error) { return G.Square(b.x) })
		}
	case b.m.Loss == models.Distance:
		result := b.x
		if b.x = b.net.input; b.images {
			b.reshape(b.net.samples, b.m.Features)
			b.to(func() (*G.Node, error) { return G.Transpose(b.x, 1, 0) })
		}
		b.to(func() (*G.Node, error) { return G.Sub(result, b.x) })
		b.to(func() (*G.Node, error) { return G.Square(b.x) })
	default:
		factor = -factor
		b.net.target = b.node("target", b.m.Classes, b.net.samples*b.m.Positions)
		b.to(func() (*G.Node, error) { return G.LogSoftMax(b.x, 0) })
		b.to(func() (*G.Node, error) { return G.HadamardProd(b.x, b.net.target) })
	}
	b.to(func() (*G.Node, error) { return G.Sum(b.x) })
	b.to(func() (*G.Node, error) { return G.Mul(b.x, G.NewConstant(factor)) })
	if b.err != nil {
		return
	}
	grads, err := G.Grad(b.x, b.net.params...)
	if err != nil {
		b.err = err
		return
	}
	b.net.grads = make([]G.Value, len(grads))
	for i, g := range grads {
		G.Read(g, &b.net.grads[i])
	}
}

// huber computes the loss of errors e with operations whose gradients gorgonia has: with q = min(|e|, delta) = |e| -
// max(0, |e| - delta) it is q^2/2 + delta*max(0, |e| - delta).
func (b *builder) huber() {
	b.to(func() (*G.Node, error) { return G.Abs(b.x) })
	size := b.x
	b.to(func() (*G.Node, error) { return G.Sub(b.x, G.NewConstant(float32(models.HuberDelta))) })
	b.to(func() (*G.Node, error) { return G.Rectify(b.x) })
	beyond := b.x
	b.to(func() (*G.Node, error) { return G.Sub(size, beyond) })
	b.to(func() (*G.Node, error) { return G.Square(b.x) })
	b.to(func() (*G.Node, error) { return G.Mul(b.x, G.NewConstant(float32(0.5))) })
	square := b.x
	b.to(func() (*G.Node, error) { return G.Mul(beyond, G.NewConstant(float32(models.HuberDelta))) })
	line := b.x
	b.to(func() (*G.Node, error) { return G.Add(square, line) })
}
