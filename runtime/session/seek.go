package session

import (
	"fmt"
	"io"
	"sort"
)

// Records returns the number of records that can be read now. If the log is damaged, it counts the records before that.
func (r *Reader) Records() uint64 {
	if r.shut || r.refresh() != nil || len(r.segs) == 0 {
		return r.at
	}
	return r.segs[len(r.segs)-1].index.next
}

// refresh opens new segments and indexes all complete frames of the last one.
func (r *Reader) refresh() error {
	if r.shut {
		return ErrClosed
	}
	if err := r.discover(); err != nil && len(r.segs) == 0 {
		return err
	}
	if len(r.segs) == 0 {
		return nil
	}
	return r.segs[len(r.segs)-1].ensure()
}

// Seek makes record n the next one; n = Records() is the end of the log. After an error the position has not changed.
func (r *Reader) Seek(n uint64) error {
	if err := r.refresh(); err != nil {
		return err
	}
	if len(r.segs) == 0 && n == 0 {
		return nil
	}
	if n < r.First() {
		return fmt.Errorf("session: there is no record %d any more: the log begins with record %d", n, r.First())
	}
	if len(r.segs) == 0 || n > r.segs[len(r.segs)-1].index.next {
		return fmt.Errorf("session: there is no record %d yet: the log has %d", n, r.Records())
	}
	cur := sort.Search(len(r.segs), func(i int) bool { return r.segs[i].first > n }) - 1
	seg := r.segs[cur]
	off, h, err := seg.find(n)
	if err == io.EOF && cur == len(r.segs)-1 {
		r.cur, r.off, r.at, r.ready, r.wreck = cur, off, n, nil, nil
		return nil
	}
	if err == io.EOF {
		err = badFrame(fmt.Sprintf("record %d is missing", n))
	}
	if err != nil {
		return seg.corrupt(off, err)
	}
	_, stored, err := seg.frame(off, h.first)
	if err != nil {
		return seg.corrupt(off, err)
	}
	ready, err := r.unpack(h, stored)
	if err != nil {
		return seg.corrupt(off, err)
	}
	r.cur, r.off, r.at, r.ready, r.frame, r.wreck = cur, off+h.size(), n, ready[n-h.first:], off, nil
	return nil
}

// Keyframe returns the last keyframe at or before record before: the number of the record that follows the keyframe,
// and the payload passed to AppendKeyframe, which the caller owns. ok is false if there is none.
func (r *Reader) Keyframe(before uint64) (record uint64, payload []byte, ok bool, err error) {
	if err := r.refresh(); err != nil {
		return 0, nil, false, err
	}
	seg, off, h, err := r.last(kindKeyframe, before)
	if err != nil || seg == nil {
		return 0, nil, false, err
	}
	_, stored, err := seg.frame(off, h.first)
	if err == nil {
		payload, err = r.code.open(h, stored)
	}
	if err != nil {
		return 0, nil, false, seg.corrupt(off, err)
	}
	return h.first, payload, true, nil
}

// last returns the last frame that contains a record of this kind and begins at or before record n; seg is nil if there
// is none.
func (r *Reader) last(kind int, n uint64) (seg *segment, off int64, h header, err error) {
	for i := len(r.segs) - 1; i >= 0; i-- {
		if s := r.segs[i]; s.first <= n {
			off, h, err := s.last(kind, n)
			if err != io.EOF {
				return s, off, h, err
			}
		}
	}
	return nil, 0, h, nil
}
