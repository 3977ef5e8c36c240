package session

import (
	"errors"
	"os"
	"path/filepath"
)

// WriteFile writes a file for its owner alone, whole or not at all: after a crash it is the old one or the new one.
// unfinished begins the name of the file beside it that takes the text first; nothing with that name is left after an
// error.
func WriteFile(path, unfinished string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), unfinished+"*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
