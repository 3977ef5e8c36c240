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

// segment reads one segment file. It trusts nothing that it finds.
type segment struct {
	dir    string
	number uint32
	first  uint64
	file   *os.File
	win    []byte // file content from winAt on, as it was when it was read
	winAt  int64
	index  index
	closed bool // a later segment exists
	hinted bool // the index file was asked
	whole  bool // the index covers all of a closed segment
	alone  bool // the index file lied
}

const window = 256 << 10

// openRegular opens a file to read it. A pipe or a device, on which a reader could wait forever, is refused.
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

// openSegment opens segment number of dir and reads its header. A header that is cut off is a badFrame.
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
		s.first, err = parseSegmentHeader(b, number)
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

// forget drops what was read of the file: it may have been half written.
func (s *segment) forget() { s.win = s.win[:0] }

// bytes are up to n bytes from off on, fewer at the end of the file. They are valid until the next call.
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

// header is the frame header at off, where record want is due, of a frame that lies within the file. It fails with
// io.EOF where the file ends, or with a badFrame.
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

// frame is header plus the stored payload with its checksum checked; the payload is valid until the next call.
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

// later says whether a whole frame that could follow record want lies anywhere behind off.
func (s *segment) later(off int64, want uint64) (bool, error) {
	budget := int64(2 * segmentBytes) // of payload bytes looked at: forged headers must not cost a person's day
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

// corrupt says where the damage is. bad is why the bytes at off are no frame.
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
