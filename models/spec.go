// Package models describes networks: a list of layers in TOML, compiled to shapes, a flat parameter layout with the
// names and shapes of PyTorch, and initial values. It does not execute models; engines such as models/native do.
//
//	m, err := models.Load("lenet")        // or a path of a .toml file
//	x := make([]float32, m.Layout.Params)
//	m.Init(seed, 0, x)
package models

import (
	"errors"
	"fmt"
	"io"

	"brood/models/tomlerr"
)

// Kind is the kind of a layer.
type Kind string

const (
	Dense     Kind = "dense"         // out; input [n]
	Conv      Kind = "conv"          // out, kernel, stride (1), pad (0), groups (1), filters; input [channels, h, w]
	MaxPool   Kind = "maxpool"       // kernel, stride (= kernel)
	AvgPool   Kind = "avgpool"       // kernel, stride (= kernel): the mean of each window
	BatchNorm Kind = "batchnorm"     // per channel, over samples and positions; momentum 0.1, epsilon 1e-5
	ReLU      Kind = "relu"          // max(0, x)
	LeakyReLU Kind = "leakyrelu"     // slope (0.01): x if x > 0, else slope*x
	Tanh      Kind = "tanh"          //
	SiLU      Kind = "silu"          // x*sigmoid(x) (Elfwing et al. 2018; Swish)
	GELU      Kind = "gelu"          // x*Phi(x) with the normal distribution Phi: exact by erf, not the tanh form
	Scale     Kind = "scale"         // factor: multiplies all values, such as 0.5
	LayerNorm Kind = "layernorm"     // over all values of a sample, each with a scale and a shift; epsilon 1e-5
	Dropout   Kind = "dropout"       // rate
	Flatten   Kind = "flatten"       // to [n]
	GlobalAvg Kind = "globalavgpool" // mean of each channel, to [channels]
	Add       Kind = "add"           // with, stride (1): a residual sum, see LayerSpec.With
	Constant  Kind = "constant"      // out: parameters, independent of the input
	// vocabulary (256), out: the concatenated table rows, of out parameters each, of the bytes of a text; input [context]
	Embedding Kind = "embedding"
	// out, sequence (false): a recurrence over the positions of a text (Feng et al. 2024), see [compiler.mingru]
	MinGRU Kind = "mingru"
	// heads (1), sequence (false): causal self-attention over the positions of a text, see [compiler.attention]
	Attention Kind = "attention"
	Last      Kind = "last" // the values at the last position of a text
)

// Kinds lists all kinds of layers.
var Kinds = []Kind{
	Dense, Conv, MaxPool, AvgPool, BatchNorm, LayerNorm, ReLU, LeakyReLU, Tanh, SiLU, GELU, Scale, Dropout, Flatten,
	GlobalAvg, Add, Constant, Embedding, MinGRU, Attention, Last,
}

// Losses of a model.
const (
	CrossEntropy = "cross-entropy" // of the softmax of the output; the default
	// squared distance of the output from the sample; without classes and correct predictions
	Distance = "distance"
	// losses of a regression: per sample the mean over the outputs of
	MSE   = "mse"   // e^2, e = output - target
	Huber = "huber" // e^2/2 if |e| <= HuberDelta, else HuberDelta*(|e| - HuberDelta/2)
	// multi-label: per sample the mean over the classes of log(1 + e^z) - t*z, the cross-entropy of a sigmoid, where t is
	// 1 if the sample belongs to the class, else 0
	BCE = "bce"
	// minus the fitness returned by an objective, see Measured; not available in layer lists
	Objective = "objective"
)

// HuberDelta is the error at which Huber changes from quadratic to linear, in standard deviations of the target: 1, the
// default of PyTorch.
const HuberDelta = 1

// Spec is the source of a model, as written by the user.
type Spec struct {
	Name    string `toml:"name"`
	Doc     string `toml:"doc"`
	Input   []int  `toml:"input"` // [features] or [channels, height, width]; with an embedding [context]
	Classes int    `toml:"classes"`
	Outputs int    `toml:"outputs"` // targets of a regression; default 1
	Loss    string `toml:"loss"`
	// label smoothing with CrossEntropy in training by gradients: the share of a label spread evenly over all classes
	// (Szegedy et al. 2016)
	Smoothing float64 `toml:"smoothing"`
	// recommended learning rate of SGD with momentum 0.9, the default of runs of this model; 0: that of the algorithm
	Eta float64 `toml:"eta"`
	// empty for floating point, or Int8
	Arithmetic string      `toml:"arithmetic"`
	Layers     []LayerSpec `toml:"layer"`
}

// LayerSpec is one [[layer]] table. A missing key is nil and means the default of the kind. The input of a layer is the
// result of the layer before it or of the one named by From, so that the layers form an acyclic graph.
//
// An add layer sums its input and the result named by With. Both have the same shape, or With is an image of which a
// stride of s selects every s-th row and column, with missing channels treated as zero (option A of He et al. 2015; the
// existing channels come first). The projection of option B is written as a separate 1x1 convolution.
type LayerSpec struct {
	Name   *string  `toml:"name"` // for from and with; "input" is the sample
	From   *string  `toml:"from"`
	With   *string  `toml:"with"`
	Kind   Kind     `toml:"kind"`
	Out    *int     `toml:"out"`
	Kernel *int     `toml:"kernel"`
	Stride *int     `toml:"stride"`
	Pad    *int     `toml:"pad"`
	Groups *int     `toml:"groups"` // each has an equal share of the input and output channels
	Rate   *float64 `toml:"rate"`
	Slope  *float64 `toml:"slope"`  // of leakyrelu, for negative inputs
	Factor *float64 `toml:"factor"` // of scale
	Bias   *bool    `toml:"bias"`   // of dense and conv; default true
	Init   *string  `toml:"init"`   // of dense, conv and mingru; see the Init constants
	// of conv: constants instead of trained weights, one row of channels x kernel x kernel numbers (of a group) per output
	Filters [][]float64 `toml:"filters"`

	Vocabulary *int  `toml:"vocabulary"` // of embedding: number of table rows, for the bytes below it
	Sequence   *bool `toml:"sequence"`   // of mingru and attention: results at all positions, not only the last
	Heads      *int  `toml:"heads"`      // of attention: each has an equal share of the channels; default 1
	Positions  *bool `toml:"positions"`  // of dense and layernorm: process each text position separately
}

// LayerKeys has the keys that each kind accepts besides kind, name and from.
var LayerKeys = map[Kind][]string{
	Dense:     {"out", "bias", "init", "positions"},
	Conv:      {"out", "kernel", "stride", "pad", "groups", "bias", "init", "filters"},
	MaxPool:   {"kernel", "stride"},
	AvgPool:   {"kernel", "stride"},
	Dropout:   {"rate"},
	Add:       {"with", "stride"},
	Constant:  {"out"},
	Embedding: {"vocabulary", "out"},
	MinGRU:    {"out", "sequence", "init"},
	Attention: {"heads", "sequence"},
	LayerNorm: {"positions"},
	LeakyReLU: {"slope"},
	Scale:     {"factor"},
	BatchNorm: nil,
	ReLU:      nil,
	Tanh:      nil,
	SiLU:      nil,
	GELU:      nil,
	Flatten:   nil,
	GlobalAvg: nil,
	Last:      nil,
}

// presentKeys returns the optional keys that the table sets.
func (l *LayerSpec) presentKeys() (out []string) {
	for _, k := range []struct {
		name string
		set  bool
	}{
		{"out", l.Out != nil}, {"kernel", l.Kernel != nil}, {"stride", l.Stride != nil}, {"pad", l.Pad != nil},
		{"groups", l.Groups != nil}, {"with", l.With != nil}, {"rate", l.Rate != nil}, {"slope", l.Slope != nil},
		{"factor", l.Factor != nil}, {"bias", l.Bias != nil}, {"init", l.Init != nil},
		{"vocabulary", l.Vocabulary != nil}, {"sequence", l.Sequence != nil}, {"heads", l.Heads != nil},
		{"positions", l.Positions != nil}, {"filters", l.Filters != nil},
	} {
		if k.set {
			out = append(out, k.name)
		}
	}
	return out
}

// SpecError reports an error in a model file.
type SpecError struct {
	Layer int // counted from 1; 0 if the error is outside the layers
	Kind  Kind
	What  string
}

// UsageError implements the mark of package usererr: a layer list is written by the user.
func (e *SpecError) UsageError() bool { return true }

func (e *SpecError) Error() string {
	if e.Layer == 0 {
		return "model: " + e.What
	}
	return fmt.Sprintf("model: layer %d (%s): %s", e.Layer, e.Kind, e.What)
}

// Parse reads a TOML model. Unknown keys are errors.
func Parse(r io.Reader) (Spec, error) {
	text, err := io.ReadAll(io.LimitReader(r, 1<<20))
	if err != nil {
		return Spec{}, &SpecError{What: err.Error()}
	}
	var s Spec
	if err := tomlerr.Decode(text, &s); err != nil {
		what := err.Error()
		if unknown := (*tomlerr.UnknownError)(nil); errors.As(err, &unknown) {
			what += "; a layer takes kind, name, from, with, out, kernel, stride, pad, groups, rate, slope, factor, bias, " +
				"init, filters, vocabulary, sequence, heads and positions"
		}
		return Spec{}, &SpecError{What: what}
	}
	return s, nil
}
