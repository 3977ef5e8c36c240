package data

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// maxIDX bounds the bytes of one IDX file, so that a wrong header cannot ask for all memory.
const maxIDX = 1 << 30

// FileError says what is wrong with a data file and where.
type FileError struct {
	File   string
	Offset int64 // in the decompressed bytes
	What   string
}

func (e *FileError) Error() string {
	return fmt.Sprintf("%s: at byte %d: %s; fetch the file again", e.File, e.Offset, e.What)
}

// ReadIDX reads an IDX file of bytes, gzipped or not: its sizes and its values. file names it in errors, which are
// FileErrors.
func ReadIDX(r io.Reader, file string) (dims []int, values []byte, err error) {
	fail := func(at int, format string, args ...any) ([]int, []byte, error) {
		return nil, nil, &FileError{file, int64(at), fmt.Sprintf(format, args...)}
	}
	b := bufio.NewReader(r)
	if head, _ := b.Peek(2); len(head) == 2 && head[0] == 0x1f && head[1] == 0x8b {
		z, err := gzip.NewReader(b)
		if err != nil {
			return fail(0, "not a readable gzip file (%v)", err)
		}
		b = bufio.NewReader(z)
	}
	var word [4]byte
	if n, err := io.ReadFull(b, word[:]); err != nil {
		return fail(n, "the file ends within its magic number")
	}
	if word[0] != 0 || word[1] != 0 || word[2] != 8 || word[3] == 0 || word[3] > 4 {
		return fail(0, "magic number %08x is not that of an IDX file of bytes with 1 to 4 sizes", binary.BigEndian.Uint32(word[:]))
	}
	total := 1
	for i := range int(word[3]) {
		var size [4]byte
		if n, err := io.ReadFull(b, size[:]); err != nil {
			return fail(4+4*i+n, "the file ends within its sizes")
		}
		d := binary.BigEndian.Uint32(size[:])
		if d == 0 || uint64(d)*uint64(total) > maxIDX {
			return fail(4+4*i, "size %d asks for nothing or for more than %d bytes", d, maxIDX)
		}
		total *= int(d)
		dims = append(dims, int(d))
	}
	start := 4 + 4*len(dims)
	values, err = io.ReadAll(io.LimitReader(b, int64(total)+1))
	switch {
	case err != nil && !(errors.Is(err, io.ErrUnexpectedEOF) && len(values) < total):
		return fail(start+len(values), "%v", err)
	case len(values) < total:
		return fail(start+len(values), "the file ends after %d of %d values", len(values), total)
	case len(values) > total:
		return fail(start+total, "the file goes on after its %d values", total)
	}
	return dims, values, nil
}
