package models

import (
	"math"
	"strings"
	"testing"

	"brood/models/data"
)

// compileText returns a model of three classes that reads four bytes.
func compileText(layers string) (*Model, error) {
	return FromSource("m", []byte("name = 'm'\ninput = [4]\nclasses = 3\nlayer = ["+layers+"]\n"))
}

// TestEmbeddingErrors: each error of a text model is one sentence.
func TestEmbeddingErrors(t *testing.T) {
	const first = "{kind = 'embedding', out = 2, vocabulary = 9}, "
	for layers, wantErr := range map[string]string{
		"{kind = 'embedding', out = 2, vocabulary = 257}, {kind = 'dense', out = 3}":                                                                                      "layer 1 (embedding): vocabulary = 257; there are 256 bytes",
		"{kind = 'embedding', out = 2, vocabulary = 1}, {kind = 'dense', out = 3}":                                                                                        "layer 1 (embedding): vocabulary = 1; it must be in 2",
		"{kind = 'embedding', out = 0}, {kind = 'dense', out = 3}":                                                                                                        "out = 0",
		first + "{kind = 'dense', out = 4}, {kind = 'add', with = 'input'}, {kind = 'dense', out = 3}":                                                                    "layer 3 (add): takes the bytes of a text as numbers",
		first + "{kind = 'dense', out = 4, name = 'a'}, {kind = 'dense', out = 4, from = 'input'}, {kind = 'add', with = 'a'}, {kind = 'dense', out = 3}":                 "layer 3 (dense): takes the bytes of a text as numbers",
		"{kind = 'embedding', out = 2, name = 'a'}, {kind = 'embedding', out = 2, vocabulary = 9, from = 'input'}, {kind = 'add', with = 'a'}, {kind = 'dense', out = 3}": "layer 2 (embedding): vocabulary = 9, where that of an embedding before it is 256",
		first + "{kind = 'dense', out = 8}, {kind = 'mingru', out = 3}":                                                                                                   "layer 3 (mingru): goes along the positions of a text, and its input has none; put it behind an embedding",
		first + "{kind = 'mingru', out = 8}, {kind = 'mingru', out = 3}":                                                                                                  "layer 3 (mingru): goes along the positions",
		first + "{kind = 'mingru', sequence = true}":                                                                                                                      "layer 2 (mingru): needs out",
		first + "{kind = 'mingru', out = 4, sequence = true}":                                                                                                             "the last layer gives 16, the model has 3 classes",
		first + "{kind = 'dense', out = 3, sequence = true}":                                                                                                              "takes no key \"sequence\"",
	} {
		if _, err := compileText(layers); err == nil || !strings.Contains(err.Error(), wantErr) {
			t.Errorf("%s: %v, want %q", layers, err, wantErr)
		}
	}
	for _, loss := range []string{"loss = 'mse'\noutputs = 3", "loss = 'distance'"} {
		_, err := FromSource("m", []byte("name = 'm'\ninput = [4]\n"+loss+
			"\nlayer = [{kind = 'embedding', out = 1}, {kind = 'dense', out = 3}, {kind = 'dense', out = 4}, {kind = 'dense', "+
			"out = 3}]"))
		if err == nil || !strings.Contains(err.Error(), "with an embedding") &&
			!strings.Contains(err.Error(), "a sample has 4 values") {
			t.Errorf("%s: %v", loss, err)
		}
	}
}

// TestEmbedding: shapes, names, initial values of tables, and matching data.
func TestEmbedding(t *testing.T) {
	m, err := compileText("{kind = 'embedding', out = 500, vocabulary = 120}, {kind = 'dense', out = 3}")
	if err != nil {
		t.Fatal(err)
	}
	x := m.Layout.Tensors[0]
	if x.Name != "embed1.weight" || x.Shape[0] != 120 || x.Shape[1] != 500 || x.Cols != 500 ||
		m.Layers[0].Out[0] != 2000 || m.Context() != 4 {
		t.Errorf("%+v, %+v", x, m.Layers[0])
	}
	p := make([]float32, m.Layout.Params)
	if err := m.Init(1, 0, p); err != nil {
		t.Fatal(err)
	}
	var mean, square float64
	for _, v := range p[:x.Len] {
		mean += float64(v) / float64(x.Len)
		square += float64(v) * float64(v) / float64(x.Len)
	}
	if math.Abs(mean) > 0.02 || math.Abs(square-1) > 0.02 { // five standard deviations of 60,000 draws
		t.Errorf("rows begin with the mean %v and the square %v", mean, square)
	}
	text := data.Info{Text: true, Shape: []int{4}, Classes: 3}
	for _, c := range []struct {
		change  func(m *Model, d *data.Info)
		wantErr string
	}{
		{func(*Model, *data.Info) {}, ""},
		{func(_ *Model, d *data.Info) { d.Text = false }, "reads text by its embedding, and the data are none"},
		{func(m *Model, _ *data.Info) { m.Vocabulary = 0 }, "has no embedding, and the data are a text"},
		{func(m *Model, _ *data.Info) { m.Vocabulary = 2 }, "has the vocabulary 2, and the text has the byte 2"},
		{func(m *Model, _ *data.Info) { m.Classes = 2 }, "has 2 classes, the data 3"},
		{func(_ *Model, d *data.Info) { d.Shape = []int{5} }, "takes samples of [4], not of [5]"},
	} {
		n, d := *m, text
		c.change(&n, &d)
		if err := n.Fits(d); (err == nil) != (c.wantErr == "") || err != nil && !strings.Contains(err.Error(), c.wantErr) {
			t.Errorf("%q: %v", c.wantErr, err)
		}
	}
}
