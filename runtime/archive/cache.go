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

// index is the summaries of a home by directory. Each stays as it was written until it is asked for: a list of many
// thousands opens without decoding those that nobody sees.
type index map[string]filed

// filed is something derived from a log, with what the log was when it was made.
type filed struct {
	Bytes   int64           `cbor:"0,keyasint"`
	Written int64           `cbor:"1,keyasint"` // Unix nanoseconds
	Text    cbor.RawMessage `cbor:"2,keyasint"`
	Ended   bool            `cbor:"3,keyasint,omitempty"` // the log says that the run is over
}

func (f filed) fits(e Entry) bool { return f.Bytes == e.Bytes && f.Written == e.Written.UnixNano() }

// sealed is a file of the cache: its digest, and then this.
type sealed struct {
	Program string          `cbor:"0,keyasint"` // that made it
	Of      string          `cbor:"1,keyasint"` // directory
	Content cbor.RawMessage `cbor:"2,keyasint"`
}

const (
	digestBytes = 32
	most        = 256 << 20 // bytes of a file of the cache that is read
	keptRuns    = 256       // files of curves: the oldest go first
)

// program names this very build: what another one derived may mean something else.
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

// name is the file of a directory.
func (l *Library) name(kind, dir string) string {
	sum := blake3.Sum256([]byte(dir))
	return filepath.Join(l.cache, kind+"-"+hex.EncodeToString(sum[:12])+".cbor")
}

// load reads a file of the cache. What is not whole, of another program or of another directory is not there.
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

// many decodes maps of as many entries as a home may have.
var many = func() cbor.DecMode {
	d, err := cbor.DecOptions{MaxMapPairs: 1 << 24, MaxArrayElements: 1 << 24}.DecMode()
	if err != nil {
		panic(err) // the options are constants
	}
	return d
}()

// store writes a file of the cache, whole or not at all.
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

// summaries is the index, read when it is first needed. The caller holds the lock.
func (l *Library) summaries() index {
	if l.index == nil {
		if !l.load("list", l.home, &l.index) || l.index == nil {
			l.index = index{}
		}
	}
	return l.index
}

// ended are the runs whose logs, as they were, say that they are over; none before the first summary, since a first
// list does not wait for the cache. The map is the caller's.
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

func (l *Library) cached(e Entry) (s Summary, ok bool) {
	l.mu.Lock()
	f, ok := l.summaries()[e.Dir]
	l.mu.Unlock()
	return s, ok && f.fits(e) && cbor.Unmarshal(f.Text, &s) == nil
}

func (l *Library) keep(e Entry, s Summary) {
	text, err := cbor.Marshal(s)
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.summaries()[e.Dir] = filed{e.Bytes, e.Written.UnixNano(), text, s.Phase.Over() && s.Err == ""}
	l.stale = true
}

// Save writes what was read since the last time, without those that are gone. Nothing depends on it.
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

// Run is the curves of a run: from the cache where that fits, else from its log. It is the caller's.
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
		_ = l.store("run", e.Dir, filed{e.Bytes, e.Written.UnixNano(), text, false}) // a cache that cannot be written is none
	}
	return run, nil
}

// worth is the size of a log from which on its curves are kept: a smaller one is read as fast.
const worth = 256 << 10

// trim removes the oldest curves.
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
