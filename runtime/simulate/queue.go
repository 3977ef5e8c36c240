package simulate

// eventQueue is a heap of events in the order of their times.
type eventQueue struct{ heap []timedEvent }

// before orders events by time, worker and serial number.
func (h *timedEvent) before(o *timedEvent) bool {
	if h.at != o.at {
		return h.at < o.at
	}
	if h.worker != o.worker {
		return h.worker < o.worker
	}
	return h.serial < o.serial
}

func (q *eventQueue) push(h timedEvent) {
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

// pop removes and returns the first event. The queue must not be empty.
func (q *eventQueue) pop() timedEvent {
	h := q.heap[0]
	q.down()
	return h
}

// down removes the root of the heap.
func (q *eventQueue) down() {
	last := len(q.heap) - 1
	h := q.heap[last]
	q.heap[last] = timedEvent{}
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
