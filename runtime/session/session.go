// Package session reads and writes session directories: the append-only event log, the checkpoints that it refers to,
// and the lock of the single writer. docs/session-format.md is the specification. Of the packages of brood it imports
// the records (runtime/event) and little else.
//
//	s, err := session.Create(dir)
//	err = s.Append(event.Record{At: now, Config: &config}) // with the operating system when Append returns
//	r, err := session.OpenReader(dir)                      // needs no lock and follows the writer
//	rec, err := r.Next()                                   // io.EOF: nothing more yet
//	for rec, err := range session.Records(dir) { ... }     // up to the current end
package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"brood/models/usererr"
)

// Session is the writing side of a session directory. It may be used by several goroutines.
type Session struct {
	dir       string
	lock      *os.File
	recovered *Recovered

	mu      sync.Mutex // guards all below
	log     *log
	queue   queue
	reserve reserve
	dropped uint64
	failed  error // of a background sync, returned by the next call
	closed  bool

	syncing sync.Mutex // one sync at a time, without mu so that Append need not wait for it
	stop    chan struct{}
	done    sync.WaitGroup
}

// options are the parameters that tests change.
type options struct {
	disk    disk
	segment int64         // bytes at which a segment is closed
	reserve int           // bytes reserved at least for essential records on a full disk
	flush   time.Duration // maximum delay of records that are not essential
	sync    time.Duration
}

func defaults() options {
	return options{
		disk:    osDisk{},
		segment: segmentBytes,
		reserve: reserveLeast,
		flush:   250 * time.Millisecond,
		sync:    time.Second,
	}
}

// Create creates an empty log in dir, and dir itself if it does not exist. It returns an error if dir contains a log or
// other files.
func Create(dir string) (*Session, error) { return create(dir, defaults()) }

// Open opens an existing session for appending. It truncates an incomplete tail of the log; Recovery describes it.
func Open(dir string) (*Session, error) { return open(dir, defaults()) }

func create(dir string, o options) (*Session, error) {
	if !holdsLog(dir) { // otherwise an error about its lock takes precedence
		if err := Vacant(dir); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, elsewhere(err)
	}
	return start(dir, o, func(l *log) (*Recovered, error) {
		if err := Vacant(dir); err != nil { // another process may have been faster
			return nil, err
		}
		return nil, onDisk("open", dir, 0, l.begin(1, 0))
	})
}

func elsewhere(err error) error {
	return usererr.Elsewhere(fmt.Errorf("session: %w", err), "choose another directory")
}

// HostLog is the file of a session that receives the standard error of a process without a terminal.
const HostLog = "host.log"

// Vacant returns an error if no session can be created in dir, because it contains a session or other files.
func Vacant(dir string) error {
	if holdsLog(dir) {
		return fmt.Errorf("session: %s already holds a session: resume it, or choose another directory", dir)
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return elsewhere(err)
	}
	for _, e := range entries {
		name := e.Name()
		own := slices.Contains([]string{LockName, "reserve", "socket", HostLog, CheckpointDir}, name)
		if !own && !strings.HasPrefix(name, ".") {
			return fmt.Errorf("session: %s holds other files (%s): choose an empty or a new directory", dir, name)
		}
	}
	return nil
}

func open(dir string, o options) (*Session, error) {
	if !holdsLog(dir) {
		return nil, noLog(dir)
	}
	return start(dir, o, (*log).resume)
}

func start(dir string, o options, prepare func(*log) (*Recovered, error)) (_ *Session, err error) {
	held, err := lock(dir)
	if err != nil {
		return nil, err
	}
	code, err := newCoder()
	if err != nil {
		held.Close()
		return nil, err
	}
	s := &Session{dir: dir, lock: held, stop: make(chan struct{})}
	s.log = &log{dir: dir, disk: o.disk, code: code, limit: o.segment}
	s.reserve = reserve{
		path:  filepath.Join(dir, "reserve"),
		disk:  o.disk,
		bytes: o.reserve,
		most:  max(o.reserve, reserveMost),
	}
	s.recovered, err = prepare(s.log)
	if err == nil {
		if err = onDisk("open", s.reserve.path, 0, s.reserve.take()); err != nil {
			err = errors.Join(err, s.log.close())
		}
	}
	if err != nil {
		code.close()
		held.Close()
		return nil, err
	}
	s.every(o.flush, s.flushSome)
	s.every(o.sync, s.syncSome)
	return s, nil
}

// every calls f periodically, in the background, until Close.
func (s *Session) every(d time.Duration, f func()) {
	s.done.Go(func() {
		t := time.NewTicker(d)
		defer t.Stop()
		for {
			select {
			case <-s.stop:
				return
			case <-t.C:
				f()
			}
		}
	})
}

// Dir returns the session's directory, as passed to Create or Open.
func (s *Session) Dir() string { return s.dir }

// Recovery describes what Open truncated; nil if the log was intact.
func (s *Session) Recovery() *Recovered { return s.recovered }

// Dropped returns the number of points, evaluations and keyframes that were not recorded because the disk was full or
// failed.
func (s *Session) Dropped() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropped
}

// Close writes and syncs pending records, frees the disk space reserved for a writer, and releases the lock.
func (s *Session) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	close(s.stop)
	s.done.Wait()

	s.mu.Lock()
	defer s.mu.Unlock()
	err := errors.Join(s.flush(), s.takeFailure())
	err = errors.Join(err, s.diskError("sync", 0, s.log.close()))
	s.reserve.release()
	s.log.code.close()
	return errors.Join(err, s.lock.Close())
}
