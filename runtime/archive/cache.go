package archive

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/fxamacker/cbor/v2"
	"github.com/zeebo/blake3"

	"brood/runtime/session"
)

// index holds the summaries of a home by directory. A summary is decoded only when it is requested, so that a list of
// many thousands opens without decoding those that are not shown.
type index map[string]filed

// filed is data derived from a log, with the size and time of the log then.
type filed struct {
	Bytes   int64           `cbor:"0,keyasint"` // of the log
	Written int64           `cbor:"1,keyasint"` // last write to the log, in Unix nanoseconds
	Text    cbor.RawMessage `cbor:"2,keyasint"`
	Ended   bool            `cbor:"3,keyasint,omitempty"` // according to the log the run is over
}

// fits reports whether the log still has the recorded size and time.
func (f filed) fits(e Entry) bool { return f.Bytes == e.Bytes && f.Written == e.Written.UnixNano() }

// sealed is the content of a cache file, which begins with the BLAKE3 digest of this.
type sealed struct {
	Program string          `cbor:"0,keyasint"` // build that wrote it, see program
	Of      string          `cbor:"1,keyasint"` // directory
	Content cbor.RawMessage `cbor:"2,keyasint"`
}

const (
	digestBytes = 32
	most        = 256 << 20 // largest cache file that is read, in bytes
	keptRuns    = 256       // largest number of files with curves; trim removes the oldest
)

// program identifies this build by path, size and time: data derived by another build may have another meaning. "" if
// unknown.
var program = sync.OnceValue(func() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	st, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s %d %d", path, st.Size(), st.ModTime().UnixNano())
})

// name returns the path of the cache file of a directory.
func (l *Library) name(kind, dir string) string {
	sum := blake3.Sum256([]byte(dir))
	return filepath.Join(l.cache, kind+"-"+hex.EncodeToString(sum[:12])+".cbor")
}

// load decodes a cache file. It returns false if the file does not exist, is damaged, or is of another program or
// directory.
func (l *Library) load(kind, dir string, into any) bool {
	if l.cache == "" || program() == "" {
		return false
	}
	path := l.name(kind, dir)
	if st, err := os.Lstat(path); err != nil || !st.Mode().IsRegular() || st.Size() < digestBytes || st.Size() > most {
		return false
	}
	text, err := os.ReadFile(path)
	if err != nil || len(text) < digestBytes {
		return false
	}
	if sum := blake3.Sum256(text[digestBytes:]); !bytes.Equal(sum[:], text[:digestBytes]) {
		return false
	}
	var s sealed
	return many.Unmarshal(text[digestBytes:], &s) == nil && s.Program == program() && s.Of == dir &&
		many.Unmarshal(s.Content, into) == nil
}

// exact encodes times with their nanoseconds, so that a summary of the cache equals one of the log.
var exact = func() cbor.EncMode {
	e, err := cbor.EncOptions{Time: cbor.TimeRFC3339Nano}.EncMode()
	if err != nil {
		panic(err)
	}
	return e
}()

// many decodes maps and arrays of up to 2^24 entries, enough for any home.
var many = func() cbor.DecMode {
	d, err := cbor.DecOptions{MaxMapPairs: 1 << 24, MaxArrayElements: 1 << 24}.DecMode()
	if err != nil {
		panic(err) // the options are constants
	}
	return d
}()

// store writes a cache file atomically. Without a cache it does nothing.
func (l *Library) store(kind, dir string, x any) error {
	if l.cache == "" || program() == "" {
		return nil
	}
	content, err := cbor.Marshal(x)
	if err != nil {
		return err
	}
	text, err := cbor.Marshal(sealed{program(), dir, content})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(l.cache, 0o700); err != nil {
		return err
	}
	sum := blake3.Sum256(text)
	return session.WriteFile(l.name(kind, dir), ".new-", append(sum[:], text...))
}

// summaries returns the index and reads it on the first call. The caller holds l.mu.
func (l *Library) summaries() index {
	if l.index == nil {
		if !l.load("list", l.home, &l.index) || l.index == nil {
			l.index = index{}
		}
	}
	return l.index
}

// ended returns the indexed runs that are over according to their logs. It returns none before the first summary, since
// a first list does not wait for the cache. The caller owns the map.
func (l *Library) ended() map[string]filed {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make(map[string]filed, len(l.index))
	for dir, f := range l.index {
		if f.Ended {
			out[dir] = f
		}
	}
	return out
}

// cached returns the summary of an entry from the index, if its log is unchanged.
func (l *Library) cached(e Entry) (s Summary, ok bool) {
	l.mu.Lock()
	f, ok := l.summaries()[e.Dir]
	l.mu.Unlock()
	return s, ok && f.fits(e) && cbor.Unmarshal(f.Text, &s) == nil
}

// keep adds a summary to the index.
func (l *Library) keep(e Entry, s Summary) {
	text, err := exact.Marshal(s)
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.summaries()[e.Dir] = filed{e.Bytes, e.Written.UnixNano(), text, s.Phase.Over() && s.Err == ""}
	l.stale = true
}

// Save writes the index to the cache if it has changed since the last Save, without runs that no longer exist, and
// removes the oldest curves. No result depends on it.
func (l *Library) Save() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.stale {
		return nil
	}
	l.stale = false
	for dir := range l.index {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			delete(l.index, dir)
		}
	}
	l.trim()
	return l.store("list", l.home, l.index)
}

// Run returns a run with its curves: from the cache if its log is unchanged, else from its log. The caller owns the
// result.
func (l *Library) Run(e Entry) (*Run, error) {
	var f filed
	if l.load("run", e.Dir, &f) && f.fits(e) {
		run := &Run{}
		if cbor.Unmarshal(f.Text, run) == nil {
			run.Dir = e.Dir
			return run, nil
		}
	}
	run, err := Read(e.Dir)
	if err != nil {
		return nil, err
	}
	if text, err := cbor.Marshal(run); err == nil && e.Bytes >= worth {
		_ = l.store("run", e.Dir, filed{e.Bytes, e.Written.UnixNano(), text, false}) // without a cache the log is read again
	}
	return run, nil
}

// worth is the smallest size in bytes of a log whose curves are cached: reading a smaller log is as fast.
const worth = 256 << 10

// trim removes the oldest files with curves, above keptRuns.
func (l *Library) trim() {
	if l.cache == "" {
		return
	}
	files, _ := filepath.Glob(filepath.Join(l.cache, "run-*.cbor"))
	if len(files) <= keptRuns {
		return
	}
	age := map[string]int64{}
	for _, f := range files {
		if st, err := os.Stat(f); err == nil {
			age[f] = st.ModTime().UnixNano()
		}
	}
	slices.SortFunc(files, func(a, b string) int { return int(min(max(age[a]-age[b], -1), 1)) })
	for _, f := range files[:len(files)-keptRuns] {
		os.Remove(f)
	}
}
