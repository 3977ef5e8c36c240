package enginetest

import (
	"testing"

	"brood/models"
	"brood/models/data"
)

// kinds are all layer kinds, alone and in combinations that once revealed a bug in an engine.
var kinds = []struct {
	name, input string
	layers      []string
}{
	{"linear", "[1,2,3]", []string{"flatten", "dense out=3"}},
	{"no bias", "[1,2,3]", []string{"flatten", "dense out=4 bias=false", "relu", "dense out=3"}},
	{"flat input", "[6]", []string{"dense out=5", "relu", "dense out=3"}},
	{"flat norm", "[1,2,3]", []string{"flatten", "dense out=5", "batchnorm", "relu", "dense out=3"}},
	{"norm first", "[1,2,3]", []string{"batchnorm", "flatten", "dense out=3"}},
	{"flat dropout", "[1,2,3]", []string{"flatten", "dense out=7", "dropout rate=0.4", "dense out=3"}},
	{"conv", "[1,6,6]", []string{"conv out=2 kernel=3", "flatten", "dense out=3"}},
	{"conv channels", "[2,6,5]", []string{"conv out=3 kernel=3 stride=2 pad=1", "relu", "conv out=2 kernel=2", "flatten",
		"dense out=3"}},
	{"conv without bias", "[1,6,6]", []string{"conv out=2 kernel=3 bias=false", "flatten", "dense out=3"}},
	{"conv norm", "[2,5,5]", []string{"conv out=3 kernel=3", "batchnorm", "relu", "flatten", "dense out=3"}},
	{"norm of rows", "[1,3,8]", []string{"conv out=3 kernel=3", "batchnorm", "relu", "flatten", "dense out=3"}},
	{"norm of columns", "[1,8,3]", []string{"conv out=3 kernel=3", "batchnorm", "relu", "flatten", "dense out=3"}},
	{"norm of points", "[1,3,3]", []string{"conv out=3 kernel=3", "batchnorm", "relu", "flatten", "dense out=3"}},
	{"norm of one channel", "[1,6,6]", []string{"conv out=1 kernel=3", "batchnorm", "relu", "flatten", "dense out=3"}},
	{"conv dropout", "[2,5,5]", []string{"conv out=3 kernel=3", "dropout rate=0.3", "flatten", "dense out=3"}},
	{"pool", "[1,8,8]", []string{"conv out=2 kernel=3", "maxpool kernel=2", "flatten", "dense out=3"}},
	{"pool remainder", "[1,9,10]", []string{"conv out=2 kernel=3", "maxpool kernel=3", "flatten", "dense out=3"}},
	{"pool overlap", "[1,9,9]", []string{"conv out=2 kernel=3", "maxpool kernel=3 stride=2", "flatten", "dense out=3"}},
	{"pool first", "[2,6,6]", []string{"maxpool kernel=2", "conv out=3 kernel=2", "flatten", "dense out=3"}},
	{"average", "[1,6,6]", []string{"conv out=4 kernel=3", "relu", "globalavgpool", "dense out=3"}},
	{"average to classes", "[1,6,6]", []string{"conv out=3 kernel=3", "globalavgpool"}},
	{"one by one", "[3,4,4]", []string{"conv out=2 kernel=1", "batchnorm", "maxpool kernel=4", "flatten", "dense out=3"}},
	{"norm and maxima first", "[2,4,6]", []string{"batchnorm", "relu", "maxpool kernel=2", "flatten", "dense out=3"}},
	{"norm, maxima and relu", "[2,4,6]",
		[]string{"conv out=3 kernel=1", "batchnorm", "maxpool kernel=2", "relu", "flatten", "dense out=3"}},
	{"norm and maxima with a rest", "[1,5,7]",
		[]string{"conv out=3 kernel=1", "batchnorm", "relu", "maxpool kernel=2", "flatten", "dense out=3"}},
	{"two convs and norms", "[1,12,12]",
		[]string{"conv out=3 kernel=3", "batchnorm", "relu", "maxpool kernel=2", "dropout rate=0.25",
			"conv out=4 kernel=3", "batchnorm", "relu", "maxpool kernel=2", "dropout rate=0.25", "flatten", "dense out=6",
			"batchnorm", "relu", "dense out=3"}},
	{
		"filters", "[2,5,5]", []string{
			"conv out=3 kernel=2 " +
				"filters=[[1,-1,0.5,0,0,2,-1,0.25],[0,0,1,1,-0.5,0.5,0,0],[0.1,0.2,0.3,0.4,-0.4,-0.3,-0.2,-0.1]]", "gelu",
			"conv out=2 kernel=3", "flatten", "dense out=3",
		},
	},
	{"filters behind weights", "[1,7,7]",
		[]string{"conv out=2 kernel=3", "relu",
			"conv out=4 kernel=2 stride=2 pad=1 " +
				"filters=[[1,0,-1,0.5,0.5,1,0,-2],[0,1,0,-1,1,1,-1,-1],[2,0,0,0,0,0,0,1],[-1,0.5,0.25,0,0,0,1,0]]", "batchnorm",
			"flatten", "dense out=3"}},
	{"filters in groups", "[4,5,5]",
		[]string{"conv out=2 kernel=2 groups=2 filters=[[1,-1,0.5,0,0,2,-1,0.25],[0,0,1,1,-0.5,0.5,0,0]]", "tanh", "flatten",
			"dense out=3"}},
	{"smoothing", "[1,2,3]", []string{"loss cross-entropy classes=3 smoothing=0.3", "flatten", "dense out=4", "relu",
		"dense out=3"}},
	{"groups", "[4,5,5]", []string{"conv out=6 kernel=3 groups=2", "relu", "flatten", "dense out=3"}},
	{"groups with stride", "[6,7,6]",
		[]string{"conv out=3 kernel=3 stride=2 pad=1 groups=3 bias=false", "batchnorm", "conv out=4 kernel=1", "flatten",
			"dense out=3"}},
	{"depthwise", "[3,6,6]", []string{"conv out=3 kernel=3 pad=1 groups=3", "conv out=5 kernel=1", "batchnorm", "relu",
		"conv out=5 kernel=3 stride=2 pad=1 groups=5 bias=false", "relu", "flatten", "dense out=3"}},
	{"depthwise wider", "[2,5,5]", []string{"conv out=6 kernel=3 groups=2", "flatten", "dense out=3"}},
	{"average windows", "[1,8,8]", []string{"conv out=3 kernel=3", "relu", "avgpool kernel=2", "flatten", "dense out=3"}},
	{"average windows that overlap", "[2,8,7]",
		[]string{"conv out=3 kernel=2", "avgpool kernel=3 stride=2", "flatten", "dense out=3"}},
	{"average of all", "[2,6,6]",
		[]string{"conv out=3 kernel=3", "batchnorm", "avgpool kernel=4", "flatten", "dense out=3"}},
	{"flat sum", "[6]", []string{"dense out=5 name='a'", "relu", "dense out=5", "add with='a'", "relu", "dense out=3"}},
	{"sum with the sample", "[1,2,3]", []string{"flatten name='x'", "dense out=6", "relu", "add with='x'", "dense out=3"}},
	{"sum of images", "[2,5,5]", []string{"conv out=3 kernel=3 pad=1", "relu name='a'", "conv out=3 kernel=3 pad=1",
		"batchnorm", "add with='a'", "relu", "flatten", "dense out=3"}},
	{"sum with itself", "[1,4,4]",
		[]string{"conv out=2 kernel=3", "relu name='a'", "add with='a'", "flatten", "dense out=3"}},
	{"sum of a rectified product", "[6]",
		[]string{"dense out=5 name='a'", "relu name='b'", "dense out=5 from='a'", "add with='b'", "add with='a'",
			"dense out=3"}},
	{"taken three times", "[2,4,4]",
		[]string{"conv out=3 kernel=3 pad=1 name='a'", "conv out=3 kernel=1 name='b'", "conv out=3 kernel=3 pad=1 from='a'",
			"add with='b'", "add with='a'", "relu", "flatten", "dense out=3"}},
	{"added twice", "[2,4,4]", []string{"conv out=3 kernel=3 pad=1 name='a'", "relu", "conv out=3 kernel=1",
		"add with='a'", "relu", "conv out=3 kernel=3 pad=1", "add with='a'", "flatten", "dense out=3"}},
	{"shortcut of option A", "[1,7,7]",
		[]string{"conv out=2 kernel=3 pad=1", "relu name='a'", "conv out=5 kernel=3 stride=2 pad=1", "batchnorm",
			"add with='a' stride=2", "relu name='b'",
			"conv out=5 kernel=3 pad=1", "batchnorm", "add with='b'", "relu", "globalavgpool", "dense out=3"}},
	{"shortcut of fewer channels", "[2,4,4]",
		[]string{"conv out=2 kernel=1 name='a'", "conv out=4 kernel=3 pad=1", "add with='a'", "flatten", "dense out=3"}},
	{"shortcut of option B", "[2,6,5]",
		[]string{"conv out=3 kernel=3 pad=1", "relu name='a'", "conv out=4 kernel=1 stride=2 bias=false",
			"batchnorm name='p'",
			"conv out=4 kernel=3 stride=2 pad=1 from='a' bias=false", "batchnorm", "relu",
			"conv out=4 kernel=3 pad=1 bias=false", "batchnorm", "add with='p'", "relu", "flatten", "dense out=3"}},
	{"preactivation", "[1,6,6]", []string{"conv out=2 kernel=3 pad=1 name='x'", "batchnorm", "relu",
		"conv out=2 kernel=3 pad=1", "batchnorm", "relu", "dropout rate=0.3", "conv out=2 kernel=3 pad=1", "add with='x'",
		"batchnorm", "relu", "globalavgpool", "dense out=3"}},
	{"leaky relu", "[1,2,3]", []string{"flatten", "leakyrelu", "dense out=7", "leakyrelu slope=0.3", "dense out=3"}},
	{"scale", "[1,2,3]", []string{"scale factor=-0.3", "flatten", "dense out=7", "scale factor=1.7", "relu", "dense out=3",
		"scale factor=0.111"}},
	{"scale of images", "[2,5,5]",
		[]string{"conv out=3 kernel=3 pad=1 name='a'", "scale factor=0.25", "add with='a'", "batchnorm", "scale factor=-2",
			"maxpool kernel=2", "flatten", "dense out=3"}},
	{"tanh", "[6]", []string{"dense out=7", "tanh", "dense out=40", "tanh", "dense out=3"}},
	{"silu", "[1,2,3]", []string{"flatten", "silu", "dense out=7", "silu", "dense out=3"}},
	{"gelu", "[6]", []string{"gelu", "dense out=40", "gelu", "dense out=3"}},
	{"activations of images", "[2,5,5]",
		[]string{"conv out=3 kernel=3 pad=1", "gelu", "conv out=3 kernel=2", "silu", "batchnorm", "leakyrelu",
			"conv out=2 kernel=3", "tanh", "flatten", "dense out=3"}},
	{"activations that are shared", "[6]",
		[]string{"dense out=5 name='a'", "tanh name='b'", "relu", "dense out=5", "gelu", "add with='a'", "silu",
			"add with='b'", "leakyrelu", "relu", "dense out=3"}},
	{"layer norm", "[6]", []string{"dense out=7", "layernorm", "dense out=3"}},
	{"layer norm first", "[1,2,3]", []string{"layernorm", "flatten", "dense out=40", "layernorm", "gelu", "dense out=3"}},
	{"layer norm of images", "[2,5,5]",
		[]string{"conv out=3 kernel=3", "layernorm", "relu", "conv out=2 kernel=1", "layernorm", "flatten", "dense out=3"}},
	{"layer norm of a residual", "[6]",
		[]string{"dense out=17 name='x'", "layernorm", "dense out=33", "gelu", "dense out=17", "add with='x'", "layernorm",
			"dense out=3"}},
	{"layer norm of a rectified product", "[6]",
		[]string{"dense out=17", "relu", "layernorm", "relu name='a'", "dense out=17", "layernorm", "add with='a'",
			"dense out=3"}},
	{"dropout before a sum", "[6]",
		[]string{"dense out=4 name='a'", "relu", "dropout rate=0.2", "add with='a'", "dense out=3"}},
	{"mean", "[1,2,3]", []string{"loss distance", "constant out=6"}},
	{"constant of a classifier", "[1,2,3]", []string{"constant out=4", "relu", "dense out=3"}},
	{"images again", "[2,4,3]", []string{"loss distance", "conv out=3 kernel=2", "batchnorm", "relu", "flatten",
		"dense out=24"}},
	{"more classes than a byte", "[1,2,3]",
		[]string{"loss cross-entropy classes=300", "flatten", "dense out=7", "relu", "dense out=300"}},
	{"regression", "[6]", []string{"loss mse", "dense out=5", "relu", "dense out=1"}},
	{"regression of three", "[1,2,3]",
		[]string{"loss mse outputs=3", "flatten", "dense out=7", "batchnorm", "relu", "dropout rate=0.2", "dense out=3"}},
	{"several classes", "[6]", []string{"loss bce classes=5", "dense out=5"}},
	{"several classes of images", "[1,2,3]",
		[]string{"loss bce classes=3", "flatten", "dense out=7", "batchnorm", "relu", "dropout rate=0.2", "dense out=3"}},
	{"one class or none", "[2,5,5]",
		[]string{"loss bce classes=1", "conv out=3 kernel=3", "relu", "globalavgpool", "dense out=1"}},
	{"more several classes than lanes", "[6]", []string{"loss bce classes=37", "dense out=9", "tanh", "dense out=37"}},
	{"huber", "[6]", []string{"loss huber", "dense out=5", "relu", "dense out=1"}},
	{"huber of two", "[2,5,5]", []string{"loss huber outputs=2", "conv out=3 kernel=3", "relu", "globalavgpool",
		"dense out=2"}},
	{"embedding", "[6]", []string{"embedding out=5 vocabulary=3", "dense out=3"}},
	{"embedding of one byte", "[1]", []string{"embedding out=1", "dense out=4", "tanh", "dense out=3"}},
	{"embedding under more layers", "[6]",
		[]string{"embedding out=40 vocabulary=40", "layernorm name='a'", "gelu", "dense out=240", "add with='a'", "batchnorm",
			"relu", "dropout rate=0.2", "dense out=3"}},
	{"embedding before a rectifier", "[17]",
		[]string{"embedding out=2 vocabulary=4", "relu", "dense out=33", "relu", "dense out=3"}},
	{"two embeddings", "[6]", []string{"embedding out=3 vocabulary=5 name='a'", "tanh", "dense out=18",
		"add with='a' name='b'", "embedding out=3 vocabulary=5 from='input'", "add with='b'", "dense out=3"}},
	{"mingru", "[6]", []string{"embedding out=5 vocabulary=3", "mingru out=4", "dense out=3"}},
	{"mingru of one position", "[1]",
		[]string{"embedding out=2", "mingru out=3 sequence=true", "tanh", "mingru out=4", "dense out=3"}},
	{"two mingrus", "[7]", []string{"embedding out=5 vocabulary=4 name='a'", "mingru out=5 sequence=true", "add with='a'",
		"layernorm", "relu name='b'", "mingru out=33 sequence=true", "gelu", "mingru out=5 sequence=true", "add with='b'",
		"mingru out=40", "relu", "dense out=3"}},
	{"mingru to a dense layer", "[6]",
		[]string{"embedding out=33 vocabulary=4", "mingru out=3 sequence=true", "dropout rate=0.2", "dense out=3"}},
	{"dense at each position", "[5]",
		[]string{"embedding out=3 vocabulary=4", "dense out=17 positions=true", "relu",
			"dense out=4 positions=true bias=false", "tanh", "dense out=3"}},
	{"dense of one position", "[1]",
		[]string{"embedding out=3 vocabulary=4", "dense out=5 positions=true", "dense out=3"}},
	{"layer norm at each position", "[6]",
		[]string{"embedding out=5 vocabulary=4", "layernorm positions=true", "gelu", "dense out=33 positions=true",
			"layernorm positions=true", "dense out=3"}},
	{"attention", "[6]", []string{"embedding out=5 vocabulary=3", "attention", "dense out=3"}},
	{"attention of one position", "[1]",
		[]string{"embedding out=4", "attention heads=2 sequence=true", "attention", "dense out=3"}},
	{"attention of heads", "[7]",
		[]string{"embedding out=6 vocabulary=4", "attention heads=3 sequence=true", "tanh", "attention heads=2", "relu",
			"dense out=3"}},
	{"attention of each channel", "[5]",
		[]string{"embedding out=3 vocabulary=4 name='a'", "attention heads=3 sequence=true", "add with='a'", "dense out=3"}},
	{"attention over more positions than lanes", "[19]",
		[]string{"embedding out=17 vocabulary=4", "attention sequence=true", "dropout rate=0.2", "dense out=3"}},
	{"transformer", "[6]", []string{"constant out=48 name='places'", "embedding out=8 vocabulary=4 from='input'",
		"add with='places' name='x'",
		"layernorm positions=true", "attention heads=2 sequence=true", "add with='x' name='y'", "layernorm positions=true",
		"dense out=20 positions=true", "gelu", "dense out=8 positions=true", "add with='y'",
		"layernorm positions=true", "attention heads=4", "dense out=3"}},
	{"positions first in a sum", "[4]",
		[]string{"embedding out=3 vocabulary=4 name='e'", "constant out=12", "add with='e'", "attention", "dense out=3"}},
	{"attention before a recurrence", "[5]",
		[]string{"embedding out=4 vocabulary=4", "mingru out=6 sequence=true name='a'", "attention heads=2 sequence=true",
			"add with='a'", "relu", "mingru out=5", "dense out=3"}},
	{"last position", "[6]",
		[]string{"embedding out=5 vocabulary=4", "dense out=7 positions=true", "tanh", "last", "dense out=3"}},
	{"last position of a sum", "[5]", []string{"embedding out=4 vocabulary=4 name='e'", "attention heads=2 sequence=true",
		"add with='e' name='a'", "last name='b'", "tanh from='a'", "last", "add with='b'", "dense out=3"}},
	{"loss at each position", "[6]", []string{"embedding out=5 vocabulary=4", "mingru out=7 sequence=true",
		"dense out=3 positions=true"}},
	{"loss at more positions than lanes", "[37]",
		[]string{"embedding out=5 vocabulary=4", "attention sequence=true", "dense out=3 positions=true bias=false"}},
	{"smoothing at each position", "[5]", []string{"loss cross-entropy classes=3 smoothing=0.2",
		"embedding out=4 vocabulary=4", "mingru out=3 sequence=true", "dropout rate=0.2"}},
	{"language model", "[6]", []string{"constant out=48 name='places'", "embedding out=8 vocabulary=4 from='input'",
		"add with='places' name='x'", "layernorm positions=true", "attention heads=2 sequence=true", "add with='x' name='y'",
		"layernorm positions=true", "dense out=20 positions=true", "gelu", "dense out=8 positions=true", "add with='y'",
		"layernorm positions=true", "dense out=3 positions=true"}},
	{"autoencoder", "[1,2,3]", []string{"loss distance", "flatten", "relu", "dense out=4", "batchnorm", "relu",
		"dense out=6"}},
}

// layers compares every kind with the reference, in batches of a few samples and of one.
func (mk Make) layers(t *testing.T) {
	for _, c := range kinds {
		t.Run(c.name, func(t *testing.T) {
			m := Compile(t, c.input, c.layers...)
			set := toyOf(t, m)
			mk.compare(t, m, set, 7, 1)
			mk.compare(t, m, set, 2, 1)
			if m.Layout.Stats == 0 {
				mk.compare(t, m, set, 1, 1)
			}
		})
	}
}

// Kinds calls f with a model for each of these cases and matching samples.
func Kinds(t *testing.T, f func(name string, m *models.Model, set *data.Set)) {
	for _, c := range kinds {
		m := Compile(t, c.input, c.layers...)
		f(c.name, m, toyOf(t, m))
	}
}

// toyOf returns a set for a model; a model with flat samples gets images.
func toyOf(t *testing.T, m *models.Model) *data.Set {
	shape := m.Input
	if m.Vocabulary > 0 {
		return ToyText(t, m.Features)
	}
	if len(shape) == 1 {
		shape = []int{1, 2, 3}
	}
	if m.MultiLabel() {
		return ToyLabels(t, m.Outputs, 24, shape...)
	}
	if m.Regression() {
		return ToyFor(t, m.Outputs, 24, shape...)
	}
	return ToyOf(t, max(3, m.Classes), 24, shape...)
}
