package data

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// known returns a set of the catalogue.
func known(t testing.TB, name string) Known {
	t.Helper()
	k, err := Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// put writes files, given by their paths in a new folder, and returns the folder.
func put(t testing.TB, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, b := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// tinyMNIST writes the four files, with gzipped images.
func tinyMNIST(t *testing.T, labels []byte) string {
	px, n := bytes.Repeat([]byte{9}, 28*28*len(labels)), len(labels)
	f := known(t, "mnist").Files
	return put(t, map[string][]byte{f[0] + ".gz": gzipped(idx(px, n, 28, 28)), f[1]: idx(labels, n),
		f[2] + ".gz": gzipped(idx(px, n, 28, 28)), f[3]: idx(labels, n)})
}

func TestMNISTFromFiles(t *testing.T) {
	k, dir := known(t, "mnist"), tinyMNIST(t, []byte{3, 1, 4, 1, 5, 9})
	s, err := k.read([]string{"/does/not/exist", dir})
	if err != nil {
		t.Fatal(err)
	}
	if s.Len() != 12 || s.Label(2) != 4 || s.Image(7)[5] != 9 || s.From != dir {
		t.Errorf("%d samples, label %d, from %s", s.Len(), s.Label(2), s.From)
	}
	if _, err := k.read([]string{tinyMNIST(t, []byte{3, 10})}); err == nil ||
		!strings.Contains(err.Error(), "at byte 9: label 10") || !strings.Contains(err.Error(), "brood data get mnist") {
		t.Errorf("label out of range: %v", err)
	}
	name := k.Files[2]
	if err := os.Remove(filepath.Join(dir, name+".gz")); err != nil {
		t.Fatal(err)
	}
	// An incomplete download.
	if err := os.WriteFile(filepath.Join(dir, name+".gz.part"), []byte{0, 0, 8, 3}, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = k.read([]string{dir})
	var m *MissingError
	if !errors.As(err, &m) || len(m.Files) != 1 || m.Files[0] != name || !strings.Contains(err.Error(), dir) {
		t.Errorf("a missing file: %v", err)
	}
}

// mnistDigest is the digest of the published files; recorded sessions on MNIST contain it.
const mnistDigest = "blake3:f3c4f2d513d1e5906407980fc6277c33b1a90b624d05171edda458f05cee94bf"

// TestMNIST checks the real files, if installed.
func TestMNIST(t *testing.T) {
	s := installed(t, "mnist")
	if len(s.Train()) != 55000 || len(s.Validation()) != 5000 || len(s.Test()) != 10000 {
		t.Errorf("%d + %d + %d samples", len(s.Train()), len(s.Validation()), len(s.Test()))
	}
	if s.Label(0) != 5 || s.Label(60000) != 7 {
		t.Errorf("first labels %d and %d, known 5 and 7", s.Label(0), s.Label(60000))
	}
	if s.Digest() != mnistDigest {
		t.Errorf("digest %s, recorded %s", s.Digest(), mnistDigest)
	}
}

// installed returns a set of the catalogue, or skips the test if this machine does not have it.
func installed(t *testing.T, name string) *Set {
	t.Helper()
	s, err := Load(name)
	var m *MissingError
	if errors.As(err, &m) {
		t.Skipf("no %s here: %v", name, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestPeak: reading allocates little more than Peak reports: the set alone for named sets, and also its parts for the
// user's own data.
func TestPeak(t *testing.T) {
	own := t.TempDir()
	const n = 3000
	labels := bytes.Repeat([]byte{0, 1}, n/2)
	for _, name := range []string{"train", "t10k"} {
		for kind, b := range map[string][]byte{"images-idx3-ubyte": idx(make([]byte, n*784), n, 28, 28),
			"labels-idx1-ubyte": idx(labels, n)} {
			if err := os.WriteFile(filepath.Join(own, name+"-"+kind), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name   string
		copies int64
	}{{"mnist", 1}, {"cifar10", 1}, {own, 2}} {
		t.Run(filepath.Base(c.name), func(t *testing.T) {
			var s *Set
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if c.name == own {
				var err error
				if s, err = Load(own); err != nil {
					t.Fatal(err)
				}
			} else {
				s = installed(t, c.name)
			}
			runtime.ReadMemStats(&after)
			if s.Peak() != c.copies*s.Bytes() {
				t.Errorf("a peak of %d bytes for %d of samples", s.Peak(), s.Bytes())
			}
			if got := int64(after.TotalAlloc - before.TotalAlloc); got > s.Peak()*5/4 {
				t.Errorf("%d bytes were allocated to read %d, the estimated peak is %d", got, s.Bytes(), s.Peak())
			}
		})
	}
}

func TestLoadUnknown(t *testing.T) {
	if _, err := Load("imagenet"); err == nil || !strings.Contains(err.Error(), "glyphs, tales, mnist") ||
		!strings.Contains(err.Error(), "./imagenet") {
		t.Errorf("%v", err)
	}
}
