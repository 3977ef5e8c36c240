package data

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// isImages says whether a file's name is that of the images of an IDX pair, such as train-images-idx3-ubyte.gz.
func isImages(name string) bool {
	return strings.Contains(name, "images") && strings.Contains(name, "idx") && strings.HasSuffix(strings.TrimSuffix(name, ".gz"), "ubyte")
}

// trainImages is the one file among paths to train on.
func trainImages(paths []string) (string, error) {
	var found []string
	for _, p := range paths {
		if len(paths) == 1 || strings.Contains(filepath.Base(p), "train") {
			found = append(found, p)
		}
	}
	if len(found) != 1 {
		return "", fmt.Errorf("%s holds %d files of images and not one to train on; give the path of that file", filepath.Dir(paths[0]), len(paths))
	}
	return found[0], nil
}

// readIDXPairs reads the images at path and their labels, and the test pair t10k or test beside a pair train.
func (r Reading) readIDXPairs(path string) (own splits, err error) {
	if own.train, err = r.readIDXPair(path); err != nil {
		return own, err
	}
	if beside := testBeside(path); beside != "" {
		own.test, err = r.readIDXPair(beside)
	}
	return own, err
}

// testBeside is the file t10k or test of images beside a file train of images, "" without any.
func testBeside(path string) string {
	base := strings.TrimSuffix(filepath.Base(path), ".gz")
	for _, name := range []string{"t10k", "test"} {
		other := strings.Replace(base, "train", name, 1)
		if found, ok := present(filepath.Join(filepath.Dir(path), other)); ok && other != base {
			return found
		}
	}
	return ""
}

// labelsBeside is the file of the labels of images, and whether it is there.
func labelsBeside(path string) (name, found string, ok bool) {
	base := strings.TrimSuffix(filepath.Base(path), ".gz")
	name = strings.Replace(base, "images", "labels", 1)
	for _, sizes := range []string{"idx2", "idx3", "idx4"} {
		name = strings.Replace(name, sizes, "idx1", 1)
	}
	found, ok = present(filepath.Join(filepath.Dir(path), name))
	return name, found, ok
}

func (r Reading) readIDXPair(path string) (*part, error) {
	name, labels, ok := labelsBeside(path)
	if !ok {
		return nil, fmt.Errorf("%s has no labels: put them into %s beside it", path, name)
	}
	shape, all, err := readPair(path, labels, 0)
	if err != nil {
		return nil, err
	}
	p := &part{Raster: Raster{Pixels: all.Pixels}, shape: shape, from: path}
	for _, l := range all.Labels {
		p.names = append(p.names, strconv.Itoa(int(l)))
	}
	return p, nil
}
