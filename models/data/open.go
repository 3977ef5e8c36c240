package data

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"brood/models/wrongfile"
)

// Open reads a person's own data, by the kind of the path:
//
//	FILE.csv or .tsv, gzipped or not   a line a sample; labels in the column Reading.Label, or several, or else label,
//	                                   class or target, or else in the last
//	FILE.npz                           arrays x and y, or x_train and y_train with those of x_val and x_test
//	x.npy or x_train.npy               the same as files of one folder
//	*images*-ubyte, gzipped or not     IDX, with a file of labels beside it
//	FOLDER                             train with val, test or both, each of the kinds above or below; or the files of
//	                                   one kind; or sub-folders of PNG and JPEG pictures, one a class
//
// Labels that are whole numbers are the classes, from 0 or 1 without a gap; other labels are names, sorted, and names of
// folders that are numbers are sorted by value. A validation split is val, valid, validation or dev. Without test samples
// a sixth of each class of the training samples is taken for them, and without validation samples a twelfth of the rest,
// by permutations that all runs share. With Reading.Outputs labels are numbers, of a table one a column, and a sixth of
// all samples is taken.
func (r Reading) open(path string) (*Set, error) {
	if r.Form != nil && r.Form.Text {
		return nil, fmt.Errorf("%s is no text, which the model was trained on: give a .txt file", path)
	}
	parts, err := r.own(path, r.columns())
	if err != nil {
		return nil, advise(err)
	}
	return r.assemble(path, parts)
}

// advise adds to an error of reading what to do.
func advise(err error) error {
	var damaged *FileError
	switch {
	case errors.As(err, &damaged):
		return fmt.Errorf("%w; save the file again", err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w; `brood data list` shows what needs no path", err)
	}
	return err
}

// openFile opens a file of data. It refuses one that holds something else, such as the pointer of Git LFS to the file.
func openFile(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := wrongfile.Check(f, path, "the arrays with numpy.savez, or the table as CSV"); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// unreadable is the error for a file of a kind that is not read; kinds says what to give in its place.
func unreadable(path, kinds string) error {
	f, err := openFile(path)
	if err != nil {
		return err
	}
	f.Close()
	return fmt.Errorf("%s is of no kind that can be read: give %s", path, kinds)
}

// columns are the wanted ones of a table, nil without any.
func (r Reading) columns() *columns {
	switch {
	case r.Form != nil && (r.Form.Features != nil || r.Form.Label != ""):
		return &columns{of: "the model", features: r.Form.Features, label: r.Form.Label, pick: r.Label}
	case r.Label != "":
		return &columns{pick: r.Label}
	}
	return nil
}

// own reads the samples that a path has.
func (r Reading) own(path string, want *columns) (splits, error) {
	info, err := os.Stat(path)
	if err != nil {
		return splits{}, err
	}
	if info.IsDir() {
		return r.folder(path, want)
	}
	name := strings.ToLower(filepath.Base(path))
	switch filepath.Ext(strings.TrimSuffix(name, ".gz")) {
	case ".csv", ".tsv":
		p, err := r.table(path, want, r.Outputs > 0)
		return splits{train: p}, err
	case ".npz":
		if err := r.unlabelled(path); err != nil {
			return splits{}, err
		}
		return r.readNPZ(path)
	case ".npy":
		if err := r.unlabelled(path); err != nil {
			return splits{}, err
		}
		return r.readArrays(path, folderArrays(filepath.Dir(path), r.Outputs > 0), strings.TrimSuffix(filepath.Base(path), ".npy"))
	}
	if isImages(name) {
		if err := r.plain(path); err != nil {
			return splits{}, err
		}
		return r.readIDXPairs(path)
	}
	return splits{}, unreadable(path, "a .csv, .npy, .npz or .txt file, the images file of an IDX pair, or a folder with a sub-folder of PNG or JPEG pictures for each class")
}

func (r Reading) folder(dir string, want *columns) (splits, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return splits{}, err
	}
	found := map[string]string{}
	var images []string
	for _, e := range entries {
		name := strings.ToLower(e.Name())
		found[name] = filepath.Join(dir, e.Name())
		if isImages(name) {
			images = append(images, found[name])
		}
	}
	for _, ext := range []string{"", ".csv", ".csv.gz", ".tsv"} {
		validation := ""
		for _, name := range validationNames {
			validation = cmp.Or(validation, found[name+ext])
		}
		if train, test := found["train"+ext], found["test"+ext]; train != "" && (test != "" || validation != "") {
			return r.marked(train, validation, test, want)
		}
	}
	if found["x.npy"] != "" || found["x_train.npy"] != "" {
		if err := r.unlabelled(dir); err != nil {
			return splits{}, err
		}
		return r.readArrays(dir, folderArrays(dir, r.Outputs > 0), "")
	}
	if err := r.plain(dir); err != nil {
		return splits{}, err
	}
	if len(images) > 0 {
		path, err := trainImages(images)
		if err != nil {
			return splits{}, err
		}
		return r.readIDXPairs(path)
	}
	p, err := r.readPictures(dir)
	return splits{train: p}, err
}

// marked reads the files or folders of splits, of which those for validation and for tests may be missing (""). None
// may be split itself. The columns of the others are those of the training samples, by name.
func (r Reading) marked(train, validation, test string, want *columns) (own splits, err error) {
	for _, x := range []struct {
		path string
		to   **part
	}{{train, &own.train}, {validation, &own.validation}, {test, &own.test}} {
		if x.path == "" {
			continue
		}
		inner, err := r.own(x.path, want)
		if err != nil {
			return splits{}, err
		}
		p := inner.train
		if len(inner.all()) > 1 {
			return splits{}, fmt.Errorf("%s has splits of its own; give that path instead of its parent", x.path)
		}
		if (want == nil || want.features == nil) && p.features != nil {
			want = &columns{of: train, features: p.features, label: p.labelName}
			if r.Label != "" { // by its name, where a number was asked for
				want.pick = p.labelName
			}
		}
		*x.to, r.white = p, &p.white
	}
	return own, nil
}
