// Package archive reads recorded runs. It folds the log of one into its result, lists those of a home, and compares
// several: their settings, results and curves over a common axis. It imports the packages of records and the folds
// behind them, but nothing that trains, and no screen.
//
// A [Tally] folds the records of a run, recorded or in progress, into its [Result] and the figures by which runs are
// compared. A [Run] is the fold of a whole log with its curves.
//
// A [Library] lists the runs of a home at once, however many there are. A scan reads names and sizes only. Results and
// curves are read on request, and stored in a cache of the user, from which the next list has them. The cache is
// derived data: an entry is valid while its log has the size and the time that it had, for the program that wrote it,
// and if its digest is right; otherwise the log is read again.
//
//	lib := archive.OpenLibrary(home, cache)
//	entries, err := lib.Scan(home)     // names, newest first; no log is opened
//	s := lib.Summary(entries[0])       // from the cache, or by reading the log
//	run, err := lib.Run(entries[0])    // its curves
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

// HostFolder is the kind of a folder that stands for another machine.
const HostFolder = "host"

// Entry is what a directory tells of a run, or of a folder of runs.
type Entry struct {
	Name, Dir string
	Folder    string    // sweep or study, of a directory that holds such a batch, or HostFolder; "" of a run
	Host      string    // the machine that it is on, as this user calls it; "" is this one
	Asked     bool      // it stands for that host: its folder, or the one run that is known of it
	Bytes     int64     // of a run's log
	Written   time.Time // when it was last written to
	Running   bool      // a process writes it
}

// Library is the sessions of one home. Its methods may be called by several goroutines.
type Library struct {
	home  string
	cache string // directory; "" keeps nothing

	mu    sync.Mutex
	index index // nil until the first summary
	stale bool  // of the index on the disk
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

// Scan lists what lies in dir, the home or a folder of it: those that run first, then what was written last. It opens
// no log. A directory that does not exist holds nothing.
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

// Any says whether there is a run, or a folder of runs, in the home: it looks no further than the first.
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

// each calls f with 0 to n-1, on all cores.
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

// look is the entry of a name in dir; without a directory where it is neither a run nor a folder of them. The lock of a
// run that has ended is not tried, unless it was taken since.
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
		if st, err := os.Stat(e.Dir); err == nil && st.ModTime().After(e.Written) { // when its last run was made
			e.Written = st.ModTime()
		}
		return e
	}
	return Entry{}
}
