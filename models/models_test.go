package models

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"brood/models/data"
	"brood/models/engine"
)

// layers compiles [[layer]] tables with an input of 1x8x8 images and three classes.
func layers(tables ...string) (*Model, error) {
	text := "name = 'm'\ninput = [1, 8, 8]\nclasses = 3\n"
	for _, l := range tables {
		text += "[[layer]]\n" + strings.ReplaceAll(l, ";", "\n") + "\n"
	}
	s, err := Parse(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	return Compile(s)
}

// TestSpecErrors: each error is one sentence that names the layer and the problem.
func TestSpecErrors(t *testing.T) {
	for _, c := range []struct {
		layer   int
		wantErr string
		tables  []string
	}{
		{0, "no [[layer]]", nil},
		{0, "unknown key", []string{"kind='dense';width=3"}},
		{1, "unknown kind \"lstm\"", []string{"kind='lstm'"}},
		{1, "needs out", []string{"kind='dense'"}},
		{2, "out = 0", []string{"kind='flatten'", "kind='dense';out=0"}},
		{1, "gets 1x8x8; put a flatten", []string{"kind='dense';out=3"}},
		{1, "takes no key \"rate\"", []string{"kind='relu';rate=0.5"}},
		{1, "kernel of 9 with padding 0 does not fit an input of 1x8x8", []string{"kind='conv';out=2;kernel=9"}},
		{1, "needs kernel", []string{"kind='conv';out=2"}},
		{1, "stride = 0", []string{"kind='conv';out=2;kernel=3;stride=0"}},
		{1, "pad = -1", []string{"kind='conv';out=2;kernel=3;pad=-1"}},
		{1, "padding 3 is not smaller", []string{"kind='conv';out=2;kernel=3;pad=3"}},
		{2, "needs an input of channels x height x width and gets 64", []string{"kind='flatten'", "kind='conv';out=2;kernel=3"}},
		{2, "gets 64", []string{"kind='flatten'", "kind='maxpool';kernel=2"}},
		{2, "gets 64", []string{"kind='flatten'", "kind='globalavgpool'"}},
		{1, "rate", []string{"kind='dropout'"}},
		{1, "rate", []string{"kind='dropout';rate=1.0"}},
		{1, "rate", []string{"kind='dropout';rate=nan"}},
		{1, "slope = -0.1; it must be in 0 to 1", []string{"kind='leakyrelu';slope=-0.1"}},
		{1, "needs factor, a number other than 0", []string{"kind='scale'"}},
		{1, "needs factor, a number other than 0", []string{"kind='scale';factor=0"}},
		{1, "needs factor, a number other than 0", []string{"kind='scale';factor=nan"}},
		{1, "needs factor, a number other than 0", []string{"kind='scale';factor=1e39"}},
		{1, "for a conv of one group with an odd kernel", []string{"kind='conv';out=4;kernel=2;init='dirac'"}},
		{2, "for a conv of one group with an odd kernel", []string{"kind='flatten'", "kind='dense';out=4;init='dirac'"}},
		{3, "init \"orthogonal\" of a weight of 1025x1025 takes too long", []string{"kind='flatten'", "kind='dense';out=1025", "kind='dense';out=1025;init='orthogonal'"}},
		{1, "slope = NaN", []string{"kind='leakyrelu';slope=nan"}},
		{1, "takes no key \"slope\"", []string{"kind='gelu';slope=0.1"}},
		{1, "takes no key \"out\"", []string{"kind='layernorm';out=4"}},
		{1, "takes the sample itself, a window of a text: write input = [context]", []string{"kind='embedding';out=4"}},
		{2, "takes the sample itself", []string{"kind='flatten'", "kind='embedding';out=4"}},
		{1, "needs out", []string{"kind='embedding'"}},
		{1, "takes no key \"init\"", []string{"kind='embedding';out=4;init='he'"}},
		{1, "takes no key \"vocabulary\"", []string{"kind='flatten';vocabulary=4"}},
		{2, "unknown init", []string{"kind='flatten'", "kind='dense';out=3;init='magic'"}},
		{2, "the last layer gives 4, the model has 3 classes", []string{"kind='flatten'", "kind='dense';out=4"}},
		{1, "the last layer gives 1x8x8", []string{"kind='relu'"}},
		{1, "needs with", []string{"kind='add'"}},
		{1, "with = \"a\" names no layer before it", []string{"kind='add';with='a'"}},
		{1, "from = \"b\" names no layer before it", []string{"kind='relu';name='a';from='b'"}},
		{2, "name \"a\" is taken", []string{"kind='relu';name='a'", "kind='relu';name='a'"}},
		{1, "name \"input\" is taken", []string{"kind='relu';name='input'"}},
		{1, "no later layer takes its result", []string{"kind='relu';name='a'", "kind='flatten';from='input'", "kind='dense';out=3"}},
		{2, "1x8x8 with stride 3 cannot be added to 2x8x8", []string{"kind='conv';out=2;kernel=3;pad=1", "kind='add';with='input';stride=3"}},
		{2, "2x8x8 with stride 1 cannot be added to 1x8x8", []string{"kind='conv';out=2;kernel=3;pad=1;name='a'", "kind='add';with='a';from='input'"}},
		{1, "2 groups do not divide 1 channels to 2", []string{"kind='conv';out=2;kernel=3;groups=2"}},
		{2, "3 groups do not divide 3 channels to 4", []string{"kind='conv';out=3;kernel=1", "kind='conv';out=4;kernel=1;groups=3"}},
		{1, "filters has 1 rows, and out = 2; give a row for each output", []string{"kind='conv';out=2;kernel=1;filters=[[1]]"}},
		{1, "row 2 of filters has 3 numbers; an output takes 4", []string{"kind='conv';out=2;kernel=2;filters=[[1,2,3,4],[1,2,3]]"}},
		{1, "row 1 of filters has +Inf, which is no float32", []string{"kind='conv';out=1;kernel=1;filters=[[inf]]"}},
		{1, "row 1 of filters has 1e+39, which is no float32", []string{"kind='conv';out=1;kernel=1;filters=[[1e39]]"}},
		{1, "has filters, which are constants, and a bias", []string{"kind='conv';out=1;kernel=1;bias=false;filters=[[1]]"}},
		{1, "takes no key \"filters\"", []string{"kind='dense';out=1;filters=[[1]]"}},
		{1, "needs out", []string{"kind='constant'"}},
		{1, "takes no key \"groups\"", []string{"kind='maxpool';kernel=2;groups=1"}},
		{3, "too large", []string{"kind='flatten'", "kind='dense';out=1000000", "kind='dense';out=1000000"}},
	} {
		_, err := layers(c.tables...)
		var s *SpecError
		if !errors.As(err, &s) || s.Layer != c.layer || !strings.Contains(err.Error(), c.wantErr) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: %v, want layer %d: %s", c.tables, err, c.layer, c.wantErr)
		}
	}
	for name, s := range map[string]Spec{
		"name": {Input: []int{4}, Classes: 2}, "input": {Name: "m", Classes: 2},
		"size":             {Name: "m", Input: []int{0}, Classes: 2},
		"classes":          {Name: "m", Input: []int{4}, Classes: 1},
		"loss":             {Name: "m", Input: []int{4}, Classes: 2, Loss: "hinge", Layers: make([]LayerSpec, 1)},
		"both":             {Name: "m", Input: []int{4}, Classes: 2, Loss: Distance, Layers: make([]LayerSpec, 1)},
		"distance":         {Name: "m", Input: []int{4}, Loss: Distance, Layers: []LayerSpec{{Kind: Constant, Out: new(3)}}},
		"eta":              {Name: "m", Input: []int{4}, Classes: 2, Eta: -1, Layers: []LayerSpec{{Kind: Dense, Out: new(2)}}},
		"smoothing":        {Name: "m", Input: []int{4}, Classes: 2, Smoothing: 1, Layers: []LayerSpec{{Kind: Dense, Out: new(2)}}},
		"negative":         {Name: "m", Input: []int{4}, Classes: 2, Smoothing: -0.1, Layers: []LayerSpec{{Kind: Dense, Out: new(2)}}},
		"smoothed numbers": {Name: "m", Input: []int{4}, Loss: MSE, Smoothing: 0.1, Layers: []LayerSpec{{Kind: Dense, Out: new(1)}}},
		"huge":             {Name: "m", Input: []int{65536, 65536, 65536}, Classes: 2, Layers: make([]LayerSpec, 1)},
	} {
		if _, err := Compile(s); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := Parse(strings.NewReader("name = [")); err == nil {
		t.Error("broken TOML was read")
	}
}

func TestLoad(t *testing.T) {
	if _, err := Load("alexnet"); err == nil || !strings.Contains(err.Error(), "lenets, mlp") {
		t.Errorf("%v", err)
	}
	if _, err := Load("/does/not/exist.toml"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	path := filepath.Join(t.TempDir(), "own.toml")
	text := "name='own'\ninput=[5]\nclasses=2\n[[layer]]\nkind='dense'\nout=2\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if m, err := Load(path); err != nil || m.Layout.Params != 12 {
		t.Errorf("own model: %+v, %v", m, err)
	}
}

// TestFilters: constant filters are not parameters: they are not in the layout, and have no gradient products.
func TestFilters(t *testing.T) {
	m, err := layers("kind='conv';out=2;kernel=2;filters=[[1,0,0,-1],[0.5,1,1,0.5]]", "kind='flatten'",
		"kind='dense';out=3")
	if err != nil {
		t.Fatal(err)
	}
	if l := m.Layers[0]; l.Weight >= 0 || l.Bias >= 0 ||
		!slices.Equal(l.Filters, []float32{1, 0, 0, -1, 0.5, 1, 1, 0.5}) || !slices.Equal(l.Out, []int{2, 7, 7}) {
		t.Errorf("%+v", l)
	}
	if m.Layout.Params != 98*3+3 || m.Layout.Tensors[0].Name != "fc1.weight" {
		t.Errorf("%+v", m.Layout)
	}
	if forward, gradient := m.Flops(); forward != 2*(8*49+98*3) || gradient != 2*(8*49+2*98*3) {
		t.Errorf("%g and %g products", forward, gradient)
	}
}

// TestLayerNormLayout: a layer norm has a weight and a bias of its sample's shape, with PyTorch's names and initial
// values, each a single row for noise; a leaky rectifier has PyTorch's slope.
func TestLayerNormLayout(t *testing.T) {
	m, err := layers("kind='layernorm'", "kind='leakyrelu'", "kind='flatten'", "kind='layernorm'", "kind='dense';out=3")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		name  string
		shape []int
		start float32
	}{{"ln1.weight", []int{1, 8, 8}, 1}, {"ln1.bias", []int{1, 8, 8}, 0}, {"ln2.weight", []int{64}, 1},
		{"ln2.bias", []int{64}, 0}} {
		x := m.Layout.Tensors[i]
		if x.Name != want.name || !slices.Equal(x.Shape, want.shape) || x.Cols != 64 || x.Len != 64 {
			t.Errorf("tensor %d is %+v, want %s of %v", i, x, want.name, want.shape)
		}
		all := make([]float32, m.Layout.Params)
		if err := m.Init(1, 0, all); err != nil {
			t.Fatal(err)
		}
		for _, v := range all[x.Lo : x.Lo+x.Len] {
			if v != want.start {
				t.Fatalf("%s begins with %v", x.Name, v)
			}
		}
	}
	if m.Layers[1].Slope != 0.01 || m.Layout.Stats != 0 {
		t.Errorf("slope %v, %d statistics", m.Layers[1].Slope, m.Layout.Stats)
	}
}

// TestResults: names, results, shapes of groups and residual sums, and the number of users of each result.
func TestResults(t *testing.T) {
	m, err := layers("kind='conv';out=2;kernel=3;pad=1;name='a'", "kind='conv';out=4;kernel=3;stride=2;pad=1;groups=2",
		"kind='add';with='a';stride=2",
		"kind='add';with='input';stride=2", "kind='avgpool';kernel=2", "kind='flatten'", "kind='dense';out=3")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := m.Takers(), []int{2, 2, 1, 1, 1, 1, 1, 1}; !slices.Equal(got, want) {
		t.Errorf("taken %v times, want %v", got, want)
	}
	if w := m.Layout.Tensors[2]; w.Name != "conv2.weight" || !slices.Equal(w.Shape, []int{4, 1, 3, 3}) || w.Cols != 9 {
		t.Errorf("grouped weight %+v", w)
	}
	if l := m.Layers[3]; l.With != 0 || l.From != 3 || !slices.Equal(l.Out, []int{4, 4, 4}) {
		t.Errorf("sum %+v", l)
	}
	if got := m.Layers[4].Out; !slices.Equal(got, []int{4, 2, 2}) {
		t.Errorf("pooled to %v", got)
	}
	q, err := Load("quadratic")
	if err != nil || q.Loss != Distance || q.Fits(data.Info{Shape: []int{1, 28, 28}, Classes: 10}) != nil ||
		q.Fits(data.Info{Shape: []int{1, 28, 27}, Classes: 10}) == nil {
		t.Errorf("%+v, %v", q, err)
	}
}

// TestLayout: names and shapes equal PyTorch's; tensors cover the vector in order.
func TestLayout(t *testing.T) {
	m, err := Load("lenets")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]int{"conv1.weight": {8, 1, 5, 5}, "conv1.bias": {8}, "bn1.weight": {8}, "bn1.bias": {8},
		"conv2.weight": {16, 8, 5, 5}, "conv2.bias": {16},
		"bn2.weight": {16}, "bn2.bias": {16}, "fc1.weight": {32, 64}, "fc1.bias": {32}, "bn3.weight": {32}, "bn3.bias": {32},
		"fc2.weight": {10, 32}, "fc2.bias": {10}}
	at := 0
	for _, x := range m.Layout.Tensors {
		if !slices.Equal(x.Shape, want[x.Name]) || x.Lo != at || x.Len != Size(x.Shape) || x.Len%x.Cols != 0 {
			t.Errorf("%+v, want shape %v at %d", x, want[x.Name], at)
		}
		at += x.Len
	}
	if at != m.Layout.Params || len(m.Layout.Tensors) != len(want) {
		t.Errorf("%d tensors cover %d of %d", len(m.Layout.Tensors), at, m.Layout.Params)
	}
	if s := m.Layout.StatTensors; s[0].Name != "bn1.running_mean" || s[5].Name != "bn3.running_var" || s[5].Lo != 80 {
		t.Errorf("statistics %+v", s)
	}
	out := [][]int{{8, 24, 24}, {8, 24, 24}, {8, 24, 24}, {8, 8, 8}, {8, 8, 8}, {16, 4, 4}, {16, 4, 4}, {16, 4, 4},
		{16, 2, 2}, {16, 2, 2}, {64}, {32}}
	for i, shape := range out {
		if !slices.Equal(m.Layers[i].Out, shape) {
			t.Errorf("layer %d gives %v, want %v", i+1, m.Layers[i].Out, shape)
		}
	}
}

func TestInit(t *testing.T) {
	m, err := layers("kind='conv';out=40;kernel=3", "kind='batchnorm'", "kind='flatten'", "kind='dense';out=100;init='he'",
		"kind='dense';out=90;init='glorot'",
		"kind='dense';out=3;init='zero'")
	if err != nil {
		t.Fatal(err)
	}
	x, again, other := make([]float32, m.Layout.Params), make([]float32, m.Layout.Params), make([]float32, m.Layout.Params)
	for _, c := range []struct {
		member engine.Member
		dst    []float32
	}{{0, x}, {0, again}, {1, other}} {
		if err := m.Init(7, c.member, c.dst); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(x, again) || slices.Equal(x, other) {
		t.Error("initial values are not a function of seed and member")
	}
	for name, bound := range map[string]float64{"conv1.weight": 1. / 3, "conv1.bias": 1. / 3, "bn1.weight": -1,
		"bn1.bias":   0,
		"fc1.weight": math.Sqrt(6. / 1440), "fc1.bias": 0, "fc2.weight": math.Sqrt(6. / 190), "fc3.weight": 0} {
		i := slices.IndexFunc(m.Layout.Tensors, func(t engine.Tensor) bool { return t.Name == name })
		v := x[m.Layout.Tensors[i].Lo:][:m.Layout.Tensors[i].Len]
		var sq, top float64
		for _, f := range v {
			sq, top = sq+float64(f)*float64(f), max(top, math.Abs(float64(f)))
		}
		rms := math.Sqrt(sq / float64(len(v)))
		switch {
		case bound < 0 && (rms != 1 || top != 1), bound == 0 && top != 0:
			t.Errorf("%s is not constant: %v", name, v[:3])
		case bound > 0 && (top > bound*1.0001 || math.Abs(rms*math.Sqrt(3)/bound-1) > 0.25):
			t.Errorf("%s: largest %.4f and rms %.4f, bound %.4f", name, top, rms, bound)
		}
	}
	s := make([]float32, m.Layout.Stats)
	for i := range s {
		s[i] = 7
	}
	if m.Layout.FreshStats(s); s[0] != 0 || s[39] != 0 || s[40] != 1 || s[79] != 1 {
		t.Errorf("statistics %v", s)
	}
	if m.Init(1, 0, x[1:]) == nil {
		t.Error("too little room was accepted")
	}
}

// TestInitDirac: convolutions with init dirac copy their inputs in the first channels; the other channels are
// initialised as in PyTorch.
func TestInitDirac(t *testing.T) {
	m, err := layers("kind='conv';out=3;kernel=1", "kind='conv';out=5;kernel=3;pad=1;init='dirac'",
		"kind='conv';out=2;kernel=3;init='dirac'", "kind='flatten'", "kind='dense';out=3")
	if err != nil {
		t.Fatal(err)
	}
	x := make([]float32, m.Layout.Params)
	if err := m.Init(7, 0, x); err != nil {
		t.Fatal(err)
	}
	tensor := func(i int) []float32 { return x[m.Layout.Tensors[i].Lo:][:m.Layout.Tensors[i].Len] }
	for i, rows := range map[int]int{2: 3, 4: 2} {
		w, in := tensor(i), m.Layout.Tensors[i].Shape[1]
		for at := range w {
			row, input, place := at/(9*in), at/9%in, at%9
			switch {
			case row >= rows: // checked below
			case row == input && place == 4 && w[at] != 1, (row != input || place != 4) && w[at] != 0:
				t.Fatalf("tensor %d: output %d of input %d starts with %v at place %d", i, row, input, w[at], place)
			}
		}
	}
	rest := tensor(2)[3*27:]
	for _, v := range rest {
		if bound := 1 / math.Sqrt(27); v == 0 || math.Abs(float64(v)) > bound {
			t.Errorf("%v of the further outputs, uniform within %.3f", v, bound)
		}
	}
	if b := tensor(3); slices.ContainsFunc(b, func(v float32) bool { return v != 0 }) {
		t.Errorf("biases %v", b)
	}
}

// TestInitOrthogonal: orthogonal initial weights are orthonormal within float32, with either side longer, and differ
// between members.
func TestInitOrthogonal(t *testing.T) {
	m, err := layers("kind='conv';out=7;kernel=3;init='orthogonal'", "kind='flatten'",
		"kind='dense';out=30;init='orthogonal'", "kind='dense';out=40;init='orthogonal'", "kind='dense';out=3")
	if err != nil {
		t.Fatal(err)
	}
	x, other := make([]float32, m.Layout.Params), make([]float32, m.Layout.Params)
	if err := errors.Join(m.Init(7, 0, x), m.Init(7, 1, other)); err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{0, 2, 4} {
		w := m.Layout.Tensors[i]
		rows, cols, v := w.Shape[0], w.Cols, x[w.Lo:]
		if slices.Equal(v[:w.Len], other[w.Lo:w.Lo+w.Len]) {
			t.Errorf("%s is the same of two members", w.Name)
		}
		at := func(r, c int) float64 { return float64(v[r*cols+c]) }
		vectors, length := rows, cols
		if rows > cols {
			at, vectors, length = func(r, c int) float64 { return float64(v[c*cols+r]) }, cols, rows
		}
		for a := range vectors {
			for b := range a + 1 {
				sum, want := 0.0, 0.0
				for k := range length {
					sum += at(a, k) * at(b, k)
				}
				if a == b {
					want = 1
				}
				if math.Abs(sum-want) > 1e-6 {
					t.Fatalf("%s: vectors %d and %d have the product %v", w.Name, a, b, sum)
				}
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range List() {
		b, err := zoo.ReadFile("zoo/" + name + ".toml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b))
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(strings.NewReader(text))
		if err != nil {
			return
		}
		if m, err := Compile(s); err == nil && (m.Layout.Params < 0 || len(m.Layers) != len(s.Layers)) {
			t.Fatalf("compiled to %d parameters", m.Layout.Params)
		}
	})
}
