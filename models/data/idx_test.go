package data

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
)

func idx(values []byte, dims ...int) []byte {
	b := []byte{0, 0, 8, byte(len(dims))}
	for _, d := range dims {
		b = binary.BigEndian.AppendUint32(b, uint32(d))
	}
	return append(b, values...)
}

func gzipped(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	z.Write(b)
	z.Close()
	return out.Bytes()
}

func TestReadIDX(t *testing.T) {
	for name, b := range map[string][]byte{"plain": idx([]byte{1, 2, 3, 4, 5, 6}, 2, 3),
		"gzip": gzipped(idx([]byte{1, 2, 3, 4, 5, 6}, 2, 3))} {
		dims, values, err := readIDX(bytes.NewReader(b), name, 0)
		if err != nil || len(dims) != 2 || dims[0] != 2 || dims[1] != 3 || !bytes.Equal(values, []byte{1, 2, 3, 4, 5, 6}) {
			t.Errorf("%s: %v %v %v", name, dims, values, err)
		}
	}
}

func TestReadIDXNamesFileAndOffset(t *testing.T) {
	for _, c := range []struct {
		name    string
		bytes   []byte
		offset  int64
		wantErr string
	}{
		{"empty", nil, 0, "ends within its magic"},
		{"magic", []byte("PK\x03\x04...."), 0, "magic number 504b0304"},
		{"floats", []byte{0, 0, 13, 1, 0, 0, 0, 1}, 0, "magic number"},
		{"sizes", idx(nil, 4)[:6], 6, "ends within its sizes"},
		{"zero", idx(nil, 0), 4, "size 0"},
		{"huge", []byte{0, 0, 8, 2, 255, 255, 255, 255, 255, 255, 255, 255}, 4, "more than"},
		{"short", idx([]byte{1, 2}, 3), 10, "ends after 2 of 3"},
		{"long", idx([]byte{1, 2, 3, 4}, 3), 11, "has data after"},
		{"cut gzip", gzipped(idx(bytes.Repeat([]byte{7, 1, 9}, 60), 180))[:30], -1, ""},
	} {
		_, _, err := readIDX(bytes.NewReader(c.bytes), "a/"+c.name, 0)
		var f *FileError
		if !errors.As(err, &f) || f.File != "a/"+c.name || c.offset >= 0 && f.Offset != c.offset ||
			!strings.Contains(f.What, c.wantErr) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func FuzzIDX(f *testing.F) {
	f.Add(idx([]byte{1, 2, 3}, 3))
	f.Add(gzipped(idx([]byte{1, 2, 3, 4}, 2, 2)))
	f.Add([]byte{0, 0, 8, 4, 0, 0, 255, 255, 0, 0, 255, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		dims, values, err := readIDX(bytes.NewReader(b), "fuzz", 0)
		if err != nil {
			return
		}
		n := 1
		for _, d := range dims {
			n *= d
		}
		if n != len(values) {
			t.Fatalf("sizes %v, %d values", dims, len(values))
		}
	})
}
