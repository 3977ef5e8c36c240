package fleet

import (
	"context"
	"sync"

	"brood/runtime/message"
)

// Mailbox is a worker's queue of orders. Posting never blocks. An Abort cancels the order that the worker is executing
// and discards the queued ones.
type Mailbox struct {
	mu     sync.Mutex
	q      []message.Order
	wake   chan struct{}
	cancel context.CancelFunc // cancels the order being handled; nil before the first
	closed bool
}

// NewMailbox returns an empty queue.
func NewMailbox() *Mailbox { return &Mailbox{wake: make(chan struct{}, 1)} }

// Post implements [WorkerHandle]. Away closes the mailbox.
func (m *Mailbox) Post(msg message.Order) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch msg.(type) {
	case message.Evict:
		m.end()
		return
	case message.Abort:
		m.q = m.q[:0] // an abort voids the orders before it
		if m.cancel != nil {
			m.cancel()
		}
	}
	m.q = append(m.q, msg)
	m.signal()
}

// Close cancels the current order and ends the worker, regardless of what is queued.
func (m *Mailbox) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.end()
}

// takeSave returns the order to save that is next in the queue, without waiting. ok is false if there is none.
func (m *Mailbox) takeSave() (order message.Save, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.q) == 0 || m.closed {
		return order, false
	}
	if order, ok = m.q[0].(message.Save); ok {
		m.q = m.q[1:]
	}
	return order, ok
}

func (m *Mailbox) end() {
	m.closed = true
	if m.cancel != nil {
		m.cancel()
	}
	m.signal()
}

func (m *Mailbox) signal() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// next waits for an order. The returned context ends with parent, with an Abort, or with the following call. ok is
// false once the mailbox is closed or parent ended.
func (m *Mailbox) next(parent context.Context) (ctx context.Context, msg message.Order, ok bool) {
	for {
		m.mu.Lock()
		if m.closed || parent.Err() != nil {
			m.mu.Unlock()
			return nil, nil, false
		}
		if len(m.q) > 0 {
			msg := m.q[0]
			m.q = m.q[1:]
			if m.cancel != nil {
				m.cancel()
			}
			ctx, cancel := context.WithCancel(parent)
			m.cancel = cancel
			m.mu.Unlock()
			return ctx, msg, true
		}
		m.mu.Unlock()
		select {
		case <-m.wake:
		case <-parent.Done():
		}
	}
}
