package models

import (
	"fmt"
	"math"
	"slices"

	"brood/models/engine"
)

// Own returns a model without layers, whose logits are computed elsewhere (see graph.Own). Only Name and Shape of each
// tensor are used. A tensor with several elements per row (Shape[0] rows) is initialised uniformly within
// 1/sqrt(elements per row), as with InitTorch; a vector ([n] or [n, 1]) with zero.
func Own(name string, input []int, classes int, params []engine.Tensor) (*Model, error) {
	if name == "" || len(params) == 0 || classes < 2 {
		return nil, fmt.Errorf("the model has name %q, %d parameters and %d classes: "+
			"give it a name, parameters, and two classes or more", name, len(params), classes)
	}
	m := &Model{
		Name:      name,
		Input:     slices.Clone(input),
		Features:  Size(input),
		Positions: 1,
		Classes:   classes,
		Outputs:   classes,
		Loss:      CrossEntropy,
	}
	return m, m.tensors(params)
}

// Measured returns a model of the parameters of an objective, which is evaluated elsewhere (see objective.Engine). Its
// samples are seeds. The parameters are initialised as in [Own].
func Measured(name string, params []engine.Tensor) (*Model, error) {
	if len(params) == 0 {
		return nil, fmt.Errorf("objective %s has no parameters: give it one [[param]] or more", name)
	}
	m := &Model{Name: name, Input: []int{1}, Features: 1, Positions: 1, Loss: Objective}
	m.Layout.Measured = true
	return m, m.tensors(params)
}

// External returns a model that a program of the user holds: its parameters, its running statistics and its loss, which
// is [CrossEntropy] if predictions are right or wrong, else [Distance]. The program draws the initial values.
func External(name string, params, stats []engine.Tensor, loss string) (*Model, error) {
	m := &Model{Name: name, Input: []int{1}, Features: 1, Positions: 1, Loss: loss}
	of := *m // counts the statistics, by the rules of parameters
	if err := of.tensors(stats); err != nil {
		return nil, err
	}
	m.Layout.Stats, m.Layout.StatTensors = of.Layout.Params, of.Layout.Tensors
	return m, m.tensors(params)
}

// tensors adds the parameters to the layout, by their names and shapes.
func (m *Model) tensors(params []engine.Tensor) error {
	for i, t := range params {
		if t.Name == "" || len(t.Shape) == 0 || slices.Min(t.Shape) < 1 || reaches(t.Shape, maxParams-m.Layout.Params) {
			return fmt.Errorf("model %s: tensor %q of shape %v: "+
				"give each parameter a name and sizes above zero, below %d elements in all", m.Name, t.Name, t.Shape, maxParams)
		}
		t.Len = Size(t.Shape)
		if slices.ContainsFunc(params[:i], func(o engine.Tensor) bool { return o.Name == t.Name }) {
			return fmt.Errorf("model %s: two tensors are named %q: give each parameter a name of its own", m.Name, t.Name)
		}
		t.Shape, t.Lo, t.Cols = slices.Clone(t.Shape), m.Layout.Params, t.Len
		var begin initValue
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

// reaches reports whether a shape, of sizes above zero, has most elements or more.
func reaches(shape []int, most int) bool {
	n := 1
	for _, d := range shape {
		if n > (most-1)/d {
			return true
		}
		n *= d
	}
	return false
}
