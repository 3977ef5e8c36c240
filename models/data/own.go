package data

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

const (
	leastOwn = 8 // samples: fewer leave a split empty
	// samples that each of more than 256 classes has in the mean: labels of fewer are no classes, but numbers or names
	leastOfClass = 2
)

// part is samples of a person's own data before their classes have numbers. Labels is nil.
type part struct {
	Raster
	shape []int
	names []string // label of each sample; nil where they have targets and nobody asked for the text
	// numbers of a sample in Targets; 0 where names are classes
	outputs int
	text    bool     // the values were written as text, which does not say that they are bytes
	from    string   // path
	note    string   // what a person may want to know about how it was read
	notes   []string // what was guessed, a sentence each

	features  []string // names of the columns, nil where they have none that tell them apart
	labelName string   // of the column of labels
	classes   []string // of the columns, where they have names and are several classes
	folders   bool     // names are those of folders
	white     bool     // the ground of transparent pixels
	array     string   // which one of several the samples are; "": the path says it
	lines     []int32  // of the file, of each sample; nil: they are counted
}

func (p *part) samples() int {
	if p.outputs > 0 {
		return len(p.Targets) / p.outputs
	}
	return len(p.names)
}

// place names a sample as a person finds it in the file.
func (p *part) place(i int) string {
	if p.lines != nil {
		return fmt.Sprintf("%s: line %d", p.from, p.lines[i])
	}
	return fmt.Sprintf("%s: row %d", cmp.Or(p.array, p.from), i+1)
}

// assemble numbers the classes and splits.
func (r Reading) assemble(name string, own splits) (*Set, error) {
	train := own.train
	if n := train.samples(); n < leastOwn && !r.undivided() {
		more := ""
		if r.Form != nil {
			more = "; brood eval --split all scores any number"
		}
		return nil, fmt.Errorf("%s: %d samples; a training, a validation and a test split need at least %d%s", train.from, n, leastOwn, more)
	}
	parts := own.all()
	for _, p := range parts[1:] {
		if !slices.Equal(train.shape, p.shape) {
			return nil, fmt.Errorf("%s: its samples are of shape %v, the training samples of %v; bring them to one shape", p.from, p.shape, train.shape)
		}
	}
	names, err := r.label(parts)
	if err != nil {
		return nil, err
	}
	if err := r.settleType(parts); err != nil {
		return nil, err
	}
	notes := append(train.notes, train.observe()...)
	if at, _ := train.noByte(); at < 0 && train.text && train.Pixels == nil && slices.Contains(train.Values, 255) {
		notes = append(notes, "all numbers are whole and from 0 to 255; they are standardised as numbers, and --table bytes reads them as pixels")
	}
	byClass := r.Outputs == 0
	all, tests := join(parts), 0
	var order []int
	switch {
	case own.test != nil:
		tests = own.test.samples()
	case !r.undivided():
		order, tests = drawTests(train, len(all.Labels), byClass)
		all = all.pick(order)
		if own.validation != nil {
			notes = append(notes, "there are validation samples and no test samples, so a sixth of the training samples is for tests")
		}
	}
	info := Info{Name: name, Shape: train.shape, Classes: len(names), Names: names, Outputs: train.outputs, MultiLabel: r.MultiLabel, From: train.from}
	if r.MultiLabel {
		info.Classes = 0
	}
	if train.note != "" {
		info.From += ", " + train.note
	}
	info.Notes = notes
	if slices.Equal(names, numbersFrom(0, len(names))) {
		info.Names = nil
	}
	if f := r.Form; f != nil {
		if info.Shape, err = fitShape(train.shape, f.Shape); err != nil {
			return nil, fmt.Errorf("data %s: %w", name, err)
		}
		info.Mean, info.Std, info.TargetMean, info.TargetStd = f.Mean, f.Std, f.TargetMean, f.TargetStd
	}
	s := &Set{Info: info, byClass: byClass, copied: true, columns: columns{features: train.features, label: train.labelName}}
	s.take(all)
	s.drawn, s.white = order != nil, train.white || r.Form != nil && r.Form.White
	s.place = func(i int) string {
		if order != nil {
			i = order[i]
		}
		return own.place(i)
	}
	trained := len(all.Labels)
	if !r.undivided() {
		trained -= tests
		if own.validation != nil {
			s.given = own.validation.samples()
		}
	}
	if err := s.build(trained, r.share()); err != nil {
		return nil, err
	}
	if r.Form != nil { // whoever trains on it asks, and a test may well lack a class
		return s, nil
	}
	if s.constant() {
		return nil, fmt.Errorf("data %s: no feature varies over the training samples, so there is nothing to learn from; look at the columns", s.Name)
	}
	return s, s.CheckClasses()
}

// undivided says that nobody wants splits.
func (r Reading) undivided() bool { return r.Form != nil && r.Undivided }

// share is that of the training samples which are for validation.
func (r Reading) share() float64 {
	if r.undivided() {
		return 0
	}
	return DefaultShare
}

// TestsDrawn says that the test samples are a share of a person's own, who marked none.
func (s *Set) TestsDrawn() bool { return s.drawn }

// ValidationMarked reports whether the data say which samples are for validation; else they are drawn.
func (s *Set) ValidationMarked() bool { return s.given > 0 }

// constant reports whether all training samples of a table are equal.
func (s *Set) constant() bool {
	if s.values == nil {
		return false
	}
	first := s.values[int(s.train[0])*s.features:][:s.features]
	for _, id := range s.train {
		if !slices.Equal(s.values[int(id)*s.features:][:s.features], first) {
			return false
		}
	}
	return true
}

// CheckClasses refuses a set of a person's own of which a split lacks a class that the others have: what training never
// sees cannot be learnt, and selection and tests that lack it tell nothing of it. By the first rule only training is
// looked at.
func (s *Set) CheckClasses() error {
	if s.Outputs > 0 || s.Text {
		return nil
	}
	any := make([]bool, s.Classes)
	for _, l := range s.labels {
		any[l] = true
	}
	splits := []struct {
		name string
		ids  []int32
	}{{"training", s.train}, {"validation", s.validation}, {"test", s.test}}
	if !s.byClass {
		splits = splits[:1]
	}
	for _, split := range splits {
		if len(split.ids) == 0 && split.name == "validation" { // nothing is held out, as asked
			continue
		}
		seen := make([]bool, s.Classes)
		for _, id := range split.ids {
			seen[s.labels[id]] = true
		}
		for c := range seen {
			if any[c] && !seen[c] {
				return fmt.Errorf("data %s: class %s has no sample in the %s split; add samples of it or leave it out", s.Name, s.ClassName(c), split.name)
			}
		}
	}
	return nil
}

// ClassName is the name of a class, its number where it has no other.
func (s *Set) ClassName(c int) string {
	if s.Text {
		return byteName(c)
	}
	if c < len(s.Names) {
		return s.Names[c]
	}
	return strconv.Itoa(c)
}

// label sets Labels, and returns the names of the classes. Samples with targets have none, and are all of class 0.
func (r Reading) label(parts []*part) ([]string, error) {
	train := parts[0]
	if r.MultiLabel {
		return r.several(parts)
	}
	if f := r.Form; f != nil && len(f.TargetMean) != train.outputs {
		return nil, fmt.Errorf("%s: a sample has %d numbers for a label, and the model predicts %d; choose data that match", train.from, train.outputs, len(f.TargetMean))
	}
	if train.outputs == 0 {
		return r.classify(parts)
	}
	return nil, unlabelled(parts)
}

// unlabelled gives samples with targets the class 0.
func unlabelled(parts []*part) error {
	for _, p := range parts {
		if p.outputs != parts[0].outputs {
			return fmt.Errorf("%s: a label is %d numbers where those to train on are %d; bring them to one shape", p.from, p.outputs, parts[0].outputs)
		}
		p.Labels = make([]uint16, p.samples())
	}
	return nil
}

// several are the names of classes of which a sample may be in several: those of the columns of labels, in their order.
func (r Reading) several(parts []*part) ([]string, error) {
	train := parts[0]
	if f := r.Form; f != nil && len(f.Classes) != train.outputs {
		return nil, fmt.Errorf("%s: a label is of %d classes, and the model has %d; choose data that match", train.from, train.outputs, len(f.Classes))
	}
	if err := unlabelled(parts); err != nil {
		return nil, err
	}
	switch names := train.classes; {
	case r.Form != nil:
		return r.Form.Classes, nil
	case len(names) == train.outputs:
		return names, nil
	}
	return numbersFrom(0, train.outputs), nil
}

// classify sets Labels and returns the name of each class, sorted: whole numbers by value, and other labels as texts. A
// model's classes are what they are.
func (r Reading) classify(parts []*part) ([]string, error) {
	if r.Form != nil {
		return r.Form.Classes, number(r.Form.Classes, "the model", parts)
	}
	train := parts[0]
	count := map[string]int{}
	for _, l := range train.names {
		count[l]++
	}
	names := slices.Sorted(maps.Keys(count))
	if isNumbers(names) {
		slices.SortFunc(names, byValue)
		if !train.folders {
			if err := checkNumbers(train.from, names); err != nil {
				return nil, err
			}
		}
	}
	switch {
	case len(names) > maxClasses:
		return nil, fmt.Errorf("%s: %d different labels, %q and %q among them; at most %d classes can be told apart; a model of the loss mse predicts numbers", train.from, len(names), names[0], names[1], maxClasses)
	case len(names) > byteClasses && len(names)*leastOfClass > len(train.names):
		return nil, fmt.Errorf("%s: %d different labels for %d samples, %q and %q among them; a class needs one for each split; a model of the loss mse predicts numbers", train.from, len(names), len(train.names), names[0], names[1])
	case len(names) < 2:
		return nil, fmt.Errorf("%s: every label is %q; a classifier needs two classes", train.from, names[0])
	}
	return names, number(names, "the training samples", parts)
}

// number sets Labels to the places of the samples' names among the classes that something has.
func number(classes []string, of string, parts []*part) error {
	index := map[string]uint16{}
	for i, name := range classes {
		index[name] = uint16(i)
	}
	for _, p := range parts {
		p.Labels = make([]uint16, len(p.names))
		for i, l := range p.names {
			c, ok := index[l]
			if !ok {
				return fmt.Errorf("%s: label %q is none of the %d classes of %s: %s", p.place(i), l, len(classes), of, some(classes))
			}
			p.Labels[i] = c
		}
	}
	return nil
}

// byValue compares labels that are whole numbers.
func byValue(a, b string) int {
	x, _ := strconv.Atoi(a)
	y, _ := strconv.Atoi(b)
	return cmp.Compare(x, y)
}

// checkNumbers refuses labels that are whole numbers, sorted, unless they count the classes from 0 or 1 without a gap: a
// gap is a class without a sample, or the labels are numbers to predict.
func checkNumbers(from string, names []string) error {
	for _, s := range names {
		if n, err := strconv.Atoi(s); err != nil || n < 0 || n >= maxClasses {
			return fmt.Errorf("%s: label %s is out of range: number the classes from 0 to %d at most, or give them names; a model of the loss mse predicts numbers", from, s, maxClasses-1)
		}
	}
	first := 0
	if names[0] != "0" {
		first = 1
	}
	for i, want := range numbersFrom(first, len(names)) {
		if names[i] != want {
			return fmt.Errorf("%s: class %s has no sample, but there is a class %s: number the classes from 0 or 1 without a gap, or give them names", from, want, names[len(names)-1])
		}
	}
	return nil
}

// label is a number as a label: whole numbers lose their decimals.
func label(text string) string {
	text = strings.TrimSpace(text)
	if whole, zeros, ok := strings.Cut(text, "."); ok && strings.Trim(zeros, "0") == "" {
		if _, err := strconv.Atoi(whole); err == nil {
			return whole
		}
	}
	return text
}
