package cli

import (
	"bytes"
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"brood/presets"
)

// TestScalingPage: the rows of the scaling page have the columns and the curves of the current plans, and the page
// shows the picture of each plan.
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
		table, err := csv.NewReader(bytes.NewReader(rows)).ReadAll()
		if err != nil || !bytes.HasPrefix(rows, r.CSV()) {
			t.Errorf("%s has other columns than brood scale writes: %v", file, err)
			continue
		}
		for _, row := range table[1:] {
			if !slices.Contains(r.Curves, row[0]) {
				t.Errorf("%s has a row of %s, which the plan does not measure", file, row[0])
			}
		}
		if !bytes.Contains(page, []byte("(scaling/"+name+".svg)")) {
			t.Errorf("the page does not show %s.svg", name)
		}
	}
}
