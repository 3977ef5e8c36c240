package fetch

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func archive(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		w.Write([]byte(text))
	}
	w.Close()
	z.Close()
	return out.Bytes()
}

func fetchArchive(t *testing.T, dir string, b []byte) error {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
	}))
	defer s.Close()
	defer s.Client().CloseIdleConnections()
	set := published(map[string][]byte{"toy.tar.gz": b})
	set.Folder, set.Wanted = "toy", []string{"a.bin", "b.bin"}
	return Client{HTTP: s.Client()}.Get(context.Background(), set, s.URL, dir)
}

// TestUnpacked: only the wanted files are kept, in the folder; neither the archive nor other files remain.
func TestUnpacked(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "toy", "stale"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := fetchArchive(t, dir,
		archive(t, map[string]string{"toy/b.bin": "second", "toy/a.bin": "first", "../../evil": "out",
			"toy/readme": "text"})); err != nil {
		t.Fatal(err)
	}
	if got := names(t, dir); !slices.Equal(got, []string{"toy"}) {
		t.Errorf("left %v", got)
	}
	if got := names(t, filepath.Join(dir, "toy")); !slices.Equal(got, []string{"a.bin", "b.bin"}) {
		t.Errorf("unpacked %v", got)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "toy", "a.bin")); err != nil || string(b) != "first" {
		t.Errorf("%q (%v)", b, err)
	}
}

// TestUnpackRefuses: an archive with the right checksum but a missing file leaves no incomplete folder.
func TestUnpackRefuses(t *testing.T) {
	dir := t.TempDir()
	err := fetchArchive(t, dir, archive(t, map[string]string{"toy/a.bin": "first"}))
	if err == nil || !strings.Contains(err.Error(), "before b.bin") {
		t.Errorf("%v", err)
	}
	if got := names(t, dir); !slices.Equal(got, []string{"toy.tar.gz"}) {
		t.Errorf("left %v", got)
	}
}
