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

// maxBytes limits the bytes of samples of one file, so that a wrong header cannot allocate all memory. maxFeatures
// limits the elements of one sample.
const (
	maxBytes    = 1 << 30
	maxFeatures = 1 << 24
)

// FileError reports the position and kind of damage in a data file.
type FileError struct {
	File   string
	Offset int64 // in the decompressed bytes
	What   string
}

func (e *FileError) Error() string {
	return fmt.Sprintf("%s: at byte %d: %s", e.File, e.Offset, e.What)
}

// gunzip returns a reader of r, decompressed if r is gzipped.
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

// readIDX reads an IDX file of bytes, gzipped or not, and returns its dimensions and values. file names it in errors,
// which are FileErrors. It reserves capacity for more further bytes: for files of at most maxPreallocation bytes of
// values, appending these does not reallocate.
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
		return fail(0, "magic number %08x is not the number of an IDX file of bytes with 1 to 4 sizes",
			binary.BigEndian.Uint32(word[:]))
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

// maxPreallocation limits the bytes allocated for a size claimed by a file's header before the values are read.
const maxPreallocation = 64 << 20

// readExactly reads the remaining bytes of r, which must be exactly n, and reserves capacity for more. Beyond
// maxPreallocation the buffer grows while reading, since n comes from an unverified header. On an error it returns the
// bytes read so far.
func readExactly(r io.Reader, n, more int) ([]byte, error) {
	// bytes.MinRead+1 spare bytes detect the end of the input without growing the buffer
	buf := bytes.NewBuffer(make([]byte, 0, min(n, maxPreallocation)+max(more, bytes.MinRead+1)))
	_, err := buf.ReadFrom(io.LimitReader(r, int64(n)+1))
	b := buf.Bytes()
	switch {
	case err != nil && !(errors.Is(err, io.ErrUnexpectedEOF) && len(b) < n):
		return b, err
	case len(b) < n:
		return b, fmt.Errorf("the file ends after %d of %d bytes of values", len(b), n)
	case len(b) > n:
		return b, fmt.Errorf("the file has data after its %d bytes of values", n)
	}
	return b, nil
}
