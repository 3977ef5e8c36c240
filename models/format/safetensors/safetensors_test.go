package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func sample() File {
	return File{Meta: map[string]string{"model": "mlp", "note": "a \"quoted\" word"}, Tensors: []Tensor{
		{Name: "fc1.weight", Shape: []int{2, 3}, F: []float32{1, -2, 3.5, float32(math.Inf(1)), 0, 1e-40}},
		{Name: "cursor", Shape: []int{2}, U: []uint64{1 << 63, 7}},
		{Name: "empty", Shape: []int{0, 4}, F: []float32{}},
		{Name: "scalar", Shape: []int{}, F: []float32{9}},
	}}
}

func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.safetensors")
	for range 2 { // the second replaces the first
		if err := Save(path, sample()); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range sample().Tensors {
		if x := got.Find(want.Name); x == nil || !reflect.DeepEqual(*x, want) {
			t.Errorf("%s: %+v, want %+v", want.Name, x, want)
		}
	}
	if !reflect.DeepEqual(got.Meta, sample().Meta) || got.Find("absent") != nil {
		t.Errorf("metadata %v", got.Meta)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("%d files in addition to the saved one: %v", len(entries)-1, err)
	}
}

// TestPull: a long row is pulled in pieces of at most a mebibyte, with the same result as the whole.
func TestPull(t *testing.T) {
	const n = 700_000
	row, raw := make([]float32, n), make([]byte, 4*n)
	for i := range row {
		row[i] = float32(i)
		binary.LittleEndian.PutUint32(raw[4*i:], math.Float32bits(row[i]))
	}
	pull := func(p []byte, at int) error {
		if len(p) > 1<<20 {
			t.Errorf("%d bytes at once", len(p))
		}
		copy(p, raw[4*at:])
		return nil
	}
	var whole, pieces bytes.Buffer
	if err := errors.Join(Write(&whole, File{Tensors: []Tensor{{Name: "x", Shape: []int{n}, F: row}}}),
		Write(&pieces, File{Tensors: []Tensor{{Name: "x", Shape: []int{n}, Pull: pull}}})); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(whole.Bytes(), pieces.Bytes()) {
		t.Error("the files differ")
	}
}

// TestKnownBytes compares with bytes written by hand from the format's specification.
func TestKnownBytes(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, File{Tensors: []Tensor{{Name: "a", Shape: []int{1}, F: []float32{1}}}}); err != nil {
		t.Fatal(err)
	}
	header := `{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`
	header += strings.Repeat(" ", (8-len(header)%8)%8)
	if want := string(rune(len(header))) + "\x00\x00\x00\x00\x00\x00\x00" + header +
		"\x00\x00\x80\x3f"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

func raw(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

func TestReadRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		bytes   []byte
		wantErr string
	}{
		"empty":     {nil, "less than"},
		"length":    {[]byte{255, 255, 255, 255, 255, 255, 255, 255, 1}, "header of"},
		"cut":       {raw(`{"a":1}`, 0)[:10], "header of"},
		"json":      {raw(`[1]`, 0), "JSON object"},
		"broken":    {raw(`{"a":`, 0), "header"},
		"tail":      {raw(`{} {}`, 0), "has data after"},
		"twice":     {raw(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 4), "twice"},
		"no type":   {raw(`{"a":{"shape":[1],"data_offsets":[0,2]}}`, 2), "has no type"},
		"unknown":   {raw(`{"a":{"dtype":"Q7","shape":[-1],"data_offsets":[0,2]}}`, 2), "negative"},
		"overlap":   {raw(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8), "overlap"},
		"gap":       {raw(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8), "gap"},
		"outside":   {raw(`{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}`, 8), "leave the file"},
		"backwards": {raw(`{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,-4]}}`, 0), "is at"},
		"shape":     {raw(`{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}`, 8), "room"},
		"less":      {raw(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}}`, 8), "does not fill"},
		"odd":       {raw(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,5]}}`, 5), "does not fill"},
		"negative":  {raw(`{"a":{"dtype":"F32","shape":[-1,-1],"data_offsets":[0,4]}}`, 4), "negative"},
		"overflow":  {raw(`{"a":{"dtype":"F32","shape":[4294967296,4294967296,4294967296],"data_offsets":[0,4]}}`, 4), "overflows"},
		"dims":      {raw(`{"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}}`, 4), "dimensions"},
		"left over": {raw(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 8), "behind"},
	} {
		_, err := Read(bytes.NewReader(c.bytes), int64(len(c.bytes)))
		var f *FormatError
		if !errors.As(err, &f) || !strings.Contains(f.What, c.wantErr) {
			t.Errorf("%s: %v, want %q", name, err, c.wantErr)
		}
	}
	// A size that does not match the following bytes.
	b := raw(`{"a":{"dtype":"F32","shape":[1000000],"data_offsets":[0,4000000]}}`, 16)
	if _, err := Read(bytes.NewReader(b), int64(len(b)-16+4000000)); err == nil {
		t.Error("a truncated tensor was read")
	}
}

// TestTypes: floats of other programs are read as float32, and other types are skipped; later tensors keep their
// offsets.
func TestTypes(t *testing.T) {
	header :=
		`{"h":{"dtype":"F16","shape":[6],"data_offsets":[0,12]},"b":{"dtype":"BF16","shape":[2],"data_offsets":[12,16]},` +
			`"d":{"dtype":"F64","shape":[2],"data_offsets":[16,32]},"n":{"dtype":"I64","shape":[],"data_offsets":[32,40]},` +
			`"m":{"dtype":"BOOL","shape":[3],"data_offsets":[40,43]},"q":{"dtype":"F4","shape":[5],"data_offsets":[43,46]},` +
			`"f":{"dtype":"F32","shape":[1],"data_offsets":[46,50]}}`
	in := raw(header, 0)
	for _, h := range []uint16{0x3c00, 0xc000, 0x7bff, 0x0001, 0x8000, 0x7c00} { // the examples of IEEE 754-2008
		in = binary.LittleEndian.AppendUint16(in, h)
	}
	for _, b := range []uint16{0x3f80, 0xc049} {
		in = binary.LittleEndian.AppendUint16(in, b)
	}
	for _, d := range []float64{0.1, -2} {
		in = binary.LittleEndian.AppendUint64(in, math.Float64bits(d))
	}
	in = binary.LittleEndian.AppendUint64(in, 7)
	in = append(in, 1, 0, 1, 0x21, 0x43, 0x05)
	in = binary.LittleEndian.AppendUint32(in, math.Float32bits(9))
	got, err := Read(bytes.NewReader(in), int64(len(in)))
	if err != nil {
		t.Fatal(err)
	}
	zero := math.Float32frombits(1 << 31)
	for _, want := range []Tensor{
		{Name: "h", Shape: []int{6}, F: []float32{1, -2, 65504, 0x1p-24, zero, float32(math.Inf(1))}},
		{Name: "b", Shape: []int{2}, F: []float32{1, -3.140625}},
		{Name: "d", Shape: []int{2}, F: []float32{0.1, -2}},
		{Name: "n", Shape: []int{}, Unread: "I64"},
		{Name: "m", Shape: []int{3}, Unread: "BOOL"},
		{Name: "q", Shape: []int{5}, Unread: "F4"},
		{Name: "f", Shape: []int{1}, F: []float32{9}},
	} {
		if x := got.Find(want.Name); x == nil || !reflect.DeepEqual(*x, want) {
			t.Errorf("%s: %+v, want %+v", want.Name, x, want)
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	for name, ts := range map[string][]Tensor{
		"no name":  {{Shape: []int{1}, F: []float32{1}}},
		"reserved": {{Name: "__metadata__", Shape: []int{1}, F: []float32{1}}},
		"twice":    {{Name: "a", Shape: []int{1}, F: []float32{1}}, {Name: "a", Shape: []int{1}, F: []float32{1}}},
		"both":     {{Name: "a", Shape: []int{2}, F: []float32{1}, U: []uint64{1}}},
		"shape":    {{Name: "a", Shape: []int{2}, F: []float32{1}}},
		"negative": {{Name: "a", Shape: []int{-1}}},
	} {
		path := filepath.Join(t.TempDir(), "x")
		if err := Save(path, File{Tensors: ts}); err == nil {
			t.Errorf("%s: no error", name)
		}
		if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 0 {
			t.Errorf("%s leaves %v", name, left)
		}
	}
}

func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	if err := Write(&b, sample()); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(raw(`{"a":{"dtype":"U64","shape":[1],"data_offsets":[0,8]}}`, 8))
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := Read(bytes.NewReader(in), int64(len(in)))
		if err != nil {
			return
		}
		got.Tensors = slices.DeleteFunc(got.Tensors, func(t Tensor) bool { return t.Unread != "" })
		var out bytes.Buffer
		if err := Write(&out, got); err != nil {
			t.Fatalf("read but not writable: %v", err)
		}
		again, err := Read(bytes.NewReader(out.Bytes()), int64(out.Len()))
		if err != nil || len(again.Tensors) != len(got.Tensors) {
			t.Fatalf("written but not readable: %v", err)
		}
	})
}

// TestWriteFile: a file has the permissions of a new file, and an error names it and not its temporary; a failure keeps
// the old file and leaves no temporary.
func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	plain, path := filepath.Join(dir, "plain"), filepath.Join(dir, "file")
	if err := os.WriteFile(plain, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	put := func(path, text string, end error) error {
		return WriteFile(path, func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return errors.Join(err, end)
		})
	}
	if err := put(path, "first", nil); err != nil {
		t.Fatal(err)
	}
	want, _ := os.Stat(plain)
	if got, err := os.Stat(path); err != nil || got.Mode() != want.Mode() {
		t.Errorf("mode %v (%v), a new file has %v", got.Mode(), err, want.Mode())
	}
	broken := errors.New("broken")
	if err := put(path, "second", broken); !errors.Is(err, broken) {
		t.Errorf("a writer that fails: %v", err)
	}
	if text, err := os.ReadFile(path); string(text) != "first" {
		t.Errorf("it holds %q, %v", text, err)
	}
	for _, at := range []string{filepath.Join(dir, "none", "file"), dir} {
		if err := put(at, "", nil); err == nil || !strings.HasPrefix(err.Error(), at+" cannot be written: ") ||
			strings.Contains(err.Error(), "/.") {
			t.Errorf("%s: %v", at, err)
		}
	}
	if all, err := os.ReadDir(dir); len(all) != 2 {
		t.Errorf("left: %v, %v", all, err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Skip(err)
	}
	if err := put(link, "linked", nil); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if to, _ := os.Readlink(link); to != path || string(text) != "linked" {
		t.Errorf("through a link: %q, %v; the link leads to %q", text, err, to)
	}
	socket := filepath.Join(dir, "socket") // like a device: a rename would replace it
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Skip(err)
	}
	defer l.Close()
	for _, err := range []error{put(socket, "text", nil), Creatable(socket)} {
		if err == nil || !strings.Contains(err.Error(), "is not a regular file") {
			t.Errorf("a socket: %v", err)
		}
	}
}
