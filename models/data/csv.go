package data

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// labelColumns returns the usual names of the label column; the first one found in a header is used.
func labelColumns() []string { return []string{"label", "class", "target"} }

// isMissing reports whether the text of a cell is a usual notation for a missing value.
func isMissing(cell string) bool {
	return slices.Contains([]string{"", "na", "n/a", "nan", "null", "none", "?"}, strings.ToLower(cell))
}

// columns describes the columns that a table must have: the columns of the training samples or of a model, and the
// user's choice of label columns.
type columns struct {
	owner         string // owner of the columns, for errors, such as "the model"
	features      []string
	encoded       []Column // how the cells of these columns become features; nil: each is a number
	label         string   // label column; "" if unknown; its number from 1 if the table has no names
	requested     string   // label columns requested by the user, by name or number from 1; "": the default
	numericLabels bool     // labels are numbers to predict, not class names
	modelFeatures int      // input features of the model when samples are read for prediction and may lack labels; else 0
}

// table reads the table at path. If a cell of a feature cannot be used in training, the error reports all columns with
// such cells.
func (r Reading) table(path string, want *columns, targets bool) (*part, error) {
	training := r.Form == nil && (want == nil || want.features == nil)
	if training && (r.Categories || r.Fill) {
		var err error
		if want, err = r.encoding(path, want, targets); err != nil {
			return nil, err
		}
	}
	p, err := r.readTable(path, want, targets)
	if cell := (*cellError)(nil); training && errors.As(err, &cell) {
		if s, why := r.survey(path, want, targets); why == nil && s.unusable(r) != nil {
			return nil, s.unusable(r)
		}
	}
	return p, err
}

// readTable reads the file at path with readCSV.
func (r Reading) readTable(path string, want *columns, targets bool) (*part, error) {
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return r.readCSV(f, path, want, targets)
}

// csvTable accumulates a table line by line.
type csvTable struct {
	part
	reading        Reading
	want           *columns
	width          int
	header         []string // column names; nil if the table has no header
	labelIndex     int      // label column; -1 if there is none
	labelIndices   []int    // label columns, if there are several
	featureColumns []int    // columns of the features, in feature order
	internedNames  map[string]string
	dialect        dialect
	carriedColumns []int
	splitColumn    int     // of Reading.SplitBy
	surveyed       *survey // receives the cells of the features instead of the samples; nil: they are read
}

// cellError is the error for a cell of a feature.
type cellError struct{ text string }

func (e *cellError) Error() string { return e.text }

// readCSV reads numeric samples and their labels. [guessDialect] determines the separator. The first line is a header
// if it contains no number or names the label column; for other lines [isHeader] decides, unless Table specifies it. If
// want names features, these columns are found by name and other columns are ignored; otherwise all columns except the
// label columns are features. If targets is set, labels are numbers.
func (r Reading) readCSV(text io.Reader, file string, want *columns, targets bool) (*part, error) {
	return r.scan(text, file, want, targets, nil)
}

// scan is readCSV for a survey s, which receives the cells of the features; nil: the samples are read.
func (r Reading) scan(text io.Reader, file string, want *columns, targets bool, s *survey) (*part, error) {
	t := &csvTable{
		surveyed:      s,
		part:          part{fromText: true, path: file, note: "labels in the last column"},
		reading:       r,
		want:          want,
		internedNames: map[string]string{},
	}
	if targets {
		t.outputs = 1
	}
	lines, err := t.open(text)
	if err != nil {
		return nil, err
	}
	first, err := lines.next()
	if err == nil {
		first.cells, t.width = trimCells(first.cells), len(first.cells)
		guess := r.Table.Header == HeaderGuessed
		var rest [][]string // the cells of ahead
		var ahead []csvLine // lines read ahead to guess the header
		for guess && err == nil && len(ahead) < headerRows {
			var l csvLine
			if l, err = lines.next(); err == nil {
				l.cells = slices.Clone(l.cells)
				rest, ahead = append(rest, l.cells), append(ahead, l)
			}
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		header, why := t.readHeader(first.cells, rest)
		if why != nil {
			return nil, why
		}
		if !header {
			ahead = slices.Insert(ahead, 0, first)
		}
		if err := t.checkNames(); err != nil {
			return nil, err
		}
		if err := t.findCarried(); err != nil {
			return nil, err
		}
		if err := t.findSplit(); err != nil {
			return nil, err
		}
		for _, l := range ahead {
			if err := t.add(l); err != nil {
				return nil, err
			}
		}
	}
	for err == nil {
		var l csvLine
		if l, err = lines.next(); err == nil {
			err = t.add(l)
		}
	}
	if !errors.Is(err, io.EOF) {
		return nil, err
	}
	t.narrow()
	if len(t.lineNumbers) == 0 {
		return nil, fmt.Errorf("%s has no samples: write one a line, numbers first, the label last", file)
	}
	return &t.part, nil
}

// shorten returns at most 8 names, joined by commas, with an ellipsis for the others.
func shorten(names []string) string {
	if len(names) > 8 {
		return strings.Join(names[:8], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}

// column describes column i in errors: its quoted name, or its number from 1.
func (t *csvTable) column(i int) string {
	if t.header != nil {
		return strconv.Quote(t.header[i])
	}
	return strconv.Itoa(i + 1)
}

// add parses one line and appends its features and label to the table.
func (t *csvTable) add(l csvLine) error {
	row, line := l.cells, l.number
	if 4*(len(t.Doubles)+max(len(row), size(t.shape))) > maxBytes {
		return fmt.Errorf("%s is too large: more than %d bytes of samples; leave out lines or columns",
			t.path, maxBytes)
	}
	t.lineNumbers = append(t.lineNumbers, int32(line))
	if t.carried != nil {
		var cells []string
		for _, i := range t.carriedColumns {
			cells = append(cells, strings.Clone(strings.TrimSpace(row[i])))
		}
		t.carriedCells = append(t.carriedCells, cells)
	}
	labels := t.labelIndices
	switch {
	case labels != nil && t.want.modelFeatures > 0:
		t.names, labels = append(t.names, t.name(t.rawLabel(row))), nil
	case labels != nil && t.outputs == 0:
		class, err := t.oneHotClass(row, line)
		if err != nil {
			return err
		}
		t.names, labels = append(t.names, t.name(class)), nil
	case labels == nil && t.labelIndex >= 0:
		labels = []int{t.labelIndex}
	}
	for _, i := range labels {
		if err := t.addLabel(strings.TrimSpace(row[i]), i, l); err != nil {
			return err
		}
	}
	if t.surveyed != nil {
		t.surveyed.add(t, l)
		return nil
	}
	if err := t.addSplitCell(l); err != nil {
		return err
	}
	for k, i := range t.featureColumns {
		if err := t.addFeature(strings.TrimSpace(row[i]), k, l); err != nil {
			return err
		}
	}
	return nil
}

// addLabel appends the label in cell f of column i.
func (t *csvTable) addLabel(f string, i int, l csvLine) error {
	v, err := strconv.ParseFloat(f, 64)
	switch {
	case t.want != nil && t.want.modelFeatures > 0:
		t.names = append(t.names, t.name(f))
	case (err != nil || v != v) && isMissing(f) && !(t.outputs == 0 && l.quoted):
		return t.missing(l.number, i)
	case t.outputs == 0 && !utf8.ValidString(f):
		return t.notUTF8(l.number, t.column(i), f)
	case t.outputs == 0:
		t.names = append(t.names, t.name(f))
	case err != nil || !finite(float32(v)):
		return fmt.Errorf("%s: line %d, column %s: %.40q is no number, and labels are numbers to the model: "+
			"write one, choose another column with --label of brood run or brood eval, "+
			"or train a model of the loss cross-entropy", t.path, l.number, t.column(i), f)
	default:
		t.Targets = append(t.Targets, float32(v))
	}
	return nil
}

// addFeature appends the features of cell f, which is of feature column k.
func (t *csvTable) addFeature(f string, k int, l csvLine) error {
	if t.encoded != nil && t.encoded[k].Categories != nil {
		t.Doubles = t.encoded[k].oneHot(t.Doubles, f)
		return nil
	}
	v, err := strconv.ParseFloat(f, 64)
	switch absent := (err != nil || v != v) && isMissing(f); {
	case absent && t.encoded != nil && t.encoded[k].Fill:
		t.Doubles = t.encoded[k].number(t.Doubles, math.NaN())
	case absent:
		return &cellError{t.missing(l.number, t.featureColumns[k]).Error()}
	case err != nil || !finite(float32(v)): // exported models and Python programs read float32
		return &cellError{fmt.Sprintf("%s: line %d, column %s: %.40q is no number that can be trained on; "+
			"write one, or leave the column out", t.path, l.number, t.column(t.featureColumns[k]), f)}
	case t.encoded != nil:
		t.Doubles = t.encoded[k].number(t.Doubles, v)
	default:
		t.Doubles = append(t.Doubles, v)
	}
	return nil
}

// missing returns the error for a missing value in column i.
func (t *csvTable) missing(line, i int) error {
	return fmt.Errorf("%s: line %d, column %s: the value is missing; fill it in or leave the line out",
		t.path, line, t.column(i))
}

// notUTF8 returns the error for a name that is not UTF-8, which a model file cannot store.
func (t *csvTable) notUTF8(line int, column, name string) error {
	return fmt.Errorf("%s: line %d, column %s: %q is not UTF-8; "+
		"convert the file, for instance with `iconv -f WINDOWS-1252 -t UTF-8`", t.path, line, column, name)
}

// name returns the label in field f, with one copy per distinct label, since f shares the memory of its whole line.
func (t *csvTable) name(f string) string {
	f = trimDecimals(f)
	if have, ok := t.internedNames[f]; ok {
		return have
	}
	f = strings.Clone(f)
	t.internedNames[f] = f
	return f
}
