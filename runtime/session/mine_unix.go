//go:build unix

package session

import (
	"errors"
	"os"
	"syscall"
)

// mine returns an error unless dir is a directory that only this user owns and may read.
func mine(dir string) error {
	st, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !st.IsDir() || st.Mode().Perm() != 0o700 || !ok || int(sys.Uid) != os.Getuid() {
		return errors.New("it is not a directory of this user alone")
	}
	return nil
}
