package data

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"brood/models/usererr"
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
	label         string // label column; "" if unknown; its number from 1 if the table has no names
	requested     string // label columns requested by the user, by name or number from 1; "": the default
	numericLabels bool   // labels are numbers to predict, not class names
	modelFeatures int    // input features of the model when samples are read for prediction and may lack labels; else 0
}

// table reads the file at path with readCSV.
func (r Reading) table(path string, want *columns, targets bool) (*part, error) {
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
}

// readCSV reads numeric samples and their labels. [guessDialect] determines the separator. The first line is a header
// if it contains no number or names the label column; for other lines [isHeader] decides, unless Table specifies it. If
// want names features, these columns are found by name and other columns are ignored; otherwise all columns except the
// label columns are features. If targets is set, labels are numbers.
func (r Reading) readCSV(text io.Reader, file string, want *columns, targets bool) (*part, error) {
	t := &csvTable{
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

// open returns a reader of the table's lines. It sets the dialect and adds notes on encoding, separator and decimal
// commas.
func (t *csvTable) open(text io.Reader) (*csvLines, error) {
	plain, err := gunzip(text)
	if err != nil {
		return nil, &FileError{t.path, 0, err.Error()}
	}
	l := &csvLines{t: t, bound: &lineBound{in: plain, left: maxLine}}
	in, note, err := asUTF8(bufio.NewReaderSize(l.bound, headBytes))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.path, err)
	}
	if note != "" {
		t.notes = append(t.notes, note)
	}
	head, _ := in.Peek(headBytes)
	if len(head) == headBytes {
		head = wholeLines(head)
	}
	if t.dialect, err = guessDialect(head); err != nil {
		return nil, fmt.Errorf("%s: %w", t.path, err)
	}
	if t.dialect.hasSepLine {
		in.ReadSlice('\n')
		l.skipped = 1
	}
	l.text = recorder{in: in}
	l.csv = csv.NewReader(&l.text)
	l.csv.Comma, l.csv.ReuseRecord, l.csv.TrimLeadingSpace = t.dialect.separator, true, true
	if t.dialect.separator != ',' {
		t.notes = append(t.notes, fmt.Sprintf("columns are separated by %q", t.dialect.separator))
	}
	if t.dialect.decimalComma {
		t.notes = append(t.notes, "numbers have decimal commas")
	}
	return l, nil
}

// csvLines reads the lines of a table.
type csvLines struct {
	t       *csvTable
	csv     *csv.Reader
	bound   *lineBound
	text    recorder
	skipped int // lines before the first line read by csv
	rows    int // number of rows read so far
}

// csvLine is a line of a table.
type csvLine struct {
	cells  []string
	number int  // in the file, from 1
	quoted bool // a notation for a missing value, such as "NA", is in quotation marks
}

// next returns the next line, or io.EOF after the last. The cells are valid until the next call.
func (l *csvLines) next() (csvLine, error) {
	row, err := l.csv.Read()
	if err == nil {
		l.rows++
	}
	t := l.t
	var p *csv.ParseError
	switch {
	case errors.Is(err, io.EOF):
		return csvLine{}, err
	case errors.Is(err, errLongLine):
		return csvLine{}, fmt.Errorf("%s: row %d is longer than %d MiB: end its line, or close its quotation mark",
			t.path, l.rows+1, maxLine>>20)
	case errors.Is(err, csv.ErrFieldCount) && errors.As(err, &p):
		return csvLine{}, fmt.Errorf("%s: line %d has %d columns where the first line has %d; give every line the same",
			t.path, p.StartLine+l.skipped, len(row), t.width)
	case errors.As(err, &p):
		return csvLine{}, fmt.Errorf("%s: line %d: %v; repair that line", t.path, p.StartLine+l.skipped, p.Err)
	case err != nil:
		return csvLine{}, &FileError{t.path, 0, err.Error()}
	}
	l.bound.left = maxLine
	number, _ := l.csv.FieldPos(0)
	line := csvLine{cells: row, number: number + l.skipped}
	raw := l.text.take(l.csv.InputOffset())
	for i, f := range row {
		if t.dialect.decimalComma && decimalComma.MatchString(strings.TrimSpace(f)) {
			row[i] = strings.Replace(f, ",", ".", 1)
		}
		line.quoted = line.quoted ||
			f != "" && len(f) <= 4 && isMissing(f) && bytes.Contains(raw, []byte(`"`+f+`"`))
	}
	return line, nil
}

// maxLine limits the bytes of one sample's text and so the memory that a file without line ends can use. Tests lower
// it.
var maxLine = 64 << 20

var errLongLine = errors.New("the line is too long")

// lineBound is a reader that fails with errLongLine once left bytes were read. The caller resets left after each
// complete line.
type lineBound struct {
	in   io.Reader
	left int
}

func (b *lineBound) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errLongLine
	}
	n, err := b.in.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// trimCells returns copies of the cells of a line without surrounding spaces.
func trimCells(row []string) []string {
	out := make([]string, len(row))
	for i, f := range row {
		out[i] = strings.Clone(strings.TrimSpace(f))
	}
	return out
}

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
			if !t.isLabel(i) {
				t.featureColumns = append(t.featureColumns, i)
			}
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
	t.labelName, t.classColumns = t.labelColumnName(), t.classNames()
	return nil
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
	if 4*(len(t.Doubles)+len(row)) > maxBytes {
		return fmt.Errorf("%s is too large: more than %d bytes of samples; leave out lines or columns",
			t.path, maxBytes)
	}
	t.lineNumbers = append(t.lineNumbers, int32(line))
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
	for k := range len(labels) + len(t.featureColumns) {
		isLabel := k < len(labels)
		i := 0
		if isLabel {
			i = labels[k]
		} else {
			i = t.featureColumns[k-len(labels)]
		}
		f := strings.TrimSpace(row[i])
		v, err := strconv.ParseFloat(f, 64)
		switch {
		case isLabel && t.want != nil && t.want.modelFeatures > 0:
			t.names = append(t.names, t.name(f))
		case (err != nil || v != v) && isMissing(f) && !(isLabel && t.outputs == 0 && l.quoted):
			return fmt.Errorf("%s: line %d, column %s: the value is missing; fill it in or leave the line out",
				t.path, line, t.column(i))
		case isLabel && t.outputs == 0 && !utf8.ValidString(f):
			return t.notUTF8(line, t.column(i), f)
		case isLabel && t.outputs == 0:
			t.names = append(t.names, t.name(f))
		case isLabel && (err != nil || !finite(float32(v))):
			return fmt.Errorf("%s: line %d, column %s: %.40q is no number, and labels are numbers to the model: "+
				"write one, choose another column with --label of brood run or brood eval, "+
				"or train a model of the loss cross-entropy", t.path, line, t.column(i), f)
		case isLabel:
			t.Targets = append(t.Targets, float32(v))
		case err != nil || !finite(float32(v)): // exported models and Python programs read float32
			return fmt.Errorf("%s: line %d, column %s: %.40q is no number that can be trained on; "+
				"write one, or leave the column out", t.path, line, t.column(i), f)
		default:
			t.Doubles = append(t.Doubles, v)
		}
	}
	return nil
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
