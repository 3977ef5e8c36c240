package models

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"brood/models/data"
)

// TestFamilyFollowsTheData: the model of a family has the input, the outputs and the loss of the data, and fits them.
func TestFamilyFollowsTheData(t *testing.T) {
	image := data.Info{Shape: []int{3, 20, 32}, Classes: 7}
	for _, c := range []struct {
		name string
		d    data.Info
		loss string
		want string // kinds of the layers
	}{
		{"linear", data.Info{Shape: []int{4}, Classes: 3}, CrossEntropy, "dense"},
		{"mlp:8", data.Info{Shape: []int{4}, Outputs: 2}, MSE, "dense relu dense"},
		{"mlp:8,5:huber", data.Info{Shape: []int{4}, Outputs: 1}, Huber, "dense relu dense relu dense"},
		{"mlp:8", data.Info{Shape: []int{4}, Outputs: 3, MultiLabel: true}, BCE, "dense relu dense"},
		{"mlp:8", image, CrossEntropy, "flatten dense relu dense"},
		{"cnn", image, CrossEntropy, "conv relu maxpool conv relu maxpool flatten dense relu dense"},
		{"cnn", data.Info{Shape: []int{1, 4, 4}, Outputs: 1}, MSE, "conv relu maxpool flatten dense relu dense"},
		{"cnn", data.Info{Shape: []int{3, 500, 500}, Classes: 2}, CrossEntropy,
			strings.Repeat("conv relu maxpool ", 4) + "flatten dense relu dense"},
	} {
		f, is, err := ParseFamily(c.name)
		if err != nil || !is {
			t.Fatalf("%s: %v %v", c.name, is, err)
		}
		text, err := f.Source(c.d)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		m, err := FromSource(c.name, text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		var kinds []string
		for _, l := range m.Layers {
			kinds = append(kinds, string(l.Kind))
		}
		if err := m.Fits(c.d); err != nil || m.Loss != c.loss || m.Name != c.name || strings.Join(kinds, " ") != c.want {
			t.Errorf("%s: fits %v, name %s, loss %s, layers %v", c.name, err, m.Name, m.Loss, kinds)
		}
	}
}

// TestFamilyRefuses: names that are no family are none, and errors say what to write.
func TestFamilyRefuses(t *testing.T) {
	for _, name := range []string{"mlp", "mlp-small", "lenet", "linear.toml", "cnns"} {
		if _, is, _ := ParseFamily(name); is {
			t.Errorf("%s is a family", name)
		}
	}
	for name, want := range map[string]string{
		"mlp:":                                  "", // the embedded mlp does not take a colon: the name is unknown
		"mlp:0":                                 "units of up to 16 hidden layers",
		"mlp:8,,8":                              "units of up to 16 hidden layers",
		"mlp:70000":                             "each 1 to 65536",
		"mlp:8:distance":                        `the loss "distance" is none of`,
		"cnn:8":                                 `the loss "8" is none of`,
		"linear:0.5":                            `the loss "0.5" is none of`,
		"mlp:" + strings.Repeat("8,", 16) + "8": "up to 16 hidden layers",
	} {
		if _, err := Source(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	cnn, _, _ := ParseFamily("cnn")
	for want, d := range map[string]data.Info{
		"give --model mlp:128,64":  {Shape: []int{9}, Classes: 2},
		"of 4x4 pixels":            {Shape: []int{1, 3, 9}, Classes: 2},
		"give --model bytes-small": {Shape: []int{1}, Classes: 100, Text: true},
	} {
		if _, err := cnn.Source(d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", d, err)
		}
	}
}

// TestDetect: labels are classes or numbers as they are in the data, unless the loss of the family says.
func TestDetect(t *testing.T) {
	rows := func(label func(i int) string) string {
		var b strings.Builder
		for i := range 60 {
			b.WriteString(strings.Join([]string{string(rune('0' + i%7)), string(rune('0' + i%4)), label(i)}, ",") + "\n")
		}
		return b.String()
	}
	word := func(words ...string) func(int) string { return func(i int) string { return words[i%len(words)] } }
	for _, c := range []struct {
		model, text, label string
		loss               string
		outputs            int
	}{
		{"mlp:4", "a,b,y\n" + rows(word("red", "blue")), "y", CrossEntropy, 2},
		{"mlp:4", "a,b,y\n" + rows(word("0", "1", "2")), "y", CrossEntropy, 3},
		{"mlp:4", "a,b,y\n" + rows(word("1", "1.5", "2")), "y", MSE, 1},
		{"mlp:4", "a,b,y\n" + rows(word("10", "20", "37")), "y", MSE, 1},
		{"mlp:4", "a,b,y,z\n" + rows(word("1,0", "0,1")), "y,z", CrossEntropy, 2},
		{"mlp:4", "a,b,y,z\n" + rows(word("1,1", "0,1")), "y,z", BCE, 2},
		{"mlp:4", "a,b,y,z\n" + rows(word("1,3", "2,4")), "y,z", MSE, 2},
		{"mlp:4:mse", "a,b,y\n" + rows(word("0", "1", "2")), "y", MSE, 1},
	} {
		path := filepath.Join(t.TempDir(), "rows.csv")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, _, _ := ParseFamily(c.model)
		d, err := f.Read(data.Reading{Label: c.label}, path)
		if err != nil {
			t.Errorf("%s: %v", c.text[:30], err)
			continue
		}
		text, err := f.Source(d.Info)
		if err != nil {
			t.Fatal(err)
		}
		if m, err := FromSource("", text); err != nil || m.Loss != c.loss || m.Outputs != c.outputs {
			t.Errorf("%q: %v, loss %s and %d outputs, want %s and %d", c.text[:30], err, m.Loss, m.Outputs, c.loss, c.outputs)
		}
	}
}

// TestFitting: the names that are offered for data fit them.
func TestFitting(t *testing.T) {
	for name, want := range map[string][2]string{ // one that is offered, and one that is not
		"glyphs": {"mlp-small", "cifar-small"}, "cifar10": {"allcnn", "mlp-small"}, "tales": {"bytes-small", "mlp:128,64"},
		"./some.csv": {"mlp:128,64", "mlp-small"}, "./some.txt": {"bytes-small", "cnn"},
	} {
		got := Fitting(name)
		if !slices.Contains(got, want[0]) || slices.Contains(got, want[1]) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
