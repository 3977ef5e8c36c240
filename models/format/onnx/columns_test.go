package onnx

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"brood/models/data"
	"brood/models/enginetest"
)

// TestColumns: a graph of a table with categories and missing numbers takes its raw columns, and computes the features
// that the model was trained on.
func TestColumns(t *testing.T) {
	text := "port,age,fare,alive\n"
	cells := [][]string{}
	for i := range 24 {
		row := []string{[]string{"Cork", "Oslo", "Cork"}[i%3], []string{"20", "30", "", "41"}[i%4], fmt.Sprint(i % 9),
			fmt.Sprint(i / 2 % 3)}
		cells, text = append(cells, row), text+strings.Join(row, ",")+"\n"
	}
	path := filepath.Join(t.TempDir(), "t.csv")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	trainedOn, err := data.Reading{Categories: true, Fill: true}.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	form := trainedOn.Form()
	asked, err := data.Reading{Form: &form}.Ask(path)
	if err != nil {
		t.Fatal(err)
	}
	m := train(t, "table", enginetest.Compile(t, "[6]", "dense out=5", "relu", "dense out=3"), trainedOn, 4)
	numbers, texts := tensor{dims: []int{24, 2}}, tensor{dims: []int{24, 1}}
	for _, row := range cells {
		texts.text = append(texts.text, row[0])
		for _, cell := range row[1:3] {
			v := float32(math.NaN())
			if cell != "" {
				fmt.Sscan(cell, &v)
			}
			numbers.x = append(numbers.x, v)
		}
	}
	texts.text[5] = "Paris"
	got := read(t, m.file(t)).results(t, map[string]tensor{Input: numbers, Text: texts})["input.normalised"]
	for i, id := range asked.IDs {
		want, label := make([]float32, 6), make([]int32, 1)
		if err := asked.Gather([]int32{id}, want, label); err != nil {
			t.Fatal(err)
		}
		for c, w := range want {
			if g := got.x[6*i+c]; i == 5 && c < 3 {
				if raw := float64(g)*form.Std[c] + form.Mean[c]; math.Abs(raw-[]float64{0, 0, 1}[c]) > 1e-3 {
					t.Errorf("an unknown text gives %g for %s", raw, form.Features[c])
				}
			} else if math.Abs(float64(g-w)) > 1e-5 {
				t.Errorf("row %d, %s: %g, want %g", i+1, form.Features[c], g, w)
			}
		}
	}
}
