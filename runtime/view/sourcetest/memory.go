// Package sourcetest holds what tests of sources need: the contract that every source keeps, and one in memory.
package sourcetest

import (
	"context"
	"io"
	"sync"

	"brood/runtime/event"
	"brood/runtime/view"
)

// Memory is a source over records in memory. Append may be called while others read.
type Memory struct {
	mu      sync.Mutex
	records []event.Record
	closed  bool
	wake    chan struct{}
}

// NewMemory is a source that holds some records and waits for more.
func NewMemory(rs ...event.Record) *Memory {
	return &Memory{records: rs, wake: make(chan struct{})}
}

// Append adds records and wakes those who wait for them.
func (m *Memory) Append(rs ...event.Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records = append(m.records, rs...)
	close(m.wake)
	m.wake = make(chan struct{})
}

// Close says that no further record comes.
func (m *Memory) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	close(m.wake)
	m.wake = make(chan struct{})
}

// Snapshot folds from the start.
func (m *Memory) Snapshot(ctx context.Context, at view.Position) (*view.View, error) {
	m.mu.Lock()
	rs := m.records
	m.mu.Unlock()
	v := view.New()
	for _, r := range rs[:min(at, uint64(len(rs)))] {
		v.Apply(r)
	}
	return v, ctx.Err()
}

// Next waits for records.
func (m *Memory) Next(ctx context.Context, after view.Position, most int) (view.Batch, error) {
	for {
		m.mu.Lock()
		rs, closed, wake := m.records, m.closed, m.wake
		m.mu.Unlock()
		if n := uint64(len(rs)); after < n {
			to := min(n, after+uint64(max(1, most)))
			return view.Batch{Records: rs[after:to:to], Next: to, Live: to == n}, nil
		}
		if closed {
			return view.Batch{Next: after}, io.EOF
		}
		select {
		case <-ctx.Done():
			return view.Batch{Next: after}, ctx.Err()
		case <-wake:
		}
	}
}
