//go:build unix

package session

import (
	"errors"
	"os"
	"syscall"
)

// mine refuses a directory that another user could have put there or can look into.
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
