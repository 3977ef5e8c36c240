package session

import (
	"errors"
	"io"
	"path/filepath"
)

// extend adds the frames up to the last complete one to the index. If verify is set, it also checks their payloads. It
// returns nil if the file ends after that frame, and otherwise the badFrame that follows.
func (s *segment) extend(verify bool) error {
	if !s.hinted {
		s.hinted = true
		s.load()
	}
	for {
		h, err := s.header(s.index.end, s.index.next)
		if err == nil && verify {
			_, _, err = s.frame(s.index.end, s.index.next)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		s.index.add(h)
	}
}

// load reads the index file. It ignores the file unless its last chunk matches the frames of the segment.
func (s *segment) load() {
	size, err := s.size()
	if err != nil {
		return
	}
	f, err := openRegular(filepath.Join(s.dir, indexName(s.number)))
	if err != nil {
		return
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, indexHeader+indexEntry*(size/chunkBytes)))
	if err != nil {
		return
	}
	chunks := parseIndex(b, s.number, size)
	if len(chunks) == 0 {
		return
	}
	last := chunks[len(chunks)-1]
	x := index{end: last.off, next: last.first}
	for x.end < last.off+last.length {
		h, err := s.header(x.end, x.next)
		if err != nil {
			return
		}
		x.add(h)
	}
	if len(x.chunks) == 1 && x.chunks[0] == last {
		s.index = index{chunks: chunks, end: x.end, next: x.next}
	}
}

// frames calls f for the frames from chunk i on, until f returns true or the segment ends. ok is false if the index
// file was wrong about the start of the chunk; frames has then rebuilt the index from the frames, and the caller
// retries.
func (s *segment) frames(i int, f func(off int64, h header) (stop bool)) (ok bool, err error) {
	c := s.index.chunks[i]
	x := index{end: c.off, next: c.first}
	for x.end < s.index.end {
		h, err := s.header(x.end, x.next)
		if err != nil {
			if errors.As(err, new(badFrame)) && !s.distrusted {
				s.index, s.distrusted, s.whole = index{end: segmentHeader, next: s.first}, true, false
				return false, s.ensure()
			}
			return true, s.corrupt(x.end, err)
		}
		if f(x.end, h) {
			return true, nil
		}
		x.add(h)
	}
	return true, nil
}

// ensure extends the index to the last complete frame. Invalid bytes after it are not an error here.
func (s *segment) ensure() error {
	if s.whole {
		return nil
	}
	s.forget()
	if err := s.extend(!s.closed); err != nil && !errors.As(err, new(badFrame)) {
		return err
	}
	s.whole = s.closed
	return nil
}

// find returns the offset and header of the frame that contains record n; io.EOF and the end of the segment if there is
// none.
func (s *segment) find(n uint64) (off int64, h header, err error) {
	if err := s.ensure(); err != nil {
		return 0, h, err
	}
	for {
		i, found := s.index.at(n), false
		if i < 0 {
			return s.index.end, h, io.EOF
		}
		ok, err := s.frames(i, func(at int64, g header) bool {
			off, h, found = at, g, n < g.first+uint64(g.count)
			return found
		})
		switch {
		case err != nil:
			return off, h, err
		case ok && found:
			return off, h, nil
		case ok:
			return s.index.end, h, io.EOF
		}
	}
}

// last returns the offset and header of the last frame that contains a record of this kind and begins at or before
// record n; io.EOF if there is none.
func (s *segment) last(kind int, n uint64) (off int64, h header, err error) {
	if err := s.ensure(); err != nil {
		return 0, h, err
	}
	for i := s.index.at(n); i >= 0; i-- {
		c, found := s.index.chunks[i], false
		if c.kinds&(1<<kind) == 0 {
			continue
		}
		ok, err := s.frames(i, func(at int64, g header) bool {
			if at >= c.off+c.length || g.first > n {
				return true
			}
			if g.kinds&(1<<kind) != 0 {
				off, h, found = at, g, true
			}
			return false
		})
		switch {
		case err != nil:
			return off, h, err
		case !ok:
			i = s.index.at(n) + 1
		case found:
			return off, h, nil
		}
	}
	return 0, h, io.EOF
}
