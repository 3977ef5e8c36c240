package forecast

import (
	"strings"
	"testing"
)

// TestBusyNote: busyNote returns a warning only if the quartiles of the pace are far apart, with their values.
func TestBusyNote(t *testing.T) {
	for _, c := range []struct {
		pace []float64
		want string
	}{
		{[]float64{1}, ""},
		{[]float64{1, 1, 9}, ""},        // too few to tell
		{[]float64{1, 1.1, 1.2, 9}, ""}, // one straggler is drawn as often as it was seen
		{[]float64{1, 1, 1.4, 1.4, 1.4}, ""},
		{[]float64{1, 1, 2, 2.5, 3, 3}, "dp-sgd: rounds took 1 to 3 times as long"},
	} {
		if got := busyNote("dp-sgd", c.pace); (c.want == "") != (got == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("busyNote of %v is %q, want %q", c.pace, got, c.want)
		}
	}
}
