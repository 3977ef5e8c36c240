package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// resume opens the last segment in dir for appending. It truncates an incomplete tail and returns its description; nil
// if there was none.
func (l *log) resume() (*Recovered, error) {
	r, err := OpenReader(l.dir)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if err := r.discover(); err != nil {
		return nil, err
	}
	next := uint32(1)
	if n := len(r.segs); n > 0 {
		l.removeUpTo(r.segs[0].next - 1) // the writer may have been killed in Shorten
		s := r.segs[n-1]
		if rec, err := l.attach(s); err != nil || rec != nil {
			return rec, err
		}
		next = s.next
	}
	// A writer may have been killed while it created the next segment, whose header is then incomplete.
	torn := filepath.Join(l.dir, segmentName(next))
	st, err := os.Stat(torn)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	rec := &Recovered{Segment: segmentName(next), Lost: st.Size()}
	if next > 1 {
		return rec, onDisk("open", torn, 0, l.disk.remove(torn))
	}
	return rec, onDisk("open", torn, 0, l.begin(1, 0))
}

// attach makes s, the last segment, the current one of l, and truncates an incomplete tail. It returns an error if
// there is a valid frame after invalid bytes.
func (l *log) attach(s *segment) (rec *Recovered, err error) {
	why := s.extend(true)
	var bad badFrame
	if why != nil {
		if !errors.As(why, &bad) {
			return nil, why
		}
		if later, err := s.later(s.index.end, s.index.next); err != nil {
			return nil, err
		} else if later {
			return nil, s.corrupt(s.index.end, bad)
		}
	}
	size, err := s.size()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(l.dir, s.name())
	f, err := l.disk.open(path, false)
	if err != nil {
		return nil, onDisk("open", path, 0, err)
	}
	if size > s.index.end {
		rec = &Recovered{Segment: s.name(), Offset: s.index.end, Lost: size - s.index.end}
		err = f.Truncate(s.index.end)
	}
	// Data that survived a kill may be only in the page cache: sync it, since it counts as synced from here on.
	if err = errors.Join(err, f.Sync()); err != nil {
		return nil, onDisk("open", path, 0, errors.Join(err, f.Close()))
	}
	l.number, l.file, l.index, l.synced = s.number, f, s.index, s.index.end
	l.openHints()
	return rec, nil
}
