package models

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// TestAttention: shapes, names, initial values and products of attention, and of layers applied to each position.
func TestAttention(t *testing.T) {
	m, err := compileText(
		`{kind = 'embedding', out = 6, vocabulary = 9}, {kind = 'layernorm', positions = true}, {kind = 'dense', out = 10, positions = true},
		{kind = 'attention', heads = 5, sequence = true}, {kind = 'attention'}, {kind = 'dense', out = 3}`)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		out, steps, rows int
	}{{24, 4, 1}, {24, 4, 4}, {40, 4, 4}, {40, 4, 1}, {10, 0, 1}, {3, 0, 1}} {
		if l := m.Layers[i]; l.Out[0] != want.out || l.Steps != want.steps || l.Rows != want.rows {
			t.Errorf("layer %d is %+v, want %+v", i+1, l, want)
		}
	}
	var names []string
	for _, x := range m.Layout.Tensors {
		names = append(names, x.Name+" "+formatShape(x.Shape))
	}
	want := []string{"embed1.weight 9x6", "ln1.weight 6", "ln1.bias 6", "fc1.weight 10x6", "fc1.bias 10",
		"attention1.in_proj_weight 30x10", "attention1.in_proj_bias 30", "attention1.out_proj.weight 10x10", "attention1.out_proj.bias 10",
		"attention2.in_proj_weight 30x10", "attention2.in_proj_bias 30", "attention2.out_proj.weight 10x10", "attention2.out_proj.bias 10",
		"fc2.weight 3x10", "fc2.bias 3"}
	if !slices.Equal(names, want) {
		t.Errorf("tensors %q, want %q", names, want)
	}
	if l := m.Layers[3]; l.Heads != 5 || l.Project != [2]int{7, 8} || l.Queries(m) != 4 || m.Layers[4].Heads != 1 ||
		m.Layers[4].Queries(m) != 1 {
		t.Errorf("%+v", l)
	}
	x := make([]float32, m.Layout.Params)
	if err := m.Init(1, 0, x); err != nil {
		t.Fatal(err)
	}
	for i, bound := range []float64{5: math.Sqrt(6. / 40), 0, math.Sqrt(1. / 10), 0} {
		tensor, most := m.Layout.Tensors[i], 0.0
		for _, v := range x[tensor.Lo : tensor.Lo+tensor.Len] {
			most = max(most, math.Abs(float64(v)))
		}
		if i >= 5 && (most > bound || most < 0.9*bound) {
			t.Errorf("%s begins within %v, want %v", tensor.Name, most, bound)
		}
	}
	// By hand: for four positions 10x6 weights and 30x10, scores and sums of 4 by 4 or by 1, 10x10 and 3x10 weights.
	dense, first, second, last := 2.*4*60, 2.*4*300, 2.*4*300, 2.*30
	core1, core2, out1, out2 := 2.*2*4*4*10, 2.*2*4*10, 2.*4*100, 2.*100
	if forward, gradient := m.Flops(); forward != dense+first+core1+out1+second+core2+out2+last || gradient != 3*forward {
		t.Errorf("%v forward, %v of a gradient", forward, gradient)
	}
}

// TestOnePosition: a layer applied to each position accepts a single one.
func TestOnePosition(t *testing.T) {
	m, err := FromSource("m", []byte(`name = 'm'
input = [1]
classes = 3
layer = [{kind = 'embedding', out = 2, vocabulary = 9}, {kind = 'dense', out = 4, positions = true}, {kind = 'attention'}, {kind = 'dense', out = 3}]`))
	if err != nil || m.Layers[1].Steps != 1 || m.Layers[2].Steps != 0 {
		t.Errorf("%+v, %v", m, err)
	}
}

// TestAttentionErrors: each error is one sentence.
func TestAttentionErrors(t *testing.T) {
	const first = "{kind = 'embedding', out = 6, vocabulary = 9, name = 'e'}, "
	for layers, wantErr := range map[string]string{
		first + "{kind = 'dense', out = 8}, {kind = 'attention'}, {kind = 'dense', out = 3}":                          "layer 3 (attention): goes along the positions of a text, and its input has none; put it behind an embedding",
		first + "{kind = 'attention'}, {kind = 'attention'}, {kind = 'dense', out = 3}":                               "layer 3 (attention): goes along the positions",
		first + "{kind = 'attention', heads = 4}, {kind = 'dense', out = 3}":                                          "layer 2 (attention): 4 heads do not divide the 6 channels of a position; take a divisor",
		first + "{kind = 'attention', heads = 0}, {kind = 'dense', out = 3}":                                          "layer 2 (attention): heads = 0; it must be in 1 to",
		first + "{kind = 'attention', out = 6}, {kind = 'dense', out = 3}":                                            "layer 2 (attention): takes no key \"out\"",
		first + "{kind = 'attention', sequence = true}":                                                               "the last layer gives 24, the model has 3 classes",
		first + "{kind = 'attention'}, {kind = 'last'}, {kind = 'dense', out = 3}":                                    "layer 3 (last): takes the last position of a text, and its input has none",
		first + "{kind = 'layernorm'}, {kind = 'dense', out = 3, positions = true}":                                   "layer 2 (layernorm): takes all positions together, and the last layer predicts the byte behind each of them",
		first + "{kind = 'dense', out = 24}, {kind = 'add', with = 'e'}, {kind = 'dense', out = 3, positions = true}": "layer 2 (dense): takes all positions together",
		first + "{kind = 'dense', out = 4}, {kind = 'layernorm', positions = true}, {kind = 'dense', out = 3}":        "layer 3 (layernorm): has positions = true, and its input has no positions of a text",
		first + "{kind = 'dense', out = 4}, {kind = 'dense', out = 3, positions = true}, {kind = 'dense', out = 3}":   "layer 3 (dense): has positions = true",
		first + "{kind = 'attention', positions = true}, {kind = 'dense', out = 3}":                                   "layer 2 (attention): takes no key \"positions\"",
		"{kind = 'embedding', out = 30000, vocabulary = 9}, {kind = 'attention'}, {kind = 'dense', out = 3}":          "layer 2 (attention): heads = 1 over 4 positions of 30000 channels are too many; take fewer",
	} {
		if _, err := compileText(layers); err == nil || !strings.Contains(err.Error(), wantErr) {
			t.Errorf("%s: %v, want %q", layers, err, wantErr)
		}
	}
}
