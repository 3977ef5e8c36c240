package remote

import (
	"os"
	"path/filepath"
	"time"

	"brood/runtime/session"
)

// scratchPrefix begins the names of workers' folders in the system's temporary one.
const scratchPrefix = "brood-worker-"

// scratchAge is how old a folder is at least before it is taken for one that was left behind: a younger one may not be
// locked yet.
const scratchAge = time.Minute

// scratch is an empty folder for files on their way, locked while its process lives, and what removes it. Those of
// processes that were killed are removed first.
func scratch() (dir string, remove func(), err error) {
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), scratchPrefix+"*", session.LockName))
	for _, lock := range left {
		old := filepath.Dir(lock)
		if info, err := os.Stat(old); err != nil || time.Since(info.ModTime()) < scratchAge {
			continue
		}
		if running, _ := session.Running(old); !running {
			os.RemoveAll(old) // another's stays: only its owner may remove it
		}
	}
	if dir, err = os.MkdirTemp("", scratchPrefix+"*"); err != nil {
		return "", nil, err
	}
	lock, err := session.Lock(dir)
	if err != nil {
		os.RemoveAll(dir)
		return "", nil, err
	}
	return dir, func() {
		lock.Close()
		os.RemoveAll(dir)
	}, nil
}
