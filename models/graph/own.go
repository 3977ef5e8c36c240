package graph

import (
	"errors"
	"fmt"

	G "gorgonia.org/gorgonia"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
)

// Own is a model that is no list of layers but a graph of one's own.
type Own struct {
	Name    string
	Input   []int // of a sample: [features] or [channels, height, width]
	Classes int
	Params  []engine.Tensor // Name and Shape of each; the places in the flat vector are filled in
	// Build adds the model for so many samples to g. The input is features x samples, or samples x channels x height x width
	// where Input has three sizes; params have the shapes of Params. It returns the logits, classes x samples; the softmax, the
	// loss and the gradients are added behind them. Graphs run again and again: no operator in them may draw numbers.
	Build func(g *G.ExprGraph, samples int, input *G.Node, params []*G.Node) (logits *G.Node, err error)
}

// NewOwn is New for a graph of one's own. The engine does all tasks; initial values are the caller's, and there are no
// statistics.
//
//	e, err := graph.NewOwn(graph.Own{...}, set, 2)
//	layout := e.Layout()
func NewOwn(o Own, d *data.Set, threads int) (*Engine, error) {
	if o.Build == nil || o.Name == "" || len(o.Params) == 0 {
		return nil, errors.New("graph: a graph of one's own needs a name, parameters and Build")
	}
	m := &models.Model{Name: o.Name, Input: o.Input, Features: models.Size(o.Input), Classes: o.Classes, Loss: models.CrossEntropy}
	for _, t := range o.Params {
		if t.Len = models.Size(t.Shape); t.Name == "" || len(t.Shape) == 0 || t.Len < 1 {
			return nil, fmt.Errorf("graph %s: tensor %q of shape %v: give each parameter a name and sizes above zero", o.Name, t.Name, t.Shape)
		}
		t.Lo, t.Cols = m.Layout.Params, t.Len
		if rows := t.Shape[0]; rows < t.Len { // a column is a vector
			t.Cols = t.Len / rows
		}
		m.Layout.Params += t.Len
		m.Layout.Tensors = append(m.Layout.Tensors, t)
	}
	e, err := New(m, d, threads)
	if err != nil {
		return nil, err
	}
	e.own, e.images = &o, len(o.Input) == 3
	_, err = e.workers[0].net(1, running) // what Build gives is looked at now
	return e, err
}

// Layout is that of the parameters.
func (e *Engine) Layout() engine.Layout { return e.model.Layout }

// ownGraph has the caller build the model.
func (b *builder) ownGraph(o *Own) {
	for i, t := range o.Params {
		b.param(i, t.Shape...)
	}
	if b.x, b.err = o.Build(b.g, b.net.samples, b.net.input, b.net.params); b.err != nil {
		return
	}
	if b.x == nil || !b.x.Shape().Eq([]int{o.Classes, b.net.samples}) {
		got := "nothing"
		if b.x != nil {
			got = fmt.Sprint(b.x.Shape())
		}
		b.err = fmt.Errorf("the logits are %s, want %d classes x %d samples", got, o.Classes, b.net.samples)
	}
}
