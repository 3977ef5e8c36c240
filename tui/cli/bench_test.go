package cli

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"brood/runtime/bench"
)

// TestFigureText: a row has every column, and omits values that were not measured.
func TestFigureText(t *testing.T) {
	whole := figureText(bench.Figure{
		Name:    "product",
		Value:   231.25,
		Unit:    "GFLOP/s",
		Ratio:   0.954,
		Scatter: 0.012,
		Goal:    0.9,
		Limit:   "registers",
		Note:    "idle",
	})
	if !strings.Contains(whole, "231.2 GFLOP/s") || !strings.HasSuffix(whole, "0.95 ±0.01  0.90  registers; idle") {
		t.Errorf("%q", whole)
	}
	bare := figureText(bench.Figure{Name: "first paint", Value: 0.5, Unit: "s"})
	if !strings.HasSuffix(bare, "0.5000 s") {
		t.Errorf("%q", bare)
	}
	if noted := figureText(bench.Figure{Name: "a", Value: 1, Unit: "s", Note: "b"}); !strings.HasSuffix(noted, "  b") {
		t.Errorf("%q", noted)
	}
}

// TestSuites: every suite is listed once in the help.
func TestSuites(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range suites {
		if s.name == "" || s.doc == "" || s.run == nil || seen[s.name] {
			t.Errorf("suite %q (%q)", s.name, s.doc)
		}
		seen[s.name] = true
	}
	if got := suiteNames(); got != "kernels, train, es, noise or gpu" {
		t.Error(got)
	}
}

// TestBenchNoise: the shortest suite prints one object a line, each with a positive value.
func TestBenchNoise(t *testing.T) {
	var out, errs bytes.Buffer
	if code := Run(t.Context(), []string{"bench", "noise", "--json", "--each", "10ms"},
		streams{out: &out, err: &errs}); code != 0 {
		t.Fatalf("exit %d: %s", code, &errs)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) < 3 {
		t.Fatalf("%d lines", len(lines))
	}
	for _, l := range lines {
		var m bench.Figure
		if err := json.Unmarshal([]byte(l), &m); err != nil || m.Suite != "noise" || m.Name == "" || !(m.Value > 0) ||
			math.IsInf(m.Value, 0) {
			t.Errorf("%s: %v", l, err)
		}
	}
}
