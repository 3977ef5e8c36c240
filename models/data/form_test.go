package data

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestFormOfModel: data take the model's form: its means, its shape if one of both is flat, and bytes if it reads
// bytes.
func TestFormOfModel(t *testing.T) {
	glyphs, err := Load("glyphs")
	if err != nil {
		t.Fatal(err)
	}
	f := glyphs.Form()
	f.Mean, f.Std = []float64{0.5}, []float64{0.25}
	s, err := glyphs.toForm(f)
	if err != nil {
		t.Fatal(err)
	}
	x, y := make([]float32, s.Features()), make([]int32, 1)
	if err := s.Gather([]int32{7}, x, y); err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	for i := range int32(40) { // the same pictures as a table; none has the value 255
		for _, p := range s.Image(i) {
			fmt.Fprintf(&table, "%d,", min(p, 254))
		}
		fmt.Fprintln(&table, s.Label(i))
	}
	for i, v := range x {
		if want := (float32(s.Image(7)[i])/255 - 0.5) / 0.25; v != want {
			t.Fatalf("byte %d becomes %v, want %v", s.Image(7)[i], v, want)
		}
	}
	path := put(t, map[string][]byte{"x.csv": table.Bytes()}) + "/x.csv"
	flat, err := Reading{Form: &f}.Load(path)
	if err != nil || !slices.Equal(flat.Shape, f.Shape) || flat.Image(0) == nil || flat.Classes != 10 {
		t.Fatalf("a table of pictures: %v", err)
	}
	for wantErr, change := range map[string]func(f *Form){
		"has the classes 0, 1, 2":                      func(f *Form) { f.Classes = f.Classes[:9] },
		"samples are of [1 28 28], and the model was":  func(f *Form) { f.Shape = []int{1, 14, 56} },
		"samples are bytes, and the model was trained": func(f *Form) { f.Bytes = false },
	} {
		g := f
		change(&g)
		if _, err := glyphs.toForm(g); err == nil || !strings.Contains(err.Error(), wantErr) {
			t.Errorf("%v, want %q", err, wantErr)
		}
	}
	_, rest, _ := strings.Cut(table.String(), ",")
	path = put(t, map[string][]byte{"x.csv": []byte("0.5," + rest)}) + "/x.csv"
	if _, err := (Reading{Form: &f}).Load(path); err == nil ||
		!strings.Contains(err.Error(), "x.csv: line 1: the value 0.5 is no byte") {
		t.Errorf("halves of bytes: %v", err)
	}
}

// TestOutputNames: outputs are named like their label columns, unless those are numbered.
func TestOutputNames(t *testing.T) {
	one, two := []float32{0}, []float32{0, 0}
	for _, x := range []struct {
		form Form
		want []string
	}{
		{Form{Label: "price", TargetMean: one, Features: []string{"a"}}, []string{"price"}},
		{Form{Label: "price, in EUR", TargetMean: one, Features: []string{"a"}}, []string{"price, in EUR"}},
		{Form{Label: "price,floor", TargetMean: two}, []string{"price", "floor"}},
		{Form{Label: "2021,2022", TargetMean: two, Features: []string{"2020"}}, []string{"2021", "2022"}},
		{Form{Label: "3,4", TargetMean: two}, nil},
		{Form{Label: "4", TargetMean: one}, nil},
		{Form{TargetMean: two}, nil},
		{Form{Label: "kind", Classes: []string{"a", "b"}}, nil},
		{Form{Label: "price", TargetMean: two}, nil},
	} {
		if got := x.form.OutputNames(); !slices.Equal(got, x.want) {
			t.Errorf("%+v: %q, want %q", x.form, got, x.want)
		}
	}
}
