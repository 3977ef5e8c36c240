package gpu_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"brood/models/data"
	"brood/models/enginetest"
)

// texts are test models of text: the context length in bytes, and the layers before the last product.
var texts = [][]string{
	{"text 6", "embedding out=5 vocabulary=4", "dense out=33", "relu"},
	{"text 5", "embedding out=3 vocabulary=4 name='a'", "mingru out=3 sequence=true", "add with='a'", "relu", "mingru out=40", "tanh"},
	// a product long enough to be cut
	{"text 3", "embedding out=2 vocabulary=4", "relu", "mingru out=1030 sequence=true", "mingru out=3"},
	{"text 6", "constant out=48 name='places'", "embedding out=8 vocabulary=4 from='input'", "add with='places' name='x'",
		"layernorm positions=true", "attention heads=2 sequence=true", "add with='x' name='y'", "layernorm positions=true",
		"dense out=20 positions=true", "relu",
		"dense out=8 positions=true bias=false", "add with='y'", "relu", "dense out=9 positions=true", "attention heads=3"},
	{"text 33", "embedding out=17 vocabulary=4", "attention sequence=true", "dropout rate=0.2", "attention heads=17"},
	{"text 1", "embedding out=4 vocabulary=70", "attention heads=2 sequence=true", "mingru out=3 sequence=true", "layernorm", "attention"},
}

// reads returns the input of layers that read a text, samples for them, and the layers; ok is false for other layers.
func reads(t *testing.T, layers []string) (input string, set *data.Set, rest []string, ok bool) {
	t.Helper()
	context, ok := strings.CutPrefix(layers[0], "text ")
	if !ok {
		return "", nil, layers, false
	}
	n, err := strconv.Atoi(context)
	if err != nil {
		t.Fatal(err)
	}
	return "[" + context + "]", enginetest.ToyText(t, n), layers[1:], true
}

// TestTextsHaveTheSameBits: gradients, evaluations and candidates of models of text.
func TestTextsHaveTheSameBits(t *testing.T) {
	for i, layers := range texts {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			input, set, layers, _ := reads(t, layers)
			sameModel(t, net(t, input, set.Classes, append(slices.Clone(layers), fmt.Sprintf("dense out=%d", set.Classes))...),
				set)
		})
	}
}
