package main

import (
	"strings"
	"testing"
)

// TestReport: a rate that fell and a time that rose by more than a tenth are worse; noise and improvements are not.
func TestReport(t *testing.T) {
	var f [2]map[string]*figure
	var order []string
	for i, text := range []string{
		`{"suite":"s","name":"rate","unit":"GFLOP/s","value":100}{"suite":"s","name":"time","unit":"ms","value":10}
		{"suite":"s","name":"better","unit":"ms","value":10}{"suite":"s","name":"noisy","unit":"samples/s","value":100}{"suite":"s","name":"noisy","unit":"samples/s","value":60}
		{"suite":"s","name":"near","unit":"samples/s","value":100}{"suite":"s","name":"gone","unit":"samples/s","value":100}`,
		`{"suite":"s","name":"rate","unit":"GFLOP/s","value":80}{"suite":"s","name":"time","unit":"ms","value":12}
		{"suite":"s","name":"better","unit":"ms","value":7}{"suite":"s","name":"noisy","unit":"samples/s","value":50}{"suite":"s","name":"noisy","unit":"samples/s","value":50}
		{"suite":"s","name":"near","unit":"samples/s","value":91}`} {
		f[i] = map[string]*figure{}
		names, err := read([]byte(text), f[i])
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			order = names
		}
	}
	var out strings.Builder
	if n := report(&out, "a", "b", order, f); n != 2 {
		t.Errorf("%d figures are worse, want 2:\n%s", n, out.String())
	}
	for _, want := range []string{"rate    GFLOP/s", "0.80", "time    ms", "only one of them has it",
		"measure on a quiet machine"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if _, err := read([]byte("sorry"), f[0]); err == nil {
		t.Error("words are taken for figures")
	}
}
