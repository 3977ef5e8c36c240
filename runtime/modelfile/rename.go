package modelfile

import (
	"slices"
	"strconv"
	"strings"

	"brood/models"
	"brood/models/format/safetensors"
	"brood/models/usererr"
	"brood/runtime/option"
)

// Arrange converts the tensors of the file to the names and layouts of model m: first by the renames in text, a list of
// FROM=TO, then by the conventions of Flax if the file has Flax kernels. It reports whether any tensor changed. It
// returns an error if a rename matches no tensor or if two tensors have the same name afterwards.
func (f *File) Arrange(text string, m *models.Model) (changed bool, err error) {
	rs, err := option.Renamings(text)
	if err != nil {
		return false, err
	}
	kernels := make([]bool, len(f.Tensors)) // Flax kernels, by their names before renaming
	for i, t := range f.Tensors {
		kernels[i] = strings.HasSuffix(t.Name, ".kernel") || strings.HasSuffix(t.Name, "/kernel")
	}
	for _, r := range rs {
		matched := false
		for i := range f.Tensors {
			t := &f.Tensors[i]
			if name, ok := r.Of(t.Name); ok {
				t.Name, matched = name, true
			}
		}
		if !matched {
			return false, usererr.Errorf("--rename %s=%s: %s has no tensor %s", r.From, r.To, f.Path, r.From)
		}
		changed = true
	}
	for i := range f.Tensors {
		if slices.Contains(kernels, true) {
			changed = flax(&f.Tensors[i], kernels[i], m) || changed
		}
	}
	names := map[string]bool{}
	for _, t := range f.Tensors {
		if names[t.Name] {
			return false, usererr.Errorf("%s has two tensors %s after renaming: give each a unique name with --rename",
				f.Path, t.Name)
		}
		names[t.Name] = true
	}
	return changed, nil
}

// flaxLayers maps Flax's prefixes of layer names to brood's. Flax numbers the layers of a kind from 0, brood from 1.
var flaxLayers = [][2]string{
	{"Dense_", "fc"},
	{"Conv_", "conv"},
	{"BatchNorm_", "bn"},
	{"LayerNorm_", "ln"},
	{"Embed_", "embed"},
}

// flaxLeaves maps Flax's names of the tensors of a layer to brood's. mean and var are batch-norm statistics.
var flaxLeaves = [][2]string{
	{"kernel", "weight"},
	{"scale", "weight"},
	{"embedding", "weight"},
	{"mean", "running_mean"},
	{"var", "running_var"},
}

// flax converts tensor t of a Flax model to the name and layout of model m; it reports whether it did. Names of nested
// modules are joined by dots or slashes. In Flax, kernels of dense layers have shape [in, out], kernels of convolutions
// [height, width, in, out], and flattening an image puts channels last. Tensors without a counterpart in m do not
// change. kernel reports whether the tensor was named kernel in the file.
func flax(t *safetensors.Tensor, kernel bool, m *models.Model) (changed bool) {
	path := strings.FieldsFunc(t.Name, func(r rune) bool { return r == '.' || r == '/' })
	if len(path) > 1 && (path[0] == "params" || path[0] == "batch_stats") {
		path = path[1:]
	}
	if len(path) < 2 {
		return false
	}
	layer, leaf := strings.Join(path[:len(path)-1], "."), path[len(path)-1]
	for _, r := range flaxLayers {
		if n, err := strconv.Atoi(strings.TrimPrefix(layer, r[0])); err == nil && strings.HasPrefix(layer, r[0]) && n >= 0 {
			layer = r[1] + strconv.Itoa(n+1)
		}
	}
	for _, r := range flaxLeaves {
		if leaf == r[0] {
			leaf = r[1]
			break
		}
	}
	name := layer + "." + leaf
	l := layerOf(m, name)
	if l == nil || t.F == nil {
		return false
	}
	t.Name = name
	order := shapeBeforeFlatten(m, l.From)
	switch {
	case kernel && l.Kind == models.Conv && len(t.Shape) == 4:
		t.F, t.Shape = permuted(t.F, t.Shape, 3, 2, 0, 1)
	case kernel && l.Kind == models.Dense && len(t.Shape) == 2:
		if order != nil && t.Shape[0] == models.Size(order) { // from rows, columns, channels
			x, _ := permuted(t.F, []int{order[1], order[2], order[0], t.Shape[1]}, 2, 0, 1, 3)
			t.F = x
		}
		t.F, t.Shape = permuted(t.F, t.Shape, 1, 0)
	case (l.Kind == models.BatchNorm || l.Kind == models.LayerNorm) &&
		order != nil && len(t.Shape) == 1 && t.Shape[0] == models.Size(order):
		t.F, _ = permuted(t.F, []int{order[1], order[2], order[0]}, 2, 0, 1)
	}
	return true
}

// layerOf returns the layer of the model that has a tensor of this name, or nil.
func layerOf(m *models.Model, name string) *models.Layer {
	for i := range m.Layers {
		l := &m.Layers[i]
		for _, at := range []int{l.Weight, l.Bias} {
			if at >= 0 && m.Layout.Tensors[at].Name == name {
				return l
			}
		}
		for _, at := range []int{l.Mean, l.Var} {
			if at >= 0 && m.Layout.StatTensors[at].Name == name {
				return l
			}
		}
	}
	return nil
}

// shapeBeforeFlatten returns the shape [channels, height, width] that a result of the model had before it was
// flattened. It looks through layers that keep the order of elements. It returns nil if the result is not a flattened
// image.
func shapeBeforeFlatten(m *models.Model, result int) []int {
	for result > 0 {
		l := &m.Layers[result-1]
		switch {
		case l.Kind == models.Flatten && len(l.In) == 3:
			return l.In
		case slices.Contains(orderPreserving, l.Kind):
			result = l.From
		default:
			return nil
		}
	}
	return nil
}

// orderPreserving lists the kinds of layers whose output has the order of elements of their input.
var orderPreserving = []models.Kind{
	models.ReLU,
	models.LeakyReLU,
	models.Tanh,
	models.SiLU,
	models.GELU,
	models.Scale,
	models.Dropout,
	models.BatchNorm,
	models.LayerNorm,
	models.Add,
}

// permuted returns a transposed copy y of tensor x and its shape. Axis i of y is axis order[i] of x.
func permuted(x []float32, shape []int, order ...int) (y []float32, to []int) {
	stride, n := make([]int, len(shape)), 1
	for d := len(shape) - 1; d >= 0; d-- {
		stride[d] = n
		n *= shape[d]
	}
	for _, d := range order {
		to = append(to, shape[d])
	}
	y = make([]float32, n)
	at := make([]int, len(shape))
	for i := range y {
		from := 0
		for d, k := range at {
			from += k * stride[order[d]]
		}
		y[i] = x[from]
		for d := len(at) - 1; d >= 0; d-- {
			if at[d]++; at[d] < to[d] {
				break
			}
			at[d] = 0
		}
	}
	return y, to
}
