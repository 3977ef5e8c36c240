package fetch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"brood/models/data"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// content is a file large enough for several reads.
var content = func() []byte {
	b := make([]byte, 300_000)
	for i := range b {
		b[i] = byte(i * i >> 3)
	}
	return b
}()

func published(files map[string][]byte) Set {
	s := Set{Name: "toy"}
	for _, name := range slices.Sorted(mapKeys(files)) {
		sum := sha256.Sum256(files[name])
		s.Files = append(s.Files, File{name, int64(len(files[name])), hex.EncodeToString(sum[:])})
	}
	return s
}

func mapKeys(m map[string][]byte) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// answer handles one request for content.
type answer func(w http.ResponseWriter, r *http.Request)

// honest serves content and ranges of it.
func honest(w http.ResponseWriter, r *http.Request) {
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

// status answers with an error page.
func status(code int) answer {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "sorry", code) }
}

// breaksAfter serves at most n bytes of a complete response and disconnects.
func breaksAfter(n int) answer {
	return func(w http.ResponseWriter, r *http.Request) {
		from := 0
		if text, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes="); ok {
			from, _ = strconv.Atoi(strings.TrimSuffix(text, "-"))
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(content)-1, len(content)))
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(content)-from))
		if from > 0 {
			w.WriteHeader(http.StatusPartialContent)
		}
		w.Write(content[from:min(from+n, len(content))])
		if from+n < len(content) {
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
	}
}

// serves sends b, ignores ranges, and sends its length unless chunked.
func serves(b []byte, chunked bool) answer {
	return func(w http.ResponseWriter, _ *http.Request) {
		if !chunked {
			w.Header().Set("Content-Length", strconv.Itoa(len(b)))
		}
		w.Write(b)
		if chunked {
			w.(http.Flusher).Flush()
		}
	}
}

// rangeHeader answers a range request with this header, and content from its start.
func rangeHeader(contentRange string) answer {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Range") == "" {
			honest(w, r)
			return
		}
		w.Header().Set("Content-Range", contentRange)
		w.WriteHeader(http.StatusPartialContent)
		w.Write(content)
	}
}

// stalls sends n bytes and then nothing until the client disconnects.
func stalls(n int) answer {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		w.Write(content[:n])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
}

func damaged() []byte {
	b := bytes.Clone(content)
	b[len(b)/2] ^= 1
	return b
}

// server gives the answers in turn, then repeats the last one, and records the requested ranges.
func server(t *testing.T, ranges *[]string, answers ...answer) *httptest.Server {
	t.Helper()
	n := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := answers[min(n, len(answers)-1)]
		n++
		if ranges != nil {
			*ranges = append(*ranges, r.Header.Get("Range"))
		}
		a(w, r)
	}))
	t.Cleanup(func() { s.Client().CloseIdleConnections(); s.Close() })
	return s
}

// get downloads the file toy.bin into dir; part, if not nil, is the rest of an earlier download.
func get(t *testing.T, dir string, part []byte, s *httptest.Server, stall time.Duration) error {
	t.Helper()
	if part != nil {
		if err := os.WriteFile(filepath.Join(dir, "toy.bin.part"), part, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := Client{HTTP: s.Client(), Stall: stall}
	return c.Get(context.Background(), published(map[string][]byte{"toy.bin": content}), s.URL+"/", dir)
}

// stallOf returns the time without data after which a test's client retries: long, except in tests of stalls.
func stallOf(name string) time.Duration {
	if strings.HasPrefix(name, "stall") {
		return 400 * time.Millisecond
	}
	return time.Minute
}

func TestFetched(t *testing.T) {
	half := content[:150_000]
	for name, c := range map[string]struct {
		part    []byte
		answers []answer
		ranges  []string
	}{
		"at once":          {nil, []answer{honest}, []string{""}},
		"broken off":       {nil, []answer{breaksAfter(100_000)}, []string{"", "bytes=100000-", "bytes=200000-"}},
		"resumed":          {half, []answer{honest}, []string{"bytes=150000-"}},
		"range ignored":    {half, []answer{serves(content, false)}, []string{"bytes=150000-"}},
		"chunked":          {nil, []answer{serves(content, true)}, []string{""}},
		"short, then more": {nil, []answer{serves(half, true), honest}, []string{"", "bytes=150000-"}},
		"wrong part":       {damaged()[:200_000], []answer{honest}, []string{"bytes=200000-", ""}},
		"long part":        {append(bytes.Clone(content), 1, 2, 3), []answer{honest}, []string{""}},
		"whole part":       {content, []answer{status(404)}, nil},
		"other range":      {half, []answer{rangeHeader("bytes 0-299999/300000")}, []string{"bytes=150000-", ""}},
		"other size":       {half, []answer{rangeHeader("bytes 150000-299999/400000")}, []string{"bytes=150000-", ""}},
		"range refused":    {half, []answer{status(416), honest}, []string{"bytes=150000-", ""}},
		"500 once":         {nil, []answer{status(500), status(503), honest}, []string{"", "", ""}},
		"stall once":       {nil, []answer{stalls(1000), honest}, []string{"", "bytes=1000-"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it waits for stalls
			var ranges []string
			dir := t.TempDir()
			if err := get(t, dir, c.part, server(t, &ranges, c.answers...), stallOf(name)); err != nil {
				t.Fatal(err)
			}
			if b, err := os.ReadFile(filepath.Join(dir, "toy.bin")); err != nil || !bytes.Equal(b, content) {
				t.Errorf("%d bytes that differ (%v)", len(b), err)
			}
			if !slices.Equal(ranges, c.ranges) {
				t.Errorf("asked for %q, want %q", ranges, c.ranges)
			}
			if left := names(t, dir); !slices.Equal(left, []string{"toy.bin"}) {
				t.Errorf("left %v", left)
			}
		})
	}
}

func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// TestRefused: whatever a server does, the file does not exist afterwards, the error is one sentence with the address
// and the remedy, and only bytes that may be valid are kept for the next try.
func TestRefused(t *testing.T) {
	half := content[:150_000]
	for name, c := range map[string]struct {
		part    []byte
		answer  answer
		wantErr string
		kept    int
	}{
		"404":             {nil, status(404), "answered 404 Not Found; name another address with --from URL", 0},
		"403, resumed":    {half, status(403), "answered 403 Forbidden", 150_000},
		"500":             {nil, status(500), "answered 500 Internal Server Error after 0 of 300000 bytes; run the command again", 0},
		"stall":           {nil, stalls(0), "sent nothing for too long after 0 of 300000 bytes; run the command again", 0},
		"stall later":     {half, stalls(100), "sent nothing for too long after 100 of 300000 bytes", 100},
		"always breaks":   {half, breaksAfter(0), "broke off the connection after 150000 of 300000 bytes", 150_000},
		"length too big":  {nil, serves(append(bytes.Clone(content), 1), false), "serves 300001 bytes where the published file has 300000", 0},
		"a page instead":  {nil, serves([]byte("<html>log in</html>"), false), "serves 19 bytes where", 0},
		"too long":        {nil, serves(append(bytes.Clone(content), 1), true), "sends more than the 300000 bytes", 0},
		"wrong bytes":     {nil, serves(damaged(), false), "does not serve the published file: its SHA-256 is", 0},
		"wrong, resumed":  {half, serves(damaged(), false), "does not serve the published file", 0},
		"ends early":      {nil, serves(half, true), "ended the answer early", 150_000},
		"range not there": {half, status(416), "answered 416", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it waits for stalls
			dir := t.TempDir()
			s := server(t, nil, c.answer)
			err := get(t, dir, c.part, s, stallOf(name))
			if err == nil || !strings.Contains(err.Error(), c.wantErr) ||
				!strings.HasPrefix(err.Error(), "data toy: "+s.URL+"/toy.bin ") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v", err)
			}
			if left := names(t, dir); !slices.Equal(left, []string{"toy.bin.part"}) {
				t.Errorf("left %v", left)
			}
			if b, err := os.ReadFile(filepath.Join(dir, "toy.bin.part")); err != nil || len(b) != c.kept ||
				!bytes.Equal(b, content[:c.kept]) {
				t.Errorf("kept %d bytes, want %d (%v)", len(b), c.kept, err)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	s := server(t, nil, honest)
	s.Close()
	for _, from := range []string{s.URL, "ftp://example.org", "::", "http://"} {
		err := Client{}.Get(context.Background(), published(map[string][]byte{"toy.bin": content}), from, t.TempDir())
		if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "--from URL") {
			t.Errorf("%s: %v", from, err)
		}
	}
}

// TestKeepsValidFiles: a valid existing file is not downloaded again; an invalid one is replaced.
func TestKeepsValidFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "toy.bin")
	for what, c := range map[string]struct {
		before   []byte
		requests int
	}{"right": {content, 0}, "wrong": {damaged(), 1}, "half": {content[:1000], 1}} {
		if err := os.WriteFile(path, c.before, 0o600); err != nil {
			t.Fatal(err)
		}
		var ranges []string
		if err := get(t, dir, nil, server(t, &ranges, honest), time.Minute); err != nil {
			t.Fatal(err)
		}
		if b, _ := os.ReadFile(path); !bytes.Equal(b, content) || len(ranges) != c.requests {
			t.Errorf("%s: %d requests, right after them: %v", what, len(ranges), bytes.Equal(b, content))
		}
	}
}

// TestInterrupted: an interrupted download keeps its bytes, and the next call continues from there.
func TestInterrupted(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	s := server(t, nil, stalls(1000))
	seen := int64(0)
	c := Client{HTTP: s.Client(), Stall: time.Hour, Progress: func(_ string, done, total int64) {
		if total != int64(len(content)) {
			t.Errorf("total %d", total)
		}
		seen = done
		if done == 1000 {
			cancel()
		}
	}}
	err := c.Get(ctx, published(map[string][]byte{"toy.bin": content}), s.URL, dir)
	if !errors.Is(err, context.Canceled) ||
		!strings.Contains(err.Error(), "was interrupted (context canceled) after 1000 of 300000 bytes") || seen != 1000 {
		t.Errorf("%v after %d", err, seen)
	}
	var ranges []string
	if err := get(t, dir, nil, server(t, &ranges, honest), time.Minute); err != nil ||
		!slices.Equal(ranges, []string{"bytes=1000-"}) {
		t.Errorf("asked for %q (%v)", ranges, err)
	}
}

// TestConsecutiveTries: a try that brings new bytes does not count as failed.
func TestConsecutiveTries(t *testing.T) {
	s := server(t, nil, breaksAfter(50_000))
	c := Client{HTTP: s.Client(), Tries: 1}
	if err := c.Get(context.Background(), published(map[string][]byte{"toy.bin": content}), s.URL,
		t.TempDir()); err != nil {
		t.Error(err)
	}
}

// trickle is a server that sends a byte at long intervals, in virtual time.
type trickle struct {
	every time.Duration
	left  []byte
	ctx   context.Context // of the request
}

func (s *trickle) RoundTrip(r *http.Request) (*http.Response, error) {
	s.ctx = r.Context()
	return &http.Response{
		StatusCode:    http.StatusOK,
		ContentLength: int64(len(s.left)),
		Body:          io.NopCloser(s),
		Request:       r,
	}, nil
}

func (s *trickle) Read(b []byte) (int, error) {
	if len(s.left) == 0 {
		return 0, io.EOF
	}
	time.Sleep(s.every)
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	n := copy(b[:1], s.left)
	s.left = s.left[n:]
	return n, nil
}

// TestSlowIsNotStalled: a download may take any time if the server is never silent for too long.
func TestSlowIsNotStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, text := t.TempDir(), []byte("forty bytes, one every twenty nine seconds")
		c := Client{HTTP: &http.Client{Transport: &trickle{every: 29 * time.Second, left: text}}}
		if err := c.Get(context.Background(), published(map[string][]byte{"toy.bin": text}), "http://toy", dir); err != nil {
			t.Error(err)
		}
	})
}

// TestUnwritable: a cache folder that cannot be written is named in the error.
func TestUnwritable(t *testing.T) {
	s := server(t, nil, honest)
	dir := filepath.Join(t.TempDir(), "absent")
	err := Client{HTTP: s.Client()}.Get(context.Background(), published(map[string][]byte{"toy.bin": content}), s.URL, dir)
	if err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("%v", err)
	}
}

// TestLock: a second download waits until the first is done.
func TestLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	unlock, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	entered := make(chan bool, 1)
	done := make(chan error, 1)
	go func() {
		again, err := Lock(dir)
		entered <- true
		if err == nil {
			again()
		}
		done <- err
	}()
	select {
	case <-entered:
		t.Error("two hold the lock")
	case <-time.After(50 * time.Millisecond):
	}
	unlock()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(3 * time.Minute):
		t.Error("the lock is free, but the waiting call does not get it")
	}
}

// TestSetsMatchCatalogue: every set of the catalogue with files can be downloaded, with the file names that Load
// expects.
func TestSetsMatchCatalogue(t *testing.T) {
	for _, k := range data.Catalogue() {
		s, err := Lookup(k.Name)
		if k.Files == nil {
			if err == nil {
				t.Errorf("%s is built in and can be fetched", k.Name)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(s.URL, "https://") || s.Bytes() < 1e6 || s.Folder != k.Folder ||
			k.Archive != "" && s.Files[0].Name != k.Archive {
			t.Errorf("%s: %+v", k.Name, s)
		}
		for i, f := range s.Files {
			if b, err := hex.DecodeString(f.SHA256); err != nil || len(b) != sha256.Size {
				t.Errorf("%s: checksum %q", f.Name, f.SHA256)
			}
			if k.Archive == "" && f.Name != k.Files[i]+".gz" {
				t.Errorf("%s is not %s.gz", f.Name, k.Files[i])
			}
		}
	}
	if _, err := Lookup("imagenet"); err == nil {
		t.Error("imagenet is known")
	}
}
