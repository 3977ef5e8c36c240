// Package local links workers of one process through memory. It imports no other package of brood; its Link implements
// collective.Link.
package local

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Hub joins the workers of a process. The zero Hub is ready to use.
type Hub struct {
	mu      sync.Mutex
	boxes   map[[2]int]*box
	waiting map[int]wait // by worker, during Recv
}

// wait is what a worker waits for: a frame of an epoch from a worker.
type wait struct {
	from  int
	epoch uint32
}

type frame struct {
	epoch uint32
	seq   uint64
	op    string
	p     []byte
}

// box is the queue of one sender and one receiver.
type box struct {
	mu   sync.Mutex
	q    []frame
	wake chan struct{} // holds a token when q may have changed
}

// Link returns worker self's end. One goroutine may use it at a time.
func (h *Hub) Link(self int) *Link { return &Link{hub: h, self: self} }

// Link sends to and receives from every worker of its hub.
type Link struct {
	hub  *Hub
	self int
}

func (h *Hub) box(from, to int) *box {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := [2]int{from, to}
	b := h.boxes[k]
	if b == nil {
		if h.boxes == nil {
			h.boxes = map[[2]int]*box{}
		}
		b = &box{wake: make(chan struct{}, 1)}
		h.boxes[k] = b
	}
	return b
}

// Send queues p for worker to and takes ownership of it. It never waits.
func (l *Link) Send(to int, epoch uint32, seq uint64, op string, p []byte) error {
	b := l.hub.box(l.self, to)
	b.mu.Lock()
	b.q = append(b.q, frame{epoch, seq, op, p})
	b.mu.Unlock()
	b.signal()
	return nil
}

// Recv returns the next frame of this epoch from a worker. It drops frames of older epochs, which were aborted; a frame
// of a newer epoch waits for a call with that epoch.
func (l *Link) Recv(ctx context.Context, from int, epoch uint32) (uint64, string, []byte, error) {
	b := l.hub.box(from, l.self)
	for {
		if err := ctx.Err(); err != nil {
			return 0, "", nil, err
		}
		if f, ok := b.take(epoch); ok {
			return f.seq, f.op, f.p, nil
		}
		l.hub.wait(l.self, wait{from, epoch})
		select {
		case <-b.wake:
		case <-ctx.Done():
		}
		l.hub.resume(l.self)
	}
}

func (h *Hub) wait(self int, w wait) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waiting == nil {
		h.waiting = map[int]wait{}
	}
	h.waiting[self] = w
}

func (h *Hub) resume(self int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.waiting, self)
}

// Deadlock returns an error if each of these workers waits for a frame that was not sent: they wait for ever, unless
// another worker or an abort wakes them. Any goroutine may call it.
func (h *Hub) Deadlock(workers ...int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, self := range workers {
		w, waits := h.waiting[self]
		if !waits || h.boxes[[2]int{w.from, self}].holds(w.epoch) {
			return nil
		}
	}
	return fmt.Errorf("worker %d waits for a frame that worker %d never sends: all workers must make the same exchanges "+
		"in the same order", workers[0], h.waiting[workers[0]].from)
}

func (b *box) take(epoch uint32) (frame, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.q) > 0 {
		f := b.q[0]
		if f.epoch > epoch {
			return f, false
		}
		b.q[0] = frame{}
		b.q = b.q[1:]
		if f.epoch == epoch {
			if len(b.q) > 0 {
				b.signal()
			}
			return f, true
		}
	}
	return frame{}, false
}

// holds reports whether the queue has a frame of the epoch.
func (b *box) holds(epoch uint32) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.q, func(f frame) bool { return f.epoch == epoch })
}

func (b *box) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}
