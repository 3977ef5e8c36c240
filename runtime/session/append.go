package session

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"brood/runtime/event"
)

// waiting bounds, in bytes, what may wait for the timer.
const waiting = 256 << 10

// Append adds records to the log in their order. If one of them is essential, all are with the operating system when it
// returns; else they follow within 250 ms. A record that cannot be encoded, or is too large, is refused, and then none
// is appended. A *DiskError says that the run should pause, and how many essential records are missing. The records are
// not kept.
func (s *Session) Append(records ...event.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	essential, bytes := false, 0
	encoded := make([]queued, 0, len(records))
	for i, r := range records {
		data, kind, err := s.log.code.record(r)
		if err != nil {
			return fmt.Errorf("record %d of %d: %w", i+1, len(records), err)
		}
		encoded = append(encoded, queued{data, kind, r.Essential()})
		if r.Essential() {
			essential, bytes = true, bytes+len(data)
		}
	}
	s.reserve.need(bytes)
	for _, q := range encoded {
		s.queue.push(q)
	}
	if essential || s.queue.bytes >= waiting {
		if err := s.flush(); err != nil {
			return err
		}
	}
	return s.takeFailure()
}

// ErrKeyframe says that a keyframe is over the limit of 16 MiB. Nothing was written.
var ErrKeyframe = errors.New("session: the keyframe is over the limit of 16 MiB")

// AppendKeyframe adds what a viewer needs to begin here, at most 16 MiB: else [ErrKeyframe]. It is not essential: on a
// full disk it is dropped and counted.
func (s *Session) AppendKeyframe(payload []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return ErrClosed
	case len(payload) > maxPayload:
		return ErrKeyframe
	}
	if err := s.flush(); err != nil {
		return err
	}
	if s.log.keyframe(payload) != nil {
		s.dropped++
	}
	return s.takeFailure()
}

// Sync returns once all that was appended is on stable storage.
func (s *Session) Sync() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ErrClosed
	}
	err := s.flush()
	s.mu.Unlock()
	return errors.Join(err, s.sync())
}

// flush writes the queue and leaves it empty, whatever happens. Points give way to essential records, and those may use
// the reserve. The caller holds mu.
func (s *Session) flush() error {
	err := s.log.write(&s.queue)
	if err == nil {
		return nil
	}
	s.dropped += s.queue.keepEssential()
	if err = s.log.write(&s.queue); err == nil {
		return nil
	}
	if full(err) && s.reserve.release() {
		if again := s.log.write(&s.queue); again != nil {
			err = again
		}
	}
	missing := len(s.queue.records)
	s.queue = queue{}
	return s.diskError("write", missing, err)
}

// sync makes what was written durable.
func (s *Session) sync() error {
	s.syncing.Lock()
	defer s.syncing.Unlock()
	s.mu.Lock()
	file, number, end, clean := s.log.file, s.log.number, s.log.index.end, s.log.synced == s.log.index.end
	s.mu.Unlock()
	if clean {
		return nil
	}
	err := file.Sync()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case number != s.log.number || s.closed && errors.Is(err, os.ErrClosed):
		return nil // it was synced when it was closed
	case err != nil:
		return s.diskError("sync", 0, err)
	}
	s.log.synced = max(s.log.synced, end)
	s.log.persist()
	return nil
}

// flushSome and syncSome are the timers' calls.
func (s *Session) flushSome() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.flush() // no essential record waits, and what else did not fit is counted
}

func (s *Session) syncSome() {
	err := s.sync()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.failed = err
	}
	_ = s.reserve.take() // again, once there is space; until then essential records have none in reserve
}

// takeFailure returns what went wrong in the background, once. The caller holds mu.
func (s *Session) takeFailure() error {
	err := s.failed
	s.failed = nil
	return err
}

func (s *Session) diskError(op string, missing int, err error) error {
	return onDisk(op, filepath.Join(s.dir, segmentName(s.log.number)), missing, err)
}
