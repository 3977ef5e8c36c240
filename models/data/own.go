package data

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"brood/models/noise"
)

const (
	testShare = 1.0 / 6 // of a person's samples, where none are marked as test samples
	leastOwn  = 8       // samples: fewer leave a split empty
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
func (r Reading) assemble(name string, train, test *part) (*Set, error) {
	if n := train.samples(); n < leastOwn && !r.undivided() {
		more := ""
		if r.Form != nil {
			more = "; brood eval --split all scores any number"
		}
		return nil, fmt.Errorf("%s: %d samples; a training, a validation and a test split need at least %d%s", train.from, n, leastOwn, more)
	}
	if test != nil && !slices.Equal(train.shape, test.shape) {
		return nil, fmt.Errorf("%s: the test samples are of shape %v, the training samples of %v; bring them to one shape", test.from, test.shape, train.shape)
	}
	names, err := r.label(train, test)
	if err != nil {
		return nil, err
	}
	if err := r.settleType(train, test); err != nil {
		return nil, err
	}
	notes := append(train.notes, train.observe()...)
	if at, _ := train.noByte(); at < 0 && train.text && train.Pixels == nil && slices.Contains(train.Values, 255) {
		notes = append(notes, "all numbers are whole and from 0 to 255; they are standardised as numbers, and --table bytes reads them as pixels")
	}
	byClass := r.Rule >= RuleByClass && r.Outputs == 0
	all, n, order := r.divided(train, test, byClass)
	info := Info{Name: name, Shape: train.shape, Classes: len(names), Names: names, Outputs: train.outputs, MultiLabel: r.MultiLabel, From: train.from}
	if r.MultiLabel {
		info.Classes = 0
	}
	if train.note != "" {
		info.From += ", " + train.note
	}
	info.Notes = notes
	if isNumbers(names) {
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
	s.drawn, s.rounded = order != nil, r.Rule < RuleDoubles
	mine := train.samples()
	s.place = func(i int) string {
		switch {
		case order != nil:
			return train.place(order[i])
		case i < mine:
			return train.place(i)
		}
		return test.place(i - mine)
	}
	if err := s.build(n, r.share()); err != nil {
		return nil, err
	}
	if r.Form != nil { // whoever trains on it asks, and a test may well lack a class
		return s, nil
	}
	if r.Rule >= RuleDoubles && s.constant() {
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

// divided is [join], or all samples for training.
func (r Reading) divided(train, test *part, byClass bool) (all Raster, n int, order []int) {
	switch {
	case !r.undivided():
		return join(train, test, byClass)
	case test == nil:
		return train.Raster, train.samples(), nil
	}
	all, _, _ = join(train, test, byClass)
	return all, train.samples() + test.samples(), nil
}

// TestsDrawn says that the test samples are a share of a person's own, who marked none.
func (s *Set) TestsDrawn() bool { return s.drawn }

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
func (r Reading) label(train, test *part) ([]string, error) {
	if r.MultiLabel {
		return r.several(train, test)
	}
	if f := r.Form; f != nil && len(f.TargetMean) != train.outputs {
		return nil, fmt.Errorf("%s: a sample has %d numbers for a label, and the model predicts %d; choose data that match", train.from, train.outputs, len(f.TargetMean))
	}
	if train.outputs == 0 {
		return r.classify(train, test)
	}
	return nil, unlabelled(train, test)
}

// unlabelled gives samples with targets the class 0.
func unlabelled(train, test *part) error {
	for _, p := range []*part{train, test} {
		switch {
		case p == nil:
			continue
		case p.outputs != train.outputs:
			return fmt.Errorf("%s: a label is %d numbers where those to train on are %d; bring them to one shape", p.from, p.outputs, train.outputs)
		}
		p.Labels = make([]uint16, p.samples())
	}
	return nil
}

// several are the names of classes of which a sample may be in several: those of the columns of labels, in their order.
func (r Reading) several(train, test *part) ([]string, error) {
	if f := r.Form; f != nil && len(f.Classes) != train.outputs {
		return nil, fmt.Errorf("%s: a label is of %d classes, and the model has %d; choose data that match", train.from, train.outputs, len(f.Classes))
	}
	if err := unlabelled(train, test); err != nil {
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

// classify sets Labels and returns the name of each class: whole numbers are the classes themselves, other labels are
// sorted. A model's classes are what they are.
func (r Reading) classify(train, test *part) ([]string, error) {
	if r.Form != nil {
		return r.Form.Classes, number(r.Form.Classes, "the model", train, test)
	}
	count := map[string]int{}
	for _, l := range train.names {
		count[l]++
	}
	names := slices.Sorted(maps.Keys(count))
	if isNumbers(names) {
		var err error
		if names, err = numbered(train.from, names); err != nil {
			return nil, err
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
	return names, number(names, "the training samples", train, test)
}

// number sets Labels to the places of the samples' names among the classes that something has.
func number(classes []string, of string, parts ...*part) error {
	index := map[string]uint16{}
	for i, name := range classes {
		index[name] = uint16(i)
	}
	for _, p := range parts {
		if p == nil {
			continue
		}
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

// numbered is the names 0, 1, ... of labels that are whole numbers.
func numbered(from string, names []string) ([]string, error) {
	var seen [maxClasses]bool
	top := 0
	for _, s := range names {
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 || n >= maxClasses {
			return nil, fmt.Errorf("%s: label %s is out of range: number the classes from 0 to %d at most, or give them names; a model of the loss mse predicts numbers", from, s, maxClasses-1)
		}
		seen[n], top = true, max(top, n)
	}
	out := make([]string, top+1)
	for n := range out {
		if !seen[n] {
			return nil, fmt.Errorf("%s: class %d has no sample, but there is a class %d: number the classes from 0 without a gap, or give them names", from, n, top)
		}
		out[n] = strconv.Itoa(n)
	}
	return out, nil
}

// narrow stores doubles as values where float32 holds each of them.
func (p *part) narrow() {
	if p.Doubles == nil || slices.ContainsFunc(p.Doubles, func(v float64) bool { return float64(float32(v)) != v }) {
		return
	}
	p.round()
}

// round stores doubles as values.
func (p *part) round() {
	if p.Doubles == nil {
		return
	}
	p.Values = make([]float32, len(p.Doubles))
	for i, v := range p.Doubles {
		p.Values[i] = float32(v)
	}
	p.Doubles = nil
}

// widen stores values as doubles.
func (p *part) widen() {
	if p.Values == nil {
		return
	}
	p.Doubles = make([]float64, len(p.Values))
	for i, v := range p.Values {
		p.Doubles[i] = float64(v)
	}
	p.Values = nil
}

// settleType gives both parts one type of samples. Numbers of a table become bytes where the user says so, where the
// model was trained on bytes, and by rules before RuleDoubles where all are bytes and 255 is among them.
func (r Reading) settleType(train, test *part) error {
	parts := []*part{train}
	if test != nil {
		if (train.Pixels == nil) != (test.Pixels == nil) {
			return fmt.Errorf("%s: the test samples are of another type than the training samples; save both as bytes or both as numbers", test.from)
		}
		parts = append(parts, test)
		if train.Doubles != nil || test.Doubles != nil {
			train.widen()
			test.widen()
		}
	}
	if r.Rule < RuleDoubles {
		for _, p := range parts {
			p.round()
		}
	}
	guess := r.Form == nil && !r.Table.Bytes && r.Rule < RuleDoubles
	switch {
	case r.Form != nil && !r.Form.Bytes && train.Pixels != nil:
		return fmt.Errorf("%s: %w", train.from, typeError(false))
	case r.Form != nil && !r.Form.Bytes, r.Form == nil && !r.Table.Bytes && !guess:
		return nil
	}
	for _, p := range parts {
		if p.Pixels != nil {
			continue
		}
		odd, value := p.noByte()
		switch {
		case guess && (!p.text || odd >= 0):
			return nil
		case r.Form != nil && !p.text:
			return fmt.Errorf("%s: %w", p.from, typeError(true))
		case r.Form != nil && odd >= 0:
			return fmt.Errorf("%s: the value %g is no byte, and the model was trained on bytes; save whole numbers, 0 to 255", p.place(odd/size(p.shape)), value)
		case odd >= 0:
			return fmt.Errorf("%s: the value %g is no byte; leave out --table bytes, or save whole numbers, 0 to 255", p.place(odd/size(p.shape)), value)
		}
	}
	if guess && !slices.Contains(train.Values, 255) {
		return nil
	}
	for _, p := range parts {
		if p.Pixels != nil {
			continue
		}
		p.Pixels = make([]byte, len(p.Values))
		for i, v := range p.Values {
			p.Pixels[i] = byte(v)
		}
		p.Values = nil
	}
	return nil
}

// noByte returns the place of the first number that is no byte, and the number; -1 where all are bytes.
func (p *part) noByte() (at int, value float64) {
	is := func(v float64) bool { return v == float64(uint8(min(max(v, 0), 255))) }
	for i, v := range p.Doubles {
		if !is(v) {
			return i, v
		}
	}
	for i, v := range p.Values {
		if !is(float64(v)) {
			return i, float64(v)
		}
	}
	return -1, 0
}

// join puts the test samples behind the training samples, of which there are n; without any it takes a share for them,
// and order is where the samples were.
func join(train, test *part, byClass bool) (all Raster, n int, order []int) {
	if test != nil {
		all.Pixels, all.Values = append(train.Pixels, test.Pixels...), append(train.Values, test.Values...)
		all.Doubles = append(train.Doubles, test.Doubles...)
		all.Labels, all.Targets = append(train.Labels, test.Labels...), append(train.Targets, test.Targets...)
		return all, train.samples(), nil
	}
	total := train.samples()
	p := noise.Key{Purpose: noise.Split, Stream: 1}.Permutation(uint64(total))
	order = make([]int, total)
	for i := range order {
		order[i] = int(p.At(uint64(i)))
	}
	taken := total - int(float64(testShare*float64(total))+0.5)
	if byClass {
		left := quota(train.Labels, testShare)
		tests := func(i int) bool { left[train.Labels[i]]--; return left[train.Labels[i]] >= 0 }
		var kept, out []int
		for _, i := range order {
			if tests(i) {
				out = append(out, i)
			} else {
				kept = append(kept, i)
			}
		}
		taken, order = len(kept), append(kept, out...)
	}
	slices.Sort(order[:taken])
	slices.Sort(order[taken:])
	all.Pixels, all.Values, all.Doubles = pick(train.Pixels, order), pick(train.Values, order), pick(train.Doubles, order)
	all.Labels, all.Targets = pick(train.Labels, order), pick(train.Targets, order)
	return all, taken, order
}

// quota is how many samples of each class, up to the last that has some, a share is: at least one, and never all.
func quota(labels []uint16, share float64) []int {
	if len(labels) == 0 {
		return nil
	}
	out := make([]int, int(slices.Max(labels))+1)
	for _, l := range labels {
		out[l]++
	}
	for c, n := range out {
		out[c] = max(0, min(max(held(n, share), 1), n-1))
	}
	return out
}

// pick is the rows of v in this order; nil stays nil.
func pick[T any](v []T, order []int) []T {
	if v == nil {
		return nil
	}
	size := len(v) / len(order)
	out := make([]T, 0, len(v))
	for _, i := range order {
		out = append(out, v[i*size:(i+1)*size]...)
	}
	return out
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
