package optim

import (
	"testing"

	"brood/optim/collective"
)

// trainOnly is a data set with the given number of training samples and no others.
type trainOnly int

func (n trainOnly) Train() []int32    { return make([]int32, n) }
func (trainOnly) Validation() []int32 { return nil }

// TestWindows: windows returns the sum of the lengths of all windows.
func TestWindows(t *testing.T) {
	for _, samples := range []int{1, 7, 10, 1000} {
		for _, members := range []int{1, 3, 7, 10, 64, 999} {
			e := &Env{Data: trainOnly(samples), Roster: collective.Place(collective.IDs(members), []int{0, 2})}
			for _, share := range []float64{0, 1e-9, 0.15, 0.5, 1} {
				want := int64(0)
				for _, m := range e.Roster.Members {
					want += int64(e.Window(m, share).Len)
				}
				if got := e.windows(share); got != want {
					t.Errorf("%d samples, %d members with a share of %g: %d, want %d", samples, members, share, got, want)
				}
			}
		}
	}
}
