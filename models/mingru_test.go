package models

import "testing"

// TestMinGRU: shapes, names, initial values and products of a recurrence.
func TestMinGRU(t *testing.T) {
	m, err := compileText("{kind = 'embedding', out = 5, vocabulary = 9}, {kind = 'mingru', out = 2, sequence = true}, " +
		"{kind = 'gelu'}, {kind = 'mingru', out = 3}")
	if err != nil {
		t.Fatal(err)
	}
	if a, b := m.Layers[1], m.Layers[3]; a.Out[0] != 8 || a.Steps != 4 || m.Layers[2].Steps != 4 || b.In[0] != 8 ||
		b.Out[0] != 3 || b.Steps != 0 {
		t.Errorf("%+v, %+v", a, b)
	}
	for i, want := range []string{"embed1.weight", "mingru1.state.weight", "mingru1.state.bias", "mingru1.gate.weight",
		"mingru1.gate.bias", "mingru2.state.weight", "mingru2.state.bias", "mingru2.gate.weight", "mingru2.gate.bias"} {
		if x := m.Layout.Tensors[i]; x.Name != want {
			t.Errorf("tensor %d is %+v, want %s", i, x, want)
		}
	}
	if l := m.Layers[3]; l.State != [2]int{5, 6} || l.Weight != 7 || l.Bias != 8 {
		t.Errorf("%+v", l)
	}
	// four positions with two products each: 2 x 5 and 3 x 2 weights
	if forward, gradient := m.Flops(); forward != 2*4*2*(10+6) || gradient != 3*forward {
		t.Errorf("%v forward, %v of a gradient", forward, gradient)
	}
}
