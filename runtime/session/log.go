package session

import (
	"errors"
	"io"
	"path/filepath"
)

// flushBytes is the number of uncompressed bytes from which on no more frames are added to a write call.
const flushBytes = 4 << 20

// log writes segments. It is not safe for concurrent use.
type log struct {
	dir    string
	disk   disk
	code   *coder
	limit  int64 // size from which on a segment is closed
	number uint32
	file   diskFile
	index  index
	synced int64 // number of bytes of the segment on stable storage

	hints     diskFile // index file; nil after an error
	persisted int      // number of chunks in it

	plain, out []byte // reused
}

// begin creates a segment, which becomes the current one. first is the number of its first record. After an error
// nothing has changed.
func (l *log) begin(number uint32, first uint64) error {
	path := filepath.Join(l.dir, segmentName(number))
	f, err := l.disk.open(path, true)
	if err != nil {
		return err
	}
	if err = writeAll(f, putSegmentHeader(number, first, 0), 0); err == nil {
		if err = f.Sync(); err == nil {
			err = l.disk.syncDir(l.dir)
		}
	}
	if err != nil {
		return errors.Join(err, f.Close(), l.disk.remove(path))
	}
	if l.hints != nil {
		_ = l.hints.Close()
	}
	l.number, l.file, l.synced = number, f, segmentHeader
	l.index = index{end: segmentHeader, next: first}
	l.openHints()
	return nil
}

// openHints creates or truncates the index file of the current segment. After an error there is none: readers do not
// need it.
func (l *log) openHints() {
	l.hints, l.persisted = nil, 0
	f, err := l.disk.open(filepath.Join(l.dir, indexName(l.number)), true)
	if err != nil {
		return
	}
	if writeAll(f, putIndexHeader(l.number), 0) != nil {
		_ = f.Close()
		return
	}
	l.hints = f
	l.persist()
}

// persist writes the complete chunks that are on stable storage to the index file.
func (l *log) persist() {
	if l.hints == nil {
		return
	}
	var b []byte
	n := l.persisted
	for ; n < len(l.index.chunks)-1; n++ {
		c := l.index.chunks[n]
		if c.off+c.length > l.synced {
			break
		}
		b = c.append(b)
	}
	if len(b) == 0 {
		return
	}
	if writeAll(l.hints, b, indexHeader+indexEntry*int64(l.persisted)) != nil {
		_ = l.hints.Close()
		l.hints = nil
		return
	}
	l.persisted = n
}

// roll syncs and closes the current segment and begins the next one.
func (l *log) roll() error {
	if err := l.file.Sync(); err != nil {
		return err
	}
	l.synced = l.index.end
	l.persist()
	old := l.file
	if err := l.begin(l.number+1, l.index.next); err != nil {
		return err
	}
	return old.Close()
}

// write writes the records of q in order and removes them from q. After an error q still has the records whose frames
// are not completely in the file.
func (l *log) write(q *queue) error {
	for len(q.records) > 0 {
		if l.index.end >= l.limit {
			if err := l.roll(); err != nil {
				return err
			}
		}
		var headers []header
		l.out = l.out[:0]
		next, taken := l.index.next, 0
		for plain := 0; taken < len(q.records) && plain < flushBytes && l.index.end+int64(len(l.out)) < l.limit; {
			var h header
			l.plain, h = q.fill(taken, l.plain[:0])
			h.first = next
			l.out, h = l.code.frame(l.out, h, l.plain)
			next, taken, plain = next+uint64(h.count), taken+int(h.count), plain+len(l.plain)
			headers = append(headers, h)
		}
		n, err := l.put(headers)
		q.pop(n)
		if err != nil {
			return err
		}
	}
	return nil
}

// keyframe writes a keyframe.
func (l *log) keyframe(payload []byte) error {
	if l.index.end >= l.limit {
		if err := l.roll(); err != nil {
			return err
		}
	}
	var h header
	l.out, h = l.code.frame(l.out[:0], header{kinds: 1 << kindKeyframe, first: l.index.next}, payload)
	_, err := l.put([]header{h})
	return err
}

// put writes l.out, which contains the given frames, and returns the number of records in completely written frames.
// After a failed write it truncates the incomplete rest but keeps the complete frames, since a reader may have read
// them.
func (l *log) put(headers []header) (records int, err error) {
	n, err := l.file.WriteAt(l.out, l.index.end)
	if err == nil && n < len(l.out) {
		err = io.ErrShortWrite
	}
	for _, h := range headers {
		if int64(n) < h.size() {
			break
		}
		n -= int(h.size())
		records += int(h.count)
		l.index.add(h)
	}
	if err != nil {
		// If this fails too, the next frame overwrites the rest; until then readers treat it as an incomplete tail.
		_ = l.file.Truncate(l.index.end)
	}
	return records, err
}

// close syncs and closes the current segment.
func (l *log) close() error {
	err := l.file.Sync()
	if err == nil {
		l.synced = l.index.end
		l.persist()
	}
	if l.hints != nil {
		_ = l.hints.Close()
	}
	return errors.Join(err, l.file.Close())
}

// writeAll is WriteAt for all of b.
func writeAll(f diskFile, b []byte, off int64) error {
	n, err := f.WriteAt(b, off)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return err
}
