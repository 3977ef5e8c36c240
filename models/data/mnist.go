package data

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// MissingError says which files of a set were not found and where they were looked for.
type MissingError struct {
	Set   string
	Files []string
	Dirs  []string
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("data %s: %s not found; put the files (gzipped or not) into %s", e.Set, strings.Join(e.Files, ", "), strings.Join(e.Dirs, " or "))
}

// dirs are the folders where the files of a set may lie: $BROOD_DATA/name, then the user's cache.
func dirs(name string) (out []string) {
	if d := os.Getenv("BROOD_DATA"); d != "" {
		out = append(out, filepath.Join(d, name))
	}
	if d, err := os.UserCacheDir(); err == nil {
		out = append(out, filepath.Join(d, "brood", name))
	}
	return out
}

// find is the first of dirs that holds all files, each under its name or its name.gz, and their paths.
func find(set string, files, dirs []string) ([]string, error) {
	least := files
	for _, d := range dirs {
		var paths, missing []string
		for _, f := range files {
			p := filepath.Join(d, f)
			if _, err := os.Stat(p); err != nil {
				p += ".gz"
				if _, err := os.Stat(p); errors.Is(err, fs.ErrNotExist) {
					missing = append(missing, f)
					continue
				}
			}
			paths = append(paths, p)
		}
		if len(missing) == 0 {
			return paths, nil
		}
		if len(missing) < len(least) {
			least = missing
		}
	}
	return nil, &MissingError{set, least, dirs}
}

var mnistFiles = []string{"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}

// loadMNIST reads the four standard files.
func loadMNIST(dirs []string) (*Set, error) {
	paths, err := find("mnist", mnistFiles, dirs)
	if err != nil {
		return nil, err
	}
	var parts [2]Raster
	for i := range parts {
		if parts[i], err = readPair(paths[2*i], paths[2*i+1]); err != nil {
			return nil, err
		}
	}
	info := Info{Name: "mnist", Shape: []int{1, 28, 28}, Classes: 10, Mean: []float32{0.1307}, Std: []float32{0.3081}}
	return New(info, parts[0], parts[1], DefaultShare)
}

// readPair reads images of 28x28 and their labels of 0 to 9.
func readPair(images, labels string) (Raster, error) {
	dims, px, err := readFile(images)
	if err != nil {
		return Raster{}, err
	}
	if len(dims) != 3 || dims[1] != 28 || dims[2] != 28 {
		return Raster{}, &FileError{images, 4, fmt.Sprintf("sizes %v are not those of images of 28 x 28", dims)}
	}
	ldims, ls, err := readFile(labels)
	if err != nil {
		return Raster{}, err
	}
	if len(ldims) != 1 || ldims[0] != dims[0] {
		return Raster{}, &FileError{labels, 4, fmt.Sprintf("sizes %v do not match %d images", ldims, dims[0])}
	}
	for i, l := range ls {
		if l > 9 {
			return Raster{}, &FileError{labels, int64(8 + i), fmt.Sprintf("label %d is not 0 to 9", l)}
		}
	}
	return Raster{px, ls}, nil
}

func readFile(path string) ([]int, []byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	return ReadIDX(f, path)
}
