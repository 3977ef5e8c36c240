package session

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// LockName is the name of the file in a session that its writer locks.
const LockName = "lock"

// Timeouts for the lock. A listing of sessions takes it shared for a moment, to find out whether it is free; on a busy
// machine this can take longer.
const (
	writerWait  = 200 * time.Millisecond
	listingWait = 10 * time.Second
)

// lock takes the writer's lock of dir and writes the process id into its file. The lock lasts until the file is closed
// or the process ends. It returns a *LockedError if another process holds the lock.
func lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, LockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	ok := false
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if ok, err = tryLock(f, true); ok || err != nil {
			break
		}
		took := time.Since(began)
		if writes, _ := Running(dir); writes && took > writerWait || took > listingWait {
			break
		}
	}
	if err == nil && !ok {
		err = &LockedError{Dir: dir, PID: readPID(f)}
	}
	if err == nil {
		text := strconv.Itoa(os.Getpid()) + "\n"
		if _, err = f.WriteAt([]byte(text), 0); err == nil {
			err = f.Truncate(int64(len(text)))
		}
		if full(err) {
			err = nil // the process id is only informative
		}
	}
	if err != nil {
		f.Close()
		if _, held := err.(*LockedError); held {
			return nil, err
		}
		return nil, fmt.Errorf("session: lock %s: %w", dir, err)
	}
	return f, nil
}

// Lock takes the writer's lock of dir, which it creates if needed, for work that consists of several sessions. The lock
// lasts until the closer is closed or the process ends. Meanwhile [Running] reports true and another Lock returns a
// [LockedError].
func Lock(dir string) (io.Closer, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	return lock(dir)
}

// readPID returns the process id in the lock file; 0 if it has none.
func readPID(f *os.File) int {
	b, _ := io.ReadAll(io.NewSectionReader(f, 0, 32))
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || pid < 0 {
		return 0
	}
	return pid
}

// Taken returns the time when the lock of dir was last taken; the zero time if unknown.
func Taken(dir string) time.Time {
	st, err := os.Stat(filepath.Join(dir, LockName))
	if err != nil {
		return time.Time{}
	}
	return st.ModTime()
}

// MayWatch returns an error if this user may not open the lock of the session in dir, so that [Running] cannot know
// whether a process writes it.
func MayWatch(dir string) error {
	path := filepath.Join(dir, LockName)
	f, err := openRegular(path)
	if errors.Is(err, fs.ErrPermission) {
		return Denied(path)
	}
	if err == nil {
		f.Close()
	}
	return nil
}

// Running reports whether a process writes the session in dir, and returns its id (0 if unknown).
func Running(dir string) (running bool, pid int) {
	f, err := openRegular(filepath.Join(dir, LockName))
	if err != nil {
		return false, 0
	}
	defer f.Close()
	if free, err := tryLock(f, false); free || err != nil {
		return false, 0
	}
	return true, readPID(f)
}
