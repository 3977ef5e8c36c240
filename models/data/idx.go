package data

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// maxBytes bounds the samples of one file, so that a wrong header cannot ask for all memory; maxFeatures bounds one
// sample.
const (
	maxBytes    = 1 << 30
	maxFeatures = 1 << 24
)

// FileError says what is wrong with a data file and where.
type FileError struct {
	File   string
	Offset int64 // in the decompressed bytes
	What   string
}

func (e *FileError) Error() string {
	return fmt.Sprintf("%s: at byte %d: %s", e.File, e.Offset, e.What)
}

// gunzip reads a file that may be gzipped.
func gunzip(r io.Reader) (*bufio.Reader, error) {
	b := bufio.NewReaderSize(r, 1<<16)
	if head, _ := b.Peek(2); len(head) == 2 && head[0] == 0x1f && head[1] == 0x8b {
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, fmt.Errorf("not a readable gzip file (%w)", err)
		}
		b = bufio.NewReader(z)
	}
	return b, nil
}

// ReadIDX reads an IDX file of bytes, gzipped or not: its sizes and its values. file names it in errors, which are
// FileErrors.
func ReadIDX(r io.Reader, file string) (dims []int, values []byte, err error) {
	return readIDX(r, file, 0)
}

// readIDX is ReadIDX of values that so many more may be appended to; where there are no more than trusted, without
// moving them.
func readIDX(r io.Reader, file string, more int) (dims []int, values []byte, err error) {
	fail := func(at int, format string, args ...any) ([]int, []byte, error) {
		return nil, nil, &FileError{file, int64(at), fmt.Sprintf(format, args...)}
	}
	b, err := gunzip(r)
	if err != nil {
		return fail(0, "%v", err)
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
		if d == 0 || uint64(d)*uint64(total) > maxBytes {
			return fail(4+4*i, "size %d asks for nothing or for more than %d bytes", d, maxBytes)
		}
		total *= int(d)
		dims = append(dims, int(d))
	}
	start := 4 + 4*len(dims)
	if values, err = readExactly(b, total, more); err != nil {
		return fail(start+min(len(values), total), "%v", err)
	}
	return dims, values, nil
}

// trusted is how many bytes are set aside on the word of a file.
const trusted = 64 << 20

// readExactly reads the n bytes that must be left, with room for more behind them. Room for many of them grows as they
// arrive: n is a promise of the file. On an error it returns what there was.
func readExactly(r io.Reader, n, more int) ([]byte, error) {
	// so much that the end is found without growing
	buf := bytes.NewBuffer(make([]byte, 0, min(n, trusted)+max(more, bytes.MinRead+1)))
	_, err := buf.ReadFrom(io.LimitReader(r, int64(n)+1))
	b := buf.Bytes()
	switch {
	case err != nil && !(errors.Is(err, io.ErrUnexpectedEOF) && len(b) < n):
		return b, err
	case len(b) < n:
		return b, fmt.Errorf("the file ends after %d of %d bytes of values", len(b), n)
	case len(b) > n:
		return b, fmt.Errorf("the file goes on after its %d bytes of values", n)
	}
	return b, nil
}
