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

// Own is a model defined by a user's graph instead of a list of layers.
type Own struct {
	Name    string
	Input   []int // shape of a sample: [features] or [channels, height, width]
	Classes int
	Params  []engine.Tensor // Name and Shape of each; the other fields are set
	// Build adds the model for this many samples to g. The input is features x samples, or samples x channels x height
	// x width if Input has three sizes; params have the shapes of Params. It returns the logits, classes x samples; the
	// engine adds the softmax, the loss and the gradients. Build is called for each batch size and each thread, and
	// must build the same graph every time; graphs run repeatedly, so no operator in them may draw random numbers.
	Build func(g *G.ExprGraph, samples int, input *G.Node, params []*G.Node) (logits *G.Node, err error)
}

// NewOwn is New for a user-defined graph. The engine executes all tasks; there are no statistics.
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
	n, err := e.workers[0].net(1, running) // checks the result of Build now
	if err == nil {
		e.values = n.values()
	}
	return e, err
}

// Model returns the model without the graph: its name, its layout and its default initial values, see models.Own.
func (o *Own) Model() (*models.Model, error) {
	if o.Build == nil {
		return nil, fmt.Errorf("graph %s needs Build: set Own.Build", o.Name)
	}
	m, err := models.Own(o.Name, o.Input, o.Classes, o.Params)
	if err != nil {
		return nil, fmt.Errorf("graph: %w", err)
	}
	return m, nil
}

// Text describes the graph, one line each: name, input, classes, parameters, and the number of operators with a digest
// of them and of their connections. Graphs with equal texts compute the same. It fails if Build or the gradients fail.
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

// wiring numbers the nodes that a node depends on, operands first, and hashes each with the numbers of its operands.
type wiring struct {
	g     *G.ExprGraph
	given []*G.Node // nodes whose values the engine sets
	at    map[*G.Node]int
	to    hash.Hash
	err   error // an operator that cannot be repeated
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
		switch fmt.Sprintf("%T", op) { // most of gorgonia's types are not exported
		case "*gorgonia.BatchNormOp":
			w.err = errors.New("BatchNorm keeps statistics in its operator, which no session holds: leave it out, " +
				"or use a layer list")
		case "*gorgonia.dropoutOp", "gorgonia.randomOp":
			w.err = errors.New("an operator draws random numbers that brood cannot reproduce: leave dropout and noise " +
				"out, or use a layer list")
		}
	}
	// a constant: the hash of its operator omits most of it
	if v := n.Value(); v != nil && !slices.Contains(w.given, n) {
		fmt.Fprintf(w.to, " %v", v.Data())
	}
	fmt.Fprintf(w.to, " %v %v %v\n", n.Type(), n.Shape(), from)
	w.at[n] = len(w.at)
	return w.at[n]
}

// values returns the number of elements of a graph's nodes without its parameters.
func (n *net) values() (sum int64) {
	for _, node := range n.graph.AllNodes() {
		if !slices.Contains(n.params, node) {
			sum += int64(node.Shape().TotalSize())
		}
	}
	return sum
}

// Model returns the model that the engine computes; read-only.
func (e *Engine) Model() *models.Model { return e.model }

// ownGraph lets the user's Build add the model.
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
