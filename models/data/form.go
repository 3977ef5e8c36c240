package data

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"brood/models/usererr"
)

// Reading says how data are read.
type Reading struct {
	Form *Form // that of a model, which the data must fit; nil: their own

	Outputs int // targets of a sample, for a model that predicts numbers; 0: labels are classes
	// the Outputs are classes, of which a sample may be in several: its targets are 0 and 1
	MultiLabel bool
	Label      string // the column of labels of a table, by name or counted from 1; "": see [Reading.open]
	Table      Table  // how a table is read where its text does not decide that
	Context    int    // bytes of a window of a text; 0 is 1
	// with a Form, of a path: all samples are together in the training split, however few, for those who look at all
	Undivided bool
	white     *bool // the ground of the training pictures, which those for testing share; nil: not settled
}

// Form is how samples become the input of a model, and what its results stand for. Slices are read-only.
type Form struct {
	Shape     []int     // of a sample: [channels, height, width], or [features]
	Bytes     bool      // samples are bytes, scaled to [0, 1]; else numbers
	Text      bool      // samples are the bytes of a text as they are, and classes are bytes; nothing else is said then
	White     bool      // transparent pixels of pictures are drawn on white; else on black
	Mean, Std []float64 // per channel or feature: x becomes (x - mean)/std
	Classes   []string  // names, in order of the results
	Features  []string  // names of the features; nil where they have none
	Label     string    // name of the column of labels, or its number from 1; "" where it has none
	// of a regression, per output: a result z stands for z*TargetStd + TargetMean. It has no Classes then
	TargetMean, TargetStd []float32
}

// Load reads a set by name, or a person's own by its path; see [Load].
func (r Reading) Load(nameOrPath string) (*Set, error) {
	switch {
	case IsPath(nameOrPath) && IsText(nameOrPath):
		return r.openText(filepath.Clean(nameOrPath))
	case IsPath(nameOrPath):
		return r.open(filepath.Clean(nameOrPath))
	}
	if err := r.plain("data " + nameOrPath); err != nil {
		return nil, err
	}
	k, err := Lookup(nameOrPath)
	if err != nil {
		return nil, err
	}
	if k.Text {
		return r.tales(k)
	}
	s, err := k.from(k.Dirs())
	if err != nil || r.Form == nil {
		return s, err
	}
	return s.as(*r.Form)
}

// plain refuses what only a table, or an array of numbers, can have.
func (r Reading) plain(what string) error {
	if err := r.unlabelled(what); err != nil {
		return err
	}
	if r.MultiLabel {
		return usererr.Errorf("%s has one class for each sample, and the model tells several: give a .csv, .npy or .npz file with a column of 0 and 1 for each class, or a model of the loss cross-entropy", what)
	}
	if r.Outputs > 0 {
		return usererr.Errorf("%s has classes for labels, and the model predicts numbers: give a .csv, .npy or .npz file whose labels are numbers, or a model of the loss cross-entropy", what)
	}
	return nil
}

// unlabelled refuses to choose a column of labels where there are no columns.
func (r Reading) unlabelled(what string) error {
	if r.Label != "" {
		return usererr.Errorf("label %s: %s has no columns to choose from; leave it out", r.Label, what)
	}
	return nil
}

// Form is that of the set.
func (s *Set) Form() Form {
	if s.Text {
		return Form{Shape: s.Shape, Bytes: true, Text: true}
	}
	f := Form{Shape: s.Shape, Bytes: !s.numeric(), White: s.white, Mean: s.Mean, Std: s.Std, Features: s.columns.features, Label: s.columns.label,
		TargetMean: s.TargetMean, TargetStd: s.TargetStd}
	for c := range max(s.Classes, s.classes()) {
		f.Classes = append(f.Classes, s.ClassName(c))
	}
	return f
}

// OutputNames are those of what a regression predicts, in order of the results: the columns of its labels. Nil where
// they have no names.
func (f Form) OutputNames() []string {
	names := []string{f.Label}
	if len(f.TargetMean) != 1 {
		names = strings.Split(f.Label, ",")
	}
	if len(names) != len(f.TargetMean) || f.Label == "" || f.Features == nil && isNumbers(names) { // which count columns
		return nil
	}
	return names
}

// Wide reports whether float32 is too coarse for a feature as it is read: its steps about the mean exceed a thousandth of
// the deviation.
func (f Form) Wide() bool {
	for c := range f.Mean {
		if !f.Bytes && math.Abs(f.Mean[c])*0x1p-23 > 1e-3*f.Std[c] {
			return true
		}
	}
	return false
}

// classes are those of which a sample may be in several; 0 where it cannot.
func (s *Set) classes() int {
	if s.MultiLabel {
		return s.Outputs
	}
	return 0
}

// Check says what is wrong with a form that was read from a file.
func (f Form) Check() error {
	size := 1
	for _, d := range f.Shape {
		if d < 1 || size > maxFeatures/d {
			return fmt.Errorf("the shape %v of a sample", f.Shape)
		}
		size *= d
	}
	switch n := len(f.Shape); {
	case f.Text && (n != 1 || !f.Bytes || f.Mean != nil || f.Std != nil || f.Classes != nil || f.TargetMean != nil):
		return fmt.Errorf("the shape %v of a text's samples, or what else is said of them", f.Shape)
	case f.Text:
		return nil
	case n != 1 && n != 3:
		return fmt.Errorf("the shape %v of a sample: it is [features] or [channels, height, width]", f.Shape)
	case len(f.Mean) != f.Shape[0] || len(f.Std) != f.Shape[0]:
		return fmt.Errorf("%d means and %d deviations for samples of %v", len(f.Mean), len(f.Std), f.Shape)
	case len(f.TargetMean) != len(f.TargetStd):
		return fmt.Errorf("%d means and %d deviations of targets", len(f.TargetMean), len(f.TargetStd))
	case f.TargetMean != nil && f.Classes != nil:
		return fmt.Errorf("%d classes and %d outputs", len(f.Classes), len(f.TargetMean))
	case f.TargetMean == nil && (len(f.Classes) < 1 || len(f.Classes) > maxClasses):
		return fmt.Errorf("%d classes", len(f.Classes))
	case f.Features != nil && (n != 1 || len(f.Features) != f.Shape[0]):
		return fmt.Errorf("%d names of features for samples of %v", len(f.Features), f.Shape)
	}
	for c := range f.Mean {
		if !finite(float32(f.Mean[c])) || !(f.Std[c] > 0) || !finite(float32(f.Std[c])) || !finite(float32(1/f.Std[c])) {
			return fmt.Errorf("the mean %g and the deviation %g of feature %d", f.Mean[c], f.Std[c], c+1)
		}
	}
	for k := range f.TargetMean {
		if !finite(f.TargetMean[k]) || !(f.TargetStd[k] > 0) || !finite(f.TargetStd[k]) || !finite(1/f.TargetStd[k]) {
			return fmt.Errorf("the mean %g and the deviation %g of the targets of output %d", f.TargetMean[k], f.TargetStd[k], k+1)
		}
	}
	for _, names := range [][]string{f.Classes, f.Features} {
		sorted := slices.Sorted(slices.Values(names))
		for i := range max(0, len(sorted)-1) {
			if sorted[i] == sorted[i+1] {
				return fmt.Errorf("the name %q, which is there twice", sorted[i])
			}
		}
	}
	return nil
}

// as is the set normalised as the form says; it shares memory with s, whose samples are bytes.
func (s *Set) as(f Form) (*Set, error) {
	c := *s
	have := s.Form()
	if f.Text {
		return nil, fmt.Errorf("data %s is no text, which the model was trained on: choose data that match", s.Name)
	}
	shape, err := fitShape(have.Shape, f.Shape)
	switch {
	case err != nil:
		return nil, fmt.Errorf("data %s: %w", s.Name, err)
	case have.Bytes != f.Bytes:
		return nil, fmt.Errorf("data %s: %w", s.Name, typeError(f.Bytes))
	}
	for i := range max(len(have.Classes), len(f.Classes)) {
		if i >= len(have.Classes) || i >= len(f.Classes) || have.Classes[i] != f.Classes[i] {
			return nil, fmt.Errorf("data %s has the classes %s, the model was trained on %s; choose data of the same classes", s.Name, some(have.Classes), some(f.Classes))
		}
	}
	c.Shape, c.white, c.Mean, c.Std = shape, f.White, f.Mean, f.Std
	return &c, c.normalise()
}

// fitShape is the shape that samples take for a model: one of both may be flat where the other is an image.
func fitShape(have, want []int) ([]int, error) {
	if size(have) == size(want) && (slices.Equal(have, want) || len(have) == 1 || len(want) == 1) {
		return want, nil
	}
	return nil, fmt.Errorf("samples are of %v, and the model was trained on samples of %v; choose data that match", have, want)
}

func size(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

func typeError(wantBytes bool) error {
	if wantBytes {
		return fmt.Errorf("samples are numbers, and the model was trained on bytes; save them as bytes, 0 to 255")
	}
	return fmt.Errorf("samples are bytes, and the model was trained on numbers; save them as numbers of the same unit")
}

// isNumbers says whether all names are whole numbers.
func isNumbers(names []string) bool {
	return !slices.ContainsFunc(names, func(s string) bool {
		n, err := strconv.Atoi(s)
		return err != nil || strconv.Itoa(n) != s
	})
}
