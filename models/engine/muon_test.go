package engine

import "testing"

// TestTakes: Muon steps matrices; it skips the weights of the output layer if configured, also of a single
// output, and embedding tables.
func TestTakes(t *testing.T) {
	net := func(outputs int) *Layout {
		return &Layout{Tensors: []Tensor{{Shape: []int{8, 4}, Len: 32, Table: true}, {Shape: []int{6, 4}, Len: 24},
			{Shape: []int{6}, Len: 6},
			{Shape: []int{outputs, 6}, Len: 6 * outputs}, {Shape: []int{outputs}, Len: outputs}}}
	}
	for _, c := range []struct {
		outputs int
		hidden  bool
		want    [5]bool
	}{
		{3, false, [5]bool{1: true, 3: true}},
		{3, true, [5]bool{1: true}},
		{1, false, [5]bool{1: true}},
		{1, true, [5]bool{1: true}},
	} {
		l, step := net(c.outputs), Muon{Hidden: c.hidden}
		for i, want := range c.want {
			if _, _, ok := step.Takes(l, i); ok != want {
				t.Errorf("%d outputs, hidden %t: tensor %d is taken: %t", c.outputs, c.hidden, i, ok)
			}
		}
	}
	if (&Layout{}).lastWeights() != -1 {
		t.Error("no tensors have weights")
	}
}
