package data

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"brood/models/usererr"
	"brood/models/wrongfile"
)

// open reads the user's own data. The path determines the format:
//
//	FILE.csv or .tsv, gzipped or not   one sample per line; labels in the columns Reading.Label, else in the column
//	                                   label, class or target, else in the last
//	FILE.npz                           arrays x and y, or x_train and y_train with those of x_val and x_test
//	x.npy or x_train.npy               the same as files of one folder
//	*images*-ubyte, gzipped or not     IDX, with a file of labels in the same folder
//	FOLDER                             train with val, test or both, each in any of these formats; or NPY or IDX files;
//	                                   or a sub-folder of PNG and JPEG pictures for each class
//
// Labels that are whole numbers are classes, numbered from 0 or 1 without a gap. Other labels are class names, sorted;
// folder names that are numbers are sorted by value. A validation split is named val, valid, validation or dev. If the
// data have no test samples, a sixth of each class of the training samples is drawn for testing; if they have no
// validation samples, a twelfth of the rest for validation. The permutations of these draws are the same in all runs.
// With Reading.Outputs, labels are numbers, one column of a table each, and the test samples are drawn from all
// samples.
func (r Reading) open(path string) (*Set, error) {
	if r.Form != nil && r.Form.Text {
		return nil, fmt.Errorf("%s is no text, which the model was trained on: give a .txt file", path)
	}
	parts, err := r.readSplits(path, r.columns())
	if err != nil {
		return nil, withAdvice(err)
	}
	return r.assemble(path, parts)
}

// withAdvice adds to a read error what the user can do.
func withAdvice(err error) error {
	if _, damaged := errors.AsType[*FileError](err); damaged {
		return fmt.Errorf("%w; save the file again", err)
	}
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return usererr.File(err, at.Path, "give the path of a file or a folder of samples")
	}
	return err
}

// openFile opens a data file. It fails if the file is recognised as another kind, such as a Git LFS pointer.
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

// unreadable returns the error for a file of an unsupported kind. kinds lists the supported ones.
func unreadable(path, kinds string) error {
	f, err := openFile(path)
	if err != nil {
		return err
	}
	f.Close()
	return fmt.Errorf("%s is of no kind that can be read: give %s", path, kinds)
}

// columns returns the columns required of a table; nil if none are.
func (r Reading) columns() *columns {
	switch {
	case r.Form != nil && (r.Form.Features != nil || r.Form.Label != ""):
		return &columns{
			owner:     "the model",
			features:  r.Form.columnNames(),
			encoded:   r.Form.Columns,
			label:     r.Form.Label,
			requested: r.Label,
		}
	case r.Label != "":
		return &columns{requested: r.Label}
	}
	return nil
}

// readSplits reads the samples at path, divided into the splits that the data mark.
func (r Reading) readSplits(path string, want *columns) (splits, error) {
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
		if err := r.checkNoLabelColumn(path); err != nil {
			return splits{}, err
		}
		return r.readNPZ(path)
	case ".npy":
		if err := r.checkNoLabelColumn(path); err != nil {
			return splits{}, err
		}
		x := strings.TrimSuffix(filepath.Base(path), ".npy")
		return r.readArrays(path, folderArrays(filepath.Dir(path), r.Outputs > 0), x)
	}
	if isImages(name) {
		if err := r.checkPlain(path); err != nil {
			return splits{}, err
		}
		return r.readIDXPairs(path)
	}
	return splits{}, unreadable(path, "a .csv, .npy, .npz or .txt file, the images file of an IDX pair, "+
		"or a folder with a sub-folder of PNG or JPEG pictures for each class")
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
		if err := r.checkNoLabelColumn(dir); err != nil {
			return splits{}, err
		}
		return r.readArrays(dir, folderArrays(dir, r.Outputs > 0), "")
	}
	if err := r.checkPlain(dir); err != nil {
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

// marked reads the files or folders of the splits. validation and test may be "" if missing. It fails if one of them
// contains splits itself. The columns of validation and test are matched by name to the columns of the training
// samples.
func (r Reading) marked(train, validation, test string, want *columns) (own splits, err error) {
	for _, x := range []struct {
		path string
		to   **part
	}{{train, &own.train}, {validation, &own.validation}, {test, &own.test}} {
		if x.path == "" {
			continue
		}
		inner, err := r.readSplits(x.path, want)
		if err != nil {
			return splits{}, err
		}
		p := inner.train
		if len(inner.all()) > 1 {
			return splits{}, fmt.Errorf("%s has splits of its own; give that path instead of its parent", x.path)
		}
		if (want == nil || want.features == nil) && p.featureNames != nil {
			want = &columns{owner: train, features: p.featureNames, encoded: p.encoded, label: p.labelName}
			if p.encoded != nil {
				want.features = columnNames(p.encoded)
			}
			if r.Label != "" { // by name, even if the user gave a number
				want.requested = p.labelName
			}
		}
		*x.to, r.whiteBackground = p, &p.whiteBackground
	}
	return own, nil
}
