package models

import (
	"fmt"
	"math"
	"slices"

	"brood/models/engine"
)

// Own is a model without layers: its parameters are known, and what computes its logits is elsewhere (see graph.Own).
// Of each tensor Name and Shape count. A tensor of rows, Shape[0] of them, begins uniform within 1/sqrt(its elements
// per row), as with InitTorch, and a vector ([n] or [n, 1]) at zero.
func Own(name string, input []int, classes int, params []engine.Tensor) (*Model, error) {
	if name == "" || len(params) == 0 || classes < 2 {
		return nil, fmt.Errorf("a model of one's own has name %q, %d parameters and %d classes: give it a name, parameters, and two classes or more", name, len(params), classes)
	}
	m := &Model{Name: name, Input: slices.Clone(input), Features: Size(input), Classes: classes, Outputs: classes, Loss: CrossEntropy}
	return m, m.tensors(params)
}

// Measured is parameters of which nobody here knows what they do: what they are worth is measured elsewhere (see
// objective.Engine), in samples that are seeds. They begin as those of [Own].
func Measured(name string, params []engine.Tensor) (*Model, error) {
	if len(params) == 0 {
		return nil, fmt.Errorf("objective %s has no parameters: give it one [[param]] or more", name)
	}
	m := &Model{Name: name, Input: []int{1}, Features: 1, Loss: Objective}
	m.Layout.Measured = true
	return m, m.tensors(params)
}

// tensors lays parameters out by their names and shapes.
func (m *Model) tensors(params []engine.Tensor) error {
	for i, t := range params {
		if t.Name == "" || len(t.Shape) == 0 || slices.Min(t.Shape) < 1 || tooMany(t.Shape, maxParams-m.Layout.Params) {
			return fmt.Errorf("model %s: tensor %q of shape %v: give each parameter a name and sizes above zero, below %d elements in all", m.Name, t.Name, t.Shape, maxParams)
		}
		t.Len = Size(t.Shape)
		if slices.ContainsFunc(params[:i], func(o engine.Tensor) bool { return o.Name == t.Name }) {
			return fmt.Errorf("model %s: two tensors are named %q: give each parameter a name of its own", m.Name, t.Name)
		}
		t.Shape, t.Lo, t.Cols = slices.Clone(t.Shape), m.Layout.Params, t.Len
		var begin start
		if rows := t.Shape[0]; rows < t.Len {
			t.Cols = t.Len / rows
			begin.bound = float32(1 / math.Sqrt(float64(t.Cols)))
		}
		m.Layout.Params += t.Len
		m.Layout.Tensors = append(m.Layout.Tensors, t)
		m.inits = append(m.inits, begin)
	}
	return nil
}

// tooMany says whether a shape, of sizes above zero, has so many elements or more.
func tooMany(shape []int, most int) bool {
	n := 1
	for _, d := range shape {
		if n > (most-1)/d {
			return true
		}
		n *= d
	}
	return false
}
