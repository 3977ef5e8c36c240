package gpu_test

import (
	"fmt"
	"slices"
	"testing"

	"brood/models/enginetest"
)

// texts are what kernels of text are tried on: an input, and layers before the last product.
var texts = []struct {
	context int
	layers  []string
}{
	{6, []string{"embedding out=5 vocabulary=4", "dense out=33", "relu"}},
	{5, []string{"embedding out=3 vocabulary=4 name='a'", "mingru out=3 sequence=true", "add with='a'", "relu", "mingru out=40", "tanh"}},
	{3, []string{"embedding out=2 vocabulary=4", "relu", "mingru out=1030 sequence=true", "mingru out=3"}}, // a product that is cut
	{6, []string{"constant out=48 name='places'", "embedding out=8 vocabulary=4 from='input'", "add with='places' name='x'",
		"layernorm positions=true", "attention heads=2 sequence=true", "add with='x' name='y'", "layernorm positions=true", "dense out=20 positions=true", "relu",
		"dense out=8 positions=true bias=false", "add with='y'", "relu", "dense out=9 positions=true", "attention heads=3"}},
	{33, []string{"embedding out=17 vocabulary=4", "attention sequence=true", "dropout rate=0.2", "attention heads=17"}},
	{1, []string{"embedding out=4 vocabulary=70", "attention heads=2 sequence=true", "mingru out=3 sequence=true", "layernorm", "attention"}},
}

// TestTextsHaveTheSameBits: gradients, evaluations and candidates of models that read a text.
func TestTextsHaveTheSameBits(t *testing.T) {
	for i, x := range texts {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			set := enginetest.ToyText(t, x.context)
			last := fmt.Sprintf("dense out=%d", set.Classes)
			sameModel(t, net(t, fmt.Sprintf("[%d]", x.context), set.Classes, append(slices.Clone(x.layers), last)...), set)
		})
	}
}
