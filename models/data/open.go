package data

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Open reads a person's own data, by the kind of the path:
//
//	FILE.csv or .tsv, gzipped or not   a line a sample; labels in the column Reading.Label, or several, or else label,
//	                                   class or target, or else in the last
//	FILE.npz                           arrays x and y, or x_train, y_train, x_test and y_test
//	x.npy or x_train.npy               the same as files of one folder
//	*images*-ubyte, gzipped or not     IDX, with a file of labels beside it
//	FOLDER                             train and test, each of the kinds above or below; or the files of one kind; or
//	                                   sub-folders of PNG and JPEG pictures, one a class
//
// Labels that are whole numbers are the classes, from 0 without a gap; other labels are names, sorted. Without test
// samples a sixth of each class is taken for them, by a permutation that all runs share. With Reading.Outputs labels
// are numbers, of a table one a column, and a sixth of all samples is taken.
func (r Reading) open(path string) (*Set, error) {
	if r.Form != nil && r.Form.Text {
		return nil, fmt.Errorf("%s is no text, which the model was trained on: give a .txt file", path)
	}
	train, test, err := r.own(path, r.columns())
	var damaged *FileError
	switch {
	case errors.As(err, &damaged):
		return nil, fmt.Errorf("%w; save the file again", err)
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w; `brood data list` shows what needs no path", err)
	case err != nil:
		return nil, err
	}
	return r.assemble(path, train, test)
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

// own reads the training samples and, where there are any, the test samples.
func (r Reading) own(path string, want *columns) (train, test *part, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if info.IsDir() {
		return r.folder(path, want)
	}
	name := strings.ToLower(filepath.Base(path))
	switch filepath.Ext(strings.TrimSuffix(name, ".gz")) {
	case ".csv", ".tsv":
		train, err = r.table(path, want, r.Outputs > 0)
		return train, nil, err
	case ".npz":
		if err := r.unlabelled(path); err != nil {
			return nil, nil, err
		}
		return readNPZ(path, r.Outputs > 0)
	case ".npy":
		if err := r.unlabelled(path); err != nil {
			return nil, nil, err
		}
		return readArrays(path, folderArrays(filepath.Dir(path), r.Outputs > 0), strings.TrimSuffix(filepath.Base(path), ".npy"))
	}
	if isImages(name) {
		if err := r.plain(path); err != nil {
			return nil, nil, err
		}
		return readIDXPairs(path)
	}
	return nil, nil, fmt.Errorf("%s is of no kind that can be read: give a .csv, .npy, .npz or .txt file, the images file of an IDX pair, or a folder with a sub-folder of PNG or JPEG pictures for each class", path)
}

func (r Reading) folder(dir string, want *columns) (train, test *part, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
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
		if a, b := found["train"+ext], found["test"+ext]; a != "" && b != "" {
			return r.parts(a, b, want)
		}
	}
	if found["x.npy"] != "" || found["x_train.npy"] != "" {
		if err := r.unlabelled(dir); err != nil {
			return nil, nil, err
		}
		return readArrays(dir, folderArrays(dir, r.Outputs > 0), "")
	}
	if err := r.plain(dir); err != nil {
		return nil, nil, err
	}
	if len(images) > 0 {
		path, err := trainImages(images)
		if err != nil {
			return nil, nil, err
		}
		return readIDXPairs(path)
	}
	train, err = readPictures(dir, r.Rule >= RuleByClass)
	return train, nil, err
}

// parts reads the two halves of a folder; neither may have a test part of its own. The columns of the second are those
// of the first, by name.
func (r Reading) parts(trainPath, testPath string, want *columns) (train, test *part, err error) {
	var inner [2]*part
	for i, path := range []string{trainPath, testPath} {
		p, more, err := r.own(path, want)
		if err != nil {
			return nil, nil, err
		}
		if more != nil {
			return nil, nil, fmt.Errorf("%s has test samples of its own; give that path instead of its parent", path)
		}
		if (want == nil || want.features == nil) && p.features != nil && r.Rule >= RuleByClass {
			want = &columns{of: trainPath, features: p.features, label: p.labelName}
			if r.Label != "" { // by its name, where a number was asked for
				want.pick = p.labelName
			}
		}
		inner[i] = p
	}
	return inner[0], inner[1], nil
}
