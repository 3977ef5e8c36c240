package models

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"brood/models/data"
	"brood/models/usererr"
)

// Kinds of families.
const (
	familyLinear = "linear"
	familyMLP    = "mlp"
	familyCNN    = "cnn"
)

const (
	maxHidden  = 16      // hidden layers
	maxUnits   = 1 << 16 // units of a hidden layer
	leastImage = 4       // side of an image for convolutions, in pixels
)

// Family is a model whose input, outputs and loss follow the data: linear, mlp with hidden layers of rectified units,
// or cnn for images.
type Family struct {
	Loss string // "" for the loss that fits the labels of the data

	name   string // as written by the user
	kind   string
	hidden []int // units of each hidden layer
}

// Families returns an example of each kind, the most usual first.
func Families() []string { return []string{"mlp:128,64", familyCNN, familyLinear} }

// ParseFamily parses linear, cnn, or mlp: and the units of the hidden layers, each with or without :LOSS behind it. is
// is false if name does not name a family; a name such as mlp alone is that of an embedded model.
func ParseFamily(name string) (f Family, is bool, err error) {
	kind, rest, _ := strings.Cut(name, ":")
	f = Family{name: name, kind: kind, Loss: rest}
	sizes := ""
	switch {
	case kind == familyMLP && rest != "":
		sizes, f.Loss, _ = strings.Cut(rest, ":")
	case kind != familyLinear && kind != familyCNN:
		return Family{}, false, nil
	}
	if f.Loss != "" && !slices.Contains([]string{CrossEntropy, BCE, MSE, Huber}, f.Loss) {
		return f, true, usererr.Errorf("model %q: the loss %q is none of %s, %s, %s and %s",
			name, f.Loss, CrossEntropy, BCE, MSE, Huber)
	}
	if kind != familyMLP {
		return f, true, nil
	}
	for _, word := range strings.Split(sizes, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > maxUnits || len(f.hidden) == maxHidden {
			return f, true, usererr.Errorf("model %q: write mlp: and the units of up to %d hidden layers, each 1 to %d, such "+
				"as mlp:64 or mlp:128,64", name, maxHidden, maxUnits)
		}
		f.hidden = append(f.hidden, n)
	}
	return f, true, nil
}

// Suited returns the name of the model for data of which nothing else is known: cnn for images, mlp for other samples,
// and an embedded model for a text. It returns "" for a text with bytes that no embedded model reads.
func Suited(d data.Info) string {
	switch {
	case d.Text && d.Classes > 128:
		return ""
	case d.Text:
		return "bytes-small"
	case len(d.Shape) == 3 && min(d.Shape[1], d.Shape[2]) >= leastImage:
		return familyCNN
	}
	return Families()[0]
}

// Fitting returns the names of the families and embedded models that fit data, by name or path. It reads no samples:
// for a path it returns the families, and for a text the embedded models with an embedding.
func Fitting(nameOrPath string) []string {
	known, err := data.Lookup(nameOrPath)
	if err != nil && !data.IsText(nameOrPath) {
		return Families()
	}
	text := err != nil || known.Text
	var out []string
	if !text {
		out = Families()
	}
	for _, name := range List() {
		m, err := Load(name)
		if err != nil {
			continue
		}
		info := data.Info{Shape: known.Shape, Classes: known.Classes}
		if text && m.Vocabulary > 0 || !text && m.Classes == known.Classes && m.Fits(info) == nil {
			out = append(out, name)
		}
	}
	return out
}

// Read reads data as the family needs them: labels are classes or numbers as its loss says, or as the data have them.
func (f Family) Read(r data.Reading, nameOrPath string) (*data.Set, error) {
	switch f.Loss {
	case "":
		return r.Detect(nameOrPath)
	case MSE, Huber, BCE:
		r.Outputs, r.MultiLabel = 1, f.Loss == BCE
	}
	return r.Load(nameOrPath)
}

// Source returns the layer list of the family for a data set, as TOML. It fails for samples that the kind does not
// accept.
func (f Family) Source(d data.Info) ([]byte, error) {
	switch {
	case d.Text:
		return nil, usererr.Errorf("model %s has no embedding, and the data are a text: give --model bytes-small", f.name)
	case f.kind == familyCNN && (len(d.Shape) != 3 || min(d.Shape[1], d.Shape[2]) < leastImage):
		return nil, usererr.Errorf("model %s takes images of %dx%d pixels or more, and the samples are of %v: give "+
			"--model %s", f.name, leastImage, leastImage, d.Shape, Families()[0])
	}
	loss, line, count := CrossEntropy, "classes", d.Classes
	switch {
	case d.MultiLabel:
		loss, count = BCE, d.Outputs
	case d.Outputs > 0:
		loss, line, count = MSE, "outputs", d.Outputs
	}
	if f.Loss != "" {
		loss = f.Loss
	}
	var b strings.Builder
	shape := strings.Join(strings.Fields(fmt.Sprint(d.Shape)), ", ")
	fmt.Fprintf(&b, "name = %q\ndoc = %q\ninput = %s\n%s = %d\nloss = %q\n", f.name, f.doc(), shape, line, count, loss)
	layer := func(kind Kind, keys string) { fmt.Fprintf(&b, "\n[[layer]]\nkind = %q\n%s", kind, keys) }
	hidden := f.hidden
	if f.kind == familyCNN {
		b.WriteString("eta = 0.03\n") // above it a few hundred pictures, in steps of 16, diverge for some seeds
		f.convolutions(d.Shape, layer)
		hidden = []int{64}
	}
	if len(d.Shape) == 3 {
		layer(Flatten, "")
	}
	for _, n := range hidden {
		layer(Dense, fmt.Sprintf("out = %d\n", n))
		layer(ReLU, "")
	}
	layer(Dense, fmt.Sprintf("out = %d\n", count))
	return []byte(b.String()), nil
}

// convolutions adds blocks of a 3x3 convolution that halve the image, until a side is below 8 or there are 4 blocks.
func (f Family) convolutions(shape []int, layer func(kind Kind, keys string)) {
	side := min(shape[1], shape[2])
	for channels, n := 16, 0; n == 0 || n < 4 && side >= 8; n++ {
		layer(Conv, fmt.Sprintf("out = %d\nkernel = 3\npad = 1\n", channels))
		layer(ReLU, "")
		layer(MaxPool, "kernel = 2\n")
		side, channels = side/2, min(2*channels, 64)
	}
}

func (f Family) doc() string {
	switch f.kind {
	case familyLinear:
		return "One dense layer. Input, outputs and loss follow the data."
	case familyCNN:
		return "Blocks of a 3x3 convolution and a pooling, and 64 rectified units. Input, outputs and loss follow the data."
	}
	sizes := strings.Join(strings.Fields(strings.Trim(fmt.Sprint(f.hidden), "[]")), ", ")
	return "Hidden layers of " + sizes +
		" rectified units. Input, outputs and loss follow the data."
}
