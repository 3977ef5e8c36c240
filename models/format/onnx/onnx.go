// Package onnx writes trained models as ONNX files. The input of a graph is a sample in the form of its data set; the
// first nodes normalise it. Batch-norm layers use the recomputed statistics, and dropout layers pass their input on.
package onnx

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"

	"brood/models"
	"brood/models/data"
)

// Opset is the operator set version that the graphs use, and IR is the file format version that was released with it.
const (
	Opset = 17
	IR    = 8
)

// Input and Output name the tensors at both ends of a graph.
const (
	Input = "input" // [samples, ...]: bytes or numbers in the form of the data set
	// [samples, outputs]: before the softmax, if the loss has one; in the unit of the targets for a regression.
	Output = "output"
)

// Model is a trained model to write.
type Model struct {
	Net           *models.Model
	Params, Stats []float32         // in the order of Net.Layout
	Form          *data.Form        // how samples are normalised; nil: the samples are normalised already
	Meta          map[string]string // metadata_props, written in the order of the keys
	Doc           string            // the doc_string of the model
}

// maxBytes is the limit for the parameters: the largest protobuf message, less 1 MiB for the rest of the file.
const maxBytes = math.MaxInt32 - 1<<20

// Write writes the model as one ModelProto.
func Write(w io.Writer, m Model) error {
	if n := 4 * int64(m.Net.Layout.Params+m.Net.Layout.Stats); n > maxBytes {
		return fmt.Errorf("model %s has %d parameters, more than an ONNX file can hold (2 GiB): export it as safetensors",
			m.Net.Name, m.Net.Layout.Params)
	}
	if m.Net.Int8 {
		return fmt.Errorf("model %s computes in whole numbers, which is not written as ONNX: export it as safetensors",
			m.Net.Name)
	}
	g := graph{Model: m}
	kind := int64(typeFloat)
	switch {
	case m.Form != nil && m.Form.Bytes:
		kind = typeByte
	case m.Form != nil && m.Form.Wide():
		kind = typeDouble
	}
	x := g.normalised(kind)
	for i := range m.Net.Layers {
		y, err := g.layer(i, x)
		if err != nil {
			return err
		}
		x = append(x, y)
	}
	result, shape := g.restored(x[len(x)-1]), m.Net.Shape(len(m.Net.Layers))
	if n := m.Net.Positions; n > 1 {
		shape = []int{n, m.Net.Classes}
		result = g.shaped("output.positions", result, -1, n, m.Net.Classes)
	}
	g.node("Identity", Output, result)
	g.text(graphName, m.Net.Name)
	columns := m.Form != nil && m.Form.Columns != nil
	if columns {
		g.columnInputs(kind)
	} else {
		g.put(graphInput, samples(Input, kind, g.shape()))
	}
	g.put(graphOutput, samples(Output, typeFloat, shape))
	var head, opset, out message
	opset.whole(opsetVersion, Opset)
	head.whole(modelIR, IR)
	head.text(modelProducer, "brood")
	head.text(modelDoc, m.Doc)
	head.put(modelOpset, opset)
	if columns {
		var ml message
		ml.text(opsetDomain, domainML)
		ml.whole(opsetVersion, versionML)
		head.put(modelOpset, ml)
	}
	for _, key := range slices.Sorted(maps.Keys(m.Meta)) {
		var pair message
		pair.text(metaKey, key)
		pair.text(metaValue, m.Meta[key])
		head.put(modelMeta, pair)
	}
	out = head
	out.put(modelGraph, g.message)
	_, err := w.Write(out)
	return err
}

// graph is a GraphProto to which nodes and constants are appended.
type graph struct {
	Model
	message
}

func (g *graph) node(op, result string, input string, more ...any) string {
	return g.inDomain("", op, result, input, more...)
}

// inDomain is node for an operator of another domain.
func (g *graph) inDomain(domain, op, result string, input string, more ...any) string {
	inputs, attributes := []string{input}, []attribute{}
	for _, x := range more {
		switch x := x.(type) {
		case string:
			inputs = append(inputs, x)
		case attribute:
			attributes = append(attributes, x)
		}
	}
	n := node(op, result, inputs, attributes...)
	if domain != "" {
		n.text(nodeDomain, domain)
	}
	g.put(graphNode, n)
	return result
}

func (g *graph) floats(name string, shape []int, x []float32) string {
	g.put(graphInitializer, floats(name, shape, x))
	return name
}

// perFeature adds a constant with one value for each channel or feature, in the type of the input.
func (g *graph) perFeature(name string, shape []int, x []float64) string {
	if g.Form.Wide() {
		g.put(graphInitializer, doubles(name, shape, x))
		return name
	}
	narrow := make([]float32, len(x))
	for i, v := range x {
		narrow[i] = float32(v)
	}
	return g.floats(name, shape, narrow)
}

func (g *graph) ints(name string, x ...int) string {
	g.put(graphInitializer, ints(name, x))
	return name
}

// param adds tensor i of the layout. It returns "" for index -1, which means no tensor.
func (g *graph) param(i int) string {
	if i < 0 {
		return ""
	}
	t := g.Net.Layout.Tensors[i]
	return g.floats(t.Name, t.Shape, g.Params[t.Lo:t.Lo+t.Len])
}

func (g *graph) stat(i int) string {
	t := g.Net.Layout.StatTensors[i]
	return g.floats(t.Name, t.Shape, g.Stats[t.Lo:t.Lo+t.Len])
}

// shape returns the shape of one input sample.
func (g *graph) shape() []int {
	if g.Form != nil {
		return g.Form.Shape
	}
	return g.Net.Input
}

// normalised adds the nodes that normalise the input, and returns the name of their result as result 0.
func (g *graph) normalised(kind int64) []string {
	x := Input
	if g.Net.Vocabulary > 0 {
		return []string{g.node("Cast", "input.indices", x, attribute{"to", typeInt})}
	}
	if f := g.Form; f != nil {
		if f.Columns != nil {
			x = g.expanded(kind)
		}
		if f.Bytes {
			x = g.node("Cast", "input.float", x, attribute{"to", typeFloat})
			x = g.node("Div", "input.scaled", x, g.floats("normalise.bytes", nil, []float32{255}))
		}
		each := make([]int, len(f.Shape)) // one value for each channel or feature
		for i := range each {
			each[i] = 1
		}
		each[0] = f.Shape[0]
		x = g.node("Sub", "input.centred", x, g.perFeature("normalise.mean", each, f.Mean))
		x = g.node("Div", "input.normalised", x, g.perFeature("normalise.deviation", each, f.Std))
		if f.Wide() {
			x = g.node("Cast", "input.float", x, attribute{"to", typeFloat})
		}
	}
	if !slices.Equal(g.shape(), g.Net.Input) { // one of the two shapes is flat
		x = g.node("Reshape", "input.shaped", x, g.ints("input.shape", append([]int{0}, g.Net.Input...)...))
	}
	return []string{x}
}

// restored adds the nodes that convert the result of a regression to the unit of its targets. It returns other results
// unchanged.
func (g *graph) restored(z string) string {
	if g.Form == nil || g.Form.TargetMean == nil {
		return z
	}
	outputs := []int{g.Net.Outputs}
	z = g.node("Mul", "output.scaled", z, g.floats("restore.deviation", outputs, g.Form.TargetStd))
	return g.node("Add", "output.restored", z, g.floats("restore.mean", outputs, g.Form.TargetMean))
}

// layer adds the nodes of layer i and returns the name of its result. x[k] names the result of layer k.
func (g *graph) layer(i int, x []string) (string, error) {
	l := &g.Net.Layers[i]
	in, out := x[l.From], "layer"+strconv.Itoa(i+1)
	window := []any{attribute{"kernel_shape", []int{l.Kernel, l.Kernel}}, attribute{"strides", []int{l.Stride, l.Stride}}}
	switch l.Kind {
	case models.Dense:
		return g.each(l, in, out, func(x, y string) { g.node("Gemm", y, x, g.with(l, out, attribute{"transB", 1})...) }), nil
	case models.Conv:
		return g.node("Conv", out, in,
			g.with(l, out, append(window, attribute{"pads", []int{l.Pad, l.Pad, l.Pad, l.Pad}},
				attribute{"group", l.Groups})...)...), nil
	case models.MaxPool:
		return g.node("MaxPool", out, in, window...), nil
	case models.AvgPool:
		return g.node("AveragePool", out, in, window...), nil
	case models.BatchNorm:
		return g.node("BatchNormalization", out, in, g.param(l.Weight), g.param(l.Bias), g.stat(l.Mean), g.stat(l.Var),
			attribute{"epsilon", float32(models.NormEpsilon)}), nil
	case models.ReLU:
		return g.node("Relu", out, in), nil
	case models.LayerNorm:
		return g.each(l, in, out, func(x, y string) {
			g.node("LayerNormalization", y, x, g.param(l.Weight), g.param(l.Bias), attribute{"axis", 1},
				attribute{"epsilon", float32(models.NormEpsilon)})
		}), nil
	case models.LeakyReLU:
		return g.node("LeakyRelu", out, in, attribute{"alpha", float32(l.Slope)}), nil
	case models.Scale:
		return g.node("Mul", out, in, g.floats(out+".factor", nil, []float32{float32(l.Factor)})), nil
	case models.Tanh:
		return g.node("Tanh", out, in), nil
	case models.SiLU:
		return g.node("Mul", out, in, g.node("Sigmoid", out+".sigmoid", in)), nil
	case models.GELU: // the Gelu operator exists from operator set 20 on
		x := g.node("Div", out+".scaled", in, g.floats(out+".root", nil, []float32{math.Sqrt2}))
		x = g.node("Add", out+".twice", g.node("Erf", out+".erf", x), g.floats(out+".one", nil, []float32{1}))
		return g.node("Mul", out, g.node("Mul", out+".double", in, x), g.floats(out+".half", nil, []float32{0.5})), nil
	case models.Dropout:
		return in, nil
	case models.Flatten:
		return g.node("Flatten", out, in, attribute{"axis", 1}), nil
	case models.GlobalAvg:
		return g.node("Flatten", out, g.node("GlobalAveragePool", out+".mean", in), attribute{"axis", 1}), nil
	case models.Add:
		return g.node("Add", out, in, g.shortcut(l, x[l.With], out)), nil
	case models.Embedding:
		rows := g.node("Gather", out+".rows", g.param(l.Weight), in, attribute{"axis", 0})
		return g.node("Flatten", out, rows, attribute{"axis", 1}), nil
	case models.MinGRU:
		return g.minGRU(l, in, out), nil
	case models.Attention:
		return g.attention(l, in, out), nil
	case models.Last:
		return g.node("Slice", out, in, g.ints(out+".begin", l.In[0]-l.Out[0]), g.ints(out+".end", l.In[0]),
			g.ints(out+".axis", 1)), nil
	case models.Constant:
		n := g.node("Shape", out+".samples", in, attribute{"start", 0}, attribute{"end", 1})
		shape := g.node("Concat", out+".shape", n, g.ints(out+".values", l.Out...), attribute{"axis", 0})
		return g.node("Expand", out, g.param(l.Bias), shape), nil
	}
	return "", fmt.Errorf("model %s: layer %d: %s has no form in ONNX: export the model as safetensors", g.Net.Name, i+1,
		l.Kind)
}

// shaped adds a node that gives x another shape, in which one size may be -1: ONNX computes it.
func (g *graph) shaped(name, x string, shape ...int) string {
	return g.node("Reshape", name, x, g.ints(name+".shape", shape...))
}

// each adds the nodes of f, from x to y: over all values of a sample, or with each position of a text as one row.
func (g *graph) each(l *models.Layer, in, out string, f func(x, y string)) string {
	if l.Rows == 1 {
		f(in, out)
		return out
	}
	f(g.shaped(out+".apart", in, -1, l.In[0]/l.Rows), out+".each")
	return g.shaped(out, out+".each", -1, l.Out[0])
}

// attention adds the nodes for all heads: matrices have the shape [sample, head, position, channel of the head].
func (g *graph) attention(l *models.Layer, in, out string) string {
	steps, queries := g.Net.Features, l.Queries(g.Net)
	c := l.In[0] / steps
	d := c / l.Heads
	x := g.node("Gemm", out+".qkv", g.shaped(out+".apart", in, -1, c), g.param(l.Weight), g.param(l.Bias),
		attribute{"transB", 1})
	x = g.node("Transpose", out+".heads", g.shaped(out+".parts", x, -1, steps, 3*l.Heads, d),
		attribute{"perm", []int{0, 2, 1, 3}})
	part := func(name string, i, first int) string {
		at := out + "." + name
		return g.node("Slice", at, x, g.ints(at+".begin", i*l.Heads, first), g.ints(at+".end", (i+1)*l.Heads, steps),
			g.ints(at+".axes", 1, 2))
	}
	q, k, v := part("q", 0, steps-queries), part("k", 1, 0), part("v", 2, 0)
	q = g.node("Mul", out+".scaled", q, g.floats(out+".scale", nil, []float32{float32(1 / math.Sqrt(float64(d)))}))
	scores := g.node("MatMul", out+".scores", q,
		g.node("Transpose", out+".turned", k, attribute{"perm", []int{0, 1, 3, 2}}))
	unseen := make([]float32, queries*steps)
	for i := range queries {
		for u := steps - queries + i + 1; u < steps; u++ {
			unseen[i*steps+u] = float32(math.Inf(-1))
		}
	}
	scores = g.node("Add", out+".seen", scores, g.floats(out+".unseen", []int{queries, steps}, unseen))
	given := g.node("MatMul", out+".given", g.node("Softmax", out+".weights", scores, attribute{"axis", -1}), v)
	given = g.shaped(out+".together", g.node("Transpose", out+".back", given, attribute{"perm", []int{0, 2, 1, 3}}), -1, c)
	y := g.node("Gemm", out+".projected", given, g.param(l.Project[0]), g.param(l.Project[1]), attribute{"transB", 1})
	return g.shaped(out, y, -1, queries*c)
}

// minGRU adds the nodes of the recurrence, unrolled over the positions.
func (g *graph) minGRU(l *models.Layer, in, out string) string {
	steps := g.Net.Features
	wide := l.In[0] / steps
	gate, gateBias, state, stateBias := g.param(l.Weight), g.param(l.Bias), g.param(l.State[0]), g.param(l.State[1])
	axis := g.ints(out+".axis", 1)
	h, all := "", []string{}
	for t := range steps {
		at := out + "." + strconv.Itoa(t)
		x := g.node("Slice", at+".input", in, g.ints(at+".begin", t*wide), g.ints(at+".end", (t+1)*wide), axis)
		z := g.node("Sigmoid", at+".gate", g.node("Gemm", at+".opens", x, gate, gateBias, attribute{"transB", 1}))
		c := g.node("Gemm", at+".proposed", x, state, stateBias, attribute{"transB", 1})
		if h == "" {
			h = g.node("Mul", at+".state", z, c)
		} else {
			h = g.node("Add", at+".state", h, g.node("Mul", at+".change", z, g.node("Sub", at+".difference", c, h)))
		}
		all = append(all, h)
	}
	if l.Steps == 0 {
		return h
	}
	more := []any{attribute{"axis", 1}}
	for _, h := range all[1:] {
		more = append(more, h)
	}
	return g.node("Concat", out, all[0], more...)
}

// with returns the weight and the bias of a layer, if it has one, followed by attributes.
func (g *graph) with(l *models.Layer, name string, attributes ...any) []any {
	var args []any
	if l.Filters != nil {
		args = append(args, g.floats(name+".filters", []int{l.Out[0], l.In[0] / l.Groups, l.Kernel, l.Kernel}, l.Filters))
	} else {
		args = append(args, g.param(l.Weight))
	}
	if l.Bias >= 0 {
		args = append(args, g.param(l.Bias))
	}
	return append(args, attributes...)
}

// shortcut returns the input that a residual sum adds. x names an earlier result: a layer with a stride takes every
// Stride-th row and column of it, and its missing last channels are zero.
func (g *graph) shortcut(l *models.Layer, x, name string) string {
	from := g.Net.Shape(l.With)
	if l.Stride > 1 {
		const all = math.MaxInt32
		x = g.node("Slice", name+".thinned", x, g.ints(name+".begin", 0, 0), g.ints(name+".end", all, all),
			g.ints(name+".axes", 2, 3), g.ints(name+".step", l.Stride, l.Stride))
	}
	if missing := l.In[0] - from[0]; missing > 0 {
		x = g.node("Pad", name+".widened", x, g.ints(name+".pads", 0, 0, 0, 0, 0, missing, 0, 0))
	}
	return x
}
