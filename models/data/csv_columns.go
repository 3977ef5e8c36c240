package data

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"brood/models/usererr"
)

// readHeader determines the columns from the trimmed first line and reports whether that line is a header. rest is the
// cells of the following lines, used to guess whether a line with numbers is a header; if rest is nil, such a line is a
// sample.
func (t *csvTable) readHeader(trimmed []string, rest [][]string) (header bool, err error) {
	row := trimmed
	asked := t.want != nil && t.want.modelFeatures > 0
	if len(row) < 2 && !asked {
		return false, fmt.Errorf("%s has one column: a line is the numbers of a sample and its label, "+
			"separated by commas, semicolons or tabs", t.path)
	}
	if len(row) > maxFeatures {
		return false, fmt.Errorf("%s has %d columns, at most %d can be read", t.path, len(row), maxFeatures)
	}
	t.labelIndex = len(row) - 1
	lower, numbers := make([]string, len(row)), 0
	for i, f := range trimmed {
		lower[i] = strings.ToLower(f)
		if _, err := strconv.ParseFloat(f, 64); err == nil {
			numbers++
		}
	}
	guessed := false
	switch {
	case t.reading.Table.Header == HeaderPresent:
		numbers = 0
	case t.reading.Table.Header == HeaderAbsent:
		numbers = max(1, numbers)
	case numbers > 0 && rest != nil:
		var reason string
		if guessed, reason = isHeader(trimmed, rest); guessed {
			numbers = 0
			t.notes = append(t.notes,
				"the first line is taken for names, since "+reason+"; --table no-header reads it as a sample")
		}
	}
	if asked {
		return t.readHeaderForModel(trimmed, lower, numbers)
	}
	if t.want != nil {
		if of := cmp.Or(t.want.requested, t.want.label); namesSeveralColumns(of, trimmed) {
			return t.readLabelColumns(of, trimmed, numbers)
		}
	}
	named := -1
	for _, name := range labelColumns() {
		if i := slices.Index(lower, name); i >= 0 && named < 0 && t.reading.Table.Header != HeaderAbsent {
			named = i
		}
	}
	if t.want != nil && named < 0 {
		named = t.columnOf(t.want.label, trimmed, numbers)
	}
	if t.want != nil && t.want.requested != "" {
		named = t.columnOf(t.want.requested, trimmed, numbers)
	}
	if named < 0 && numbers > 0 {
		if err := t.pickByPosition(trimmed, false); err != nil {
			return false, err
		}
		return false, t.chooseFeatures()
	}
	t.header = trimmed
	if i := slices.Index(lower, ""); i >= 0 {
		return true, fmt.Errorf("%s: column %d has no name; name it, or remove it when it only counts the lines",
			t.path, i+1)
	}
	if named >= 0 {
		t.labelIndex = named
	}
	if t.want != nil && t.want.requested == "" {
		if i := t.columnOf(t.want.label, trimmed, numbers); i >= 0 {
			t.labelIndex = i
		}
	}
	if named < 0 {
		if err := t.pickByPosition(trimmed, true); err != nil {
			return true, err
		}
	}
	t.note = fmt.Sprintf("labels in column %q", t.header[t.labelIndex])
	return true, t.chooseFeatures()
}

// findCarried finds the columns of Reading.Carry.
func (t *csvTable) findCarried() error {
	if t.reading.Carry == "" {
		return nil
	}
	for word := range strings.SplitSeq(t.reading.Carry, ",") {
		word = strings.TrimSpace(word)
		i := slices.Index(t.header, word)
		if i < 0 {
			return usererr.Errorf("id %s: %s has no column %q; its columns are %s", t.reading.Carry, t.path, word,
				shorten(t.header))
		}
		t.carried, t.carriedColumns = append(t.carried, word), append(t.carriedColumns, i)
	}
	return nil
}

// checkNames returns an error if a column name is not UTF-8.
func (t *csvTable) checkNames() error {
	for i, name := range t.header {
		if !utf8.ValidString(name) {
			return t.notUTF8(1, strconv.Itoa(i+1), name)
		}
	}
	return nil
}

// columnOf returns the index of the column named word in the first line, or -1 if there is none or if word is a
// position, see isPosition. numbers is the number of numeric cells in the line.
func (t *csvTable) columnOf(word string, line []string, numbers int) int {
	if t.isPosition(word, numbers) {
		return -1
	}
	return slices.Index(line, word)
}

// isPosition reports whether word is a column number from 1 and not a name. A first line that contains word as a cell
// may be a sample, so a number in range is a position if the line has numbers and no feature names are known.
func (t *csvTable) isPosition(word string, numbers int) bool {
	i, err := strconv.Atoi(word)
	return err == nil && i >= 1 && i <= t.width && numbers > 0 && t.want.features == nil
}

// pickByPosition sets the label column from a column number, from 1, requested by the user or stored in a model whose
// training table had no names. It does nothing if no column is requested, and fails if the request is not a valid
// number.
func (t *csvTable) pickByPosition(trimmed []string, header bool) error {
	if t.want == nil || t.want.requested == "" && (header || t.want.label == "") {
		return nil
	}
	asked := cmp.Or(t.want.requested, t.want.label)
	i, err := strconv.Atoi(asked)
	switch {
	case err == nil && i >= 1 && i <= t.width:
		t.labelIndex = i - 1
		t.note = fmt.Sprintf("labels in column %d", i)
		return nil
	case header:
		return usererr.Errorf("%s has no column %q for labels; its columns are %s", t.path, asked, shorten(trimmed))
	}
	return usererr.Errorf("%s has no line of names, and so no column %q: give the number of the column of labels, 1 to %d",
		t.path, asked, t.width)
}

// chooseFeatures determines the columns of the features once the label columns are known.
func (t *csvTable) chooseFeatures() error {
	if t.want == nil || t.want.features == nil {
		for i := range t.width {
			if !t.isLabel(i) && !t.onlySplits(i) {
				t.featureColumns = append(t.featureColumns, i)
			}
		}
		if err := t.selectFeatures(); err != nil {
			return err
		}
		t.shape = []int{len(t.featureColumns)}
		if t.header == nil {
			if t.labelIndices != nil {
				t.labelName = strings.Join(t.labelNames(), ",")
			} else if t.labelIndex >= 0 && t.labelIndex != t.width-1 {
				t.labelName = strconv.Itoa(t.labelIndex + 1)
			}
			return nil
		}
		t.labelName, t.classColumns = t.labelColumnName(), t.classNames()
		for _, i := range t.featureColumns {
			t.featureNames = append(t.featureNames, t.header[i])
		}
		if len(slices.Compact(slices.Sorted(slices.Values(t.featureNames)))) < len(t.featureNames) {
			t.featureNames = nil // duplicate names: columns are identified by position
		}
		return nil
	}
	if t.header == nil {
		return fmt.Errorf("%s has no line of names, and its columns are those of %s by name: "+
			"write %s and the label's into its first line", t.path, t.want.owner, shorten(t.want.features))
	}
	for _, name := range t.want.features {
		i := slices.Index(t.header, name)
		switch {
		case i < 0 || t.isLabel(i):
			return fmt.Errorf("%s has no column %q, which %s has: add it, or name it so", t.path, name, t.want.owner)
		case slices.Contains(t.header[i+1:], name):
			return fmt.Errorf("%s has two columns %q: rename one of them", t.path, name)
		}
		t.featureColumns = append(t.featureColumns, i)
	}
	t.shape, t.featureNames = []int{len(t.featureColumns)}, t.want.features
	if t.encoded = t.want.encoded; t.encoded != nil {
		t.featureNames = expandedNames(t.encoded)
		t.shape = []int{len(t.featureNames)}
	}
	t.labelName, t.classColumns = t.labelColumnName(), t.classNames()
	return nil
}

// onlySplits reports whether column i divides the samples and is no feature.
func (t *csvTable) onlySplits(i int) bool {
	return t.header != nil && t.reading.Features == "" && t.reading.splitBy().Column == t.header[i]
}

// isLabel reports whether column i is a label column.
func (t *csvTable) isLabel(i int) bool {
	return i == t.labelIndex && t.labelIndices == nil || slices.Contains(t.labelIndices, i)
}

// labelColumnName returns the name of the label column, or the comma-joined names of several; "" if there is none.
func (t *csvTable) labelColumnName() string {
	if t.labelIndices != nil {
		return strings.Join(t.labelNames(), ",")
	}
	if t.labelIndex < 0 {
		return ""
	}
	return t.header[t.labelIndex]
}

// classNames returns the names of the label columns, which are the classes of multi-label data; nil without a header.
func (t *csvTable) classNames() []string {
	switch {
	case t.header == nil || t.labelIndex < 0 && t.labelIndices == nil:
		return nil
	case t.labelIndices == nil:
		return []string{t.header[t.labelIndex]}
	}
	return t.labelNames()
}
