package models

import "testing"

// Counts of Parle's research code and of hand arithmetic.
func TestZooCounts(t *testing.T) {
	for name, want := range map[string][2]int{
		"mlp": {235146, 0}, "mlp-small": {50890, 0}, "softmax": {7850, 0},
		"lenet": {132220, 2 * (20 + 50 + 500)}, "lenets": {5946, 2 * (8 + 16 + 32)},
	} {
		m, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		if m.Layout.Params != want[0] || m.Layout.Stats != want[1] {
			t.Errorf("%s: %d parameters and %d statistics, want %v", name, m.Layout.Params, m.Layout.Stats, want)
		}
		if m.Name != name || m.Doc == "" {
			t.Errorf("%s calls itself %q (%q)", name, m.Name, m.Doc)
		}
	}
	if len(List()) != 5 {
		t.Errorf("models %v: add the new one to this test", List())
	}
}
