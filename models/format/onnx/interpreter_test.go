package onnx

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// tensor is a value of the interpreter. It stores every ONNX type as float32.
type tensor struct {
	dims []int
	x    []float32
	text []string // instead of x
}

func size(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

func zeros(dims ...int) tensor { return tensor{dims: dims, x: make([]float32, size(dims))} }

// step is a parsed node.
type step struct {
	op      string
	in, out []string
	ints    map[string][]int
	floats  map[string]float32
	texts   map[string][]string
}

// program is a parsed model. The parser uses the field numbers of onnx.proto, not the constants of the writer.
type program struct {
	ir, opset int
	meta      map[string]string
	steps     []step
	constants map[string]tensor
	inputs    []string
	outputs   []string
}

type fields map[protowire.Number][]any

func parse(t *testing.T, p []byte) fields {
	t.Helper()
	out := fields{}
	for len(p) > 0 {
		field, kind, n := protowire.ConsumeTag(p)
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		p = p[n:]
		var x any
		switch kind {
		case protowire.VarintType:
			x, n = protowire.ConsumeVarint(p)
		case protowire.Fixed32Type:
			x, n = protowire.ConsumeFixed32(p)
		case protowire.BytesType:
			x, n = protowire.ConsumeBytes(p)
		}
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		out[field], p = append(out[field], x), p[n:]
	}
	return out
}

func (f fields) texts(n protowire.Number) (out []string) {
	for _, x := range f[n] {
		out = append(out, string(x.([]byte)))
	}
	return out
}

func (f fields) ints(n protowire.Number) (out []int) {
	for _, x := range f[n] {
		out = append(out, int(x.(uint64)))
	}
	return out
}

func read(t *testing.T, p []byte) (out program) {
	t.Helper()
	out.meta, out.constants = map[string]string{}, map[string]tensor{}
	m := parse(t, p)
	out.ir = m.ints(1)[0]
	out.opset = parse(t, m[8][0].([]byte)).ints(2)[0]
	for _, x := range m[14] {
		pair := parse(t, x.([]byte))
		out.meta[pair.texts(1)[0]] = pair.texts(2)[0]
	}
	g := parse(t, m[7][0].([]byte))
	for _, x := range g[11] {
		out.inputs = append(out.inputs, parse(t, x.([]byte)).texts(1)[0])
	}
	for _, x := range g[12] {
		out.outputs = append(out.outputs, parse(t, x.([]byte)).texts(1)[0])
	}
	for _, x := range g[5] {
		f := parse(t, x.([]byte))
		raw, c := f[9][0].([]byte), tensor{dims: f.ints(1)}
		for i := 0; i < len(raw); {
			if f.ints(2)[0] == typeDouble {
				c.x, i = append(c.x, float32(math.Float64frombits(binary.LittleEndian.Uint64(raw[i:])))), i+8
			} else if f.ints(2)[0] == typeInt {
				c.x, i = append(c.x, float32(int64(binary.LittleEndian.Uint64(raw[i:])))), i+8
			} else {
				c.x, i = append(c.x, math.Float32frombits(binary.LittleEndian.Uint32(raw[i:]))), i+4
			}
		}
		name := f.texts(8)[0]
		if _, twice := out.constants[name]; twice {
			t.Errorf("the constant %s is there twice", name)
		}
		out.constants[name] = c
	}
	for _, x := range g[1] {
		f := parse(t, x.([]byte))
		s := step{f.texts(4)[0], f.texts(1), f.texts(2), map[string][]int{}, map[string]float32{}, map[string][]string{}}
		for _, y := range f[5] {
			a := parse(t, y.([]byte))
			name := a.texts(1)[0]
			switch a.ints(20)[0] {
			case 1:
				s.floats[name] = math.Float32frombits(a[2][0].(uint32))
			case 2:
				s.ints[name] = a.ints(3)
			case 7:
				s.ints[name] = a.ints(8)
			case 8:
				s.texts[name] = a.texts(9)
			}
		}
		out.steps = append(out.steps, s)
	}
	return out
}

// run computes the operators with simple loops.
func (p program) run(t *testing.T, input tensor) tensor {
	t.Helper()
	return p.results(t, map[string]tensor{p.inputs[0]: input})[p.outputs[0]]
}

// results computes all results of the graph. known has its inputs, and receives them.
func (p program) results(t *testing.T, known map[string]tensor) map[string]tensor {
	t.Helper()
	maps.Copy(known, p.constants)
	for _, s := range p.steps {
		var in []tensor
		for _, name := range s.in {
			x, ok := known[name]
			if !ok {
				t.Fatalf("%s takes %s, which no node before it gives", s.op, name)
			}
			in = append(in, x)
		}
		y, err := s.do(in)
		if err != nil {
			t.Fatal(err)
		}
		known[s.out[0]] = y
	}
	return known
}

// spread applies f to x and a constant, which is broadcast over the leading axes of x.
func spread(x, c tensor, f func(a, b float32) float32) tensor {
	y := zeros(x.dims...)
	for i := range x.x {
		at, stride, rest := 0, 1, i
		for d := len(x.dims) - 1; d >= 0; d-- {
			k := rest % x.dims[d]
			rest /= x.dims[d]
			if j := d - len(x.dims) + len(c.dims); j >= 0 {
				if c.dims[j] > 1 {
					at += k * stride
				}
				stride *= c.dims[j]
			}
		}
		y.x[i] = f(x.x[i], c.x[at])
	}
	return y
}

// pool calls f with the values of each window and returns its results.
func (s step) pool(x tensor, f func(window []float32) float32) tensor {
	k, stride, rows, cols := s.ints["kernel_shape"][0], s.ints["strides"][0], x.dims[2], x.dims[3]
	y := zeros(x.dims[0], x.dims[1], (rows-k)/stride+1, (cols-k)/stride+1)
	for i := range y.x {
		b, a, plane := i%y.dims[3]*stride, i/y.dims[3]%y.dims[2]*stride, i/(y.dims[3]*y.dims[2])
		var window []float32
		for p := range k {
			window = append(window, x.x[(plane*rows+a+p)*cols+b:][:k]...)
		}
		y.x[i] = f(window)
	}
	return y
}

func (s step) do(in []tensor) (tensor, error) {
	x := in[0]
	n := x.dims[0]
	switch s.op {
	case "Identity", "Cast":
		return x, nil
	case "Gather": // of rows, by a tensor of their numbers
		out := tensor{dims: append(slices.Clone(in[1].dims), x.dims[1:]...)}
		width := size(x.dims[1:])
		for _, i := range in[1].x {
			if s.ints["axis"][0] != 0 || i != float32(int(i)) || int(i) < 0 || int(i) >= x.dims[0] {
				return x, fmt.Errorf("row %v along axis %v of %v", i, s.ints["axis"], x.dims)
			}
			out.x = append(out.x, x.x[int(i)*width:][:width]...)
		}
		return out, nil
	case "Sub":
		return spread(x, in[1], func(a, b float32) float32 { return a - b }), nil
	case "Div":
		return spread(x, in[1], func(a, b float32) float32 { return a / b }), nil
	case "Add":
		if len(in[1].dims) == len(x.dims) && fmt.Sprint(x.dims) != fmt.Sprint(in[1].dims) {
			return x, fmt.Errorf("a sum of %v and %v", x.dims, in[1].dims)
		}
		return spread(x, in[1], func(a, b float32) float32 { return a + b }), nil
	case "Relu":
		return spread(x, tensor{x: []float32{0}}, func(a, b float32) float32 { return max(a, b) }), nil
	case "Mul":
		return spread(x, in[1], func(a, b float32) float32 { return a * b }), nil
	case "LeakyRelu":
		return spread(x, tensor{x: []float32{s.floats["alpha"]}},
			func(a, slope float32) float32 { return max(a, 0) + slope*min(a, 0) }), nil
	case "Tanh":
		return each(x, math.Tanh), nil
	case "Sigmoid":
		return each(x, func(v float64) float64 { return 1 / (1 + math.Exp(-v)) }), nil
	case "Erf":
		return each(x, math.Erf), nil
	case "LayerNormalization":
		return s.layerNormalization(in)
	case "Reshape":
		if in[1].x[0] == -1 { // the samples, or rows of them
			dims := []int{len(x.x)}
			for _, d := range in[1].x[1:] {
				dims = append(dims, int(d))
				dims[0] /= int(d)
			}
			if size(dims) != len(x.x) {
				return x, fmt.Errorf("%v as %v", x.dims, in[1].x)
			}
			return tensor{dims: dims, x: x.x}, nil
		}
		dims := []int{n}
		for _, d := range in[1].x[1:] {
			dims = append(dims, int(d))
		}
		if in[1].x[0] != 0 || size(dims) != len(x.x) {
			return x, fmt.Errorf("%v as %v", x.dims, in[1].x)
		}
		return tensor{dims: dims, x: x.x}, nil
	case "Flatten":
		return tensor{dims: []int{n, len(x.x) / n}, x: x.x}, nil
	case "Gemm":
		w, k := in[1], x.dims[1]
		y := zeros(n, w.dims[0])
		for i := range n {
			for o := range w.dims[0] {
				var sum float32
				for j := range k {
					sum += float32(x.x[i*k+j] * w.x[o*k+j])
				}
				if len(in) > 2 {
					sum += in[2].x[o]
				}
				y.x[i*w.dims[0]+o] = sum
			}
		}
		return y, nil
	case "Conv":
		return s.conv(in), nil
	case "MaxPool":
		return s.pool(x, slices.Max), nil
	case "AveragePool":
		return s.pool(x, func(window []float32) float32 {
			var sum float32
			for _, v := range window {
				sum += v
			}
			return sum / float32(len(window))
		}), nil
	case "GlobalAveragePool":
		y := zeros(n, x.dims[1], 1, 1)
		each := len(x.x) / len(y.x)
		for i := range y.x {
			for _, v := range x.x[i*each : (i+1)*each] {
				y.x[i] += v
			}
			y.x[i] /= float32(each)
		}
		return y, nil
	case "BatchNormalization":
		y := zeros(x.dims...)
		each := len(x.x) / (n * x.dims[1])
		for i, v := range x.x {
			c := i / each % x.dims[1]
			y.x[i] = float32((v-in[3].x[c])/float32(math.Sqrt(float64(in[4].x[c]+s.floats["epsilon"])))*in[1].x[c]) + in[2].x[c]
		}
		return y, nil
	case "Transpose":
		return s.transpose(x), nil
	case "MatMul":
		return matMul(x, in[1])
	case "Softmax":
		return s.softmax(x)
	case "Slice":
		if len(in) == 4 && len(x.dims) == 4 { // of axes 1 and 2
			return slice(x, in[1:])
		}
		if x.text != nil {
			y := tensor{dims: []int{n, 1}}
			for i := range n {
				y.text = append(y.text, x.text[i*x.dims[1]+int(in[1].x[0])])
			}
			return y, nil
		}
		if len(x.dims) == 2 { // columns
			lo, hi := int(in[1].x[0]), int(in[2].x[0])
			if in[3].x[0] != 1 || lo < 0 || lo >= hi || hi > x.dims[1] {
				return x, fmt.Errorf("columns %d to %d of %v along %v", lo, hi, x.dims, in[3].x)
			}
			y := tensor{dims: []int{n, hi - lo}}
			for i := range n {
				y.x = append(y.x, x.x[i*x.dims[1]+lo:i*x.dims[1]+hi]...)
			}
			return y, nil
		}
		step := [2]int{int(in[4].x[0]), int(in[4].x[1])}
		h, w := (x.dims[2]+step[0]-1)/step[0], (x.dims[3]+step[1]-1)/step[1]
		y := zeros(n, x.dims[1], h, w)
		for i := range y.x {
			y.x[i] = x.x[(i/(h*w)*x.dims[2]+i/w%h*step[0])*x.dims[3]+i%w*step[1]]
		}
		return y, nil
	case "IsNaN":
		return each(x, func(v float64) float64 {
			if v != v {
				return 1
			}
			return 0
		}), nil
	case "Where": // of a constant and a column
		y := zeros(x.dims...)
		for i, v := range x.x {
			if y.x[i] = in[2].x[i]; v == 1 {
				y.x[i] = in[1].x[0]
			}
		}
		return y, nil
	case "Neg":
		return each(x, func(v float64) float64 { return -v }), nil
	case "OneHotEncoder":
		y := zeros(n, 1, len(s.texts["cats_strings"]))
		for i, text := range x.text {
			if k := slices.Index(s.texts["cats_strings"], text); k >= 0 {
				y.x[i*y.dims[2]+k] = 1
			}
		}
		return y, nil
	case "ReduceSum": // over axis 1
		y := zeros(n, 1)
		for i, v := range x.x {
			y.x[i/x.dims[1]] += v
		}
		return y, nil
	case "Pad":
		more, each := int(in[1].x[5]), len(x.x)/n
		y := zeros(n, x.dims[1]+more, x.dims[2], x.dims[3])
		for i := range n {
			copy(y.x[i*len(y.x)/n:], x.x[i*each:(i+1)*each])
		}
		return y, nil
	case "Shape":
		return tensor{dims: []int{1}, x: []float32{float32(n)}}, nil
	case "Concat":
		if s.ints["axis"][0] == 1 {
			y := tensor{dims: []int{n, 0}}
			for i := range n {
				for _, part := range in {
					y.x = append(y.x, part.x[i*part.dims[1]:(i+1)*part.dims[1]]...)
				}
			}
			y.dims[1] = len(y.x) / n
			return y, nil
		}
		return tensor{dims: []int{len(x.x) + len(in[1].x)}, x: append(append([]float32{}, x.x...), in[1].x...)}, nil
	case "Expand":
		y := zeros(int(in[1].x[0]), int(in[1].x[1]))
		for i := range y.x {
			y.x[i] = x.x[i%len(x.x)]
		}
		return y, nil
	}
	return x, fmt.Errorf("the interpreter has no %s", s.op)
}

// transpose permutes four axes.
func (s step) transpose(x tensor) tensor {
	var y tensor
	for _, p := range s.ints["perm"] {
		y.dims = append(y.dims, x.dims[p])
	}
	for i := range x.x {
		rest, from := i, 0
		at := [4]int{}
		for d := 3; d >= 0; d-- {
			at[s.ints["perm"][d]] = rest % y.dims[d]
			rest /= y.dims[d]
		}
		for d := range 4 {
			from = from*x.dims[d] + at[d]
		}
		y.x = append(y.x, x.x[from])
	}
	return y
}

// matMul multiplies the matrices in the last two of four axes.
func matMul(a, b tensor) (tensor, error) {
	if len(a.dims) != 4 || len(b.dims) != 4 || !slices.Equal(a.dims[:2], b.dims[:2]) || a.dims[3] != b.dims[2] {
		return a, fmt.Errorf("a product of %v and %v", a.dims, b.dims)
	}
	rows, inner, cols := a.dims[2], a.dims[3], b.dims[3]
	y := zeros(a.dims[0], a.dims[1], rows, cols)
	for i := range y.x {
		of, row, col := i/(rows*cols), i/cols%rows, i%cols
		for j := range inner {
			y.x[i] += float32(a.x[(of*rows+row)*inner+j] * b.x[(of*inner+j)*cols+col])
		}
	}
	return y, nil
}

// softmax computes the softmax along the last axis.
func (s step) softmax(x tensor) (tensor, error) {
	if a := s.ints["axis"][0]; a != -1 {
		return x, fmt.Errorf("a softmax along axis %d", a)
	}
	y, n := each(x, math.Exp), x.dims[len(x.dims)-1]
	for at := 0; at < len(y.x); at += n {
		var sum float32
		for _, v := range y.x[at : at+n] {
			sum += v
		}
		for i := range n {
			y.x[at+i] /= sum
		}
	}
	return y, nil
}

// slice returns a part of axes 1 and 2 of four axes.
func slice(x tensor, at []tensor) (tensor, error) {
	lo, hi := [2]int{int(at[0].x[0]), int(at[0].x[1])}, [2]int{int(at[1].x[0]), int(at[1].x[1])}
	if !slices.Equal(at[2].x, []float32{1, 2}) || hi[0] > x.dims[1] || hi[1] > x.dims[2] {
		return x, fmt.Errorf("%v to %v of %v along %v", lo, hi, x.dims, at[2].x)
	}
	y := tensor{dims: []int{x.dims[0], hi[0] - lo[0], hi[1] - lo[1], x.dims[3]}}
	for s := range x.dims[0] {
		for i := lo[0]; i < hi[0]; i++ {
			plane := x.x[(s*x.dims[1]+i)*x.dims[2]*x.dims[3]:]
			y.x = append(y.x, plane[lo[1]*x.dims[3]:hi[1]*x.dims[3]]...)
		}
	}
	return y, nil
}

// each applies f to every value.
func each(x tensor, f func(float64) float64) tensor {
	y := zeros(x.dims...)
	for i, v := range x.x {
		y.x[i] = float32(f(float64(v)))
	}
	return y
}

func (s step) layerNormalization(in []tensor) (tensor, error) {
	x, y, n := in[0], zeros(in[0].dims...), size(in[0].dims[1:])
	for _, c := range in[1:] {
		if s.ints["axis"][0] != 1 || fmt.Sprint(c.dims) != fmt.Sprint(x.dims[1:]) {
			return x, fmt.Errorf("a normalisation of %v from axis %v on with %v", x.dims, s.ints["axis"], c.dims)
		}
	}
	for at := 0; at < len(x.x); at += n {
		var mean, square float64
		for _, v := range x.x[at : at+n] {
			mean += float64(v) / float64(n)
		}
		for _, v := range x.x[at : at+n] {
			square += (float64(v) - mean) * (float64(v) - mean) / float64(n)
		}
		for i, v := range x.x[at : at+n] {
			y.x[at+i] = float32((float64(v)-mean)/math.Sqrt(square+float64(s.floats["epsilon"]))*float64(in[1].x[i]) +
				float64(in[2].x[i]))
		}
	}
	return y, nil
}

// conv adds, for each weight, its products with the rows of the image that it meets.
func (s step) conv(in []tensor) tensor {
	x, w, stride, pad := in[0], in[1], s.ints["strides"][0], s.ints["pads"][0]
	outs, share, k, rows, cols := w.dims[0], w.dims[1], w.dims[2], x.dims[2], x.dims[3]
	h, wide := (rows+2*pad-k)/stride+1, (cols+2*pad-k)/stride+1
	y := zeros(x.dims[0], outs, h, wide)
	for n := range x.dims[0] {
		for f := range outs {
			out := y.x[(n*outs+f)*h*wide:][:h*wide]
			if len(in) > 2 {
				for i := range out {
					out[i] = in[2].x[f]
				}
			}
			first := f / (outs / s.ints["group"][0]) * share
			for j := range share * k * k {
				c, p, q, weight := first+j/(k*k), j/k%k, j%k, w.x[f*share*k*k+j]
				image := x.x[(n*x.dims[1]+c)*rows*cols:][:rows*cols]
				for a := range h {
					u := a*stride + p - pad
					if u < 0 || u >= rows {
						continue
					}
					for b := range wide {
						if v := b*stride + q - pad; v >= 0 && v < cols {
							out[a*wide+b] += float32(weight * image[u*cols+v])
						}
					}
				}
			}
		}
	}
	return y
}
