package models

import (
	"fmt"
	"math/bits"
)

// Int8 is the arithmetic of a model whose weights and activations are whole numbers of 8 bits, and whose sums are of
// 32: what EGG is (Sarkar et al., Evolution strategies at the hyperscale, 2025). Nothing depends on how a machine
// rounds. docs/arithmetic.md has its rules.
//
// Samples are bytes as they are, or an embedding's rows; relu holds what a layer gives to [0, 255]. A dense layer of n
// inputs divides its sums by 2^ShiftOf(n). What the last one gives are logits in units of 1/16 of a bit.
const Int8 = "int8"

// Of the logits of such a model: their units in a bit, and the most that one is.
const (
	LogitUnits = 16
	MostLogit  = 2047
)

// wholeInputs bounds what a dense layer sums: that many products of a byte and a weight under noise, up to 254, have
// sums in an int32.
const wholeInputs = 1 << 15

// ShiftOf is the power of two by which a dense layer of n inputs divides: the nearest to 16*sqrt(n), the smaller of two
// that are. 16 is a usual weight, and sqrt(n) how the sum of n independent products grows.
func ShiftOf(n int) int {
	return (bits.Len(uint(128*n-1)) + 1) / 2 // the least k with 4^k >= 128n
}

// arithmetic settles what the model computes in.
func (c *compiler) arithmetic(name string) error {
	switch name {
	case "":
		return nil
	case Int8:
		c.m.Int8, c.m.Layout.Whole = true, true
		if c.m.Loss != CrossEntropy {
			return &SpecError{What: fmt.Sprintf("the loss %s with arithmetic = %q; take the loss %s", c.m.Loss, Int8, CrossEntropy)}
		}
		return nil
	}
	return &SpecError{What: fmt.Sprintf("unknown arithmetic %q; write %q, or leave the key out for floats", name, Int8)}
}

// embeddingStart is how the rows of an embedding begin.
func (c *compiler) embeddingStart() start {
	if c.m.Int8 {
		return start{bound: 64 * embeddingBound}
	}
	return start{bound: embeddingBound}
}

// wholeLayers checks that a model of whole numbers has layers that have such numbers. They are a chain: nothing adds up
// two results.
func (m *Model) wholeLayers() error {
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
		case l.Kind == Dense && l.In[0] >= wholeInputs:
			return fault("takes %d values; with arithmetic = %q at most %d", l.In[0], Int8, wholeInputs-1)
		case (l.Kind == Dense || l.Kind == Embedding) && !last && m.Layers[i+1].Kind != ReLU:
			return fault("has no relu behind it; with arithmetic = %q a relu follows each layer with weights but the last", Int8)
		case l.Kind == Dense || l.Kind == Embedding:
		case l.Kind == ReLU && !last && i > 0 && m.Layers[i-1].Weight >= 0:
		default:
			return fault("cannot be here with arithmetic = %q, which has flatten, embedding and dense, and relu behind these two", Int8)
		}
	}
	return nil
}
