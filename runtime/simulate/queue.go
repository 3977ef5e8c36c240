package simulate

import (
	"slices"

	"brood/runtime/coordinator"
)

// queued are happenings in the order in which they reach the core. Those of a whole fleet come together, ten thousand
// at a time: their times are sorted once, and what they are is worked out as they are taken; others are in a heap.
type queued struct {
	heap []happening
	runs []run
}

// run is what came together.
type run struct {
	order  []timed // of what is left of it
	serial uint64  // of all of it
	event  func(worker int) coordinator.Event
}

// timed is when a worker's happening is.
type timed struct {
	at     int64
	worker int32
}

// first is what is taken next, but for its event.
func (r *run) first() happening {
	return happening{at: r.order[0].at, worker: int(r.order[0].worker), serial: r.serial}
}

// before orders happenings.
func (h *happening) before(o *happening) bool {
	if h.at != o.at {
		return h.at < o.at
	}
	if h.worker != o.worker {
		return h.worker < o.worker
	}
	return h.serial < o.serial
}

func (q *queued) push(h happening) {
	q.heap = append(q.heap, h)
	at := len(q.heap) - 1
	for at > 0 {
		up := (at - 1) / 2
		if !h.before(&q.heap[up]) {
			break
		}
		q.heap[at] = q.heap[up]
		at = up
	}
	q.heap[at] = h
}

// together adds what comes together, by ascending workers. It owns all.
func (q *queued) together(all []timed, serial uint64, event func(worker int) coordinator.Event) {
	if len(all) > 0 {
		q.runs = append(q.runs, run{sorted(all), serial, event})
	}
}

// sorted puts times in order, and leaves those of one time in theirs: digit by digit from the last (Knuth 1973).
func sorted(x []timed) []timed {
	const bits = 11
	least, most := x[0].at, x[0].at
	for i := range x {
		least, most = min(least, x[i].at), max(most, x[i].at)
	}
	y := make([]timed, len(x))
	for shift := 0; uint64(most-least)>>shift > 0; shift += bits {
		var first [1<<bits + 1]int32 // of each digit
		digit := func(t timed) uint64 { return uint64(t.at-least) >> shift & (1<<bits - 1) }
		for _, t := range x {
			first[digit(t)+1]++
		}
		for d := range 1 << bits {
			first[d+1] += first[d]
		}
		for _, t := range x {
			d := digit(t)
			y[first[d]] = t
			first[d]++
		}
		x, y = y, x
	}
	return x
}

// pop takes the first. There is one.
func (q *queued) pop() happening {
	first := -1
	var h happening
	if len(q.heap) > 0 {
		h = q.heap[0]
	}
	for i := range q.runs {
		if x := q.runs[i].first(); first < 0 && len(q.heap) == 0 || x.before(&h) {
			first, h = i, x
		}
	}
	if first < 0 {
		q.down()
		return h
	}
	r := &q.runs[first]
	h.ev = r.event(h.worker)
	if r.order = r.order[1:]; len(r.order) == 0 {
		q.runs = slices.Delete(q.runs, first, first+1)
	}
	return h
}

// down takes the root of the heap away.
func (q *queued) down() {
	last := len(q.heap) - 1
	h := q.heap[last]
	q.heap[last] = happening{}
	q.heap = q.heap[:last]
	if last == 0 {
		return
	}
	at := 0
	for {
		next := 2*at + 1
		if next >= last {
			break
		}
		if next+1 < last && q.heap[next+1].before(&q.heap[next]) {
			next++
		}
		if !q.heap[next].before(&h) {
			break
		}
		q.heap[at] = q.heap[next]
		at = next
	}
	q.heap[at] = h
}
