package data

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// MissingError says which files of a set were not found and where they were looked for.
type MissingError struct {
	Set   string
	Files []string // missing in the folder that has most of them
	Dirs  []string
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("data %s: %s not found in %s; fetch the set with `brood data get %s`", e.Set, strings.Join(e.Files, ", "), strings.Join(e.Dirs, " or "), e.Set)
}

// places are where the files of a set were found: their paths, or the one archive that holds them.
type places struct {
	dir     string
	paths   []string
	archive string
}

// Cache is where `brood data get` keeps a set.
func Cache(name string) (string, error) {
	d, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("data %s: no cache directory: %w; set BROOD_DATA to a folder that holds %s", name, err, name)
	}
	return filepath.Join(d, "brood", "data", name), nil
}

// Dirs are the folders where the set may lie: $BROOD_DATA/NAME, then the user's cache.
func (k Known) Dirs() (out []string) {
	if d := os.Getenv("BROOD_DATA"); d != "" {
		out = append(out, filepath.Join(d, k.Name))
	}
	if d, err := Cache(k.Name); err == nil {
		out = append(out, d)
	}
	return out
}

// Where is the folder that holds the set, "built in", or a MissingError. It looks at names only.
func (k Known) Where() (string, error) {
	p, err := k.locate(k.Dirs())
	return p.dir, err
}

// locate finds the first of dirs that holds all files, each as its name or its name.gz, in the folder itself or in the
// one that the archive has; or the archive.
func (k Known) locate(dirs []string) (places, error) {
	if k.Files == nil {
		return places{dir: "built in"}, nil
	}
	least := k.Files
	for _, d := range dirs {
		for _, sub := range []string{d, filepath.Join(d, k.Folder)} {
			p, missing := places{dir: sub}, []string(nil)
			for _, f := range k.Files {
				if path, ok := present(filepath.Join(sub, f)); ok {
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
			return places{dir: d, archive: archive}, nil
		}
	}
	return places{}, &MissingError{k.Name, least, dirs}
}

// present is the path or path.gz, whichever is a file.
func present(path string) (string, bool) {
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
