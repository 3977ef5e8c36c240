package data

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"brood/models/usererr"
)

// Reading configures how data are read. The zero Reading reads data for a classifier in their own form.
type Reading struct {
	Form *Form // preprocessing spec of a model, which the data must fit; nil: derived from the data

	Outputs int // targets per sample, for a model that predicts numbers; 0: labels are classes
	// the Outputs are classes, and a sample may belong to several: its targets are 0 or 1
	MultiLabel bool
	Label      string  // label columns of a table, by name or number from 1; "": see [Reading.open]
	Features   string  // with training: feature columns of a table, by name with commas; "": all but the label columns
	Drop       string  // with training: columns that are no features
	Categories bool    // with training: columns of text are categories, one feature each
	Fill       bool    // with training: missing numbers are the mean of their column, and a feature marks them
	Carry      string  // in samples to predict: columns that are returned as text, by name with commas
	SplitBy    SplitBy // with training: how samples are divided into splits that the data do not mark
	Table      Table   // how a table is read where its text is ambiguous
	Context    int     // window of a text in bytes; 0 means 1
	Apart      bool    // see [Info]: for a model of which a window scores all its bytes
	// with a Form and a path: put all samples, however few, into the training split, for callers that score all samples
	Undivided       bool
	Resize          Resize // of pictures; zero: that of the Form
	whiteBackground *bool  // background of the training pictures, used for the other splits too; nil: undetermined
}

// Form is a preprocessing spec: how samples become the input of a model, and the meaning of the model's outputs. Slices
// are read-only.
type Form struct {
	Shape     []int     // of a sample: [channels, height, width], or [features]
	Bytes     bool      // samples are bytes, scaled to [0, 1]; else numbers
	Text      bool      // samples are the raw bytes of a text, and classes are bytes; only Shape and Bytes are set then
	White     bool      // transparent pixels of pictures are drawn on white; else on black
	Resize    Resize    // of pictures to the Shape; zero: pictures of other sizes are rejected
	Mean, Std []float64 // per channel or feature: x becomes (x - mean)/std
	Classes   []string  // names, in order of the model's outputs
	Features  []string  // names of the features; nil if they have none
	Columns   []Column  // of a table, if a column is not one number; nil: each feature is a column
	Label     string    // name of the label column, or its number from 1; "" if there is none
	// Of a regression, per output: a model output z means the target z*TargetStd + TargetMean. Classes is nil then.
	TargetMean, TargetStd []float32
}

// Load reads a data set by name, or the user's own data by path; see [Load].
func (r Reading) Load(nameOrPath string) (*Set, error) {
	switch {
	case IsPath(nameOrPath) && IsText(nameOrPath):
		if err := r.checkNoResize(nameOrPath); err != nil {
			return nil, err
		}
		return r.openText(filepath.Clean(nameOrPath))
	case IsPath(nameOrPath):
		return r.open(filepath.Clean(nameOrPath))
	}
	if err := cmp.Or(r.checkPlain("data "+nameOrPath), r.checkNoResize("data "+nameOrPath)); err != nil {
		return nil, err
	}
	k, err := Lookup(nameOrPath)
	if err != nil {
		return nil, err
	}
	if k.Text {
		return r.loadTales(k)
	}
	s, err := k.read(k.Dirs())
	if err != nil || r.Form == nil {
		return s, err
	}
	return s.toForm(*r.Form)
}

// Detect reads data for a model that follows them. Labels are numbers to predict if they are not classes, or if all are
// numbers and one of them has a fraction; several columns of 0 and 1 that are not one-hot are several classes. The
// caller sets neither Outputs nor MultiLabel. If no reading succeeds, the error is that of classes.
func (r Reading) Detect(nameOrPath string) (*Set, error) {
	set, err := r.Load(nameOrPath)
	if err == nil && !fractions(set.Names) {
		return set, nil
	}
	for _, several := range []bool{true, false} {
		n := r
		n.Outputs, n.MultiLabel = 1, several
		if other, why := n.Load(nameOrPath); why == nil && (!several || other.Outputs > 1) {
			return other, nil
		}
	}
	return set, err
}

// fractions reports whether all names are numbers, and one or more of them is no whole number.
func fractions(names []string) (some bool) {
	for _, name := range names {
		x, err := strconv.ParseFloat(name, 64)
		if err != nil {
			return false
		}
		some = some || x != math.Trunc(x)
	}
	return some
}

// checkPlain returns an error if the reading uses options that only tables or numeric arrays support: a label column,
// several classes per sample or numeric labels. what names the data in the error.
func (r Reading) checkPlain(what string) error {
	if err := r.checkNoLabelColumn(what); err != nil {
		return err
	}
	if r.MultiLabel {
		return usererr.Errorf("%s has one class for each sample, and the model predicts several: "+
			"give a .csv, .npy or .npz file with a column of 0 and 1 for each class, or a model of the loss cross-entropy", what)
	}
	if r.Outputs > 0 {
		return usererr.Errorf("%s has classes for labels, and the model predicts numbers: "+
			"give a .csv, .npy or .npz file whose labels are numbers, or a model of the loss cross-entropy", what)
	}
	return nil
}

// checkNoLabelColumn returns an error if columns are selected or encoded, for data without columns.
func (r Reading) checkNoLabelColumn(what string) error {
	for _, x := range [][2]string{{"label", r.Label}, {"features", r.Features}, {"drop", r.Drop},
		{"split-by", r.SplitBy.String()}} {
		if x[1] != "" {
			return usererr.Errorf("%s %s: %s has no columns to choose from; leave it out", x[0], x[1], what)
		}
	}
	if r.Categories || r.Fill {
		return usererr.Errorf("categories and fill: %s is no table; leave them out", what)
	}
	return nil
}

// Form returns the preprocessing spec of the set.
func (s *Set) Form() Form {
	if s.Text {
		return Form{Shape: s.Shape, Bytes: true, Text: true}
	}
	f := Form{
		Shape:      s.Shape,
		Bytes:      !s.numeric(),
		White:      s.whiteBackground,
		Resize:     s.resize,
		Mean:       s.Mean,
		Std:        s.Std,
		Features:   s.columns.features,
		Columns:    s.columns.encoded,
		Label:      s.columns.label,
		TargetMean: s.TargetMean,
		TargetStd:  s.TargetStd,
	}
	for c := range max(s.Classes, s.classes()) {
		f.Classes = append(f.Classes, s.ClassName(c))
	}
	return f
}

// columnNames returns the names of the columns of a table; nil if they have none.
func (f Form) columnNames() []string {
	if f.Columns != nil {
		return columnNames(f.Columns)
	}
	return f.Features
}

// OutputNames returns the names of a regression's outputs, in order: its label columns. It returns nil if the
// columns have no names.
func (f Form) OutputNames() []string {
	names := []string{f.Label}
	if len(f.TargetMean) != 1 {
		names = strings.Split(f.Label, ",")
	}
	columnNumbers := f.Features == nil && isNumbers(names)
	if len(names) != len(f.TargetMean) || f.Label == "" || columnNumbers {
		return nil
	}
	return names
}

// Wide reports whether float32 is too coarse for a feature before normalisation: whether its spacing near the mean
// exceeds a thousandth of the standard deviation.
func (f Form) Wide() bool {
	for c := range f.Mean {
		if !f.Bytes && math.Abs(f.Mean[c])*0x1p-23 > 1e-3*f.Std[c] {
			return true
		}
	}
	return false
}

// classes returns the number of classes of multi-label data, else 0.
func (s *Set) classes() int {
	if s.MultiLabel {
		return s.Outputs
	}
	return 0
}

// Check returns an error that names the first invalid field of a form read from a file.
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
	case f.Resize.Side > 0 && (n != 3 || f.Shape[1] != f.Resize.Side || f.Shape[2] != f.Resize.Side):
		return fmt.Errorf("samples of %v, and pictures of %d pixels a side", f.Shape, f.Resize.Side)
	case f.Features != nil && (n != 1 || len(f.Features) != f.Shape[0]):
		return fmt.Errorf("%d names of features for samples of %v", len(f.Features), f.Shape)
	}
	if f.Columns != nil && (f.Bytes || !slices.Equal(expandedNames(f.Columns), f.Features)) {
		return fmt.Errorf("the columns, whose features are not those of the form")
	}
	for _, c := range f.Columns {
		if !slices.IsSorted(c.Categories) {
			return fmt.Errorf("the categories of column %q, which are not sorted", c.Name)
		}
	}
	for c := range f.Mean {
		if !finite(float32(f.Mean[c])) || !(f.Std[c] > 0) || !finite(float32(f.Std[c])) || !finite(float32(1/f.Std[c])) {
			return fmt.Errorf("the mean %g and the deviation %g of feature %d", f.Mean[c], f.Std[c], c+1)
		}
	}
	for k := range f.TargetMean {
		if !finite(f.TargetMean[k]) || !(f.TargetStd[k] > 0) || !finite(f.TargetStd[k]) || !finite(1/f.TargetStd[k]) {
			return fmt.Errorf("the mean %g and the deviation %g of the targets of output %d",
				f.TargetMean[k], f.TargetStd[k], k+1)
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

// toForm returns the set normalised as f specifies. It shares memory with s. The samples of s must be bytes; it fails
// if f is for a text, or for another shape, type or list of classes.
func (s *Set) toForm(f Form) (*Set, error) {
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
			return nil, fmt.Errorf("data %s has the classes %s, the model was trained on %s; choose data of the same classes",
				s.Name, shorten(have.Classes), shorten(f.Classes))
		}
	}
	c.Shape, c.whiteBackground, c.Mean, c.Std = shape, f.White, f.Mean, f.Std
	return &c, c.normalise()
}

// fitShape returns want, the model's shape of a sample, if samples of shape have fit it: the shapes are equal, or have
// equal size and at least one is flat.
func fitShape(have, want []int) ([]int, error) {
	if size(have) == size(want) && (slices.Equal(have, want) || len(have) == 1 || len(want) == 1) {
		return want, nil
	}
	return nil, fmt.Errorf("samples are of %v, and the model was trained on samples of %v; choose data that match",
		have, want)
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

// isNumbers reports whether all names are whole numbers in their usual decimal form.
func isNumbers(names []string) bool {
	return !slices.ContainsFunc(names, func(s string) bool {
		n, err := strconv.Atoi(s)
		return err != nil || strconv.Itoa(n) != s
	})
}
