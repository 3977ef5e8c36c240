package evaluate

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"brood/models"
	"brood/models/format/safetensors"
)

// flaxOf returns the state of the PyTorch module in the layout of Flax: kernels transposed element by element, and the
// rows of the dense layer after flatten reordered from channels first to channels last. name returns the name of a
// layer of a kind and number.
func flaxOf(t *testing.T, file safetensors.File, m *models.Model,
	name func(kind string, n int) string) safetensors.File {
	t.Helper()
	var out safetensors.File
	put := func(of, leaf string, shape []int, f func(i []int) float32) {
		x := safetensors.Tensor{Name: of + leaf, Shape: shape}
		at := make([]int, len(shape))
		for range models.Size(shape) {
			x.F = append(x.F, f(at))
			for d := len(at) - 1; d >= 0; d-- {
				if at[d]++; at[d] < shape[d] {
					break
				}
				at[d] = 0
			}
		}
		out.Tensors = append(out.Tensors, x)
	}
	var image []int // before flatten
	for i := range m.Layers {
		l := &m.Layers[i]
		if l.Kind == models.Flatten {
			image = l.In
		}
		for _, index := range []int{l.Weight, l.Bias} {
			if index < 0 {
				continue
			}
			of, leaf, _ := strings.Cut(m.Layout.Tensors[index].Name, ".")
			w := file.Find(of + "." + leaf)
			n := int(of[len(of)-1] - '0')
			switch {
			case l.Kind == models.Conv && leaf == "weight":
				put(name("Conv", n), "kernel", []int{w.Shape[2], w.Shape[3], w.Shape[1], w.Shape[0]}, func(i []int) float32 {
					return w.F[((i[3]*w.Shape[1]+i[2])*w.Shape[2]+i[0])*w.Shape[3]+i[1]]
				})
			case l.Kind == models.Dense && leaf == "weight":
				put(name("Dense", n), "kernel", []int{w.Shape[1], w.Shape[0]}, func(i []int) float32 {
					row := i[0]
					if image != nil && n == 1 {
						row = i[0]%image[0]*image[1]*image[2] + i[0]/image[0]
					}
					return w.F[i[1]*w.Shape[1]+row]
				})
			case l.Kind == models.BatchNorm && leaf == "weight":
				put(name("BatchNorm", n), "scale", w.Shape, func(i []int) float32 { return w.F[i[0]] })
			default:
				kind := map[models.Kind]string{models.Conv: "Conv", models.Dense: "Dense", models.BatchNorm: "BatchNorm"}[l.Kind]
				put(name(kind, n), "bias", w.Shape, func(i []int) float32 { return w.F[i[0]] })
			}
		}
		for index, leaf := range map[int]string{l.Mean: "mean", l.Var: "var"} {
			if index >= 0 {
				tensor := m.Layout.StatTensors[index].Name
				w := file.Find(tensor)
				n := int(tensor[2] - '0')
				put(strings.Replace(name("BatchNorm", n), "params", "batch_stats", 1), leaf, w.Shape,
					func(i []int) float32 { return w.F[i[0]] })
			}
		}
	}
	return out
}

// TestFlax: the same model in the layout of Flax has the same parameters and the loss of PyTorch. Names of Flax need no
// --rename.
func TestFlax(t *testing.T) {
	set, file := torchSamples(t)
	want, err := Open(torchFile, torchModel, "")
	if err != nil {
		t.Fatal(err)
	}
	for rename, name := range map[string]func(kind string, n int) string{
		"": func(kind string, n int) string { return fmt.Sprintf("params.%s_%d.", kind, n-1) },
		"params/stem=conv1,params/norm1=bn1,batch_stats/norm1=bn1,params/hidden=fc1,params/norm2=bn2,batch_stats/norm2=bn2,params/out=fc2": func(kind string, n int) string {
			return map[string]string{"Conv1": "params/stem/", "BatchNorm1": "params/norm1/", "Dense1": "params/hidden/",
				"BatchNorm2": "params/norm2/", "Dense2": "params/out/"}[fmt.Sprint(kind, n)]
		},
	} {
		path := filepath.Join(t.TempDir(), "flax.safetensors")
		if err := safetensors.Save(path, flaxOf(t, file, want.Net, name)); err != nil {
			t.Fatal(err)
		}
		got, err := Open(path, torchModel, rename)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Params, want.Params) || !slices.Equal(got.Stats, want.Stats) {
			t.Errorf("%q: other parameters", rename)
		}
		sc, err := got.Score(context.Background(), set, "test", 1)
		if err != nil || math.Abs(sc.Mean()-torchLoss) > 1e-6 {
			t.Errorf("%q: %v nats, %v", rename, sc.Mean(), err)
		}
	}
}

// TestFlaxLayerNorm: the scale and the bias of a layer norm after flatten are reordered from channels last, as are the
// rows of the next dense layer, also with an activation between them.
func TestFlaxLayerNorm(t *testing.T) {
	const c, h, w = 2, 2, 3
	m, err := models.FromSource("flax",
		[]byte("name='flax'\ninput=[2,2,3]\nclasses=2\n"+
			"layer=[{kind='flatten'},{kind='layernorm'},{kind='gelu'},{kind='dense',out=2}]"))
	if err != nil {
		t.Fatal(err)
	}
	scale, bias, kernel := make([]float32, c*h*w), make([]float32, c*h*w), make([]float32, 2*c*h*w)
	for i := range scale { // source index of an element, counted channels first
		at := float32(i%c*h*w + i/c)
		scale[i], bias[i], kernel[2*i], kernel[2*i+1] = at, 100+at, 200+at, 300+at
	}
	path := filepath.Join(t.TempDir(), "flax.safetensors")
	if err := safetensors.Save(path, safetensors.File{Tensors: []safetensors.Tensor{
		{Name: "params.LayerNorm_0.scale", Shape: []int{c * h * w}, F: scale},
		{Name: "params.LayerNorm_0.bias", Shape: []int{c * h * w}, F: bias},
		{Name: "params.Dense_0.kernel", Shape: []int{c * h * w, 2}, F: kernel},
		{Name: "params.Dense_0.bias", Shape: []int{2}, F: []float32{7, 8}}}}); err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(t.TempDir(), "flax.toml")
	write(t, list, []byte("name='flax'\ninput=[2,2,3]\nclasses=2\n"+
		"layer=[{kind='flatten'},{kind='layernorm'},{kind='gelu'},{kind='dense',out=2}]"))
	got, err := Open(path, list, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range m.Layout.Tensors[:3] {
		for i, v := range got.Params[x.Lo : x.Lo+x.Len] {
			want := float32(i)
			switch x.Name {
			case "ln1.bias":
				want += 100
			case "fc1.weight":
				want = 200 + float32(i/(c*h*w)*100+i%(c*h*w))
			}
			if v != want {
				t.Fatalf("element %d of %s is %v, want %v", i, x.Name, v, want)
			}
		}
	}
}

// TestFlaxEmbedding: the table of an embedding has the same layout as in brood.
func TestFlaxEmbedding(t *testing.T) {
	table, kernel := []float32{0, 1, 2, 3, 4, 5}, make([]float32, 4*3)
	path, list := filepath.Join(t.TempDir(), "flax.safetensors"), filepath.Join(t.TempDir(), "flax.toml")
	if err := safetensors.Save(path, safetensors.File{Tensors: []safetensors.Tensor{
		{Name: "params.Embed_0.embedding", Shape: []int{3, 2}, F: table},
		{Name: "params.Dense_0.kernel", Shape: []int{4, 3}, F: kernel},
		{Name: "params.Dense_0.bias", Shape: []int{3}, F: []float32{6, 7, 8}}}}); err != nil {
		t.Fatal(err)
	}
	write(t, list, []byte("name='flax'\ninput=[2]\nclasses=3\n"+
		"layer=[{kind='embedding',vocabulary=3,out=2},{kind='dense',out=3}]"))
	got, err := Open(path, list, "")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Params[:6], table) || got.Read.Context != 2 {
		t.Errorf("the table is %v, and %d bytes are read", got.Params[:6], got.Read.Context)
	}
}

// TestRenameSlashes: a dot and a slash are equal separators in the file and in the option, for layers, nested layers
// and single tensors.
func TestRenameSlashes(t *testing.T) {
	set, file := torchSamples(t)
	want, err := Open(torchFile, torchModel, "")
	if err != nil {
		t.Fatal(err)
	}
	flax := flaxOf(t, file, want.Net, func(kind string, n int) string {
		return map[string]string{"Conv1": "params/enc/stem/", "BatchNorm1": "params/enc/norm/", "Dense1": "params/hidden/",
			"BatchNorm2": "params/norm2/", "Dense2": "params/out/"}[fmt.Sprint(kind, n)]
	})
	plain := safetensors.File{}
	for _, x := range file.Tensors {
		if layer, leaf, _ := strings.Cut(x.Name, "."); layer == "conv1" || layer == "fc2" {
			x.Name = map[string]string{"conv1": "enc/stem/", "fc2": "out/"}[layer] + leaf
		}
		if x.F != nil {
			plain.Tensors = append(plain.Tensors, x)
		}
	}
	for rename, of := range map[string]safetensors.File{
		"params.enc.stem=conv1,params.enc.norm=bn1,batch_stats/enc/norm=bn1,params/hidden=fc1,params.norm2=bn2,batch_stats.norm2=bn2,params.out=fc2": flax,
		"enc/stem=conv1,out=fc2":                                 plain,
		"enc.stem=conv1,out.weight=fc2.weight,out/bias=fc2.bias": plain,
	} {
		path := filepath.Join(t.TempDir(), "slashes.safetensors")
		if err := safetensors.Save(path, of); err != nil {
			t.Fatal(err)
		}
		got, err := Open(path, torchModel, rename)
		if err != nil {
			t.Errorf("%q: %v", rename, err)
			continue
		}
		if sc, err := got.Score(context.Background(), set, "test", 1); err != nil || math.Abs(sc.Mean()-torchLoss) > 1e-6 ||
			!slices.Equal(got.Params, want.Params) {
			t.Errorf("%q: %v nats, %v", rename, sc.Mean(), err)
		}
	}
}

func TestRenameRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"conv1":                 "--rename conv1: write FROM=TO",
		"stem=conv1":            "testdata/torch.safetensors has no tensor stem",
		"fc1.weight=fc2.weight": "has two tensors fc2.weight after renaming",
		"conv=fc":               "has no tensor conv",
	} {
		if _, err := Open(torchFile, torchModel, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
