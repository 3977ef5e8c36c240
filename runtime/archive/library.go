// Package archive reads recorded runs. It computes the result of a run from its log, lists the runs of a home, and
// compares the settings, results and curves of several runs over a common axis. It imports packages that read records,
// but none that train or draw a screen.
//
// A [Tally] folds the records of a run, recorded or in progress, into its [Result] and the figures by which runs are
// compared. A [Run] is the fold of a whole log with its curves.
//
// A [Library] lists the runs of a home without delay, however many there are. A scan reads names and sizes only.
// Results and curves are read on request, and stored in a cache of the user for the next list. The cache is derived
// data: an entry is valid for the program that wrote it, while the size and time of its log are unchanged, and if its
// digest is right. Otherwise the log is read again.
//
//	lib := archive.OpenLibrary(home, cache)
//	entries, err := lib.Scan(home)     // names, newest first; no log is opened
//	s := lib.Summary(entries[0])       // from the cache, or by reading the log
//	run, err := lib.Run(entries[0])    // with its curves
//	err = lib.Save()                   // writes to the cache what was read since
package archive

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"brood/runtime/session"
)

// HostFolder is the Folder of an entry that represents another machine.
const HostFolder = "host"

// Entry describes a run or a folder of runs, without opening a log.
type Entry struct {
	Name, Dir string
	Folder    string    // sweep or study for the directory of such a batch, or HostFolder; "" for a run
	Host      string    // machine of the entry, under the name that this user gave it; "": this machine
	Asked     bool      // represents that host: as its folder, or as its only known run
	Bytes     int64     // size of the log of a run
	Written   time.Time // time of the last write
	Running   bool      // a process writes the log
}

// Library lists and reads the sessions of one home. Its methods are safe for concurrent use.
type Library struct {
	home  string
	cache string // directory; "": no cache

	mu    sync.Mutex
	index index // nil until the first summary
	stale bool  // index has changed since the last Save
}

// OpenLibrary returns the library of the sessions in home. It creates its cache below the directory cache when it first
// stores something; "" means no cache.
func OpenLibrary(home, cache string) *Library { return &Library{home: home, cache: cache} }

// CacheDir returns the directory for the caches of this user's libraries; "" if the system has none.
func CacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "brood", "library")
}

// Scan lists the runs and folders in dir, which is the home or a folder in it: running ones first, then by the time of
// the last write, latest first. It opens no log. A directory that does not exist has no entries.
func (l *Library) Scan(dir string) ([]Entry, error) {
	found, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), ".") })
	entries := make([]Entry, len(found))
	ended := l.ended()
	each(len(found), func(i int) { entries[i] = look(dir, found[i].Name(), ended) })
	entries = slices.DeleteFunc(entries, func(e Entry) bool { return e.Dir == "" })
	SortEntries(entries)
	return entries, nil
}

// Any reports whether the home has a run or a folder of runs. It stops at the first.
func (l *Library) Any() bool {
	found, err := os.ReadDir(l.home)
	return err == nil && slices.ContainsFunc(found, func(e os.DirEntry) bool {
		return !strings.HasPrefix(e.Name(), ".") && look(l.home, e.Name(), nil).Dir != ""
	})
}

// SortEntries sorts entries in place into the order of [Library.Scan].
func SortEntries(entries []Entry) {
	slices.SortFunc(entries, func(a, b Entry) int {
		if a.Running != b.Running {
			if a.Running {
				return -1
			}
			return 1
		}
		return cmp.Or(b.Written.Compare(a.Written), cmp.Compare(a.Name, b.Name))
	})
}

// each calls f with 0 to n-1, on up to 8 goroutines, and waits for them.
func each(n int, f func(i int)) {
	var all sync.WaitGroup
	workers := min(runtime.GOMAXPROCS(0), 8)
	for w := range workers {
		all.Go(func() {
			for i := w * n / workers; i < (w+1)*n/workers; i++ {
				f(i)
			}
		})
	}
	all.Wait()
}

// look returns the entry of a name in dir. Its Dir is "" if the name is neither a run nor a folder of runs. look does
// not try the lock of a run that has ended, unless the lock was taken since.
func look(dir, name string, ended map[string]filed) Entry {
	e := Entry{Name: name, Dir: filepath.Join(dir, name)}
	bytes, written, ok := session.LogSize(e.Dir)
	if ok {
		e.Bytes, e.Written = bytes, written
		if f, ok := ended[e.Dir]; !ok || !f.fits(e) || !session.Taken(e.Dir).Before(written) {
			e.Running, _ = session.Running(e.Dir)
		}
		return e
	}
	for _, kind := range []string{"sweep", "study"} {
		st, err := os.Stat(filepath.Join(e.Dir, kind+".json"))
		if err != nil || !st.Mode().IsRegular() {
			continue
		}
		e.Folder, e.Written = kind, st.ModTime()
		if st, err := os.Stat(e.Dir); err == nil && st.ModTime().After(e.Written) { // the time when its last run was created
			e.Written = st.ModTime()
		}
		return e
	}
	return Entry{}
}
