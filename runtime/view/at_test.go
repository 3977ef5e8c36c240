package view

import (
	"math"
	"testing"

	"brood/models/engine"
	"brood/optim/collective"
	"brood/runtime/event"
)

// TestAt: At returns the last value up to a round, like a list of all points.
func TestAt(t *testing.T) {
	for _, rounds := range []uint64{40, 3 * maxBuckets} { // every point kept, and buckets of four
		s := &Series{Name: "loss"}
		var points []uint64
		for r := uint64(10); r <= rounds; r += 7 {
			s.add(&event.Points{
				Series:  "loss",
				Round:   r,
				Members: []engine.Member{0, 1},
				Values:  []float64{float64(r), 2 * float64(r)},
			})
			points = append(points, r)
		}
		w := s.Width()
		for round := range rounds + 20 {
			last := uint64(0)
			for _, r := range points {
				if r/w <= round/w {
					last = r
				}
			}
			x, at, ok := s.At(1, round)
			if ok != (last > 0) {
				t.Fatalf("at %d: %v, %v", round, x, ok)
			}
			if !ok {
				continue
			}
			if d := math.Abs(x - 2*float64(last)); d > 2*float64(w) || w == 1 && d > 0 {
				t.Fatalf("at %d of width %d it is %g, measured was %d last", round, w, x, 2*last)
			}
			if here := last/w == round/w; here != (at == round) || !here && (at/w != last/w || at >= round) {
				t.Fatalf("at %d it is of %d, measured was at %d", round, at, last)
			}
			l, then := s.LatestAt(collective.Roster{Members: []engine.Member{0, 1}, Owner: []int{0, 0}}, round)
			if len(l) != 2 || l[0].Member != 1 || l[0].X != x || then != at {
				t.Fatalf("at %d: %v of %d", round, l, then)
			}
		}
		if _, _, ok := s.At(5, rounds); ok {
			t.Error("a member that there is not has a value")
		}
	}
	var none *Series
	if _, _, ok := none.At(Whole, 3); ok {
		t.Error("no series has a value")
	}
	if l, _ := none.LatestAt(collective.Roster{}, 3); l != nil {
		t.Error("no series has values")
	}
}
