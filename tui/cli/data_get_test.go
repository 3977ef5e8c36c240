package cli

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"brood/models/data"
	"brood/models/data/fetch"
)

// published is a small MNIST on a server: files with 60 and 60 images.
func published(t *testing.T) (fetch.Set, map[string][]byte) {
	t.Helper()
	set, err := fetch.Lookup("mnist")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for i, f := range set.Files {
		raw := append([]byte{0, 0, 8, 1, 0, 0, 0, 60}, bytes.Repeat([]byte{3, 1, 4}, 20)...)
		if i%2 == 0 {
			raw = append([]byte{0, 0, 8, 3, 0, 0, 0, 60, 0, 0, 0, 28, 0, 0, 0, 28}, make([]byte, 60*28*28)...)
		}
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := z.Write(raw); err != nil {
			t.Fatal(err)
		}
		z.Close()
		sum := sha256.Sum256(b.Bytes())
		files["/"+f.Name] = b.Bytes()
		set.Files[i] = fetch.File{Name: f.Name, Size: int64(b.Len()), SHA256: hex.EncodeToString(sum[:])}
	}
	return set, files
}

// nowhere gives the test a user without data sets, and returns the cache directory of mnist.
func nowhere(t *testing.T) string {
	t.Helper()
	home := t.TempDir()
	for _, name := range []string{"HOME", "LocalAppData"} {
		t.Setenv(name, home)
	}
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("BROOD_DATA", "")
	dir, err := data.Cache("mnist")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func serve(t *testing.T, h http.HandlerFunc) (url string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// TestGet: a set is fetched once, with progress, and Load finds it afterwards. Damaged files in the cache are fetched
// again.
func TestGet(t *testing.T) {
	dir := nowhere(t)
	set, files := published(t)
	requests := 0
	set.URL = serve(t, func(w http.ResponseWriter, r *http.Request) {
		requests++
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(files[r.URL.Path]))
	})
	get := func(terminal bool) string {
		t.Helper()
		var out bytes.Buffer
		if err := getData(context.Background(), streams{out: &out, terminal: terminal}, set, time.Minute); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	plain := get(false)
	for _, want := range []string{"^mnist: .* from http://127.* into " + regexp.QuoteMeta(dir),
		"\n  t10k-labels-idx1-ubyte.gz +100 %  ", "\nmnist is ready: 55 training, 5 validation and 60 test samples\n$"} {
		if !regexp.MustCompile(want).MatchString(plain) {
			t.Errorf("no %q in:\n%s", want, plain)
		}
	}
	if strings.Contains(plain, "\r") || requests != 4 {
		t.Errorf("%d requests, printed %q", requests, plain)
	}
	if again := get(false); again != "mnist is already present: "+dir+"\n" || requests != 4 {
		t.Errorf("%d requests, printed %q", requests, again)
	}
	path := filepath.Join(dir, set.Files[2].Name)
	if err := os.WriteFile(path, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if lines := get(true); strings.Count(lines, "\n") != 3 || !strings.Contains(lines, "\r  t10k-images-idx3-ubyte.gz") ||
		requests != 5 {
		t.Errorf("%d requests, printed %q", requests, lines)
	}
	t.Setenv("BROOD_DATA", filepath.Dir(dir)) // what lies there hides the cache
	if err := os.WriteFile(path, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("LocalAppData", os.Getenv("HOME"))
	err := getData(context.Background(), streams{out: &bytes.Buffer{}}, set, time.Minute)
	if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "remove that file") ||
		requests != 5 {
		t.Errorf("%v after %d requests", err, requests)
	}
}

// TestGetFails: if a download fails, the exit status is 1, standard error has one line, and no file remains that a run
// could read. Package fetch tests the failures of servers.
func TestGetFails(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		says   string
	}{
		"404":   {http.NotFound, "answered 404 Not Found; name another address with --from URL"},
		"page":  {func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>log in</html>")) }, "serves 19 bytes where the published file has 9912422"},
		"wrong": {func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, 9912422)) }, "does not serve the published file: its SHA-256 is"},
		"breaks": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9912422")
			w.Write(make([]byte, 1000))
			panic(http.ErrAbortHandler)
		}, "broke off the connection after"},
	} {
		t.Run(name, func(t *testing.T) {
			nowhere(t)
			var out, errs bytes.Buffer
			code := Run(context.Background(), []string{"data", "get", "mnist", "--from", serve(t, c.answer), "--stall", "200ms"},
				streams{out: &out, err: &errs})
			line, rest, _ := strings.Cut(errs.String(), "\n")
			if code != exitFailed || !strings.HasPrefix(line, "brood: data mnist: http://127.") ||
				!strings.Contains(line, c.says) || rest != "" {
				t.Errorf("status %d: %q", code, errs.String())
			}
			var m *data.MissingError
			if _, err := data.Load("mnist"); !errors.As(err, &m) {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

// TestGetInterrupted: after Ctrl+C the received data remain, and the exit status and the message report the interrupt.
func TestGetInterrupted(t *testing.T) {
	dir := nowhere(t)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "9912422")
		w.Write(make([]byte, 1000))
		w.(http.Flusher).Flush()
		if p, err := os.FindProcess(os.Getpid()); err == nil {
			if err := p.Signal(os.Interrupt); err != nil {
				t.Skip("no such signal on this system")
			}
		}
		<-r.Context().Done()
	})
	var out, errs bytes.Buffer
	code := Run(context.Background(), []string{"data", "get", "mnist", "--from", url}, streams{out: &out, err: &errs})
	if code != exitCtrlC || !strings.Contains(errs.String(), "run the command again to continue") {
		t.Errorf("status %d: %q", code, errs.String())
	}
	if _, err := os.Stat(filepath.Join(dir, "train-images-idx3-ubyte.gz.part")); errors.Is(err, fs.ErrNotExist) {
		t.Error("nothing was kept")
	}
}
