package data

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// MissingError reports that files of a set were not found.
type MissingError struct {
	Set   string
	Files []string // missing in the folder that has most of them
	Dirs  []string // searched folders
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("data %s: %s not found in %s; fetch the set with `brood data get %s`",
		e.Set, strings.Join(e.Files, ", "), strings.Join(e.Dirs, " or "), e.Set)
}

// fileLocations is the result of locating the files of a set: either their paths or the archive that contains them.
type fileLocations struct {
	dir     string   // the folder, or "built in"
	paths   []string // one per file of Known.Files
	archive string   // path of the archive, if paths is nil
}

// Cache returns the folder in which `brood data get` stores a set.
func Cache(name string) (string, error) {
	d, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("data %s: no cache directory: %w; set BROOD_DATA to a folder that holds %s", name, err, name)
	}
	return filepath.Join(d, "brood", "data", name), nil
}

// Dirs returns the folders searched for the set, in order: $BROOD_DATA/NAME, then the user's cache.
func (k Known) Dirs() (out []string) {
	if d := os.Getenv("BROOD_DATA"); d != "" {
		out = append(out, filepath.Join(d, k.Name))
	}
	if d, err := Cache(k.Name); err == nil {
		out = append(out, d)
	}
	return out
}

// Where returns the folder that contains the set, or "built in"; the error is a MissingError. It checks only that the
// files exist.
func (k Known) Where() (string, error) {
	p, err := k.locate(k.Dirs())
	return p.dir, err
}

// locate returns the locations of the files in the first of dirs that contains all of them or the archive. Each file
// may be NAME or NAME.gz, in the folder or in its subfolder Known.Folder.
func (k Known) locate(dirs []string) (fileLocations, error) {
	if k.Files == nil {
		return fileLocations{dir: "built in"}, nil
	}
	least := k.Files
	for _, d := range dirs {
		for _, sub := range []string{d, filepath.Join(d, k.Folder)} {
			p, missing := fileLocations{dir: sub}, []string(nil)
			for _, f := range k.Files {
				if path, ok := existingFile(filepath.Join(sub, f)); ok {
					p.paths = append(p.paths, path)
				} else {
					missing = append(missing, f)
				}
			}
			if len(missing) == 0 {
				return p, nil
			}
			if len(missing) < len(least) {
				least = missing
			}
		}
		if archive := filepath.Join(d, k.Archive); k.Archive != "" && isFile(archive) {
			return fileLocations{dir: d, archive: archive}, nil
		}
	}
	return fileLocations{}, &MissingError{k.Name, least, dirs}
}

// existingFile returns path or path.gz, the first that is a regular file.
func existingFile(path string) (string, bool) {
	for _, p := range []string{path, path + ".gz"} {
		if isFile(p) {
			return p, true
		}
	}
	return "", false
}

func isFile(path string) bool {
	i, err := os.Stat(path)
	return err == nil && i.Mode().IsRegular()
}
