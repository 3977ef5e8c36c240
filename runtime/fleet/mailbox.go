package fleet

import (
	"context"
	"sync"

	"brood/runtime/message"
)

// Mailbox is a worker's queue of messages. Posting never waits, and an Abort cancels at once whatever the worker is
// doing.
type Mailbox struct {
	mu     sync.Mutex
	q      []message.Order
	wake   chan struct{}
	cancel context.CancelFunc // of the message being handled
	closed bool
}

// NewMailbox is an empty queue.
func NewMailbox() *Mailbox { return &Mailbox{wake: make(chan struct{}, 1)} }

// Post implements [Seat].
func (m *Mailbox) Post(msg message.Order) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch msg.(type) {
	case message.Away:
		m.end()
		return
	case message.Abort:
		m.q = m.q[:0] // what an abort overtakes is void
		if m.cancel != nil {
			m.cancel()
		}
	}
	m.q = append(m.q, msg)
	m.signal()
}

// Close cancels what is going on and ends the worker, however much is queued: a death.
func (m *Mailbox) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.end()
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

// next waits for a message; its context ends with parent or with an Abort.
func (m *Mailbox) next(parent context.Context) (context.Context, message.Order, bool) {
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
