package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"brood/presets"
	"brood/runtime/scaling"
)

// TestScalingPage: the pictures of the scaling page are generated from its rows and the current plans, and the page
// shows each of them.
func TestScalingPage(t *testing.T) {
	dir := filepath.Join("..", "..", "docs")
	page, err := os.ReadFile(filepath.Join(dir, "scaling.md"))
	if err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "scaling", "*.csv"))
	if len(files) == 0 {
		t.Fatal("the page has no figures")
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".csv")
		p, err := presets.LoadPlan(name)
		if err != nil {
			t.Error(err)
			continue
		}
		rows, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		r := emptyResults(p)
		if err := r.ReadCSV(rows); err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if got := r.CSV(); !bytes.Equal(got, rows) {
			t.Errorf("%s has other rows than the plan:\n%s", file, got)
		}
		picture, err := os.ReadFile(strings.TrimSuffix(file, ".csv") + ".svg")
		if err != nil || !bytes.Equal(picture, scaling.SVG(p.Title, r.Plots())) {
			t.Errorf("the picture of %s is not that of its rows (%v): brood scale %s -o docs/scaling", name, err, name)
		}
		if !bytes.Contains(page, []byte("(scaling/"+name+".svg)")) {
			t.Errorf("the page does not show %s.svg", name)
		}
	}
}
