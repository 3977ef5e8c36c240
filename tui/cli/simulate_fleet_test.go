package cli

import (
	"maps"
	"testing"
)

// A factor alone is of every worker.
func TestSlowWorkers(t *testing.T) {
	f := &foretellFlags{slow: []string{"5", "1=2.5"}}
	_, _, _, slow, err := f.links()
	if want := map[int]float64{everyWorker: 5, 1: 2.5}; err != nil || !maps.Equal(slow, want) {
		t.Errorf("%v (%v), want %v", slow, err, want)
	}
	for _, text := range []string{"x", "0", "-1", "-1=2", "1=", "=2", "1=1001"} {
		f.slow = []string{text}
		if _, _, _, _, err := f.links(); err == nil {
			t.Errorf("--slow %s is taken", text)
		}
	}
}
