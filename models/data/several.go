package data

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"brood/models/usererr"
)

// Labels may take several columns: the targets of a regression with several outputs, one 0/1 column per class of
// multi-label data, or one-hot classes.

// namesSeveralColumns reports whether text selects several label columns: a comma-separated list or a pattern such as
// cls_*. A text that equals a column name selects only that column.
func namesSeveralColumns(text string, header []string) bool {
	return strings.ContainsAny(text, ",*") && !slices.Contains(header, text)
}

// findLabelColumns returns the columns that text selects, in the order of text; the matches of a pattern are in table
// order. A word that matches no name is a column number from 1. names reports whether any column was found by name. It
// fails for unknown, ambiguous and repeated columns.
func (t *csvTable) findLabelColumns(text string, header []string, numbers int) (columns []int, names bool, err error) {
	for _, word := range strings.Split(text, ",") {
		word = strings.TrimSpace(word)
		var found []int
		for i, name := range header {
			match, err := path.Match(word, name)
			if name == word && !t.isPosition(word, numbers) || err == nil && match && strings.Contains(word, "*") {
				if slices.Index(header, name) != i {
					return nil, false, usererr.Errorf("%s has two columns %q: rename one of them", t.path, name)
				}
				found = append(found, i)
			}
		}
		names = names || found != nil
		if i, err := strconv.Atoi(word); found == nil && err == nil && i >= 1 && i <= t.width {
			found = []int{i - 1}
		}
		if found == nil {
			return nil, false, usererr.Errorf("%s has no column %q for labels; its columns are %s",
				t.path, word, shorten(header))
		}
		for _, i := range found {
			if slices.Contains(columns, i) {
				return nil, false, usererr.Errorf("label %s: it names column %d of %s twice", text, i+1, t.path)
			}
			columns = append(columns, i)
		}
	}
	return columns, names, nil
}

// readLabelColumns determines the columns if text selects several label columns, and reports whether the first line is
// a header.
func (t *csvTable) readLabelColumns(text string, header []string, numbers int) (isHeader bool, err error) {
	var names bool
	if t.labelIndices, names, err = t.findLabelColumns(text, header, numbers); err != nil {
		return false, err
	}
	if isHeader = names || numbers == 0; isHeader {
		t.header = header
	}
	if i := slices.Index(header, ""); i >= 0 && isHeader {
		return true, fmt.Errorf("%s: column %d has no name; name it, or remove it when it only counts the lines",
			t.path, i+1)
	}
	for _, i := range t.labelIndices {
		if isHeader && (strings.ContainsAny(header[i], ",*") || strings.TrimSpace(header[i]) != header[i]) {
			return true, usererr.Errorf("%s: the name %q of a column of labels has a comma or a star in it; rename it",
				t.path, header[i])
		}
	}
	if t.outputs > 0 {
		t.outputs = len(t.labelIndices)
	}
	t.note = "labels in the columns " + shorten(t.labelNames())
	return isHeader, t.chooseFeatures()
}

// labelNames returns the names of the label columns, or their numbers from 1.
func (t *csvTable) labelNames() (out []string) {
	for _, i := range t.labelIndices {
		if t.header != nil {
			out = append(out, t.header[i])
		} else {
			out = append(out, strconv.Itoa(i+1))
		}
	}
	return out
}

// oneHotClass returns the class of a one-hot row: the name of the label column that is 1, or its index among the label
// columns if the table has no header. It fails unless exactly one is 1 and all others are 0.
func (t *csvTable) oneHotClass(row []string, line int) (string, error) {
	class, ones := -1, 0
	for k, i := range t.labelIndices {
		switch f := strings.ToLower(strings.TrimSpace(row[i])); f {
		case "1", "1.0", "true":
			class, ones = k, ones+1
		case "0", "0.0", "false":
		default:
			return "", fmt.Errorf("%s: line %d, column %s: %.40q is neither 0 nor 1, where several columns are the classes; "+
				"repair it, name one column, or train a model of the loss mse on numbers", t.path, line, t.column(i), f)
		}
	}
	switch {
	case ones != 1:
		return "", fmt.Errorf("%s: line %d: %d of the columns %s are 1, and one is the class of a sample; "+
			"repair it, or leave the line out", t.path, line, ones, shorten(t.labelNames()))
	case t.header != nil:
		return t.header[t.labelIndices[class]], nil
	}
	return strconv.Itoa(class), nil
}

// rawLabel returns the label of a row, read for prediction, with several label columns: the class if they are one-hot,
// else the comma-joined cells. It never fails.
func (t *csvTable) rawLabel(row []string) string {
	if !t.want.numericLabels {
		if class, err := t.oneHotClass(row, 0); err == nil {
			return class
		}
	}
	var fields []string
	for _, i := range t.labelIndices {
		fields = append(fields, strings.TrimSpace(row[i]))
	}
	return strings.Join(fields, ",")
}

// readLabelColumnsForModel determines the columns of samples read for prediction if text selects several label columns.
// The labels are used if all these columns are present. If one is missing the samples are unlabelled, or it fails if
// the user requested the columns.
func (t *csvTable) readLabelColumnsForModel(text string, header []string, numbers int) (isHeader bool, err error) {
	t.labelIndex = -1
	if t.want.features != nil {
		columns, _, err := t.findLabelColumns(text, header, numbers)
		switch {
		case err == nil:
			t.labelIndices = columns
		case t.want.requested != "":
			return false, err
		}
		t.header = header
		return true, t.chooseFeatures()
	}
	if isHeader = numbers == 0; isHeader {
		t.header = header
	}
	switch n := len(strings.Split(text, ",")); t.width {
	case t.want.modelFeatures:
	case t.want.modelFeatures + n:
		if t.labelIndices, _, err = t.findLabelColumns(text, header, numbers); err != nil {
			return false, err
		}
	default:
		return false, fmt.Errorf("%s has %d columns, and the model takes %d numbers: "+
			"give each sample so many, with or without the %d columns of its label", t.path, t.width, t.want.modelFeatures, n)
	}
	return isHeader, t.chooseFeatures()
}
