package typed

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// File is err, which came of opening the file at a path that was typed. Where there is no such file it also says which
// one beside it is meant, as [Meant] has it, and what to do. It is not marked: files are of a machine.
func File(err error, path, do string) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var there []string
	beside, _ := os.ReadDir(filepath.Dir(path)) // nothing is meant in a folder that cannot be read
	for _, e := range beside {
		if filepath.Ext(e.Name()) == filepath.Ext(path) {
			there = append(there, e.Name())
		}
	}
	return fmt.Errorf("%w%s: %s", err, Meant(filepath.Base(path), there), do)
}
