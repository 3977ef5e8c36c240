package simulate

import "slices"

// queued are happenings in the order in which they reach the core. Those of a whole fleet come together, ten thousand
// at a time: they are sorted once, and taken from their front; others are in a heap.
type queued struct {
	heap []happening
	runs []run
}

// run is what came together.
type run struct {
	all   []happening
	order []timed // of what is left of it
}

// timed is a happening by its place.
type timed struct {
	at    int64
	place int32
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
func (q *queued) together(all []happening) {
	if len(all) == 0 {
		return
	}
	order := make([]timed, len(all))
	for i := range all {
		order[i] = timed{all[i].at, int32(i)}
	}
	q.runs = append(q.runs, run{all, sorted(order)})
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
	var h *happening
	if len(q.heap) > 0 {
		h = &q.heap[0]
	}
	for i := range q.runs {
		r := &q.runs[i]
		if x := &r.all[r.order[0].place]; h == nil || x.before(h) {
			first, h = i, x
		}
	}
	out := *h
	if first < 0 {
		q.down()
		return out
	}
	*h = happening{} // what it said is held no longer
	if r := &q.runs[first]; len(r.order) == 1 {
		q.runs = slices.Delete(q.runs, first, first+1)
	} else {
		r.order = r.order[1:]
	}
	return out
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
