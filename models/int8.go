package models

import (
	"fmt"
	"math/bits"
)

// Int8 is the arithmetic of models with 8-bit integer weights and activations and 32-bit sums, as in EGG (Sarkar et
// al., Evolution strategies at the hyperscale, 2025). No result depends on floating-point rounding. docs/arithmetic.md
// specifies the rules.
//
// Inputs are the bytes of samples, or embedding rows. relu clamps activations to [0, 255]. A dense layer of n inputs
// divides its sums by 2^ShiftOf(n). The outputs of the last layer are logits in units of 1/16 bit.
const Int8 = "int8"

// LogitUnits is the units per bit of an Int8 model's logits, and MostLogit the maximum of a logit.
const (
	LogitUnits = 16
	MostLogit  = 2047
)

// maxWholeInputs is above the inputs of a dense layer: that many products of a byte and a perturbed weight, at most 254
// in magnitude, fit an int32.
const maxWholeInputs = 1 << 15

// ShiftOf returns k such that a dense layer of n inputs divides its sums by 2^k, the power of two nearest, on a
// logarithmic scale, to 16*sqrt(n). 16 is a typical weight, and the sum of n independent products grows
// with sqrt(n).
func ShiftOf(n int) int {
	return (bits.Len(uint(128*n-1)) + 1) / 2 // the smallest k with 4^k >= 128n
}

// arithmetic sets the arithmetic of the model.
func (c *compiler) arithmetic(name string) error {
	switch name {
	case "":
		return nil
	case Int8:
		c.m.Int8, c.m.Layout.Whole = true, true
		if c.m.Loss != CrossEntropy {
			return &SpecError{What: fmt.Sprintf("the loss %s with arithmetic = %q; take the loss %s",
				c.m.Loss, Int8, CrossEntropy)}
		}
		return nil
	}
	return &SpecError{What: fmt.Sprintf("unknown arithmetic %q; write %q, or leave the key out for floats", name, Int8)}
}

// embeddingStart returns the initial values of an embedding table.
func (c *compiler) embeddingStart() initValue {
	if c.m.Int8 {
		return initValue{bound: 64 * embeddingBound}
	}
	return initValue{bound: embeddingBound}
}

// checkWholeLayers checks that an Int8 model has only layers that support the arithmetic: flatten, embedding and dense
// layers in a chain, each with weights but the last followed by a relu. Other models always pass.
func (m *Model) checkWholeLayers() error {
	for i := range m.Layers {
		l := &m.Layers[i]
		fault := func(format string, args ...any) error {
			return &SpecError{i + 1, l.Kind, fmt.Sprintf(format, args...)}
		}
		last := i == len(m.Layers)-1
		switch {
		case !m.Int8:
			return nil
		case l.Kind == Flatten:
		case l.Kind == Dense && l.Rows > 1:
			return fault("has positions = true; with arithmetic = %q a dense layer takes all values together", Int8)
		case l.Kind == Dense && l.In[0] >= maxWholeInputs:
			return fault("takes %d values; with arithmetic = %q at most %d", l.In[0], Int8, maxWholeInputs-1)
		case (l.Kind == Dense || l.Kind == Embedding) && !last && m.Layers[i+1].Kind != ReLU:
			return fault("has no relu behind it; with arithmetic = %q a relu follows each layer with weights but the last",
				Int8)
		case l.Kind == Dense || l.Kind == Embedding:
		case l.Kind == ReLU && !last && i > 0 && m.Layers[i-1].Weight >= 0:
		default:
			return fault("cannot be here with arithmetic = %q, which has flatten, embedding and dense, "+
				"and relu behind these two", Int8)
		}
	}
	return nil
}
