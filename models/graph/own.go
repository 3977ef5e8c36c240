package graph

import (
	"errors"
	"fmt"
	"hash"
	"slices"
	"strings"

	"github.com/zeebo/blake3"
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
	Params  []engine.Tensor // Name and Shape of each; the rest is filled in
	// Build adds the model for so many samples to g. The input is features x samples, or samples x channels x height x
	// width where Input has three sizes; params have the shapes of Params. It returns the logits, classes x samples; the
	// softmax, the loss and the gradients are added behind them. It is called again for each size of batch and each
	// thread, and must build the same every time; graphs run again and again, so that no operator in them may draw
	// numbers.
	Build func(g *G.ExprGraph, samples int, input *G.Node, params []*G.Node) (logits *G.Node, err error)
}

// NewOwn is New for a graph of one's own. The engine does all tasks; there are no statistics.
//
//	e, err := graph.NewOwn(graph.Own{...}, set, 2)
//	layout := e.Model().Layout
func NewOwn(o Own, d *data.Set, threads int) (*Engine, error) {
	m, err := o.Model()
	if err != nil {
		return nil, err
	}
	e, err := New(m, d, threads)
	if err != nil {
		return nil, err
	}
	e.own, e.images = &o, len(o.Input) == 3
	n, err := e.workers[0].net(1, running) // what Build gives is looked at now
	if err == nil {
		e.values = n.values()
	}
	return e, err
}

// Model is the model without the graph: its name, its layout and its default initial values, see models.Own.
func (o *Own) Model() (*models.Model, error) {
	if o.Build == nil {
		return nil, fmt.Errorf("graph %s: a graph of one's own needs Build", o.Name)
	}
	m, err := models.Own(o.Name, o.Input, o.Classes, o.Params)
	if err != nil {
		return nil, fmt.Errorf("graph: %w", err)
	}
	return m, nil
}

// Text describes the graph, a line each: name, input, classes, parameters, and the number of operators with a digest of
// them and of how they are wired. Graphs of equal text compute the same. It fails where Build or the gradients do.
func (o *Own) Text() (string, error) {
	m, err := o.Model()
	if err != nil {
		return "", err
	}
	e := &Engine{model: m, own: o, images: len(o.Input) == 3}
	n, err := e.build(2, training)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "graph %s\ninput %v\nclasses %d\n", o.Name, o.Input, o.Classes)
	for _, t := range m.Layout.Tensors {
		fmt.Fprintf(&b, "parameter %s %v\n", t.Name, t.Shape)
	}
	w := wiring{g: n.graph, given: append(slices.Clone(n.params), n.input), at: map[*G.Node]int{}, to: blake3.New()}
	if w.reach(n.result); w.err != nil {
		return "", fmt.Errorf("graph %s: %w", o.Name, w.err)
	}
	fmt.Fprintf(&b, "operators %d blake3:%x\n", len(w.at), w.to.Sum(nil))
	return b.String(), nil
}

// wiring numbers the nodes that a node depends on, operands first, and digests each with the numbers of its operands.
type wiring struct {
	g     *G.ExprGraph
	given []*G.Node // whose values are the engine's
	at    map[*G.Node]int
	to    hash.Hash
	err   error // what cannot be executed again
}

func (w *wiring) reach(n *G.Node) int {
	if i, ok := w.at[n]; ok {
		return i
	}
	var from []int
	if operands := w.g.From(n.ID()); operands != nil {
		for operands.Next() {
			from = append(from, w.reach(operands.Node().(*G.Node)))
		}
	}
	if op := n.Op(); op == nil {
		fmt.Fprintf(w.to, "%q", n.Name())
	} else {
		fmt.Fprintf(w.to, "%q", op.String())
		op.WriteHash(w.to)
		switch fmt.Sprintf("%T", op) { // most of gorgonia's types have no name outside it
		case "*gorgonia.BatchNormOp":
			w.err = errors.New("BatchNorm keeps statistics in its operator, which no session holds: leave it out, or use a layer list")
		case "*gorgonia.dropoutOp", "gorgonia.randomOp":
			w.err = errors.New("an operator draws random numbers of its own, which cannot be drawn again: leave dropout and noise out, or use a layer list")
		}
	}
	// a constant: its operator's own digest leaves most of it out
	if v := n.Value(); v != nil && !slices.Contains(w.given, n) {
		fmt.Fprintf(w.to, " %v", v.Data())
	}
	fmt.Fprintf(w.to, " %v %v %v\n", n.Type(), n.Shape(), from)
	w.at[n] = len(w.at)
	return w.at[n]
}

// values counts those of the nodes of a graph but its parameters.
func (n *net) values() (sum int64) {
	for _, node := range n.graph.AllNodes() {
		if !slices.Contains(n.params, node) {
			sum += int64(node.Shape().TotalSize())
		}
	}
	return sum
}

// Model is what the engine computes; read-only.
func (e *Engine) Model() *models.Model { return e.model }

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
