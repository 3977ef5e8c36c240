package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
)

// Open reads the file at path.
func Open(path string) (File, error) {
	b, err := os.Open(path)
	if err != nil {
		return File{}, err
	}
	defer b.Close()
	info, err := b.Stat()
	if err != nil {
		return File{}, err
	}
	f, err := Read(b, info.Size())
	if err != nil {
		return File{}, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// Read reads a file of size bytes. It returns a FormatError for invalid bytes.
func Read(r io.Reader, size int64) (File, error) {
	var word [8]byte
	if size < 8 {
		return File{}, bad("%d bytes are less than the header's length", size)
	}
	if _, err := io.ReadFull(r, word[:]); err != nil {
		return File{}, bad("the header's length: %v", err)
	}
	n := binary.LittleEndian.Uint64(word[:])
	if n > MaxHeader || int64(n) > size-8 {
		return File{}, bad("a header of %d bytes in a file of %d; at most %d are read", n, size, MaxHeader)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return File{}, bad("the header: %v", err)
	}
	f, places, err := parse(text, size-8-int64(n))
	if err != nil {
		return File{}, err
	}
	for i := range f.Tensors {
		if err := fill(r, &f.Tensors[i], places[i]); err != nil {
			return File{}, err
		}
	}
	return f, nil
}

// parse checks the header: the tensors' bytes must cover all of size exactly, without overlaps or gaps.
func parse(text []byte, size int64) (File, []entry, error) {
	raw, err := object(text)
	if err != nil {
		return File{}, nil, err
	}
	var f File
	var names []string
	places := map[string]entry{}
	for name, v := range raw {
		if name == metaKey {
			if err := json.Unmarshal(v, &f.Meta); err != nil {
				return File{}, nil, bad("metadata: %v", err)
			}
			continue
		}
		var e entry
		if err := json.Unmarshal(v, &e); err != nil {
			return File{}, nil, bad("tensor %q: %v", name, err)
		}
		names, places[name] = append(names, name), e
	}
	slices.SortFunc(names, func(a, b string) int {
		x, y := places[a].Offsets, places[b].Offsets
		return cmp.Or(cmp.Compare(x[0], y[0]), cmp.Compare(x[1], y[1]), cmp.Compare(a, b))
	})
	at, order := int64(0), make([]entry, 0, len(names))
	for _, name := range names {
		e := places[name]
		if e.DType == "" {
			return File{}, nil, bad("tensor %q has no type", name)
		}
		if e.Offsets[0] != at || e.Offsets[1] < at || e.Offsets[1] > size {
			return File{}, nil, bad("tensor %q is at [%d, %d), expected at %d within %d bytes: tensors overlap, leave "+
				"a gap or leave the file", name, e.Offsets[0], e.Offsets[1], at, size)
		}
		limit, bytes := int64(math.MaxInt64), int64(width(e.DType))
		if bytes > 0 {
			limit = (e.Offsets[1] - at) / bytes
		}
		n, err := elements(name, e.Shape, limit)
		if err != nil {
			return File{}, nil, err
		}
		if bytes > 0 && n*bytes != e.Offsets[1]-at { // the size of an unknown type is not checked
			return File{}, nil, bad("tensor %q: shape %v does not fill its %d bytes", name, e.Shape, e.Offsets[1]-at)
		}
		at = e.Offsets[1]
		f.Tensors, order = append(f.Tensors, Tensor{Name: name, Shape: e.Shape}), append(order, e)
	}
	if at != size {
		return File{}, nil, bad("%d bytes behind the last tensor", size-at)
	}
	return f, order, nil
}

// object splits a JSON object into its members; a duplicate name is an error, which encoding/json would ignore.
func object(text []byte) (map[string]json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, bad("the header is not a JSON object")
	}
	out := map[string]json.RawMessage{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, bad("the header: %v", err)
		}
		name, _ := t.(string)
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return nil, bad("the header: %v", err)
		}
		if _, twice := out[name]; twice {
			return nil, bad("the header names %q twice", name)
		}
		out[name] = v
	}
	if _, err := d.Token(); err != nil {
		return nil, bad("the header: %v", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, bad("the header has data after its object")
	}
	return out, nil
}

// fill reads a tensor's bytes piece by piece, so that memory grows with the bytes that arrive. It skips the bytes of
// unsupported types.
func fill(r io.Reader, t *Tensor, e entry) error {
	size, float := width(e.DType), floats(e.DType)
	switch {
	case float != nil:
		t.F = []float32{}
	case e.DType == "U64":
		t.U = []uint64{}
	default:
		t.Unread = e.DType
	}
	var buf [1 << 16]byte
	for left := e.Offsets[1] - e.Offsets[0]; left > 0; {
		b := buf[:min(left, int64(len(buf)))] // a multiple of every element size
		if _, err := io.ReadFull(r, b); err != nil {
			return bad("tensor %q: %v", t.Name, err)
		}
		left -= int64(len(b))
		switch {
		case t.F != nil:
			t.F = slices.Grow(t.F, len(b)/size)
			for ; len(b) > 0; b = b[size:] {
				t.F = append(t.F, float(b))
			}
		case t.U != nil:
			t.U = slices.Grow(t.U, len(b)/size)
			for ; len(b) > 0; b = b[size:] {
				t.U = append(t.U, binary.LittleEndian.Uint64(b))
			}
		}
	}
	return nil
}
