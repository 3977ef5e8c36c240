// Package models describes networks: a list of layers in TOML, compiled to shapes, a flat parameter layout with the
// names and shapes of PyTorch, and initial values. It computes nothing; engines (models/graph) turn a Model into
// numbers.
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

// Kind names what a layer does.
type Kind string

const (
	Dense     Kind = "dense"         // out; input [n]
	Conv      Kind = "conv"          // out, kernel, stride (1), pad (0), groups (1), filters; input [channels, h, w]
	MaxPool   Kind = "maxpool"       // kernel, stride (= kernel)
	AvgPool   Kind = "avgpool"       // kernel, stride (= kernel): the mean of each window
	BatchNorm Kind = "batchnorm"     // over samples, and over places of a channel; momentum 0.1, epsilon 1e-5
	ReLU      Kind = "relu"          // max(0, x)
	LeakyReLU Kind = "leakyrelu"     // slope (0.01): x above zero, slope*x elsewhere
	Tanh      Kind = "tanh"          //
	SiLU      Kind = "silu"          // x*sigmoid(x) (Elfwing et al. 2018; Swish)
	GELU      Kind = "gelu"          // x*Phi(x), Phi the normal distribution's: the exact form by erf, not that by tanh
	Scale     Kind = "scale"         // factor: all values times that, such as 0.5
	LayerNorm Kind = "layernorm"     // over all values of a sample, each with a scale and a shift; epsilon 1e-5
	Dropout   Kind = "dropout"       // rate
	Flatten   Kind = "flatten"       // to [n]
	GlobalAvg Kind = "globalavgpool" // mean of each channel, to [channels]
	Add       Kind = "add"           // with, stride (1): a residual sum, see LayerSpec.With
	Constant  Kind = "constant"      // out: parameters of its own, whatever the input
	// vocabulary (256), out: a row of out parameters for each byte of a text, one after the other; input [context]
	Embedding Kind = "embedding"
	// out, sequence (false): a recurrence over the positions of a text (Feng et al. 2024), see [compiler.mingru]
	MinGRU Kind = "mingru"
	// heads (1), sequence (false): causal self-attention over the positions of a text, see [compiler.attention]
	Attention Kind = "attention"
)

// Kinds are all kinds of layers.
var Kinds = []Kind{Dense, Conv, MaxPool, AvgPool, BatchNorm, LayerNorm, ReLU, LeakyReLU, Tanh, SiLU, GELU, Scale, Dropout, Flatten, GlobalAvg, Add, Constant, Embedding, MinGRU, Attention}

// Losses that a model may be trained on.
const (
	CrossEntropy = "cross-entropy" // of the softmax of the result; the default
	// squared, of the result to the sample itself; it needs no classes and calls no sample correct
	Distance = "distance"
	// losses of a regression, which predicts numbers: per sample the mean over the outputs of
	MSE   = "mse"   // e^2, e = result - target
	Huber = "huber" // e^2/2 where |e| <= HuberDelta, else HuberDelta*(|e| - HuberDelta/2)
	// of several classes at once, each of which a sample is in or not (multi-label): per sample the mean over the classes
	// of log(1 + e^z) - t*z, the cross-entropy of a sigmoid, where t is 1 of a class that it is in and else 0
	BCE = "bce"
	// minus the fitness that somebody else measures, see Measured; no layer list has it
	Objective = "objective"
)

// HuberDelta is where Huber turns from a square into a line, in deviations of the target: 1, PyTorch's default.
const HuberDelta = 1

// Spec is a model as a person writes it.
type Spec struct {
	Name    string `toml:"name"`
	Doc     string `toml:"doc"`
	Input   []int  `toml:"input"` // [features] or [channels, height, width]; with an embedding [context]
	Classes int    `toml:"classes"`
	Outputs int    `toml:"outputs"` // numbers that a regression predicts; 1
	Loss    string `toml:"loss"`
	// with CrossEntropy, in training by gradients: the share of a label that goes to all classes alike (label smoothing,
	// Szegedy et al. 2016)
	Smoothing float64 `toml:"smoothing"`
	// the learning rate of SGD with momentum 0.9 at which it trains from its initialisation; 0: that of the algorithm. Runs
	// begin with it where nobody sets another
	Eta float64 `toml:"eta"`
	// what it computes in: empty for floats, or Int8
	Arithmetic string      `toml:"arithmetic"`
	Layers     []LayerSpec `toml:"layer"`
}

// LayerSpec is one [[layer]] table. A key left out is nil and means the default of its kind. A layer takes the result
// of the one before it, or of the one that From names; so a list with names is a graph without cycles.
//
// An add layer sums its input and the result With names: of the same shape, or of an image that a stride of s thins out
// to every s-th row and column, and whose missing channels count as zero (option A of He et al. 2015; the channels
// there come first). The projection of option B is a 1x1 convolution of its own.
type LayerSpec struct {
	Name   *string  `toml:"name"` // for from and with; "input" is the sample
	From   *string  `toml:"from"`
	With   *string  `toml:"with"`
	Kind   Kind     `toml:"kind"`
	Out    *int     `toml:"out"`
	Kernel *int     `toml:"kernel"`
	Stride *int     `toml:"stride"`
	Pad    *int     `toml:"pad"`
	Groups *int     `toml:"groups"` // each takes and gives its share of the channels
	Rate   *float64 `toml:"rate"`
	Slope  *float64 `toml:"slope"`  // of leakyrelu, below zero
	Factor *float64 `toml:"factor"` // of scale
	Bias   *bool    `toml:"bias"`   // of dense and conv; true
	Init   *string  `toml:"init"`   // of dense, conv and mingru; see the Init constants
	// of conv: constants in place of weights that are trained, a row of channels x kernel x kernel numbers (of a group)
	// for each output
	Filters [][]float64 `toml:"filters"`

	Vocabulary *int  `toml:"vocabulary"` // of embedding: the bytes that it has rows for are those below
	Sequence   *bool `toml:"sequence"`   // of mingru and attention: results at all positions, not the last alone; false
	Heads      *int  `toml:"heads"`      // of attention: each has its share of the channels; 1
	Positions  *bool `toml:"positions"`  // of dense and layernorm: each position of a text by itself; false
}

// Keys are the optional keys that each kind takes, besides name and from.
func (k Kind) Keys() ([]string, bool) {
	switch k {
	case Dense:
		return []string{"out", "bias", "init", "positions"}, true
	case Conv:
		return []string{"out", "kernel", "stride", "pad", "groups", "bias", "init", "filters"}, true
	case MaxPool, AvgPool:
		return []string{"kernel", "stride"}, true
	case Dropout:
		return []string{"rate"}, true
	case Add:
		return []string{"with", "stride"}, true
	case Constant:
		return []string{"out"}, true
	case Embedding:
		return []string{"vocabulary", "out"}, true
	case MinGRU:
		return []string{"out", "sequence", "init"}, true
	case Attention:
		return []string{"heads", "sequence"}, true
	case LayerNorm:
		return []string{"positions"}, true
	case LeakyReLU:
		return []string{"slope"}, true
	case Scale:
		return []string{"factor"}, true
	case BatchNorm, ReLU, Tanh, SiLU, GELU, Flatten, GlobalAvg:
		return nil, true
	}
	return nil, false
}

// given are the optional keys that the table sets.
func (l *LayerSpec) given() (out []string) {
	for _, k := range []struct {
		name string
		set  bool
	}{{"out", l.Out != nil}, {"kernel", l.Kernel != nil}, {"stride", l.Stride != nil}, {"pad", l.Pad != nil},
		{"groups", l.Groups != nil}, {"with", l.With != nil}, {"rate", l.Rate != nil}, {"slope", l.Slope != nil},
		{"factor", l.Factor != nil}, {"bias", l.Bias != nil}, {"init", l.Init != nil}, {"vocabulary", l.Vocabulary != nil}, {"sequence", l.Sequence != nil},
		{"heads", l.Heads != nil}, {"positions", l.Positions != nil}, {"filters", l.Filters != nil}} {
		if k.set {
			out = append(out, k.name)
		}
	}
	return out
}

// SpecError says what is wrong with a model file.
type SpecError struct {
	Layer int // counted from 1; 0 when the fault is outside the layers
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
			what += "; a layer takes kind, name, from, with, out, kernel, stride, pad, groups, rate, slope, factor, bias, init, filters, vocabulary, sequence, heads and positions"
		}
		return Spec{}, &SpecError{What: what}
	}
	return s, nil
}
