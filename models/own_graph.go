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
	m := &Model{Name: name, Input: slices.Clone(input), Features: Size(input), Classes: classes, Loss: CrossEntropy}
	for i, t := range params {
		t.Len = Size(t.Shape)
		if t.Name == "" || len(t.Shape) == 0 || slices.Min(t.Shape) < 1 || t.Len >= maxParams-m.Layout.Params {
			return nil, fmt.Errorf("model %s: tensor %q of shape %v: give each parameter a name and sizes above zero, below %d elements in all", name, t.Name, t.Shape, maxParams)
		}
		if slices.ContainsFunc(params[:i], func(o engine.Tensor) bool { return o.Name == t.Name }) {
			return nil, fmt.Errorf("model %s: two tensors are named %q: give each parameter a name of its own", name, t.Name)
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
	return m, nil
}
