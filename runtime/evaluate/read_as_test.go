package evaluate

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"brood/models"
	"brood/models/data"
	"brood/models/format/safetensors"
	"brood/runtime/host"
	"brood/runtime/modelfile"
)

// TestReadAs: a model without a form gets the same form from a session, a file, data and numbers. A source that does
// not fit is refused.
func TestReadAs(t *testing.T) {
	dir, model, j := trainedMeadow(t)
	file, err := safetensors.Open(model)
	if err != nil {
		t.Fatal(err)
	}
	file.Meta = nil
	foreign := filepath.Join(dir, "foreign.safetensors")
	if err := safetensors.Save(foreign, file); err != nil {
		t.Fatal(err)
	}
	form := j.Samples.Form()
	text := strings.NewReplacer("MEAN", floatList(form.Mean), "DEVIATION",
		floatList(form.Std)).Replace("samples = \"numbers\"\nmean = MEAN\ndeviation = DEVIATION\nclasses = [\"aster\", " +
		"\"rose\", \"tulip\"]\nfeatures = [\"size\", \"shade\"]\nlabel = \"kind\"\n")
	written := filepath.Join(dir, "form.toml")
	write(t, written, []byte(text))
	for _, of := range []string{filepath.Join(dir, "s"), model, filepath.Join(dir, "flowers.csv"), written} {
		m, err := Open(foreign, filepath.Join(dir, "linear.toml"), "")
		if err != nil {
			t.Fatal(err)
		}
		if err := m.ReadAs(of); err != nil {
			t.Fatalf("%s: %v", of, err)
		}
		if !reflect.DeepEqual(*m.Read.Form, form) {
			t.Errorf("%s: %+v, want %+v", of, *m.Read.Form, form)
		}
		if err := m.ReadAs(of); err == nil || !strings.Contains(err.Error(), "already has a form") {
			t.Errorf("%s, a second time: %v", of, err)
		}
	}
	write(t, filepath.Join(dir, "huge.toml"),
		[]byte("samples = \"numbers\"\nmean = [1]\ndeviation = [1]\nshape = [1000000000000]\n"))
	write(t, filepath.Join(dir, "empty.toml"), []byte("samples = \"numbers\"\nmean = [1]\ndeviation = [1]\nshape = []\n"))
	for of, want := range map[string]string{"glyphs": "takes samples of [2], not of [1 28 28]",
		foreign:                         "it has no normalisation of samples either",
		filepath.Join(dir, "huge.toml"): "cannot be used", filepath.Join(dir, "empty.toml"): "cannot be used",
		filepath.Join(dir, "none.toml"): "no such file", "./none.csv": "no such file"} {
		m, err := Open(foreign, filepath.Join(dir, "linear.toml"), "")
		if err != nil {
			t.Fatal(err)
		}
		if err := m.ReadAs(of); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", of, err, want)
		}
	}
	write(t, filepath.Join(dir, "flowers.csv"), meadow(30, "size,shade,kind", plainRow))
	m, err := Open(foreign, filepath.Join(dir, "linear.toml"), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.ReadAs(filepath.Join(dir, "s")); err == nil || !strings.Contains(err.Error(), "restore those files") {
		t.Errorf("a session whose data changed: %v", err)
	}
}

// TestForeignText: a model of text needs no form, whichever program wrote it.
func TestForeignText(t *testing.T) {
	dir := t.TempDir()
	j := prepare(t, host.Options{Model: "bytes-small", Data: "tales", Algorithm: "dp-sgd", Members: 1, Seed: 1})
	m := &Model{Net: j.Net, Params: make([]float32, j.Net.Layout.Params), Stats: make([]float32, j.Net.Layout.Stats)}
	path := filepath.Join(dir, "bytes.safetensors")
	if err := m.Save(path); err != nil {
		t.Fatal(err)
	}
	file, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	file.Meta = nil
	if err := safetensors.Save(path, file); err != nil {
		t.Fatal(err)
	}
	if m, err = Open(path, "bytes-small", ""); err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(dir, "own.txt")
	if err := os.WriteFile(own, []byte(strings.Repeat("a tale of two bytes. ", 20)), 0o644); err != nil {
		t.Fatal(err)
	}
	asked, err := m.Read.Ask(own)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	if _, err := m.Predict(context.Background(), asked.Set, asked.IDs, 1, func(_ int, p [][]float64) error {
		n += len(p)
		return nil
	}); err != nil || n != len(asked.IDs) {
		t.Errorf("%d predictions for %d bytes: %v", n, len(asked.IDs), err)
	}
	if f := m.Read.Form; !reflect.DeepEqual(*f, data.Form{Shape: j.Net.Input, Bytes: true, Text: true}) {
		t.Errorf("the form %+v", *f)
	}
}

func floatList(x []float64) string {
	text, _ := json.Marshal(x) // finite
	return string(text)
}

// TestGroundOfForm: the ground of transparent pixels is part of a form, in the file of a model and in a TOML file; the
// default is black.
func TestGroundOfForm(t *testing.T) {
	text, err := models.Source("softmax")
	if err != nil {
		t.Fatal(err)
	}
	net, err := models.FromSource("softmax", text)
	if err != nil {
		t.Fatal(err)
	}
	m := &Model{Net: net}
	path := filepath.Join(t.TempDir(), "form.toml")
	for ground, white := range map[string]bool{"": false, "white": true, "black": false} {
		toml := "samples = \"bytes\"\nmean = [0.0]\ndeviation = [1.0]\n"
		if ground != "" {
			toml += fmt.Sprintf("ground = %q\n", ground)
		}
		write(t, path, []byte(toml))
		f, err := m.parseForm(path)
		if err != nil || f.White != white {
			t.Fatalf("ground %q: %+v, %v", ground, f, err)
		}
		meta := map[string]string{}
		if err := modelfile.WriteForm(meta, *f); err != nil {
			t.Fatal(err)
		}
		if got, err := modelfile.ReadForm(meta); err != nil || !reflect.DeepEqual(got, f) {
			t.Errorf("ground %q: the file has %+v, want %+v (%v)", ground, got, f, err)
		}
	}
	write(t, path, []byte("samples = \"bytes\"\nmean = [0.0]\ndeviation = [1.0]\nground = \"grey\"\n"))
	if _, err := m.parseForm(path); err == nil ||
		!strings.Contains(err.Error(), `ground = "grey": it is "white" or "black"`) {
		t.Errorf("another ground: %v", err)
	}
}
