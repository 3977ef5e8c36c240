package models

import (
	"bytes"
	"strings"
	"testing"

	"brood/models/data"
)

// TestFitTo: a model of the zoo is adapted to the input and classes of other data, with its other layers unchanged.
func TestFitTo(t *testing.T) {
	for name, d := range map[string]data.Info{
		"mlp-small": {Shape: []int{4}, Classes: 3},
		"mlp":       {Shape: []int{3, 32, 32}, Classes: 102},
		"lenet":     {Shape: []int{3, 40, 40}, Classes: 2},
		"resnet20":  {Shape: []int{1, 28, 28}, Classes: 26},
	} {
		text, err := Source(name)
		if err != nil {
			t.Fatal(err)
		}
		fitted, err := FitTo(name, text, d)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		m, err := FromSource(name, fitted)
		if err != nil || m.Fits(d) != nil || m.Classes != d.Classes {
			t.Errorf("%s: %d classes, %v", name, m.Classes, err)
		}
		if a, b := bytes.Count(text, []byte("\n")), bytes.Count(fitted, []byte("\n")); a != b {
			t.Errorf("%s: %d lines became %d", name, a, b)
		}
	}
	text, err := Source("lenet")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := FitTo("lenet", text, data.Info{Shape: []int{4}, Classes: 3}); err == nil ||
		!strings.Contains(err.Error(), "model lenet for samples of [4]") {
		t.Errorf("lenet for tables: %v", err)
	}
}
