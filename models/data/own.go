package data

import (
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
)

// part is samples of a person's own data before their classes have numbers. Labels is nil.
type part struct {
	Raster
	shape []int
	names []string // label of each sample
	text  bool     // the values were written as text, which does not say that they are bytes
	from  string   // path
	note  string   // what a person may want to know about how it was read
}

// assemble numbers the classes and splits.
func assemble(name string, train, test *part) (*Set, error) {
	if n := len(train.names); n < leastOwn {
		return nil, fmt.Errorf("%s: %d samples; a training, a validation and a test split need at least %d", train.from, n, leastOwn)
	}
	if test != nil && !slices.Equal(train.shape, test.shape) {
		return nil, fmt.Errorf("%s: the test samples are of shape %v, the training samples of %v; bring them to one shape", test.from, test.shape, train.shape)
	}
	names, err := classify(train, test)
	if err != nil {
		return nil, err
	}
	if err := settleType(train, test); err != nil {
		return nil, err
	}
	all, n := join(train, test)
	info := Info{Name: name, Shape: train.shape, Classes: len(names), Names: names, From: train.from}
	if train.note != "" {
		info.From += ", " + train.note
	}
	if isNumbers(names) {
		info.Names = nil
	}
	s, err := own(info, all, n, DefaultShare)
	if err != nil {
		return nil, err
	}
	return s, s.checkClasses()
}

// checkClasses refuses a class that training never sees: rare ones may fall into the other splits whole.
func (s *Set) checkClasses() error {
	seen := make([]bool, s.Classes)
	for _, id := range s.train {
		seen[s.labels[id]] = true
	}
	if c := slices.Index(seen, false); c >= 0 {
		return fmt.Errorf("data %s: class %s has no sample left in the training split; add samples of it or leave it out", s.Name, s.ClassName(c))
	}
	return nil
}

// ClassName is the name of a class, its number where it has no other.
func (s *Set) ClassName(c int) string {
	if c < len(s.Names) {
		return s.Names[c]
	}
	return strconv.Itoa(c)
}

// classify sets Labels and returns the name of each class: whole numbers are the classes themselves, other labels are
// sorted.
func classify(train, test *part) ([]string, error) {
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
		return nil, fmt.Errorf("%s: %d different labels, %q and %q among them; at most %d classes can be told apart", train.from, len(names), names[0], names[1], maxClasses)
	case len(names) < 2:
		return nil, fmt.Errorf("%s: every label is %q; a classifier needs two classes", train.from, names[0])
	}
	index := map[string]byte{}
	for i, name := range names {
		index[name] = byte(i)
	}
	for _, p := range []*part{train, test} {
		if p == nil {
			continue
		}
		p.Labels = make([]byte, len(p.names))
		for i, l := range p.names {
			c, ok := index[l]
			if !ok {
				return nil, fmt.Errorf("%s: label %q of sample %d is none of the %d classes of the training samples", p.from, l, i+1, len(names))
			}
			p.Labels[i] = c
		}
	}
	return names, nil
}

func isNumbers(names []string) bool {
	return !slices.ContainsFunc(names, func(s string) bool {
		n, err := strconv.Atoi(s)
		return err != nil || strconv.Itoa(n) != s
	})
}

// numbered is the names 0, 1, ... of labels that are whole numbers.
func numbered(from string, names []string) ([]string, error) {
	var seen [maxClasses]bool
	top := 0
	for _, s := range names {
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 || n >= maxClasses {
			return nil, fmt.Errorf("%s: label %s is out of range: number the classes from 0 to %d at most, or give them names", from, s, maxClasses-1)
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

// settleType turns values that were written as text into bytes when all of them are, and 255 is among those to train on.
func settleType(train, test *part) error {
	if test != nil && (train.Values == nil) != (test.Values == nil) {
		return fmt.Errorf("%s: the test samples are of another type than the training samples; save both as bytes or both as numbers", test.from)
	}
	parts := []*part{train}
	if test != nil {
		parts = append(parts, test)
	}
	for _, p := range parts {
		if !p.text || slices.ContainsFunc(p.Values, func(v float32) bool { return v != float32(uint8(min(max(v, 0), 255))) }) {
			return nil
		}
	}
	if !slices.Contains(train.Values, 255) {
		return nil
	}
	for _, p := range parts {
		p.Pixels = make([]byte, len(p.Values))
		for i, v := range p.Values {
			p.Pixels[i] = byte(v)
		}
		p.Values = nil
	}
	return nil
}

// join puts the test samples behind the training samples, of which there are n; without any it takes a share for them.
func join(train, test *part) (all Raster, n int) {
	if test != nil {
		all.Pixels, all.Values = append(train.Pixels, test.Pixels...), append(train.Values, test.Values...)
		all.Labels = append(train.Labels, test.Labels...)
		return all, len(train.names)
	}
	total := len(train.names)
	taken := total - int(testShare*float64(total)+0.5)
	p := noise.Key{Purpose: noise.Split, Stream: 1}.Permutation(uint64(total))
	order := make([]int, total)
	for i := range order {
		order[i] = int(p.At(uint64(i)))
	}
	slices.Sort(order[:taken])
	slices.Sort(order[taken:])
	all.Pixels, all.Values = pick(train.Pixels, order), pick(train.Values, order)
	all.Labels = pick(train.Labels, order)
	return all, taken
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
