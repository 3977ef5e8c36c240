package data

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// arrays gives access by name to the arrays of an NPZ file or the NPY files of a folder.
type arrays struct {
	names []string
	open  func(name string) (io.ReadCloser, error)
	path  func(name string) string // for errors

	targets bool // labels are numbers to predict
}

// folderArrays returns the NPY files of a folder; none if the folder cannot be read.
func folderArrays(dir string, targets bool) arrays {
	a := arrays{targets: targets, path: func(name string) string { return filepath.Join(dir, name+".npy") }}
	a.open = func(name string) (io.ReadCloser, error) { return openFile(a.path(name)) }
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".npy"); ok {
			a.names = append(a.names, name)
		}
	}
	return a
}

func (r Reading) readNPZ(path string) (splits, error) {
	z, err := openNPZ(path)
	if err != nil {
		return splits{}, err
	}
	defer z.Close()
	a := zipArrays(path, &z.Reader)
	a.targets = r.Outputs > 0
	return r.readArrays(path, a, "")
}

func openNPZ(path string) (*zip.ReadCloser, error) {
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	f.Close()
	z, err := zip.OpenReader(path)
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return z, err
	}
	return nil, &FileError{path, 0, fmt.Sprintf("this is no NPZ file (%v)", err)}
}

func zipArrays(path string, z *zip.Reader) arrays {
	a := arrays{path: func(name string) string { return path + ": " + name }}
	a.open = func(name string) (io.ReadCloser, error) { return z.Open(name + ".npy") }
	for _, f := range z.File {
		if name, ok := strings.CutSuffix(f.Name, ".npy"); ok {
			a.names = append(a.names, name)
		}
	}
	return a
}

// readArrays reads the arrays x and y, or x_train and y_train with those for validation and testing if present. only
// names the array of training samples; if empty, x_train is used if present, else x.
func (r Reading) readArrays(from string, a arrays, only string) (own splits, err error) {
	x := only
	if x == "" {
		x = "x_train"
		if !slices.Contains(a.names, x) {
			x = "x"
		}
	}
	if x != "x" && x != "x_train" || !slices.Contains(a.names, x) {
		return own, fmt.Errorf("%s holds %s: name the samples x and their labels y, "+
			"or x_train and y_train, with x_val, y_val, x_test and y_test where there are some", from, quoted(a.names))
	}
	if own.train, err = a.pair(from, x); err != nil {
		return own, err
	}
	for _, name := range validationNames {
		if name = "x_" + name; own.validation == nil && slices.Contains(a.names, name) {
			if own.validation, err = a.pair(from, name); err != nil {
				return own, err
			}
		}
	}
	labelled := slices.Contains(a.names, "y_test")
	if slices.Contains(a.names, "x_test") && (x == "x_train" || labelled) {
		own.test, err = a.pair(from, "x_test")
	}
	return own, err
}

// quoted returns a phrase with at most 8 array names, for errors.
func quoted(names []string) string {
	if len(names) == 0 {
		return "no array"
	}
	more := ""
	if len(names) > 8 {
		names, more = names[:8], ", ..."
	}
	return "the arrays " + strings.Join(names, ", ") + more
}

// pair reads the samples of array x and the labels of the matching array y. from is the path for errors.
func (a arrays) pair(from, x string) (*part, error) {
	y := "y" + strings.TrimPrefix(x, "x")
	if !slices.Contains(a.names, y) {
		return nil, fmt.Errorf("%s holds samples %s without their labels; save them as %s beside it", from, x, y)
	}
	p, n, err := a.samples(from, x)
	if err != nil {
		return nil, err
	}
	labels, err := a.read(y)
	if err != nil {
		return nil, err
	}
	if a.targets {
		p.Targets, p.outputs, err = labels.targets(n)
		return p, err
	}
	p.names, err = labels.labels(n)
	return p, err
}

// samples reads the n samples of array x. from is the path for errors.
func (a arrays) samples(from, x string) (p *part, n int, err error) {
	all, err := a.read(x)
	if err != nil {
		return nil, 0, err
	}
	if p, err = all.part(); err != nil {
		return nil, 0, err
	}
	p.path, p.arrayPath = from, a.path(x)
	return p, all.shape[0], nil
}

func (a arrays) read(name string) (array, error) {
	f, err := a.open(name)
	if err != nil {
		return array{}, fmt.Errorf("%s: %w", a.path(name), err)
	}
	defer f.Close()
	return readNPY(f, a.path(name))
}

// part converts an array of shape n x features, n x height x width, or n x channels x height x width to samples. There
// are 1 or 3 channels, and they may also be the last axis.
func (a array) part() (*part, error) {
	p := &part{}
	var last bool
	if p.shape, last = sampleShape(a.shape); p.shape == nil {
		return nil, fmt.Errorf("%s has shape %v; samples are n x features, n x height x width, or n x 3 x height x width",
			a.file, a.shape)
	}
	if a.isBytes() {
		p.Pixels = a.raw
	} else {
		p.Doubles = a.numbers()
		p.narrow()
	}
	if last {
		p.Pixels = channelsFirst(p.Pixels, p.shape)
		p.Values = channelsFirst(p.Values, p.shape)
		p.Doubles = channelsFirst(p.Doubles, p.shape)
	}
	return p, nil
}

// sampleShape returns the shape of one sample of an array of shape n, and whether the channels are its last axis. shape
// is nil if n is none of the shapes that [array.part] accepts.
func sampleShape(n []int) (shape []int, last bool) {
	switch {
	case len(n) == 2:
		return n[1:], false
	case len(n) == 3:
		return []int{1, n[1], n[2]}, false
	case len(n) == 4 && (n[1] == 1 || n[1] == 3):
		return n[1:], false
	case len(n) == 4 && (n[3] == 1 || n[3] == 3):
		return []int{n[3], n[1], n[2]}, true
	}
	return nil, false
}

// channelsFirst converts samples from height x width x 3 to 3 x height x width. Samples of one channel are unchanged.
func channelsFirst[T any](v []T, shape []int) []T {
	if v == nil || shape[0] == 1 {
		return v
	}
	row := size(shape)
	out := make([]T, len(v))
	for i := range v {
		at := i % row
		out[i-at+at%3*(row/3)+at/3] = v[i]
	}
	return out
}

// targets returns the regression targets of n samples: one each for an array of n, else the size of its second axis.
func (a array) targets(n int) (out []float32, outputs int, err error) {
	outputs = len(a.raw) / a.elementSize() / max(1, n)
	if len(a.shape) > 2 || a.shape[0] != n || outputs < 1 {
		return nil, 0, fmt.Errorf("%s has shape %v for %d samples; labels of a regression are n numbers, or n x outputs",
			a.file, a.shape, n)
	}
	if 4*n*outputs > maxBytes {
		return nil, 0, fmt.Errorf("%s is too large: more than %d bytes of targets; leave out samples or outputs",
			a.file, maxBytes)
	}
	out = make([]float32, 0, n*outputs)
	for _, v := range a.numbers() {
		if !finite(float32(v)) {
			return nil, 0, fmt.Errorf("%s: label %v of sample %d is no number that can be trained on; "+
				"leave the sample out or repair it", a.file, v, len(out)/outputs+1)
		}
		out = append(out, float32(v))
	}
	return out, outputs, nil
}

// labels returns the classes of n samples as decimal text: the whole numbers of an array of n, or the indices of the
// ones in a one-hot array of n x classes.
func (a array) labels(n int) ([]string, error) {
	if len(a.shape) == 2 && a.shape[0] == n && a.shape[1] > 1 {
		return a.oneHotClasses(n)
	}
	if a.shape[0] != n || len(a.raw) != n*a.elementSize() {
		return nil, fmt.Errorf("%s has shape %v for %d samples; labels are one number a sample, or n x classes of 0 and 1",
			a.file, a.shape, n)
	}
	out := make([]string, n)
	for i, v := range a.numbers() {
		if v != math.Trunc(v) || math.Abs(v) > 1<<31 {
			return nil, fmt.Errorf("%s: label %v of sample %d is no class; labels are whole numbers from 0", a.file, v, i+1)
		}
		out[i] = strconv.Itoa(int(v))
	}
	return out, nil
}

// oneHotClasses returns the classes of n one-hot rows: exactly one number of a row is 1 and the others are 0.
func (a array) oneHotClasses(n int) ([]string, error) {
	classes, ones := a.shape[1], 0
	out := make([]string, 0, n)
	for i, v := range a.numbers() {
		if v != 0 && v != 1 {
			return nil, fmt.Errorf("%s: label %d has the number %v; where a label is several numbers they are 0 and 1, "+
				"and one is 1 for the class, or a model of the loss mse predicts them", a.file, i/classes+1, v)
		}
		if v == 1 {
			ones++
			out = append(out, strconv.Itoa(i%classes))
		}
		if i%classes == classes-1 {
			if ones != 1 {
				return nil, fmt.Errorf("%s: label %d has %d numbers that are 1, and one is the class of a sample; "+
					"repair it, or leave the sample out", a.file, i/classes+1, ones)
			}
			ones = 0
		}
	}
	return out, nil
}
