package data

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"brood/models/usererr"
)

// Known describes a set that Load knows by name, without reading it.
type Known struct {
	Name        string
	Shape       []int
	Classes     int
	Train, Test int      // samples; Train counts those of the validation split too
	Text        bool     // Train and Test count bytes, and Shape is nil: a model says how many it reads
	Files       []string // nil: the set is built in
	Archive     string   // a tar.gz that holds Files too, as it is published
	Folder      string   // the folder in which the archive has them
	load        func(k Known, p places) (*Set, error)
}

// Catalogue is the sets that Load knows, the default first.
func Catalogue() []Known {
	batches := []string{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"}
	return []Known{
		{Name: "glyphs", Shape: []int{1, glyphSide, glyphSide}, Classes: 10, Train: GlyphTrain, Test: GlyphTest, load: loadGlyphs},
		{Name: "tales", Text: true, Classes: 1 + 'y', Train: talesTrain, Test: talesTest},
		{Name: "mnist", Shape: []int{1, 28, 28}, Classes: 10, Train: 60000, Test: 10000, load: loadMNIST,
			Files: []string{"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}},
		{Name: "cifar10", Shape: []int{3, 32, 32}, Classes: 10, Train: 50000, Test: 10000, load: loadCIFAR,
			Files: batches, Archive: "cifar-10-binary.tar.gz", Folder: "cifar-10-batches-bin"},
		{Name: "cifar100", Shape: []int{3, 32, 32}, Classes: 100, Train: 50000, Test: 10000, load: loadCIFAR,
			Files: []string{"train.bin", "test.bin"}, Archive: "cifar-100-binary.tar.gz", Folder: "cifar-100-binary"},
	}
}

// Splits are the samples to train on, to select by and to report on.
func (k Known) Splits() (train, validation, test int) {
	validation = held(k.Train, DefaultShare)
	return k.Train - validation, validation, k.Test
}

// List is the names Load knows, the default first.
func List() []string {
	var out []string
	for _, k := range Catalogue() {
		out = append(out, k.Name)
	}
	return out
}

// Lookup is a set of the catalogue.
func Lookup(name string) (Known, error) {
	all := Catalogue()
	i := slices.IndexFunc(all, func(k Known) bool { return k.Name == name })
	if i < 0 {
		return Known{}, usererr.Errorf("no data set %q%s; there are %s; give your own by its path, such as ./%s", name, usererr.Suggest(name, List()), strings.Join(List(), ", "), name)
	}
	return all[i], nil
}

// IsPath says whether a name of a data set is a path: it has a separator or a dot in it.
func IsPath(name string) bool {
	return strings.ContainsAny(name, "/.") || strings.ContainsRune(name, os.PathSeparator)
}

// Load reads a set by name, or a person's own by its path, with the default validation share. The files of a named set
// are looked for in $BROOD_DATA/NAME, then in the user's cache; glyphs and tales need none.
func Load(nameOrPath string) (*Set, error) { return Reading{}.Load(nameOrPath) }

// from reads the set from the first of dirs that has it.
func (k Known) from(dirs []string) (*Set, error) {
	p, err := k.locate(dirs)
	if err != nil {
		return nil, err
	}
	s, err := k.load(k, p)
	var damaged *FileError
	if errors.As(err, &damaged) {
		return nil, fmt.Errorf("data %s: %w; remove that file and fetch the set with `brood data get %s`", k.Name, err, k.Name)
	}
	return s, err
}

func loadGlyphs(k Known, _ places) (*Set, error) { return Glyphs(k.Train, k.Test) }
