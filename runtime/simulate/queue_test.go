package simulate

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestQueuedInOrder: events are popped in the order of their times, then of their workers, then of their serial
// numbers.
func TestQueuedInOrder(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	var q eventQueue
	var all, got []timedEvent
	now := int64(0)
	for range 200 {
		for range draw.IntN(4) {
			h := timedEvent{at: now + draw.Int64N(20), worker: draw.IntN(3), serial: uint64(len(all))}
			all = append(all, h)
			q.push(h)
		}
		for range draw.IntN(min(6, len(all)-len(got)+1)) {
			h := q.pop()
			now = h.at
			got = append(got, h)
		}
	}
	for len(q.heap) > 0 {
		got = append(got, q.pop())
	}
	if len(got) != len(all) {
		t.Fatalf("%d of %d were popped", len(got), len(all))
	}
	if !slices.IsSortedFunc(got, func(a, b timedEvent) int { return int(a.at - b.at) }) {
		t.Error("times decrease")
	}
	for i := 1; i < len(got); i++ { // an event that is pushed later at the same time is popped later
		if a, b := got[i-1], got[i]; b.before(&a) && b.serial < a.serial {
			t.Errorf("%+v is popped after %+v", b, a)
		}
	}
}
