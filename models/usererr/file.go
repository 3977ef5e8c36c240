package usererr

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// File completes err, the error of opening the file at path. If the file does not exist, it appends a similar name that
// [Suggest] finds in the same directory, and do, which tells the user what to do. The result is not a usage error,
// since another machine may have the file.
func File(err error, path, do string) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var there []string
	siblings, _ := os.ReadDir(filepath.Dir(path)) // a directory that cannot be read has no suggestions
	for _, e := range siblings {
		if filepath.Ext(e.Name()) == filepath.Ext(path) {
			there = append(there, e.Name())
		}
	}
	return fmt.Errorf("%w%s: %s", err, Suggest(filepath.Base(path), there), do)
}

// Elsewhere completes err, the error of writing a file or a directory: if the file system caused it, it appends do,
// which tells the user where else to write.
func Elsewhere(err error, do string) error {
	if _, ok := errors.AsType[syscall.Errno](err); ok {
		return fmt.Errorf("%w: %s", err, do)
	}
	return err
}
