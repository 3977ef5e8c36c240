package remote

import (
	"os"
	"path/filepath"
	"time"

	"brood/runtime/session"
)

// scratchPrefix begins the names of workers' folders in the system's folder for temporary files.
const scratchPrefix = "brood-worker-"

// scratchAge is the minimum age of a folder that is removed as a leftover: a younger one may not be locked yet.
const scratchAge = time.Minute

// scratch creates an empty folder for files in transit, locked while its process lives, and returns a function that
// removes it. It first removes the folders of processes that were killed.
func scratch() (dir string, remove func(), err error) {
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), scratchPrefix+"*", session.LockName))
	for _, lock := range left {
		old := filepath.Dir(lock)
		if info, err := os.Stat(old); err != nil || time.Since(info.ModTime()) < scratchAge {
			continue
		}
		if running, _ := session.Running(old); !running {
			os.RemoveAll(old) // fails for a folder of another user, which stays
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
