package session

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"brood/runtime/event"
)

// Reader reads the log of a session, also while it is being written; it takes no lock. It is used by one goroutine.
type Reader struct {
	dir   string
	code  *coder
	segs  []*segment // 1, 2, ... as far as they are known
	cur   int        // segment of the position
	off   int64      // of the next frame in it
	at    uint64     // number of the next record
	ready [][]byte   // encoded records of the frame before off that were not yet returned
	frame int64      // offset of that frame
	seen  int64      // size of the last segment when its end was last looked at closely; -1 never
	wreck error      // damage that was found
	shut  bool
}

// OpenReader opens the log in dir at its first record. Close it.
func OpenReader(dir string) (*Reader, error) {
	code, err := newCoder()
	if err != nil {
		return nil, err
	}
	r := &Reader{dir: dir, code: code, seen: -1, off: segmentHeader}
	if err := r.discover(); err != nil && len(r.segs) == 0 {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Close releases the files. Later calls of other methods fail.
func (r *Reader) Close() error {
	if r.shut {
		return nil
	}
	r.shut = true
	r.code.close()
	var err error
	for _, s := range r.segs {
		err = errors.Join(err, s.file.Close())
	}
	return err
}

// At is the number of the record that Next returns next: how many lie before it.
func (r *Reader) At() uint64 { return r.at }

// Torn says what lies behind the last whole frame, once Next has returned io.EOF: a frame that is being written, or
// that a dying writer left half written. Nil when there is nothing.
func (r *Reader) Torn() *Recovered {
	if r.shut || len(r.segs) == 0 {
		return nil
	}
	seg := r.segs[r.cur]
	size, err := seg.size()
	if err != nil || size <= r.off {
		return nil
	}
	return &Recovered{Segment: seg.name(), Offset: r.off, Lost: size - r.off}
}

// Next returns the next record, or io.EOF when there is none yet; it may be asked again later. A *CorruptError is
// final.
func (r *Reader) Next() (event.Record, error) {
	for len(r.ready) == 0 {
		if err := r.load(); err != nil {
			if errors.As(err, new(*CorruptError)) {
				r.wreck = err
			}
			return event.Record{}, err
		}
	}
	rec, err := r.code.decode(r.ready[0])
	if err != nil {
		return rec, r.segs[r.cur].corrupt(r.frame, badFrame(fmt.Sprintf("record %d: %v", r.at, err)))
	}
	r.ready = r.ready[1:]
	r.at++
	return rec, nil
}

// load reads the frame at the position, or moves on to the next segment.
func (r *Reader) load() error {
	h, stored, err := r.peek()
	if err != nil || stored == nil {
		return err
	}
	if !h.keyframe() {
		ready, err := r.unpack(h, stored)
		if err != nil {
			return r.segs[r.cur].corrupt(r.off, err)
		}
		r.ready, r.frame = ready, r.off
	}
	r.off += h.size()
	return nil
}

// peek is the frame at the position, with its checksums checked; stored is valid until the next call. It is nil where
// there is no frame yet, and the position may have moved on to the next segment: look again.
func (r *Reader) peek() (h header, stored []byte, err error) {
	if r.shut {
		return h, nil, ErrClosed
	}
	if r.wreck != nil {
		return h, nil, r.wreck
	}
	if len(r.segs) == 0 {
		if err := r.discover(); err != nil {
			return h, nil, err
		}
		if len(r.segs) == 0 {
			return h, nil, io.EOF
		}
	}
	if h, stored, err = r.segs[r.cur].frame(r.off, r.at); err != nil {
		return h, nil, r.edge(err)
	}
	return h, stored, nil
}

// sound goes over all frames and returns the damage that Next would meet in one, at the price of their checksums alone.
// The position is lost.
func (r *Reader) sound() error {
	r.cur, r.off, r.at, r.ready, r.wreck = 0, segmentHeader, 0, nil, nil
	for {
		h, stored, err := r.peek()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case stored != nil:
			r.off, r.at = r.off+h.size(), r.at+uint64(h.count)
		}
	}
}

// unpack returns the encoded records of a frame; they are the caller's.
func (r *Reader) unpack(h header, stored []byte) ([][]byte, error) {
	plain, err := r.code.open(h, stored)
	if err != nil {
		return nil, err
	}
	return split(plain, int(h.count))
}

// edge decides what it means that no frame could be read at the position: the present end, the end of a segment (then
// it moves on and returns nil), or damage.
func (r *Reader) edge(why error) error {
	if why != io.EOF && !errors.As(why, new(badFrame)) {
		return why
	}
	seg := r.segs[r.cur]
	size, err := seg.size()
	if err != nil {
		return err
	}
	damage := r.discover()
	last := r.cur == len(r.segs)-1
	if last && damage == nil {
		behind := false
		if size != r.seen && why != io.EOF {
			if behind, err = seg.later(r.off, r.at); err != nil {
				return err
			}
		}
		r.seen = size
		if !behind {
			seg.forget()
			return io.EOF
		}
	}
	// Something lies behind, so a frame that was being written is whole by now.
	seg.forget()
	_, _, err = seg.frame(r.off, r.at)
	switch {
	case err == nil:
		return nil
	case err != io.EOF:
		return seg.corrupt(r.off, err)
	case last && damage != nil:
		return damage
	case last:
		return io.EOF
	case r.segs[r.cur+1].first != r.at:
		next := r.segs[r.cur+1]
		return &CorruptError{Segment: next.name(), Reason: fmt.Sprintf("it begins with record %d, not %d", next.first, r.at)}
	}
	r.cur, r.off = r.cur+1, segmentHeader
	return nil
}

// discover opens segments that have appeared. Only a whole header makes a segment.
func (r *Reader) discover() error {
	for {
		n := uint32(len(r.segs) + 1)
		s, err := openSegment(r.dir, n)
		later := false
		if err != nil {
			// It may be half written, or just begun. Behind a later segment that exists by now it must be whole.
			later = r.exists(n + 1)
			s, err = openSegment(r.dir, n)
		}
		var bad badFrame
		switch {
		case err == nil:
			if n > 1 {
				r.segs[n-2].closed = true
			}
			r.segs, r.seen = append(r.segs, s), -1
			continue
		case errors.As(err, &bad) && bad != cutHeader:
			return &CorruptError{Segment: segmentName(n), Reason: bad.Error()}
		case !errors.Is(err, fs.ErrNotExist) && bad != cutHeader:
			return err
		case later:
			return &CorruptError{Segment: segmentName(n), Reason: "it is missing or cut off"}
		case n == 1 && !holdsLog(r.dir):
			return noLog(r.dir)
		}
		return nil
	}
}

// exists says whether segment n or a later one was begun.
func (r *Reader) exists(n uint32) bool {
	for _, n := range []uint32{n, n + 1} {
		if _, err := os.Stat(filepath.Join(r.dir, segmentName(n))); err == nil {
			return true
		}
	}
	return false
}
