package session

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"brood/runtime/event"
)

// Reader reads the log of a session, also while it is being written. It takes no lock. It must be used by one goroutine
// at a time.
type Reader struct {
	dir   string
	code  *coder
	segs  []*segment // that are open, in the order of the log
	cur   int        // index in segs of the segment of the position
	off   int64      // of the next frame in it
	at    uint64     // number of the next record
	ready [][]byte   // encoded records of the frame before off that Next has not yet returned
	frame int64      // offset of that frame
	seen  int64      // size of the last segment when its end was last examined; -1: never
	wreck error      // first damage found, returned by every later call
	shut  bool
}

// OpenReader opens the log in dir at its first record. The caller closes the reader.
func OpenReader(dir string) (*Reader, error) {
	for {
		r, err := openReader(dir)
		if !errors.Is(err, ErrShortened) { // otherwise the log has a new beginning
			return r, err
		}
	}
}

// openReader is [OpenReader]. It returns ErrShortened if the log is shortened meanwhile.
func openReader(dir string) (*Reader, error) {
	code, err := newCoder()
	if err != nil {
		return nil, err
	}
	r := &Reader{dir: dir, code: code, seen: -1, off: segmentHeader}
	if err := r.discover(); err != nil && (len(r.segs) == 0 || errors.Is(err, ErrShortened)) {
		r.Close()
		return nil, err
	}
	r.at = r.First()
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

// At returns the index of the record that Next returns next, counted from 0.
func (r *Reader) At() uint64 { return r.at }

// First returns the index of the first record of the log: 0 unless [Session.Shorten] removed older ones.
func (r *Reader) First() uint64 {
	if len(r.segs) == 0 {
		return 0
	}
	return r.segs[0].first
}

// Offset returns the bytes of the log before the position.
func (r *Reader) Offset() (n int64) {
	for _, s := range r.segs[:min(r.cur, len(r.segs))] {
		n += s.index.end
	}
	return n + r.off
}

// Torn describes the bytes after the last complete frame, once Next has returned io.EOF: a frame that is being written,
// or that a killed writer left incomplete. It returns nil if there are none.
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

// Next returns the next record, or io.EOF if there is none yet; a later call may return one. After a *CorruptError
// every call fails.
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

// Rest returns an iterator over the records from the position up to the current end of the log. It yields an error of
// Next as the last value.
func (r *Reader) Rest() iter.Seq2[event.Record, error] {
	return func(yield func(event.Record, error) bool) {
		for {
			rec, err := r.Next()
			if err == io.EOF || !yield(rec, err) || err != nil {
				return
			}
		}
	}
}

// Records is [Reader.Rest] for the whole log in dir. It also yields the error of a log that cannot be opened.
func Records(dir string) iter.Seq2[event.Record, error] {
	return func(yield func(event.Record, error) bool) {
		r, err := OpenReader(dir)
		if err != nil {
			yield(event.Record{}, err)
			return
		}
		defer r.Close()
		r.Rest()(yield)
	}
}

// load reads the frame at the position, or advances to the next segment.
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

// peek returns the frame at the position after verifying its checksums. stored is valid until the next call. If stored
// and err are nil, the position may have moved to the next segment: the caller calls peek again.
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

// sound verifies the checksums of all frames and returns the error that Next would return. It does not decode records.
// It changes the position of the reader.
func (r *Reader) sound() error {
	r.cur, r.off, r.at, r.ready, r.wreck = 0, segmentHeader, r.First(), nil, nil
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

// unpack returns copies of the encoded records of a frame.
func (r *Reader) unpack(h header, stored []byte) ([][]byte, error) {
	plain, err := r.code.open(h, stored)
	if err != nil {
		return nil, err
	}
	return split(plain, int(h.count))
}

// edge classifies why no frame could be read at the position: the current end of the log (io.EOF), the end of a segment
// (it advances to the next one and returns nil), or damage.
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
	// More data follows, so a frame that was being written is complete by now.
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

// discover opens new segments. A segment exists once its header is complete.
func (r *Reader) discover() error {
	for {
		n := uint32(1)
		if len(r.segs) > 0 {
			n = r.segs[len(r.segs)-1].next
		}
		s, err := openSegment(r.dir, n)
		later := false
		if err != nil {
			// The header may be incomplete while it is written. If a later segment exists, it must be complete.
			later = r.exists(n + 1)
			s, err = openSegment(r.dir, n)
		}
		var bad badFrame
		switch {
		case err == nil:
			if len(r.segs) > 0 {
				r.segs[len(r.segs)-1].closed = true
			}
			r.segs, r.seen = append(r.segs, s), -1
			continue
		case errors.As(err, &bad) && bad != cutHeader:
			return &CorruptError{Segment: segmentName(n), Reason: bad.Error()}
		case !errors.Is(err, fs.ErrNotExist) && bad != cutHeader:
			return err
		case r.shortened(n):
			return ErrShortened
		case later:
			return &CorruptError{Segment: segmentName(n), Reason: "it is missing or cut off"}
		case n == 1 && !holdsLog(r.dir):
			return noLog(r.dir)
		}
		return nil
	}
}

// shortened reports whether [Session.Shorten] removed segment n since the reader was opened.
func (r *Reader) shortened(n uint32) bool {
	if n == 1 {
		return false
	}
	s, err := openSegment(r.dir, 1)
	if err != nil {
		return false
	}
	defer s.file.Close()
	return s.next > n
}

// exists reports whether the file of segment n or of a later one exists.
func (r *Reader) exists(n uint32) bool {
	for _, n := range []uint32{n, n + 1} {
		if _, err := os.Stat(filepath.Join(r.dir, segmentName(n))); err == nil {
			return true
		}
	}
	return false
}
