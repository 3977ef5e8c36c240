package data

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func idx(values []byte, dims ...byte) []byte {
	b := []byte{0, 0, 8, byte(len(dims))}
	for _, d := range dims {
		b = append(b, 0, 0, 0, d)
	}
	return append(b, values...)
}

func zip(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	z.Write(b)
	z.Close()
	return out.Bytes()
}

func TestReadIDX(t *testing.T) {
	for name, b := range map[string][]byte{"plain": idx([]byte{1, 2, 3, 4, 5, 6}, 2, 3), "gzip": zip(idx([]byte{1, 2, 3, 4, 5, 6}, 2, 3))} {
		dims, values, err := ReadIDX(bytes.NewReader(b), name)
		if err != nil || len(dims) != 2 || dims[0] != 2 || dims[1] != 3 || !bytes.Equal(values, []byte{1, 2, 3, 4, 5, 6}) {
			t.Errorf("%s: %v %v %v", name, dims, values, err)
		}
	}
}

func TestReadIDXNamesFileAndOffset(t *testing.T) {
	for _, c := range []struct {
		name   string
		bytes  []byte
		offset int64
		says   string
	}{
		{"empty", nil, 0, "ends within its magic"},
		{"magic", []byte("PK\x03\x04...."), 0, "magic number 504b0304"},
		{"floats", []byte{0, 0, 13, 1, 0, 0, 0, 1}, 0, "magic number"},
		{"sizes", idx(nil, 4)[:6], 6, "ends within its sizes"},
		{"zero", idx(nil, 0), 4, "size 0"},
		{"huge", []byte{0, 0, 8, 2, 255, 255, 255, 255, 255, 255, 255, 255}, 4, "more than"},
		{"short", idx([]byte{1, 2}, 3), 10, "ends after 2 of 3"},
		{"long", idx([]byte{1, 2, 3, 4}, 3), 11, "goes on"},
		{"cut gzip", zip(idx(bytes.Repeat([]byte{7, 1, 9}, 60), 180))[:30], -1, ""},
	} {
		_, _, err := ReadIDX(bytes.NewReader(c.bytes), "a/"+c.name)
		var f *FileError
		if !errors.As(err, &f) || f.File != "a/"+c.name || c.offset >= 0 && f.Offset != c.offset || !strings.Contains(f.What, c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func FuzzIDX(f *testing.F) {
	f.Add(idx([]byte{1, 2, 3}, 3))
	f.Add(zip(idx([]byte{1, 2, 3, 4}, 2, 2)))
	f.Add([]byte{0, 0, 8, 4, 0, 0, 255, 255, 0, 0, 255, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		dims, values, err := ReadIDX(bytes.NewReader(b), "fuzz")
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

// write puts the four files of a tiny MNIST into a folder, images gzipped.
func write(t *testing.T, labels []byte) string {
	t.Helper()
	dir := t.TempDir()
	px := bytes.Repeat([]byte{9}, 28*28*len(labels))
	for i, name := range mnistFiles {
		b := idx(labels, byte(len(labels)))
		if i%2 == 0 {
			b = zip(idx(px, byte(len(labels)), 28, 28))
			name += ".gz"
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestMNISTFromFiles(t *testing.T) {
	dir := write(t, []byte{3, 1, 4, 1, 5, 9})
	s, err := loadMNIST([]string{"/does/not/exist", dir})
	if err != nil {
		t.Fatal(err)
	}
	if s.Len() != 12 || s.Label(2) != 4 || s.Image(7)[5] != 9 {
		t.Errorf("%d samples, label %d", s.Len(), s.Label(2))
	}
	if _, err := loadMNIST([]string{write(t, []byte{3, 10})}); err == nil || !strings.Contains(err.Error(), "at byte 9: label 10") {
		t.Errorf("label out of range: %v", err)
	}
	name := mnistFiles[2] + ".gz"
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
	_, err = loadMNIST([]string{dir})
	var m *MissingError
	if !errors.As(err, &m) || len(m.Files) != 1 || m.Files[0] != mnistFiles[2] || !strings.Contains(err.Error(), dir) {
		t.Errorf("a missing file: %v", err)
	}
}

// The real files, where they are.
func TestMNIST(t *testing.T) {
	s, err := Load("mnist")
	var m *MissingError
	if errors.As(err, &m) {
		t.Skipf("no MNIST here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Train()) != 55000 || len(s.Validation()) != 5000 || len(s.Test()) != 10000 {
		t.Errorf("%d + %d + %d samples", len(s.Train()), len(s.Validation()), len(s.Test()))
	}
	if s.Label(0) != 5 || s.Label(60000) != 7 {
		t.Errorf("first labels %d and %d, known 5 and 7", s.Label(0), s.Label(60000))
	}
}

func TestLoadUnknown(t *testing.T) {
	if _, err := Load("imagenet"); err == nil || !strings.Contains(err.Error(), "glyphs, mnist") {
		t.Errorf("%v", err)
	}
}
