package session

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

func segmentName(number uint32) string { return fmt.Sprintf("log-%06d.brood", number) }

func indexName(number uint32) string { return fmt.Sprintf("log-%06d.index", number) }

// segment reads one segment file. All data in the file are untrusted.
type segment struct {
	dir    string
	number uint32
	first  uint64
	next   uint32 // number of the segment after it
	file   *os.File
	win    []byte // cached part of the file, from offset winAt on
	winAt  int64
	index  index
	closed bool // a later segment exists
	hinted bool // the index file was read
	whole  bool // the index covers the whole of a closed segment
	// distrusted means that the index file was wrong and is ignored.
	distrusted bool
}

const window = 256 << 10

// openRegular opens a file for reading. It returns an error for pipes and devices, on which a reader could block
// forever.
func openRegular(path string) (*os.File, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return os.Open(path)
}

// openSegment opens a segment in dir and reads its header. It returns cutHeader, a badFrame, if the header is
// incomplete.
func openSegment(dir string, number uint32) (*segment, error) {
	path := filepath.Join(dir, segmentName(number))
	f, err := openRegular(path)
	if errors.Is(err, fs.ErrPermission) {
		return nil, Denied(path)
	}
	if err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	s := &segment{dir: dir, number: number, file: f}
	b, err := s.bytes(0, segmentHeader)
	if err == nil {
		s.first, s.next, err = parseSegmentHeader(b, number)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	s.index = index{end: segmentHeader, next: s.first}
	return s, nil
}

func (s *segment) name() string { return segmentName(s.number) }

func (s *segment) size() (int64, error) {
	st, err := s.file.Stat()
	if err != nil {
		return 0, fmt.Errorf("session: %w", err)
	}
	return st.Size(), nil
}

// forget drops the cached part of the file: a frame may have been incomplete when it was read.
func (s *segment) forget() { s.win = s.win[:0] }

// bytes returns n bytes of the file from off on, fewer at its end. They are valid until the next call.
func (s *segment) bytes(off int64, n int) ([]byte, error) {
	if lo := off - s.winAt; lo >= 0 && lo+int64(n) <= int64(len(s.win)) {
		return s.win[lo : lo+int64(n)], nil
	}
	if cap(s.win) < max(n, window) {
		s.win = make([]byte, 0, max(n, window))
	}
	got, err := s.file.ReadAt(s.win[:max(n, window)], off)
	if err != nil && err != io.EOF {
		s.win = s.win[:0]
		return nil, fmt.Errorf("session: read %s: %w", s.name(), err)
	}
	s.win, s.winAt = s.win[:got], off
	return s.win[:min(n, got)], nil
}

// header returns the header of the frame at off, whose first record must be want. It returns io.EOF if the file ends at
// off, and a badFrame if there is no complete and valid frame. It does not check the payload.
func (s *segment) header(off int64, want uint64) (header, error) {
	b, err := s.bytes(off, frameHeader)
	if err != nil {
		return header{}, err
	}
	if len(b) == 0 {
		return header{}, io.EOF
	}
	h, err := parseHeader(b)
	if err != nil {
		return header{}, err
	}
	if h.first != want {
		return header{}, badFrame(fmt.Sprintf("the frame begins with record %d, not %d", h.first, want))
	}
	if off+h.size() > s.winAt+int64(len(s.win)) {
		if size, err := s.size(); err != nil {
			return header{}, err
		} else if off+h.size() > size {
			return header{}, badFrame("the frame is cut off")
		}
	}
	return h, nil
}

// frame is header and also returns the stored payload after verifying its checksum. The payload is valid until the next
// call.
func (s *segment) frame(off int64, want uint64) (header, []byte, error) {
	h, err := s.header(off, want)
	if err != nil {
		return h, nil, err
	}
	b, err := s.bytes(off+frameHeader, int(h.stored))
	if err != nil {
		return h, nil, err
	}
	if len(b) < int(h.stored) {
		return h, nil, badFrame("the frame is cut off")
	}
	if crc(b) != h.payload {
		return h, nil, badFrame("the checksum of the payload differs")
	}
	return h, b, nil
}

// later reports whether there is a valid frame anywhere after off whose first record is at least want. It also returns
// true when it has examined too many bytes.
func (s *segment) later(off int64, want uint64) (bool, error) {
	budget := int64(2 * segmentBytes) // of payload bytes, since forged headers could make the search take very long
	for off++; ; {
		b, err := s.bytes(off, window)
		if err != nil {
			return false, err
		}
		i := bytes.Index(b, []byte(frameMagic))
		if i < 0 {
			if len(b) < window {
				return false, nil
			}
			off += int64(len(b) - len(frameMagic) + 1)
			continue
		}
		off += int64(i)
		if b, err = s.bytes(off, frameHeader); err != nil {
			return false, err
		}
		if h, err := parseHeader(b); err == nil && h.first >= want {
			budget -= h.size()
			if _, _, err := s.frame(off, h.first); err == nil || budget < 0 {
				return true, nil
			} else if !errors.As(err, new(badFrame)) {
				return false, err
			}
		}
		off++
	}
}

// corrupt returns a *CorruptError with the position of the damage. bad is the reason why there is no frame at off; if
// it is not a badFrame, corrupt returns it unchanged.
func (s *segment) corrupt(off int64, bad error) error {
	if !errors.As(bad, new(badFrame)) {
		return bad
	}
	n := 0
	x := index{end: segmentHeader, next: s.first}
	for x.end < off {
		h, err := s.header(x.end, x.next)
		if err != nil {
			break
		}
		x.add(h)
		n++
	}
	return &CorruptError{Segment: s.name(), Offset: off, Frame: n, Reason: bad.Error()}
}
