package session

import (
	"errors"
	"os"
	"path/filepath"
)

// WriteFile atomically writes a file that only its owner may read: after a crash the file has its old or its new
// content. It writes a temporary file in the same directory, whose name begins with unfinished, and renames it. After
// an error it removes the temporary file.
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
