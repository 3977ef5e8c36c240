package models

import (
	"fmt"
	"slices"
	"strings"
)

// Defaults of PyTorch, for batch-norm, layer-norm (only epsilon) and leaky ReLU.
const (
	NormMomentum = 0.1
	NormEpsilon  = 1e-5
	LeakySlope   = 0.01
)

// Bytes is the number of byte values, the largest vocabulary.
const Bytes = 256

// maxParams limits the parameters and the activations of a layer, so that offsets cannot overflow.
const maxParams = 1 << 31

// compiler is the state of Compile: count is the number of layers of each kind so far, for tensor names such as conv2,
// and names maps the names of results to their numbers.
type compiler struct {
	m     *Model
	count map[Kind]int
	names map[string]int
}

// Compile computes the shapes, the parameter layout and the initial values of a spec. Its errors are SpecErrors.
func Compile(s Spec) (*Model, error) {
	if s.Name == "" {
		return nil, &SpecError{What: "a model needs a name"}
	}
	if len(s.Input) != 1 && len(s.Input) != 3 {
		what := fmt.Sprintf("input has %d sizes; write [features] or [channels, height, width]", len(s.Input))
		return nil, &SpecError{What: what}
	}
	for _, d := range s.Input {
		if d < 1 || d > 1<<16 {
			return nil, &SpecError{What: fmt.Sprintf("input %s: sizes lie in 1 to 65536", formatShape(s.Input))}
		}
	}
	switch s.Loss {
	case "":
		s.Loss = CrossEntropy
	case CrossEntropy, BCE, Distance, MSE, Huber:
	default:
		return nil, &SpecError{What: fmt.Sprintf("unknown loss %q; choose %s, %s, %s, %s or %s",
			s.Loss, CrossEntropy, BCE, MSE, Huber, Distance)}
	}
	if err := s.resolveOutputs(); err != nil {
		return nil, err
	}
	if len(s.Layers) == 0 {
		return nil, &SpecError{What: "no [[layer]]; the least model is one dense layer"}
	}
	if Size(s.Input) >= maxParams {
		return nil, &SpecError{What: fmt.Sprintf("input %s is too large", formatShape(s.Input))}
	}
	m := &Model{
		Name:      s.Name,
		Doc:       s.Doc,
		Input:     slices.Clone(s.Input),
		Features:  Size(s.Input),
		Classes:   s.Classes,
		Outputs:   s.Outputs,
		Loss:      s.Loss,
		Smoothing: s.Smoothing,
		Eta:       s.Eta,
	}
	c := compiler{m, map[Kind]int{}, map[string]int{"input": 0}}
	if err := c.arithmetic(s.Arithmetic); err != nil {
		return nil, err
	}
	for i := range s.Layers {
		if err := c.add(&s.Layers[i]); err != nil {
			return nil, &SpecError{i + 1, s.Layers[i].Kind, err.Error()}
		}
		if Size(m.Layers[i].Out) >= maxParams || m.Layout.Params >= maxParams {
			what := fmt.Sprintf("the model grows beyond %d parameters or activations", maxParams)
			return nil, &SpecError{i + 1, s.Layers[i].Kind, what}
		}
	}
	if err := c.finish(); err != nil {
		return nil, err
	}
	return m, nil
}

// resolveOutputs checks classes, outputs, smoothing and eta for the loss, and sets Outputs to the number of output
// values.
func (s *Spec) resolveOutputs() error {
	regression := s.Loss == MSE || s.Loss == Huber
	switch {
	case s.Loss != CrossEntropy && s.Loss != BCE && s.Classes != 0:
		return &SpecError{What: fmt.Sprintf("%d classes; a model of the loss %s has none", s.Classes, s.Loss)}
	case !regression && s.Outputs != 0:
		return &SpecError{What: fmt.Sprintf("outputs = %d is of a model that predicts numbers; "+
			"leave it out, or take the loss %s or %s", s.Outputs, MSE, Huber)}
	case s.Loss == CrossEntropy && (s.Classes < 2 || s.Classes > 1<<16):
		return &SpecError{What: fmt.Sprintf("%d classes; a classifier needs 2 to 65536", s.Classes)}
	case s.Loss == BCE && (s.Classes < 1 || s.Classes > 1<<16):
		return &SpecError{What: fmt.Sprintf("%d classes; a model of the loss %s needs 1 to 65536", s.Classes, BCE)}
	case !(s.Smoothing >= 0 && s.Smoothing < 1):
		return &SpecError{What: fmt.Sprintf("smoothing = %v; it is the share of a label spread over all classes, "+
			"from 0 to below 1", s.Smoothing)}
	case !(s.Eta >= 0 && s.Eta <= 100):
		return &SpecError{What: fmt.Sprintf("eta = %v; a learning rate is above 0 and at most 100", s.Eta)}
	case s.Smoothing > 0 && (s.Loss != CrossEntropy || s.Arithmetic == Int8):
		return &SpecError{What: fmt.Sprintf("smoothing = %v is of the loss %s, trained by gradients; leave it out",
			s.Smoothing, CrossEntropy)}
	case s.Outputs < 0 || s.Outputs > 1<<16:
		return &SpecError{What: fmt.Sprintf("outputs = %d; a regression predicts 1 to 65536 numbers", s.Outputs)}
	case s.Loss == CrossEntropy || s.Loss == BCE:
		s.Outputs = s.Classes
	case s.Loss == Distance:
		s.Outputs = Size(s.Input)
	case s.Outputs == 0:
		s.Outputs = 1
	}
	return nil
}

// finish checks that every result is used, that the last one has the shape of the outputs, and the rules of text and
// whole-number models.
func (c *compiler) finish() error {
	m := c.m
	for i, n := range m.Takers()[1:] {
		if n == 0 {
			const what = "no later layer takes its result; name it and take it, or leave it out"
			return &SpecError{i + 1, m.Layers[i].Kind, what}
		}
	}
	if err := m.checkText(); err != nil {
		return err
	}
	if err := m.checkWholeLayers(); err != nil {
		return err
	}
	last := &m.Layers[len(m.Layers)-1]
	want, what := m.Outputs, fmt.Sprintf("the model has %d classes", m.Classes)
	switch {
	case m.Loss == Distance:
		what = fmt.Sprintf("a sample has %d values", m.Features)
	case m.Regression():
		what = fmt.Sprintf("the model has outputs = %d", m.Outputs)
	}
	if m.Positions = 1; m.Vocabulary > 0 && last.Steps > 1 && last.Out[0] == last.Steps*want {
		m.Positions = last.Steps
		return m.checkCausal()
	}
	if len(last.Out) != 1 || last.Out[0] != want {
		return &SpecError{len(m.Layers), last.Kind, fmt.Sprintf("the last layer gives %s, %s; "+
			"end with a dense layer of out = %d", formatShape(last.Out), what, want)}
	}
	return nil
}

// checkText checks that a model with an embedding uses the sample, the bytes of a text, only as input of embeddings,
// and that its loss is CrossEntropy.
func (m *Model) checkText() error {
	if m.Vocabulary == 0 {
		return nil
	}
	for i := range m.Layers {
		l := &m.Layers[i]
		if l.From == 0 && l.Kind != Embedding && l.Kind != Constant || l.Kind == Add && l.With == 0 {
			const what = "takes the bytes of a text as numbers; let it take an embedding of them"
			return &SpecError{i + 1, l.Kind, what}
		}
	}
	if m.Loss != CrossEntropy {
		return &SpecError{What: fmt.Sprintf("the loss %s with an embedding; the byte behind a window is a class: "+
			"take the loss %s", m.Loss, CrossEntropy)}
	}
	return nil
}

// checkCausal checks that no position of the result depends on later bytes of the text, which it predicts.
func (m *Model) checkCausal() error {
	fixed := make([]bool, len(m.Layers)+1) // results that depend on no byte
	for i := range m.Layers {
		l := &m.Layers[i]
		fixed[i+1] = l.Kind == Constant || fixed[l.From] && (l.Kind != Add || fixed[l.With])
		if !fixed[i+1] && (l.Steps == 0 || l.Kind == LayerNorm && l.Rows == 1) {
			const what = "takes all positions together, and the last layer predicts the byte behind each of them: " +
				"give it positions = true, or sequence = true, or end with a last layer and a dense layer"
			return &SpecError{i + 1, l.Kind, what}
		}
	}
	return nil
}

// add compiles one layer and appends it to the model.
func (c *compiler) add(s *LayerSpec) error {
	allowed, known := LayerKeys[s.Kind]
	if !known {
		return fmt.Errorf("unknown kind %q; kinds are %s", s.Kind, list(Kinds))
	}
	for _, k := range s.presentKeys() {
		if !slices.Contains(allowed, k) {
			return fmt.Errorf("takes no key %q", k)
		}
	}
	c.count[s.Kind]++
	before := len(c.m.Layers)
	from, err := c.result(s.From, "from", before)
	if err != nil {
		return err
	}
	in := c.m.Shape(from)
	l := Layer{Kind: s.Kind, From: from, In: in, Out: in, Groups: 1, Rows: 1, Weight: -1, Bias: -1, Mean: -1, Var: -1}
	if from > 0 {
		l.Steps = c.m.Layers[from-1].Steps
	}
	if err := c.resolve(&l, s); err != nil {
		return err
	}
	c.m.Layers = append(c.m.Layers, l)
	if s.Name == nil {
		return nil
	}
	if _, taken := c.names[*s.Name]; taken || *s.Name == "" {
		return fmt.Errorf("name %q is taken or empty; a name stands for one layer", *s.Name)
	}
	c.names[*s.Name] = before + 1
	return nil
}

// result returns the number of the result named by a key of a layer, or def if the key is not set.
func (c *compiler) result(name *string, key string, def int) (int, error) {
	if name == nil {
		return def, nil
	}
	r, ok := c.names[*name]
	if !ok {
		return 0, fmt.Errorf("%s = %q names no layer before it; give that layer a name", key, *name)
	}
	return r, nil
}

// list returns the kinds as a phrase with commas and "and".
func list(kinds []Kind) string {
	s := make([]string, len(kinds))
	for i, k := range kinds {
		s[i] = string(k)
	}
	return strings.Join(s[:len(s)-1], ", ") + " and " + s[len(s)-1]
}
