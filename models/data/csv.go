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

// labelColumns are the names of a column of labels, the first that occurs counts.
func labelColumns() []string { return []string{"label", "class", "target"} }

// isMissing reports whether the text of a cell is a usual way to write no value.
func isMissing(cell string) bool {
	return slices.Contains([]string{"", "na", "n/a", "nan", "null", "none", "?"}, strings.ToLower(cell))
}

// columns are those that a table must have, by name: of the samples that it is to be tested with, or of a model's.
type columns struct {
	of       string // whose they are
	features []string
	label    string // "" where that is not known; a number, from 1, of a table without names
	pick     string // the columns of labels that a person asked for, by name or counted from 1; "" for the usual one
	numbers  bool   // labels are numbers to predict
	asked    int    // the features of a model that is asked about samples, whose labels may be missing; else 0
}

// table reads a file as readCSV does.
func (r Reading) table(path string, want *columns, targets bool) (*part, error) {
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return r.readCSV(f, path, want, targets)
}

// csvTable gathers a table line by line.
type csvTable struct {
	part
	read    Reading
	want    *columns
	width   int
	header  []string // nil without one
	label   int      // its column; -1 without any
	labels  []int    // the columns, where there are several
	take    []int    // those of the features, in their order
	intern  map[string]string
	dialect dialect
}

// readCSV reads samples of numbers and their labels. [guessDialect] finds the separator. A first line without a number,
// or with a label's column in it, is a header, and where Table leaves it open [isHeader] decides on others. Wanted
// columns are found by their names, and the others are passed over; without any that are wanted all are features but the
// label's. With targets labels are numbers.
func (r Reading) readCSV(text io.Reader, file string, want *columns, targets bool) (*part, error) {
	t := &csvTable{part: part{text: true, from: file, note: "labels in the last column"}, read: r, want: want, intern: map[string]string{}}
	if targets {
		t.outputs = 1
	}
	lines, err := t.open(text)
	if err != nil {
		return nil, err
	}
	first, err := lines.next()
	if err == nil {
		first.cells, t.width = strip(first.cells), len(first.cells)
		guess := r.Table.Header == HeaderGuessed
		var rest [][]string // the cells of ahead
		var ahead []csvLine // the lines that the guess looks at
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
		header, why := t.begin(first.cells, rest)
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
	if len(t.lines) == 0 {
		return nil, fmt.Errorf("%s has no samples: write one a line, numbers first, the label last", file)
	}
	return &t.part, nil
}

// open prepares to read the lines of a text, and notes how it is written.
func (t *csvTable) open(text io.Reader) (*csvLines, error) {
	plain, err := gunzip(text)
	if err != nil {
		return nil, &FileError{t.from, 0, err.Error()}
	}
	l := &csvLines{t: t, bound: &lineBound{in: plain, left: maxLine}}
	in, note, err := asUTF8(bufio.NewReaderSize(l.bound, headBytes))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.from, err)
	}
	if note != "" {
		t.notes = append(t.notes, note)
	}
	head, _ := in.Peek(headBytes)
	if len(head) == headBytes {
		head = wholeLines(head)
	}
	if t.dialect, err = guessDialect(head); err != nil {
		return nil, fmt.Errorf("%s: %w", t.from, err)
	}
	if t.dialect.named {
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
	skipped int // lines before the first that csv reads
	rows    int // that were read
}

// csvLine is a line of a table.
type csvLine struct {
	cells  []string
	number int  // in the file, from 1
	quoted bool // a word for a missing value, such as "NA", has quotation marks
}

// next returns the next line, whose cells are valid until the call after it, or io.EOF.
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
		return csvLine{}, fmt.Errorf("%s: row %d is longer than %d MiB: end its line, or close its quotation mark", t.from, l.rows+1, maxLine>>20)
	case errors.Is(err, csv.ErrFieldCount) && errors.As(err, &p):
		return csvLine{}, fmt.Errorf("%s: line %d has %d columns where the first line has %d; give every line the same", t.from, p.StartLine+l.skipped, len(row), t.width)
	case errors.As(err, &p):
		return csvLine{}, fmt.Errorf("%s: line %d: %v; repair that line", t.from, p.StartLine+l.skipped, p.Err)
	case err != nil:
		return csvLine{}, &FileError{t.from, 0, err.Error()}
	}
	l.bound.left = maxLine
	number, _ := l.csv.FieldPos(0)
	line := csvLine{cells: row, number: number + l.skipped}
	raw := l.text.take(l.csv.InputOffset())
	for i, f := range row {
		if t.dialect.decimalComma && decimalComma.MatchString(strings.TrimSpace(f)) {
			row[i] = strings.Replace(f, ",", ".", 1)
		}
		line.quoted = line.quoted || f != "" && len(f) <= 4 && isMissing(f) && bytes.Contains(raw, []byte(`"`+f+`"`))
	}
	return line, nil
}

// maxLine bounds the text of a sample, so that a file without line ends costs no more than that. Tests lower it.
var maxLine = 64 << 20

var errLongLine = errors.New("the line is too long")

// lineBound reads so many bytes and no more, until it is told that a line was complete.
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

// strip returns copies of the cells of a line, without the spaces around them.
func strip(row []string) []string {
	out := make([]string, len(row))
	for i, f := range row {
		out[i] = strings.Clone(strings.TrimSpace(f))
	}
	return out
}

// begin settles the columns by the first line, which it guesses to be a header or not by the lines behind it; without
// those it takes a line with numbers for a sample.
func (t *csvTable) begin(trimmed []string, rest [][]string) (header bool, err error) {
	row := trimmed
	asked := t.want != nil && t.want.asked > 0
	if len(row) < 2 && !asked {
		return false, fmt.Errorf("%s has one column: a line is the numbers of a sample and its label, separated by commas, semicolons or tabs", t.from)
	}
	if len(row) > maxFeatures {
		return false, fmt.Errorf("%s has %d columns, at most %d can be read", t.from, len(row), maxFeatures)
	}
	t.label = len(row) - 1
	lower, numbers := make([]string, len(row)), 0
	for i, f := range trimmed {
		lower[i] = strings.ToLower(f)
		if _, err := strconv.ParseFloat(f, 64); err == nil {
			numbers++
		}
	}
	guessed := false
	switch {
	case t.read.Table.Header == HeaderPresent:
		numbers = 0
	case t.read.Table.Header == HeaderAbsent:
		numbers = max(1, numbers)
	case numbers > 0 && rest != nil:
		var reason string
		if guessed, reason = isHeader(trimmed, rest); guessed {
			numbers = 0
			t.notes = append(t.notes, "the first line is taken for names, since "+reason+"; --table no-header reads it as a sample")
		}
	}
	if asked {
		return t.beginAsked(trimmed, lower, numbers)
	}
	if t.want != nil {
		if of := cmp.Or(t.want.pick, t.want.label); isSeveral(of, trimmed) {
			return t.beginSeveral(of, trimmed, numbers)
		}
	}
	named := -1
	for _, name := range labelColumns() {
		if i := slices.Index(lower, name); i >= 0 && named < 0 && t.read.Table.Header != HeaderAbsent {
			named = i
		}
	}
	if t.want != nil && named < 0 {
		named = t.named(t.want.label, trimmed, numbers)
	}
	if t.want != nil && t.want.pick != "" {
		named = t.named(t.want.pick, trimmed, numbers)
	}
	if named < 0 && numbers > 0 {
		if err := t.count(trimmed, false); err != nil {
			return false, err
		}
		return false, t.choose()
	}
	t.header = trimmed
	if i := slices.Index(lower, ""); i >= 0 {
		return true, fmt.Errorf("%s: column %d has no name; name it, or remove it when it only counts the lines", t.from, i+1)
	}
	if named >= 0 {
		t.label = named
	}
	if t.want != nil && t.want.pick == "" {
		if i := t.named(t.want.label, trimmed, numbers); i >= 0 {
			t.label = i
		}
	}
	if named < 0 {
		if err := t.count(trimmed, true); err != nil {
			return true, err
		}
	}
	t.note = fmt.Sprintf("labels in column %q", t.header[t.label])
	return true, t.choose()
}

// checkNames refuses names of columns that are not UTF-8.
func (t *csvTable) checkNames() error {
	for i, name := range t.header {
		if !utf8.ValidString(name) {
			return t.notUTF8(1, strconv.Itoa(i+1), name)
		}
	}
	return nil
}

// named is the column of the first line that a word names, -1 where it names none.
func (t *csvTable) named(word string, line []string, numbers int) int {
	if t.counts(word, numbers) {
		return -1
	}
	return slices.Index(line, word)
}

// counts says whether a word counts a column and is no name, though the first line may hold it: the line has numbers,
// which are a sample's, and nobody knows names.
func (t *csvTable) counts(word string, numbers int) bool {
	i, err := strconv.Atoi(word)
	return err == nil && i >= 1 && i <= t.width && numbers > 0 && t.want.features == nil
}

// count takes the column of labels that was asked for by its number, from 1: that of a person, or of a model whose
// table had no names.
func (t *csvTable) count(trimmed []string, header bool) error {
	if t.want == nil || t.want.pick == "" && (header || t.want.label == "") {
		return nil
	}
	asked := cmp.Or(t.want.pick, t.want.label)
	i, err := strconv.Atoi(asked)
	switch {
	case err == nil && i >= 1 && i <= t.width:
		t.label = i - 1
		t.note = fmt.Sprintf("labels in column %d", i)
		return nil
	case header:
		return usererr.Errorf("%s has no column %q for labels; its columns are %s", t.from, asked, some(trimmed))
	}
	return usererr.Errorf("%s has no line of names, and so no column %q: give the number of the column of labels, 1 to %d", t.from, asked, t.width)
}

// choose finds the columns of the features.
func (t *csvTable) choose() error {
	if t.want == nil || t.want.features == nil {
		for i := range t.width {
			if !t.isLabel(i) {
				t.take = append(t.take, i)
			}
		}
		t.shape = []int{len(t.take)}
		if t.header == nil {
			if t.labels != nil {
				t.labelName = strings.Join(t.labelNames(), ",")
			} else if t.label >= 0 && t.label != t.width-1 {
				t.labelName = strconv.Itoa(t.label + 1)
			}
			return nil
		}
		t.labelName, t.classes = t.labelColumn(), t.classNames()
		for _, i := range t.take {
			t.features = append(t.features, t.header[i])
		}
		if len(slices.Compact(slices.Sorted(slices.Values(t.features)))) < len(t.features) {
			t.features = nil // two of one name: their places tell them apart
		}
		return nil
	}
	if t.header == nil {
		return fmt.Errorf("%s has no line of names, and its columns are those of %s by name: write %s and the label's into its first line", t.from, t.want.of, some(t.want.features))
	}
	for _, name := range t.want.features {
		i := slices.Index(t.header, name)
		switch {
		case i < 0 || t.isLabel(i):
			return fmt.Errorf("%s has no column %q, which %s has: add it, or name it so", t.from, name, t.want.of)
		case slices.Contains(t.header[i+1:], name):
			return fmt.Errorf("%s has two columns %q: rename one of them", t.from, name)
		}
		t.take = append(t.take, i)
	}
	t.shape, t.features, t.labelName, t.classes = []int{len(t.take)}, t.want.features, t.labelColumn(), t.classNames()
	return nil
}

// isLabel says whether a column is of labels.
func (t *csvTable) isLabel(i int) bool {
	return i == t.label && t.labels == nil || slices.Contains(t.labels, i)
}

// labelColumn is the name of the column of labels, those of several with commas between them; "" without any.
func (t *csvTable) labelColumn() string {
	if t.labels != nil {
		return strings.Join(t.labelNames(), ",")
	}
	if t.label < 0 {
		return ""
	}
	return t.header[t.label]
}

// classNames are the names of the columns of labels, as classes of which a sample may be in several.
func (t *csvTable) classNames() []string {
	switch {
	case t.header == nil || t.label < 0 && t.labels == nil:
		return nil
	case t.labels == nil:
		return []string{t.header[t.label]}
	}
	return t.labelNames()
}

// some is the first of many names.
func some(names []string) string {
	if len(names) > 8 {
		return strings.Join(names[:8], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}

func (t *csvTable) column(i int) string {
	if t.header != nil {
		return strconv.Quote(t.header[i])
	}
	return strconv.Itoa(i + 1)
}

func (t *csvTable) add(l csvLine) error {
	row, line := l.cells, l.number
	if 4*(len(t.Doubles)+len(row)) > maxBytes {
		return fmt.Errorf("%s is too large: more than %d bytes of samples; leave out lines or columns", t.from, maxBytes)
	}
	t.lines = append(t.lines, int32(line))
	labels := t.labels
	switch {
	case labels != nil && t.want.asked > 0:
		t.names, labels = append(t.names, t.name(t.passedOn(row))), nil
	case labels != nil && t.outputs == 0:
		class, err := t.hot(row, line)
		if err != nil {
			return err
		}
		t.names, labels = append(t.names, t.name(class)), nil
	case labels == nil && t.label >= 0:
		labels = []int{t.label}
	}
	for k := range len(labels) + len(t.take) {
		isLabel := k < len(labels)
		i := 0
		if isLabel {
			i = labels[k]
		} else {
			i = t.take[k-len(labels)]
		}
		f := strings.TrimSpace(row[i])
		v, err := strconv.ParseFloat(f, 64)
		switch {
		case isLabel && t.want != nil && t.want.asked > 0:
			t.names = append(t.names, t.name(f))
		case (err != nil || v != v) && isMissing(f) && !(isLabel && t.outputs == 0 && l.quoted):
			return fmt.Errorf("%s: line %d, column %s: the value is missing; fill it in or leave the line out", t.from, line, t.column(i))
		case isLabel && t.outputs == 0 && !utf8.ValidString(f):
			return t.notUTF8(line, t.column(i), f)
		case isLabel && t.outputs == 0:
			t.names = append(t.names, t.name(f))
		case isLabel && (err != nil || !finite(float32(v))):
			return fmt.Errorf("%s: line %d, column %s: %.40q is no number, and labels are numbers to the model: write one, choose another column with --label of brood run or brood eval, or train a model of the loss cross-entropy", t.from, line, t.column(i), f)
		case isLabel:
			t.Targets = append(t.Targets, float32(v))
		case err != nil || !finite(float32(v)): // exports, and programs in Python, read float32
			return fmt.Errorf("%s: line %d, column %s: %.40q is no number that can be trained on; write one, or leave the column out", t.from, line, t.column(i), f)
		default:
			t.Doubles = append(t.Doubles, v)
		}
	}
	return nil
}

// notUTF8 refuses a name: a model file could not hold it.
func (t *csvTable) notUTF8(line int, column, name string) error {
	return fmt.Errorf("%s: line %d, column %s: %q is not UTF-8; convert the file, for instance with `iconv -f WINDOWS-1252 -t UTF-8`", t.from, line, column, name)
}

// name keeps one copy of each label: a field shares the memory of its line.
func (t *csvTable) name(f string) string {
	f = label(f)
	if have, ok := t.intern[f]; ok {
		return have
	}
	f = strings.Clone(f)
	t.intern[f] = f
	return f
}
