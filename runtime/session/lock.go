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

// LockName is the file of a directory that its writer locks.
const LockName = "lock"

// How long a lock is waited for. A listing holds it for a moment, shared, to see whether it is free, and for longer
// where the machine leaves it no time.
const (
	writerWait  = 200 * time.Millisecond
	listingWait = 10 * time.Second
)

// lock takes the writer's lock of dir. It lasts until the file is closed or the process dies.
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
			err = nil // the text is a courtesy
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

// Lock takes the lock of dir, made when absent, as the writer of a session does: for work of which sessions are a part.
// It is held until the closer is closed or the process ends; meanwhile [Running] says so, and another Lock is a
// [LockedError].
func Lock(dir string) (io.Closer, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	return lock(dir)
}

// readPID is the process named in the lock, 0 when there is none.
func readPID(f *os.File) int {
	b, _ := io.ReadAll(io.NewSectionReader(f, 0, 32))
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || pid < 0 {
		return 0
	}
	return pid
}

// Taken is when the lock of dir was last taken; the zero time where that is not known.
func Taken(dir string) time.Time {
	st, err := os.Stat(filepath.Join(dir, LockName))
	if err != nil {
		return time.Time{}
	}
	return st.ModTime()
}

// MayWatch returns why this user cannot know whether a process writes the session in dir: its lock may not be opened.
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

// Running says whether a process writes the session in dir, and which (0 when that cannot be read).
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
