package data

import (
	"slices"
	"strings"
	"testing"
)

// tagged returns a table of samples that belong to the classes red, round and sweet depending on their number.
func tagged() (text string, want [][]float32) {
	text = "red,size,round,shade,sweet\n"
	for i := range 40 {
		row := []float32{float32(i % 2), float32(i / 3 % 2), float32(i / 7 % 2)}
		cell := func(k int) string { return []string{"0", "1"}[int(row[k])] }
		text += cell(0) + ",1" + strings.Repeat("0", i%3) + "," + cell(1) + "," + []string{"2.5", "7"}[i%2] + "," +
			cell(2) + "\n"
		want = append(want, row)
	}
	return text, want
}

// TestSeveralClasses: multi-label targets are the 0 and 1 of the data, in the requested column order, from tables and
// arrays; a model's form reads them again, with or without labels.
func TestSeveralClasses(t *testing.T) {
	text, want := tagged()
	path := put(t, map[string][]byte{"x.csv": []byte(text)}) + "/x.csv"
	r := Reading{Label: "red,round,sweet", Outputs: 3, MultiLabel: true}
	s, err := r.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if s.Classes != 0 || s.Outputs != 3 || !s.MultiLabel || !slices.Equal(s.Names, []string{"red", "round", "sweet"}) ||
		s.TargetMean != nil {
		t.Errorf("%+v", s.Info)
	}
	var seen [][]float32
	for id := range int32(s.Len()) {
		seen = append(seen, s.Targets(id))
	}
	sorted := func(rows [][]float32) [][]float32 { return slices.SortedFunc(slices.Values(rows), slices.Compare) }
	if !slices.EqualFunc(sorted(seen), sorted(want), slices.Equal) {
		t.Errorf("targets %v, want the values of the table", seen)
	}
	form := s.Form()
	if err := form.Check(); err != nil || !slices.Equal(form.Classes, s.Names) || form.TargetMean != nil {
		t.Errorf("form %+v, %v", form, err)
	}
	again, err := Reading{Form: &form, Outputs: 3, MultiLabel: true}.Load(path)
	if err != nil || again.Digest() != s.Digest() || !slices.Equal(again.Names, s.Names) {
		t.Errorf("by the form: %v", err)
	}
	asked, err := Reading{Form: &form, Outputs: 3,
		MultiLabel: true}.Ask(put(t, map[string][]byte{"x.csv": []byte("shade,size\n1,2\n3,4\n")}) + "/x.csv")
	if err != nil || len(asked.IDs) != 2 || asked.Answers != nil || !asked.MultiLabel || asked.Outputs != 3 {
		t.Errorf("without labels: %+v, %v", asked, err)
	}
	var x, y []float32
	for i, row := range want {
		x, y = append(x, float32(i), float32(i%5)), append(y, row...)
	}
	array, err := Reading{
		Outputs: 3, MultiLabel: true,
	}.Load(put(t, map[string][]byte{"x.npy": npy("<f4", "(40, 2)", x), "y.npy": npy("<f4", "(40, 3)", y)}))
	if err != nil || array.Names != nil && !slices.Equal(array.Names, []string{"0", "1", "2"}) ||
		array.ClassName(2) != "2" {
		t.Fatalf("arrays: %v", err)
	}
	for label, why := range map[string]string{
		"size":      "has the label 10 for class size; where a sample may be in several classes each label is 0 or 1",
		"red,shade": "has the label 2.5 for class shade",
	} {
		if _, err := (Reading{Label: label, Outputs: 1, MultiLabel: true}).Load(path); err == nil ||
			!strings.Contains(err.Error(), why) {
			t.Errorf("label %s: %v, want %q", label, err, why)
		}
	}
	short := form
	short.Classes = short.Classes[:2]
	if _, err := (Reading{Form: &short, Label: "red,round,sweet", Outputs: 2, MultiLabel: true}).Load(path); err == nil ||
		!strings.Contains(err.Error(), "a label is of 3 classes, and the model has 2") {
		t.Errorf("another number of classes: %v", err)
	}
	if _, err := (Reading{MultiLabel: true, Outputs: 3}).Load("glyphs"); err == nil ||
		!strings.Contains(err.Error(), "one class for each sample, and the model predicts several") {
		t.Errorf("a set with one class: %v", err)
	}
}
