package simulate

import (
	"math/rand/v2"
	"slices"
	"testing"

	"brood/runtime/coordinator"
)

// TestQueuedInOrder: whatever comes alone and what comes together is taken in one order, the earliest first; of one
// moment the lowest worker, and of one worker what was said first.
func TestQueuedInOrder(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	type one struct {
		serial uint64
		worker int
	}
	var q queued
	var all, got []happening
	joint := map[one]bool{} // what came together
	serial := uint64(0)
	next := func(now int64) happening {
		serial++
		return happening{at: now + draw.Int64N(20), worker: draw.IntN(3), serial: serial}
	}
	now := int64(0)
	for range 200 {
		for range draw.IntN(4) {
			h := next(now)
			all = append(all, h)
			q.push(h)
		}
		var together []timed
		serial++
		far := int64(0) // now and then beyond a digit
		if draw.IntN(5) == 0 {
			far = 1 << draw.IntN(40)
		}
		for w := range draw.IntN(30) {
			h := happening{at: now + draw.Int64N(20) + far*draw.Int64N(3), worker: w, serial: serial}
			all = append(all, h)
			together = append(together, timed{h.at, int32(w)})
			joint[one{serial, w}] = true
		}
		q.together(together, serial, func(worker int) coordinator.Event { return coordinator.Joined{Worker: worker} })
		for range draw.IntN(min(12, len(all)-len(got)+1)) {
			h := q.pop()
			now = h.at
			got = append(got, h)
		}
	}
	for len(got) < len(all) {
		got = append(got, q.pop())
	}
	if len(q.heap)+len(q.runs) > 0 {
		t.Errorf("%d and %d are left", len(q.heap), len(q.runs))
	}
	place := map[one]int{}
	for i, h := range got {
		at := one{h.serial, h.worker}
		place[at] = i
		var want coordinator.Event // none of what came alone, which has none here
		if joint[at] {
			want = coordinator.Joined{Worker: h.worker}
		}
		if h.ev != want {
			t.Errorf("%+v is taken with %#v, want %#v", at, h.ev, want)
		}
	}
	if len(place) != len(all) {
		t.Fatalf("%d of %d were taken", len(place), len(all))
	}
	if !slices.IsSortedFunc(got, func(a, b happening) int { return int(a.at - b.at) }) {
		t.Error("times go back")
	}
	// What is added never lies before what was taken, so that of one time those that are added later alone are late.
	for i := 1; i < len(got); i++ {
		a, b := got[i-1], got[i]
		if b.before(&a) && b.serial < a.serial {
			t.Errorf("%+v is taken behind %+v", b, a)
		}
	}
}
