package data

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"brood/models/usererr"
)

const (
	minSamples = 8 // fewer leave a split empty
	// Minimum mean number of samples per class if there are more than 256 classes. Labels with fewer samples per value
	// are not classes but numbers to predict or names.
	minSamplesPerClass = 2
)

// part is the samples of one split of the user's own data, before classes are numbered. Labels is nil until setLabels.
type part struct {
	Raster
	shape []int
	names []string // label of each sample as text; nil if labels are targets and only their numbers are needed
	// targets per sample; 0 if names are classes
	outputs  int
	fromText bool     // read from text, which does not declare whether values are bytes
	path     string   // path
	note     string   // how the data were read, added to Info.From
	notes    []string // guesses, one sentence each

	encoded         []Column   // of the features, with Reading.Categories or Fill; else nil
	carried         []string   // columns of Reading.Carry
	carriedCells    [][]string // their cells, by row
	featureNames    []string   // column names; nil if missing or not unique
	labelName       string     // name of the label column, or its number from 1
	classColumns    []string   // names of the label columns of multi-label data
	namesAreFolders bool       // names are folder names
	resize          Resize     // of pictures
	whiteBackground bool       // transparent pixels are drawn on white
	arrayPath       string     // path of the samples' array in a file with several; "": see path
	files           []string   // of pictures, one each; else nil
	splitCells      []string   // cells of the column of Reading.SplitBy, by sample
	lineNumbers     []int32    // line number of each sample in the file; nil: samples are counted
}

func (p *part) samples() int {
	if p.outputs > 0 {
		return len(p.Targets) / p.outputs
	}
	return len(p.names)
}

// sampleName describes sample i in errors by its file and line or row.
func (p *part) sampleName(i int) string {
	switch {
	case p.files != nil:
		return p.files[i]
	case p.lineNumbers != nil:
		return fmt.Sprintf("%s: line %d", p.path, p.lineNumbers[i])
	}
	file, row := p.source(i)
	return fmt.Sprintf("%s: row %d", file, row)
}

// source returns the file of sample i, and its number there from 1.
func (p *part) source(i int) (file string, row int) {
	if p.files != nil {
		return p.files[i], 1
	}
	return cmp.Or(p.arrayPath, p.path), i + 1
}

// assemble joins the parts, numbers the classes, draws test samples if the data mark none, and builds the set. Without
// a Form it fails for data that cannot be trained on, see constant and CheckClasses.
func (r Reading) assemble(name string, own splits) (*Set, error) {
	train := own.train
	if n := train.samples(); n < minSamples && !r.singleSplit() {
		more := ""
		if r.Form != nil {
			more = "; brood eval --split all scores any number"
		}
		return nil, fmt.Errorf("%s: %d samples; a training, a validation and a test split need at least %d%s",
			train.path, n, minSamples, more)
	}
	if train.files == nil {
		if err := r.checkNoResize(train.path); err != nil {
			return nil, err
		}
	}
	parts := own.all()
	for _, p := range parts[1:] {
		if !slices.Equal(train.shape, p.shape) {
			return nil, fmt.Errorf("%s: its samples are of shape %v, the training samples of %v; bring them to one shape",
				p.path, p.shape, train.shape)
		}
	}
	turns, err := r.splitTurns(own)
	if err != nil {
		return nil, err
	}
	names, err := r.setLabels(parts)
	if err != nil {
		return nil, err
	}
	if err := r.unifyType(parts); err != nil {
		return nil, err
	}
	notes := append(train.notes, train.observe()...)
	at, _ := train.firstNonByte()
	if at < 0 && train.fromText && train.Pixels == nil && slices.Contains(train.Values, 255) {
		notes = append(notes, "all numbers are whole and from 0 to 255; they are standardised as numbers, "+
			"and --table bytes reads them as pixels")
	}
	byClass := r.Outputs == 0
	all, tests := join(parts), 0
	var order []int
	switch {
	case own.test != nil:
		tests = own.test.samples()
	case !r.singleSplit():
		order, tests = drawTests(train, len(all.Labels), byClass, r.SplitBy, turns)
		if all = all.pick(order); own.validation == nil {
			turns = pick(turns, order)
		}
		if own.validation != nil {
			notes = append(notes, "there are validation samples and no test samples, "+
				"so a sixth of the training samples is for tests")
		}
	}
	info := Info{
		Name:       name,
		Shape:      train.shape,
		Classes:    len(names),
		Names:      names,
		Outputs:    train.outputs,
		MultiLabel: r.MultiLabel,
		From:       train.path,
	}
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
	s := &Set{
		Info:       info,
		stratified: byClass && turns == nil,
		copied:     true,
		columns:    columns{features: train.featureNames, label: train.labelName, encoded: train.encoded},
	}
	s.setSamples(all)
	s.order, s.source, s.splitBy, s.turns = order, own.source, r.splitBy(), turns
	s.resize = train.resize
	s.testsDrawn, s.whiteBackground = order != nil, train.whiteBackground || r.Form != nil && r.Form.White
	s.sampleName = func(i int) string {
		if order != nil {
			i = order[i]
		}
		return own.sampleName(i)
	}
	trained := len(all.Labels)
	if !r.singleSplit() {
		trained -= tests
		if own.validation != nil {
			s.markedValidation = own.validation.samples()
		}
	}
	if err := s.build(trained, r.share()); err != nil {
		return nil, err
	}
	if r.Form != nil { // training callers call CheckClasses themselves; data to test on may lack a class
		return s, nil
	}
	if s.constant() {
		return nil, fmt.Errorf("data %s: no feature varies over the training samples, "+
			"so there is nothing to learn from; look at the columns", s.Name)
	}
	return s, s.CheckClasses()
}

// singleSplit reports whether all samples form one split, see Reading.Undivided.
func (r Reading) singleSplit() bool { return r.Form != nil && r.Undivided }

// splitBy returns SplitBy, or zero if all samples form one split.
func (r Reading) splitBy() SplitBy {
	if r.singleSplit() {
		return SplitBy{}
	}
	return r.SplitBy
}

// splitTurns returns the turns of the training samples, see [SplitBy.turns]; nil if splits are not drawn by a column.
func (r Reading) splitTurns(own splits) ([]int32, error) {
	drawn := 0
	for _, marked := range []*part{own.validation, own.test} {
		if marked == nil {
			drawn++
		}
	}
	switch by := r.splitBy(); {
	case by.Column == "":
		return nil, nil
	case drawn == 0:
		return nil, usererr.Errorf("split-by %s: the data mark their validation and test samples: leave it out", by)
	default:
		return by.turns(own.train, 1+drawn)
	}
}

// share returns the validation share of the training samples.
func (r Reading) share() float64 {
	if r.singleSplit() {
		return 0
	}
	return DefaultShare
}

// TestsDrawn reports whether the test samples were drawn from the user's samples because the data mark none.
func (s *Set) TestsDrawn() bool { return s.testsDrawn }

// SplitBy returns the column by which splits are drawn; zero if they are drawn from single samples or marked.
func (s *Set) SplitBy() SplitBy { return s.splitBy }

// ValidationMarked reports whether the data mark the validation samples. If not, they are drawn.
func (s *Set) ValidationMarked() bool { return s.markedValidation > 0 }

// constant reports whether all training samples are equal. It is false for samples of bytes.
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

// CheckClasses returns an error if a split lacks a class that another split contains: a class missing from training
// cannot be learnt, and one missing from validation or test is not measured. If the splits were not drawn per class,
// only the training split is checked. Regressions and texts always pass.
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
	if !s.stratified {
		splits = splits[:1]
	}
	for _, split := range splits {
		if len(split.ids) == 0 && split.name == "validation" { // the user requested no validation split
			continue
		}
		seen := make([]bool, s.Classes)
		for _, id := range split.ids {
			seen[s.labels[id]] = true
		}
		for c := range seen {
			if any[c] && !seen[c] {
				return fmt.Errorf("data %s: class %s has no sample in the %s split; add samples of it or leave it out",
					s.Name, s.ClassName(c), split.name)
			}
		}
	}
	return nil
}

// ClassName returns the name of class c, or its number if it has no name.
func (s *Set) ClassName(c int) string {
	if s.Text {
		return byteName(c)
	}
	if c < len(s.Names) {
		return s.Names[c]
	}
	return strconv.Itoa(c)
}

// setLabels sets the Labels of all parts and returns the class names. Samples with targets get class 0 and no names.
func (r Reading) setLabels(parts []*part) ([]string, error) {
	train := parts[0]
	if r.MultiLabel {
		return r.setMultiLabels(parts)
	}
	if f := r.Form; f != nil && len(f.TargetMean) != train.outputs {
		return nil, fmt.Errorf("%s: a sample has %d numbers for a label, and the model predicts %d; choose data that match",
			train.path, train.outputs, len(f.TargetMean))
	}
	if train.outputs == 0 {
		return r.setClassLabels(parts)
	}
	return nil, setClassZero(parts)
}

// setClassZero sets the class of all samples to 0, for data with targets. It fails if the parts differ in outputs.
func setClassZero(parts []*part) error {
	for _, p := range parts {
		if p.outputs != parts[0].outputs {
			return fmt.Errorf("%s: a label is %d numbers where those to train on are %d; bring them to one shape",
				p.path, p.outputs, parts[0].outputs)
		}
		p.Labels = make([]uint16, p.samples())
	}
	return nil
}

// setMultiLabels sets Labels to 0 and returns the class names of multi-label data: the names of the label columns in
// their order, or their numbers from 0. With a Form it returns the model's classes.
func (r Reading) setMultiLabels(parts []*part) ([]string, error) {
	train := parts[0]
	if f := r.Form; f != nil && len(f.Classes) != train.outputs {
		return nil, fmt.Errorf("%s: a label is of %d classes, and the model has %d; choose data that match",
			train.path, train.outputs, len(f.Classes))
	}
	if err := setClassZero(parts); err != nil {
		return nil, err
	}
	switch names := train.classColumns; {
	case r.Form != nil:
		return r.Form.Classes, nil
	case len(names) == train.outputs:
		return names, nil
	}
	return numbersFrom(0, train.outputs), nil
}

// setClassLabels sets Labels and returns the class names, sorted: by value if all are whole numbers, else as strings.
// With a Form it returns the model's classes in the model's order.
func (r Reading) setClassLabels(parts []*part) ([]string, error) {
	if r.Form != nil {
		return r.Form.Classes, setClassNumbers(r.Form.Classes, "the model", parts)
	}
	train := parts[0]
	count := map[string]int{}
	for _, l := range train.names {
		count[l]++
	}
	names := slices.Sorted(maps.Keys(count))
	if isNumbers(names) {
		slices.SortFunc(names, byValue)
		if !train.namesAreFolders {
			if err := checkNumbers(train.path, names); err != nil {
				return nil, err
			}
		}
	}
	switch {
	case len(names) > maxClasses:
		return nil, fmt.Errorf("%s: %d different labels, %q and %q among them; at most %d classes are supported; "+
			"a model of the loss mse predicts numbers", train.path, len(names), names[0], names[1], maxClasses)
	case len(names) > byteClasses && len(names)*minSamplesPerClass > len(train.names):
		return nil, fmt.Errorf("%s: %d different labels for %d samples, %q and %q among them; "+
			"a class needs one for each split; a model of the loss mse predicts numbers",
			train.path, len(names), len(train.names), names[0], names[1])
	case len(names) < 2:
		return nil, fmt.Errorf("%s: every label is %q; a classifier needs two classes", train.path, names[0])
	}
	return names, setClassNumbers(names, "the training samples", parts)
}

// setClassNumbers sets Labels to the indices of the samples' names in classes. owner names the owner of the classes in
// the error for an unknown name.
func setClassNumbers(classes []string, owner string, parts []*part) error {
	index := map[string]uint16{}
	for i, name := range classes {
		index[name] = uint16(i)
	}
	for _, p := range parts {
		p.Labels = make([]uint16, len(p.names))
		for i, l := range p.names {
			c, ok := index[l]
			if !ok {
				return fmt.Errorf("%s: label %q is none of the %d classes of %s: %s",
					p.sampleName(i), l, len(classes), owner, shorten(classes))
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

// checkNumbers returns an error unless names, which are sorted whole numbers, count from 0 or 1 without a gap. A gap
// means that a class has no sample or that the labels are numbers to predict.
func checkNumbers(from string, names []string) error {
	for _, s := range names {
		if n, err := strconv.Atoi(s); err != nil || n < 0 || n >= maxClasses {
			return fmt.Errorf("%s: label %s is out of range: number the classes from 0 to %d at most, or give them names; "+
				"a model of the loss mse predicts numbers", from, s, maxClasses-1)
		}
	}
	first := 0
	if names[0] != "0" {
		first = 1
	}
	for i, want := range numbersFrom(first, len(names)) {
		if names[i] != want {
			return fmt.Errorf("%s: class %s has no sample, but there is a class %s: "+
				"number the classes from 0 or 1 without a gap, or give them names", from, want, names[len(names)-1])
		}
	}
	return nil
}

// trimDecimals returns a label without surrounding spaces and, for a whole number such as 3.0, without its decimals.
func trimDecimals(text string) string {
	text = strings.TrimSpace(text)
	if whole, zeros, ok := strings.Cut(text, "."); ok && strings.Trim(zeros, "0") == "" {
		if _, err := strconv.Atoi(whole); err == nil {
			return whole
		}
	}
	return text
}
