package message

import (
	"testing"

	"brood/models/engine"
	"brood/runtime/event"
)

// TestPointsKeepTheirOrder: points of several workers are sorted by member; those of one member keep their order.
func TestPointsKeepTheirOrder(t *testing.T) {
	p := &event.Points{}
	for i := range 60 {
		p.Members, p.Values = append(p.Members, engine.Member((i+30)%60/3)), append(p.Values, float64(i%3))
	}
	sortByMember(p)
	for i, m := range p.Members {
		if int(m) != i/3 || p.Values[i] != float64(i%3) {
			t.Fatalf("%v %v", p.Members, p.Values)
		}
	}
}
