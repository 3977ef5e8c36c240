package session

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"brood/runtime/event"
)

// beginning is the file in which Shorten writes the new first segment.
const beginning = ".log-begin"

// Shorten removes the records before record n from the log, and puts head in their place: records that make the log
// complete for its readers, at most n of them. They take the numbers before n; all later records keep theirs. A reader
// of the session sees the old or the new beginning, also after a crash; one that is open reads on, or gets
// [ErrShortened]. Appends may continue meanwhile. After an error the log is unchanged. Shorten must not be called
// concurrently with itself.
func (s *Session) Shorten(n uint64, head []event.Record) error {
	if err := s.closeSegment(n); err != nil {
		return err
	}
	r, err := OpenReader(s.dir)
	if err != nil {
		return err
	}
	defer r.Close()
	if uint64(len(head)) > n || n < r.First() {
		return fmt.Errorf("session: the log cannot begin with record %d: it begins with %d", n, r.First())
	}
	if err := r.Seek(n); err != nil {
		return err
	}
	path, until := filepath.Join(s.dir, beginning), r.segs[r.cur].number
	l := &log{disk: s.log.disk, code: r.code}
	if err = errors.Join(l.rewrite(path, r, head), r.Close()); err == nil { // Windows renames no open file
		l.disk.remove(filepath.Join(s.dir, indexName(1))) // readers do not need it
		err = os.Rename(path, filepath.Join(s.dir, segmentName(1)))
	}
	if err != nil {
		return errors.Join(onDisk("write", path, 0, err), l.disk.remove(path))
	}
	if l.disk.syncDir(s.dir) == nil { // otherwise the next writer removes them
		s.log.removeUpTo(until)
	}
	return nil
}

// closeSegment closes the current segment if record n is in it, so that nothing is appended to the segment of n.
func (s *Session) closeSegment(n uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	if err := s.flush(); err != nil {
		return err
	}
	if len(s.log.index.chunks) == 0 || n < s.log.index.chunks[0].first {
		return nil
	}
	return s.diskError("write", 0, s.log.roll())
}

// rewrite writes the first segment of a shortened log to path: head, and the records from the position of r to the end
// of its segment.
func (l *log) rewrite(path string, r *Reader, head []event.Record) (err error) {
	seg, at := r.segs[r.cur], r.at
	if l.file, err = l.disk.open(path, true); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.file.Close()) }()
	first := at - uint64(len(head))
	if err := writeAll(l.file, putSegmentHeader(1, first, seg.next), 0); err != nil {
		return err
	}
	l.limit, l.index = 1<<62, index{end: segmentHeader, next: first}
	var q queue
	for _, rec := range head {
		data, kind, err := l.code.record(rec)
		if err != nil {
			return err
		}
		q.push(queued{data, kind, true})
	}
	for _, data := range r.ready { // of the frame of the position, whose earlier records are removed
		rec, err := l.code.decode(data)
		if err != nil {
			return err
		}
		kind, _ := kindOf(rec)
		q.push(queued{data, kind, true})
	}
	if err := l.write(&q); err != nil {
		return err
	}
	size, err := seg.size()
	if err != nil {
		return err
	}
	if _, err = io.Copy(io.NewOffsetWriter(l.file, l.index.end),
		io.NewSectionReader(seg.file, r.off, size-r.off)); err != nil {
		return err
	}
	return l.file.Sync()
}

// removeUpTo removes the segments from 2 up to a number, and an unfinished beginning. A file that cannot be removed
// only takes up space.
func (l *log) removeUpTo(number uint32) {
	os.Remove(filepath.Join(l.dir, beginning))
	entries, _ := os.ReadDir(l.dir)
	for _, e := range entries {
		var n uint32
		var kind string
		if _, err := fmt.Sscanf(e.Name(), "log-%06d.%s", &n, &kind); err == nil && n > 1 && n <= number {
			os.Remove(filepath.Join(l.dir, e.Name()))
		}
	}
}

// secondSegment returns the number of the segment after the first one of the log in dir; 2 if unknown.
func secondSegment(dir string) uint32 {
	s, err := openSegment(dir, 1)
	if err != nil {
		return 2
	}
	defer s.file.Close()
	return s.next
}
