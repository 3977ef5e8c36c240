package session

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"brood/runtime/event"
)

// maxQueued is the number of bytes in the queue from which on it is written without waiting for the timer.
const maxQueued = 256 << 10

// Append adds records to the log in their order. If one of them is essential, all of them are written to the operating
// system before Append returns; otherwise within 250 ms. If a record cannot be encoded or is too large, Append returns
// an error and appends none. A *DiskError means that the run should pause; it has the number of essential records that
// are missing. Append does not retain the records.
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
	if essential || s.queue.bytes >= maxQueued {
		if err := s.flush(); err != nil {
			return err
		}
	}
	return s.takeFailure()
}

// ErrKeyframe is returned for a keyframe that exceeds the limit of 16 MiB. Nothing was written.
var ErrKeyframe = errors.New("session: the keyframe is over the limit of 16 MiB")

// AppendKeyframe adds a keyframe: the data with which a viewer can start at this position. It returns [ErrKeyframe] if
// the payload exceeds 16 MiB. A keyframe is not essential: if the disk is full it is dropped and counted, see
// [Session.Dropped].
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

// Sync returns when all appended records are on stable storage.
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

// flush writes the queue. The queue is empty afterwards, even after an error: if writing fails, flush drops the records
// that are not essential and retries, and on a full disk it releases the reserve and retries again. The caller holds
// mu.
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

// sync flushes the written records to stable storage.
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
		return nil // the segment was synced when it was closed
	case err != nil:
		return s.diskError("sync", 0, err)
	}
	s.log.synced = max(s.log.synced, end)
	s.log.persist()
	return nil
}

// flushSome is called periodically to write the queue.
func (s *Session) flushSome() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.flush() // the queue has no essential records, and dropped ones are counted
}

// syncSome is called periodically to sync the log. It also restores the reserve after a full disk.
func (s *Session) syncSome() {
	err := s.sync()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.failed = err
	}
	_ = s.reserve.take() // if there is no space yet, the next call retries
}

// takeFailure returns the error of a background sync, once. The caller holds mu.
func (s *Session) takeFailure() error {
	err := s.failed
	s.failed = nil
	return err
}

func (s *Session) diskError(op string, missing int, err error) error {
	return onDisk(op, filepath.Join(s.dir, segmentName(s.log.number)), missing, err)
}
