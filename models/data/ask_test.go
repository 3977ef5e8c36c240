package data

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// flowerForm returns the form of a model of flowers, with column names if named.
func flowerForm(named bool) *Form {
	f := &Form{Shape: []int{2}, Mean: []float64{1, 10}, Std: []float64{2, 5}, Classes: []string{"aster", "rose"}}
	if named {
		f.Features, f.Label = []string{"size", "shade"}, "kind"
	}
	return f
}

// TestAskTable: a table to predict needs no labels and is read by the model's columns; label cells are passed on
// unchanged.
func TestAskTable(t *testing.T) {
	for _, x := range []struct {
		name, text string
		named      bool
		answers    []string
		err        string
		pick       string
	}{
		{name: "turned", text: "seen,shade,size\nAnn,20,5\nBob,0,1\n", named: true},
		{name: "labelled", text: "kind,shade,size\noak,20,5\n?,0,1\n", named: true, answers: []string{"oak", "?"}},
		{name: "usual label", text: "shade,label,size\n20,rose,5\n0,,1\n", named: true, answers: []string{"rose", ""}},
		{name: "plain", text: "5,20\n1,0\n"},
		{name: "plain with labels", text: "5,20,rose\n1,0,aster\n", answers: []string{"rose", "aster"}},
		{name: "label first", text: "class;a;b\nrose;5;20\naster;1;0\n", answers: []string{"rose", "aster"}},
		{name: "header", text: "a,b\n5,20\n1,0\n"},
		{name: "lacks", text: "size,tint\n5,20\n", named: true, err: `x.csv has no column "shade", which the model has`},
		{name: "nameless", text: "5,20\n", named: true, err: "x.csv has no line of names"},
		{name: "hole", text: "size,shade\n5,\n", named: true, err: `line 2, column "shade": the value is missing`},
		{name: "wide", text: "5,20,1,2\n", err: "x.csv has 4 columns, and the model takes 2 numbers"},
		{name: "empty", text: "size,shade\n", named: true, err: "x.csv has no samples"},
		{name: "picked", text: "sort,shade,kind,size\noak,20,rose,5\nash,0,rose,1\n", named: true, pick: "sort", answers: []string{"oak", "ash"}},
		{name: "picked by number", text: "sort,shade,kind,size\noak,20,rose,5\nash,0,rose,1\n", named: true, pick: "1", answers: []string{"oak", "ash"}},
		{name: "counted", text: "7,5,20\n8,1,0\n", pick: "1", answers: []string{"7", "8"}},
		{name: "picked several", text: "sort,shade,kind,size\noak,20,rose,5\nash,0,tulip,1\n", named: true, pick: "kind,sort", answers: []string{"rose,oak", "tulip,ash"}},
		{name: "picked in vain", text: "shade,kind,size\n20,rose,5\n", named: true, pick: "sort", err: `x.csv has no column "sort" for labels; its columns are shade, kind, size`},
		{name: "picked several in vain", text: "shade,kind,size\n20,rose,5\n", named: true, pick: "kind,sort", err: `x.csv has no column "sort" for labels`},
		{name: "counted in vain", text: "5,20,7\n", pick: "4", err: `x.csv has no line of names, and so no column "4"`},
	} {
		path := filepath.Join(put(t, map[string][]byte{"x.csv": []byte(x.text)}), "x.csv")
		a, err := Reading{Form: flowerForm(x.named), Label: x.pick}.Ask(path)
		if x.err != "" {
			if err == nil || !strings.Contains(err.Error(), x.err) {
				t.Errorf("%s: %v, want %s", x.name, err, x.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", x.name, err)
			continue
		}
		v, labels := make([]float32, 4), make([]int32, 2)
		if err := a.Gather(a.IDs, v, labels); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(v, []float32{2, 2, 0, -2}) || !slices.Equal(a.Answers, x.answers) ||
			!slices.Equal(a.Names, []string{"1", "2"}) {
			t.Errorf("%s: %v, labels %q, names %q", x.name, v, a.Answers, a.Names)
		}
	}
	if _, err := (Reading{}).Ask("./x.csv"); err == nil || !strings.Contains(err.Error(), "name a data set") {
		t.Errorf("a model without a form: %v", err)
	}
}

// TestAskArrays: arrays need neither labels nor particular names; if some are test samples, those are used.
func TestAskArrays(t *testing.T) {
	x := npy("<f4", "(2, 2)", []float32{5, 20, 1, 0})
	other := npy("<f4", "(1, 2)", []float32{0, 0})
	y := npy("<i8", "(2,)", []int64{7, 1})
	for name, answers := range map[string][]string{"a/new.npy": nil, "b.npz": nil, "c.npz": {"7", "1"}, "d": {"7", "1"}} {
		dir := put(t, map[string][]byte{"a/new.npy": x, "b.npz": npz(map[string][]byte{"x": x}),
			"c.npz": npz(map[string][]byte{"x_train": other, "x_test": x, "y_test": y}), "d/x.npy": x, "d/y.npy": y})
		a, err := Reading{Form: flowerForm(true)}.Ask(filepath.Join(dir, name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(a.IDs) != 2 || !slices.Equal(a.Answers, answers) {
			t.Errorf("%s: %d samples with the labels %q", name, len(a.IDs), a.Answers)
		}
		_, err = Reading{Form: flowerForm(true), Label: "kind"}.Ask(filepath.Join(dir, name))
		if err == nil || !strings.Contains(err.Error(), "label kind: ") {
			t.Errorf("%s with a column of labels: %v", name, err)
		}
	}
}

// TestAskNamed: for a named set the test samples are used, with their class names as answers.
func TestAskNamed(t *testing.T) {
	a, err := Reading{}.Ask("glyphs")
	if err != nil {
		t.Fatal(err)
	}
	if len(a.IDs) != 2000 || len(a.Answers) != 2000 || a.Answers[3] != a.ClassName(int(a.Label(a.IDs[3]))) {
		t.Errorf("%d samples, %d labels", len(a.IDs), len(a.Answers))
	}
}

// TestAskPictures: pictures need no class folders and are read in the model's colour mode; IDX images need no labels.
func TestAskPictures(t *testing.T) {
	form := &Form{
		Shape:   []int{3, 3, 4},
		Bytes:   true,
		Mean:    []float64{0, 0, 0},
		Std:     []float64{1, 1, 1},
		Classes: []string{"cat", "dog"},
	}
	grey := encodePNG(shade(4, 3, 9))
	for name, files := range map[string]map[string][]byte{
		"flat":    {"b.png": grey, "a.png": grey},
		"classes": {"cat/b.png": grey, "owl/a.png": grey},
	} {
		a, err := Reading{Form: form}.Ask(put(t, files))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		names, answers := []string{"a.png", "b.png"}, []string(nil)
		if name == "classes" {
			names, answers = []string{"cat/b.png", "owl/a.png"}, []string{"cat", "owl"}
		}
		if !slices.Equal(a.Names, names) || !slices.Equal(a.Answers, answers) || !slices.Equal(a.Shape, form.Shape) {
			t.Errorf("%s: %q with %q, of %v", name, a.Names, a.Answers, a.Shape)
		}
	}
	form = &Form{Shape: []int{1, 1, 2}, Bytes: true, Mean: []float64{0}, Std: []float64{1}, Classes: []string{"0", "1"}}
	dir := put(t, map[string][]byte{"new-images-idx3-ubyte": {0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 5, 6}})
	a, err := Reading{Form: form}.Ask(dir)
	if err != nil || len(a.IDs) != 1 || a.Answers != nil {
		t.Errorf("images without labels: %+v, %v", a, err)
	}
}
