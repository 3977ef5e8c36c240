package cli

import (
	"testing"

	"brood/runtime/sweep"
)

// TestWork: a trial of unknown work counts as the mean of the others, so that a sweep that continues does not begin at
// zero.
func TestWork(t *testing.T) {
	for _, c := range []struct {
		what      string
		trials    []*sweep.Trial
		done, all float64
	}{
		{"two settled, of unknown work", []*sweep.Trial{{State: sweep.Done}, {State: sweep.Diverged}, {Work: 2e9}, {Work: 4e9}}, 6e9, 12e9},
		{"no work known", []*sweep.Trial{{State: sweep.Done}, {}, {}}, 1, 3},
		{"by work", []*sweep.Trial{{Work: 1e9, State: sweep.Done}, {Work: 3e9}}, 1e9, 4e9},
	} {
		v := &batchView{b: &runs{Batch: &sweep.Batch{Trials: c.trials}}}
		if done, all := v.work(); done != c.done || all != c.all {
			t.Errorf("%s: %g of %g, want %g of %g", c.what, done, all, c.done, c.all)
		}
	}
}
