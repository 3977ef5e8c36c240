package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"brood/presets"
)

// The plan on the page is one.
func TestScalingPlan(t *testing.T) {
	page, err := os.ReadFile("scaling.md")
	if err != nil {
		t.Fatal(err)
	}
	plans := regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllSubmatch(page, -1)
	if len(plans) == 0 {
		t.Fatal("scaling.md shows no plan")
	}
	for _, plan := range plans {
		file := filepath.Join(t.TempDir(), "mine.toml")
		if err := os.WriteFile(file, plan[1], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := presets.LoadPlan(file); err != nil {
			t.Error(err)
		}
	}
}
