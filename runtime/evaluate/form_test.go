package evaluate

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"brood/models/format/safetensors"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/modelfile"
)

const linear = `name = "linear"
input = [2]
classes = 3
[[layer]]
kind = "batchnorm"
[[layer]]
kind = "dense"
out = 3
`

// meadow returns a CSV table of n flowers of three separable kinds below the header; row formats one.
func meadow(n int, header string, row func(size, shade float64, kind string) string) []byte {
	out := []byte(header + "\n")
	for i := range n {
		k, jitter := i%3, float64(i*7%11)/11
		line := row(10+4*float64(k)+jitter, 300-50*float64(k)*float64(k-1)-jitter, []string{"aster", "rose", "tulip"}[k])
		if line != "" {
			out = append(out, line+"\n"...)
		}
	}
	return out
}

func plainRow(size, shade float64, kind string) string {
	return fmt.Sprintf("%g,%g,%s", size, shade, kind)
}

// trainedMeadow trains a model of flowers and returns its file and the folder of the file.
func trainedMeadow(t *testing.T) (dir, model string, j *host.Job) {
	t.Helper()
	dir = t.TempDir()
	write(t, filepath.Join(dir, "linear.toml"), []byte(linear))
	write(t, filepath.Join(dir, "flowers.csv"), meadow(240, "size,shade,kind", plainRow))
	j = prepare(t, host.Options{Model: filepath.Join(dir, "linear.toml"), Data: filepath.Join(dir, "flowers.csv"),
		Algorithm: "dp-sgd", Members: 1, Seed: 1,
		Limit: event.Limit{Rounds: 600}, Set: []event.Setting{{Knob: "eta", Expr: "0.5"}, {Knob: "batch", Expr: "32"}},
		By: "test"})
	train(t, filepath.Join(dir, "s"), j, nil, nil)
	out, err := Export(context.Background(), nil, filepath.Join(dir, "s"), 0, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	model = filepath.Join(dir, "model.safetensors")
	if err := out.Save(model); err != nil {
		t.Fatal(err)
	}
	return dir, model, j
}

// TestForm: the file of a model contains the preprocessing of samples and the meaning of the outputs exactly, and other
// data are read in this form.
func TestForm(t *testing.T) {
	dir, path, j := trainedMeadow(t)
	m, err := Open(path, "", "")
	if err != nil {
		t.Fatal(err)
	}
	if want := j.Samples.Form(); m.Read.Form == nil || !reflect.DeepEqual(*m.Read.Form, want) ||
		m.Kernels != j.Config.Kernels {
		t.Fatalf("the file has %+v by %s, the run %+v by %s", m.Read, m.Kernels, want, j.Config.Kernels)
	}
	score := func(name string, b []byte) (float64, error) {
		t.Helper()
		write(t, filepath.Join(dir, name), b)
		set, err := m.Load(filepath.Join(dir, name))
		if err != nil {
			return 0, err
		}
		sc, err := m.Score(context.Background(), set, "test", 1)
		return sc.Error(), err
	}
	for name, c := range map[string]struct {
		b           []byte
		least, most float64 // of the error in %
	}{
		"same": {meadow(120, "size,shade,kind", plainRow), 0, 0},
		"less": {meadow(120, "size,shade,kind", func(a, b float64, kind string) string {
			if kind == "aster" {
				return ""
			}
			return plainRow(a, b, kind)
		}), 0, 0},
		"reordered": {meadow(120, "note,kind,shade,size", func(a, b float64, kind string) string { return fmt.Sprintf("x,%s,%g,%g", kind, b, a) }), 0, 0},
		"scaled":    {meadow(120, "size,shade,kind", func(a, b float64, kind string) string { return plainRow(7*a+50, 7*b+50, kind) }), 30, 100},
	} {
		if got, err := score(name+".csv", c.b); err != nil || got < c.least || got > c.most {
			t.Errorf("%s: error %v %%, want %v to %v (%v)", name, got, c.least, c.most, err)
		}
	}
	for want, b := range map[string][]byte{
		`has no column "shade", which the model has`: meadow(120, "size,tint,kind", plainRow),
		"has no line of names":                       meadow(120, "1,2,rose", plainRow),
		`label "oak" is none of the 3 classes of the model: aster, rose, tu`: meadow(120, "size,shade,kind",
			func(a, b float64, _ string) string { return plainRow(a, b, "oak") }),
	} {
		if _, err := score("refused.csv", b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := m.Load("glyphs"); err == nil ||
		!strings.Contains(err.Error(), "samples are of [1 28 28], and the model was trained on samples of [2]") {
		t.Errorf("glyphs: %v", err)
	}
}

// TestFormOfStart: a run that starts with the file of a model reads its data in the form of the model, and verifies to
// the same bits.
func TestFormOfStart(t *testing.T) {
	dir, path, first := trainedMeadow(t)
	write(t, filepath.Join(dir, "more.csv"),
		meadow(300, "shade,size,kind", func(a, b float64, kind string) string { return plainRow(b+40, a, kind) }))
	j := prepare(t, host.Options{
		Model:     filepath.Join(dir, "linear.toml"),
		Data:      filepath.Join(dir, "more.csv"),
		Algorithm: "dp-sgd",
		Members:   1,
		Init:      path,
		Limit:     event.Limit{Rounds: 3},
		By:        "test",
	})
	if want, got := first.Samples.Form(), j.Samples.Form(); !reflect.DeepEqual(got, want) {
		t.Errorf("the run reads %+v, the model was trained on %+v", got, want)
	}
	train(t, filepath.Join(dir, "again"), j, nil, nil)
	if v, err := host.Verify(context.Background(), filepath.Join(dir, "again"), 1, nil); err != nil || v.Rounds != 3 {
		t.Errorf("%d rounds agree: %v", v.Rounds, err)
	}
	write(t, filepath.Join(dir, "more.csv"), meadow(300, "tint,size,kind", plainRow))
	_, err := host.Prepare(host.Options{
		Model: filepath.Join(dir, "linear.toml"),
		Data:  filepath.Join(dir, "more.csv"),
		Init:  path,
		Limit: event.Limit{Rounds: 3},
	})
	if err == nil || !strings.Contains(err.Error(), `has no column "shade", which the model has`) {
		t.Errorf("a column less: %v", err)
	}
}

// TestFormRefused: the error for invalid metadata of a form names the key.
func TestFormRefused(t *testing.T) {
	whole := map[string]string{"shape": "[2]", "samples": "numbers", "mean": "[0,1]", "deviation": "[1,2]",
		"classes": `["a","b"]`}
	for key, c := range map[string][2]string{
		"mean":      {"", "mean is missing"},
		"deviation": {"[1,0]", "the deviation 0 of feature 2"},
		"classes":   {`["a","a"]`, `the name "a", which is there twice`},
		"shape":     {"[3]", "2 means and 2 deviations for samples of [3]"},
		"samples":   {"words", `samples is "words"`},
		"features":  {`["x"]`, "1 names of features"},
		"reading":   {"9", `version "9" of the rules`},
		"ground":    {"grey", `ground is "grey", neither white nor black`},
	} {
		meta := map[string]string{key: c[0]}
		for k, v := range whole {
			if k != key {
				meta[k] = v
			}
		}
		if c[0] == "" {
			delete(meta, key)
		}
		path := filepath.Join(t.TempDir(), "x.safetensors")
		if err := safetensors.Save(path, safetensors.File{Meta: meta}); err != nil {
			t.Fatal(err)
		}
		if _, err := modelfile.Open(path); err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s: %v, want %q", key, err, c[1])
		}
	}
}

// TestOldModelFile: a model file of a version before v0.1 is refused, since its data were preprocessed by other rules.
func TestOldModelFile(t *testing.T) {
	_, path, _ := trainedMeadow(t)
	file, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"", "1"} {
		file.Meta["reading"] = version
		if err := safetensors.Save(path, file); err != nil {
			t.Fatal(err)
		}
		_, err := Open(path, "", "")
		if want := fmt.Sprintf("its data were read by version %q of the rules", version); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("version %q: %v", version, err)
		}
	}
}
