package data

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// isImages reports whether name is the name of an IDX file of images, such as train-images-idx3-ubyte.gz.
func isImages(name string) bool {
	return strings.Contains(name, "images") && strings.Contains(name, "idx") &&
		strings.HasSuffix(strings.TrimSuffix(name, ".gz"), "ubyte")
}

// trainImages returns the file of training images among paths: the only one, or the only one with "train" in its name.
func trainImages(paths []string) (string, error) {
	var found []string
	for _, p := range paths {
		if len(paths) == 1 || strings.Contains(filepath.Base(p), "train") {
			found = append(found, p)
		}
	}
	if len(found) != 1 {
		return "", fmt.Errorf("%s holds %d files of images and not one to train on; give the path of that file",
			filepath.Dir(paths[0]), len(paths))
	}
	return found[0], nil
}

// readIDXPairs reads the images at path with their labels and, for a pair named train, the test pair t10k or test from
// the same folder if present.
func (r Reading) readIDXPairs(path string) (own splits, err error) {
	if own.train, err = r.readIDXPair(path); err != nil {
		return own, err
	}
	if test := testImagesFor(path); test != "" {
		own.test, err = r.readIDXPair(test)
	}
	return own, err
}

// testImagesFor returns the path of the test images, t10k or test, in the folder of a file of training images; "" if
// there is none.
func testImagesFor(path string) string {
	base := strings.TrimSuffix(filepath.Base(path), ".gz")
	for _, name := range []string{"t10k", "test"} {
		other := strings.Replace(base, "train", name, 1)
		if found, ok := existingFile(filepath.Join(filepath.Dir(path), other)); ok && other != base {
			return found
		}
	}
	return ""
}

// labelsFor returns the expected name of the label file for a file of images. If the file exists, ok is true and found
// is its path.
func labelsFor(path string) (name, found string, ok bool) {
	base := strings.TrimSuffix(filepath.Base(path), ".gz")
	name = strings.Replace(base, "images", "labels", 1)
	for _, sizes := range []string{"idx2", "idx3", "idx4"} {
		name = strings.Replace(name, sizes, "idx1", 1)
	}
	found, ok = existingFile(filepath.Join(filepath.Dir(path), name))
	return name, found, ok
}

func (r Reading) readIDXPair(path string) (*part, error) {
	name, labels, ok := labelsFor(path)
	if !ok {
		return nil, fmt.Errorf("%s has no labels: put them into %s beside it", path, name)
	}
	shape, all, err := readPair(path, labels, 0)
	if err != nil {
		return nil, err
	}
	p := &part{Raster: Raster{Pixels: all.Pixels}, shape: shape, path: path}
	for _, l := range all.Labels {
		p.names = append(p.names, strconv.Itoa(int(l)))
	}
	return p, nil
}
