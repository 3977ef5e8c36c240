package data

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"brood/models/usererr"
)

// Labels may take several columns: numbers of a regression with several outputs, or classes one-hot, a column for each,
// of which one is 1 and the others are 0.

// isSeveral says that a text asks for several columns of labels: names with commas between them, or a pattern such as
// cls_*. A column of that very name is one.
func isSeveral(text string, header []string) bool {
	return strings.ContainsAny(text, ",*") && !slices.Contains(header, text)
}

// several finds the columns of a text, each once, in the order of the text, where a pattern finds them in that of the
// table; names says that one was found by its name. Words that name nothing are numbers from 1.
func (t *csvTable) several(text string, header []string, numbers int) (columns []int, names bool, err error) {
	for _, word := range strings.Split(text, ",") {
		word = strings.TrimSpace(word)
		var found []int
		for i, name := range header {
			match, err := path.Match(word, name)
			if name == word && !t.counts(word, numbers) || err == nil && match && strings.Contains(word, "*") {
				if slices.Index(header, name) != i {
					return nil, false, usererr.Errorf("%s has two columns %q: rename one of them", t.from, name)
				}
				found = append(found, i)
			}
		}
		names = names || found != nil
		if i, err := strconv.Atoi(word); found == nil && err == nil && i >= 1 && i <= t.width {
			found = []int{i - 1}
		}
		if found == nil {
			return nil, false, usererr.Errorf("%s has no column %q for labels; its columns are %s", t.from, word, some(header))
		}
		for _, i := range found {
			if slices.Contains(columns, i) {
				return nil, false, usererr.Errorf("label %s: it names column %d of %s twice", text, i+1, t.from)
			}
			columns = append(columns, i)
		}
	}
	return columns, names, nil
}

// beginSeveral settles the columns where a text asks for several of labels.
func (t *csvTable) beginSeveral(text string, header []string, numbers int) (isHeader bool, err error) {
	var names bool
	if t.labels, names, err = t.several(text, header, numbers); err != nil {
		return false, err
	}
	if isHeader = names || numbers == 0; isHeader {
		t.header = header
	}
	if i := slices.Index(header, ""); i >= 0 && isHeader {
		return true, fmt.Errorf("%s: column %d has no name; name it, or remove it when it only counts the lines", t.from, i+1)
	}
	for _, i := range t.labels {
		if isHeader && (strings.ContainsAny(header[i], ",*") || strings.TrimSpace(header[i]) != header[i]) {
			return true, usererr.Errorf("%s: the name %q of a column of labels has a comma or a star in it; rename it", t.from, header[i])
		}
	}
	if t.outputs > 0 {
		t.outputs = len(t.labels)
	}
	t.note = "labels in the columns " + some(t.labelNames())
	return isHeader, t.choose()
}

// labelNames are the names of the columns of labels, or their numbers from 1.
func (t *csvTable) labelNames() (out []string) {
	for _, i := range t.labels {
		if t.header != nil {
			out = append(out, t.header[i])
		} else {
			out = append(out, strconv.Itoa(i+1))
		}
	}
	return out
}

// hot is the class of a one-hot row: the name of the column that is 1, its place among them where they have no names.
func (t *csvTable) hot(row []string, line int) (string, error) {
	class, ones := -1, 0
	for k, i := range t.labels {
		switch f := strings.ToLower(strings.TrimSpace(row[i])); f {
		case "1", "1.0", "true":
			class, ones = k, ones+1
		case "0", "0.0", "false":
		default:
			return "", fmt.Errorf("%s: line %d, column %s: %.40q is neither 0 nor 1, where several columns are the classes; repair it, name one column, or train a model of the loss mse on numbers", t.from, line, t.column(i), f)
		}
	}
	switch {
	case ones != 1:
		return "", fmt.Errorf("%s: line %d: %d of the columns %s are 1, and one is the class of a sample; repair it, or leave the line out", t.from, line, ones, some(t.labelNames()))
	case t.header != nil:
		return t.header[t.labels[class]], nil
	}
	return strconv.Itoa(class), nil
}

// passedOn is what a row of samples that a model is asked about says in several columns: the class where they are
// one-hot, else the fields.
func (t *csvTable) passedOn(row []string) string {
	if !t.want.numbers {
		if class, err := t.hot(row, 0); err == nil {
			return class
		}
	}
	var fields []string
	for _, i := range t.labels {
		fields = append(fields, strings.TrimSpace(row[i]))
	}
	return strings.Join(fields, ",")
}

// askSeveral settles the columns of samples that a model is asked about, whose labels take several where they are there
// at all: all of them, or none counts.
func (t *csvTable) askSeveral(text string, header []string, numbers int) (isHeader bool, err error) {
	t.label = -1
	if t.want.features != nil {
		columns, _, err := t.several(text, header, numbers)
		switch {
		case err == nil:
			t.labels = columns
		case t.want.pick != "":
			return false, err
		}
		t.header = header
		return true, t.choose()
	}
	if isHeader = numbers == 0; isHeader {
		t.header = header
	}
	switch n := len(strings.Split(text, ",")); t.width {
	case t.want.asked:
	case t.want.asked + n:
		if t.labels, _, err = t.several(text, header, numbers); err != nil {
			return false, err
		}
	default:
		return false, fmt.Errorf("%s has %d columns, and the model takes %d numbers: give each sample so many, with or without the %d columns of its label", t.from, t.width, t.want.asked, n)
	}
	return isHeader, t.choose()
}
