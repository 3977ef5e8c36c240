package host

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"brood/models"
	"brood/models/format/safetensors"
	"brood/runtime/modelfile"
	"brood/runtime/option"
)

// taken returns the parameters and the statistics of the model in a file.
func taken(t *testing.T, path string, net *models.Model) (params, stats []float32) {
	t.Helper()
	file, err := modelfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if params, err = file.Take(net.Name, net.Layout.Tensors, net.Layout.Params); err != nil {
		t.Fatal(err)
	}
	if stats, err = file.Take(net.Name, net.Layout.StatTensors, net.Layout.Stats); err != nil {
		t.Fatal(err)
	}
	return params, stats
}

// TestStart: a run starts with the parameters and the statistics of a file, also if the file names its layers
// differently. The session saves them under the names of the model.
func TestStart(t *testing.T) {
	const torch = "../evaluate/testdata/torch"
	text, err := os.ReadFile(torch + ".toml")
	if err != nil {
		t.Fatal(err)
	}
	net, err := models.FromSource(torch+".toml", text)
	if err != nil {
		t.Fatal(err)
	}
	params, stats := taken(t, torch+".safetensors", net)
	for _, rename := range []string{"", "stem=conv1,norm=bn1"} {
		file, err := safetensors.Open(torch + ".safetensors")
		if err != nil {
			t.Fatal(err)
		}
		file.Tensors = slices.DeleteFunc(file.Tensors, func(x safetensors.Tensor) bool { return x.F == nil })
		for i := range file.Tensors {
			for _, pair := range strings.Split(rename, ",") {
				if from, to, ok := strings.Cut(pair, "="); ok {
					file.Tensors[i].Name = strings.Replace(file.Tensors[i].Name, to+".", from+".", 1)
				}
			}
		}
		path := filepath.Join(t.TempDir(), "start.safetensors")
		if err := safetensors.Save(path, file); err != nil {
			t.Fatal(err)
		}
		j := &Job{Net: net, Options: Options{Init: path}}
		if rename != "" {
			if err := option.Rename.Set(&j.Options, rename); err != nil {
				t.Fatal(err)
			}
		}
		if err := j.start(path); err != nil || !slices.Equal(j.initState, params) || !slices.Equal(j.stats, stats) ||
			j.stats[0] == 0 {
			t.Errorf("%q: a run does not start with the parameters and statistics of the file: %v", rename, err)
		}
		dir := t.TempDir()
		if err := j.saveInit(dir); err != nil {
			t.Fatal(err)
		}
		if p, s := taken(t, filepath.Join(dir, initFile), net); !slices.Equal(p, params) || !slices.Equal(s, stats) {
			t.Errorf("%q: the session saved another model", rename)
		}
	}
}

// saveModel writes a model file without metadata.
func saveModel(t *testing.T, path string, net *models.Model, params []float32) {
	t.Helper()
	var file safetensors.File
	for _, x := range net.Layout.Tensors {
		file.Tensors = append(file.Tensors, safetensors.Tensor{Name: x.Name, Shape: x.Shape, F: params[x.Lo : x.Lo+x.Len]})
	}
	if err := safetensors.Save(path, file); err != nil {
		t.Fatal(err)
	}
}
