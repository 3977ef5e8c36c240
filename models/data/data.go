package data

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"brood/models/usererr"
)

// Known describes a data set that Load finds by name. Creating it reads no files.
type Known struct {
	Name        string
	Shape       []int
	Classes     int
	Train, Test int      // samples; Train includes the validation split
	Text        bool     // Train and Test count bytes, and Shape is nil: the model determines the window
	Files       []string // nil: the set is built in
	Archive     string   // published tar.gz that contains Files
	Folder      string   // the folder of Files in the archive
	load        func(k Known, p fileLocations) (*Set, error)
}

// Catalogue returns the named data sets, the default first.
func Catalogue() []Known {
	batches := []string{
		"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin",
		"test_batch.bin",
	}
	return []Known{
		{Name: "glyphs", Shape: []int{1, glyphSide, glyphSide}, Classes: 10, Train: GlyphTrain, Test: GlyphTest,
			load: loadGlyphs},
		{Name: "tales", Text: true, Classes: 1 + 'y', Train: talesTrain, Test: talesTest},
		{Name: "mnist", Shape: []int{1, 28, 28}, Classes: 10, Train: 60000, Test: 10000, load: loadMNIST,
			Files: []string{
				"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte",
			}},
		{Name: "cifar10", Shape: []int{3, 32, 32}, Classes: 10, Train: 50000, Test: 10000, load: loadCIFAR,
			Files: batches, Archive: "cifar-10-binary.tar.gz", Folder: "cifar-10-batches-bin"},
		{Name: "cifar100", Shape: []int{3, 32, 32}, Classes: 100, Train: 50000, Test: 10000, load: loadCIFAR,
			Files: []string{"train.bin", "test.bin"}, Archive: "cifar-100-binary.tar.gz", Folder: "cifar-100-binary"},
	}
}

// Splits returns the sizes of the training, validation and test splits with the default validation share.
func (k Known) Splits() (train, validation, test int) {
	validation = validationCount(k.Train, DefaultShare)
	return k.Train - validation, validation, k.Test
}

// List returns the names of the catalogue's data sets, the default first.
func List() []string {
	var out []string
	for _, k := range Catalogue() {
		out = append(out, k.Name)
	}
	return out
}

// Lookup returns the data set of that name in the catalogue. The error lists the names and suggests a similar one.
func Lookup(name string) (Known, error) {
	all := Catalogue()
	i := slices.IndexFunc(all, func(k Known) bool { return k.Name == name })
	if i < 0 {
		return Known{}, usererr.Errorf("no data set %q%s; there are %s; give your own by its path, such as ./%s",
			name, usererr.Suggest(name, List()), strings.Join(List(), ", "), name)
	}
	return all[i], nil
}

// IsPath reports whether the name of a data set is a path: it contains a separator or a dot.
func IsPath(name string) bool {
	return strings.ContainsAny(name, "/.") || strings.ContainsRune(name, os.PathSeparator)
}

// Find returns the error of [Load] if no data set has this name, or nothing exists at this path. It reads no samples.
func Find(nameOrPath string) error {
	if IsPath(nameOrPath) {
		_, err := os.Stat(filepath.Clean(nameOrPath))
		return withAdvice(err)
	}
	_, err := Lookup(nameOrPath)
	return err
}

// Load reads a data set by name, or the user's own data by path, with the default validation share. The files of a
// named set are searched in $BROOD_DATA/NAME, then in the user's cache; glyphs and tales are built in.
func Load(nameOrPath string) (*Set, error) { return Reading{}.Load(nameOrPath) }

// read reads the set from the first of dirs that contains it.
func (k Known) read(dirs []string) (*Set, error) {
	p, err := k.locate(dirs)
	if err != nil {
		return nil, err
	}
	s, err := k.load(k, p)
	var damaged *FileError
	if errors.As(err, &damaged) {
		return nil, fmt.Errorf("data %s: %w; remove that file and fetch the set with `brood data get %s`",
			k.Name, err, k.Name)
	}
	return s, err
}

func loadGlyphs(k Known, _ fileLocations) (*Set, error) { return Glyphs(k.Train, k.Test) }
