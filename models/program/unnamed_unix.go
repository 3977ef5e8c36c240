//go:build unix

package program

import "os"

// unnamedFile returns a temporary file without a name, so that it is deleted however the run ends.
func unnamedFile() (*os.File, error) {
	f, err := os.CreateTemp("", "brood-program-*") // accessible only to its owner
	if err != nil {
		return nil, err
	}
	return f, os.Remove(f.Name())
}
