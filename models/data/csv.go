package data

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"brood/models/typed"
)

// labelColumns are the names of a column of labels, the first that occurs counts.
func labelColumns() []string { return []string{"label", "class", "target"} }

// missing are the usual ways to write no value.
func missing() []string { return []string{"", "na", "n/a", "nan", "null", "none", "?"} }

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
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return r.readCSV(f, path, want, targets)
}

// csvTable gathers a table line by line.
type csvTable struct {
	part
	want      *columns
	width     int
	header    []string // nil without one
	firstLine Header   // what the user says of the first line
	label     int      // its column; -1 without any
	labels    []int    // the columns, where there are several
	take      []int    // those of the features, in their order
	intern    map[string]string
}

// readCSV reads samples of numbers and their labels. The first line's most frequent of comma, semicolon and tab
// separates columns; a first line without a number, or with a label's column in it, is a header, and where Table leaves
// it open [isHeader] decides on others. Wanted columns are found by their names, and the others are passed over; without
// any that are wanted all are features but the label's. With targets labels are numbers.
func (r Reading) readCSV(text io.Reader, file string, want *columns, targets bool) (*part, error) {
	plain, err := gunzip(text)
	if err != nil {
		return nil, &FileError{file, 0, err.Error()}
	}
	bound := &lineBound{in: plain, left: maxLine}
	in := bufio.NewReaderSize(bound, 1<<16)
	if bom, _ := in.Peek(3); string(bom) == "\ufeff" {
		in.Discard(3)
	}
	c := csv.NewReader(in)
	c.Comma, c.ReuseRecord, c.TrimLeadingSpace = separator(in), true, true
	t := &csvTable{part: part{text: true, from: file, note: "labels in the last column"}, want: want, intern: map[string]string{}}
	t.firstLine = r.Table.Header
	if c.Comma != ',' {
		t.notes = append(t.notes, fmt.Sprintf("columns are separated by %q", c.Comma))
	}
	if targets {
		t.outputs = 1
	}
	read := func() (row []string, line int, err error) {
		row, err = c.Read()
		switch {
		case errors.Is(err, io.EOF):
			return nil, 0, err
		case errors.Is(err, errLongLine):
			return nil, 0, fmt.Errorf("%s: sample %d is longer than %d MiB: end its line, or close its quotation mark", file, len(t.lines)+1, maxLine>>20)
		case err != nil:
			return nil, 0, t.explain(err, len(row))
		}
		bound.left = maxLine
		line, _ = c.FieldPos(0)
		return row, line, nil
	}
	row, line, err := read()
	if err == nil {
		t.width = len(row)
		first := strip(row)
		guess := r.Rule >= RuleDoubles && r.Table.Header == HeaderGuessed
		var rest [][]string // what the guess looked at
		var lines []int
		for guess && err == nil && len(rest) < headerRows {
			var at int
			if row, at, err = read(); err == nil {
				rest, lines = append(rest, slices.Clone(row)), append(lines, at)
			}
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		header, why := t.begin(first, rest)
		if why != nil {
			return nil, why
		}
		if !header {
			rest, lines = slices.Insert(rest, 0, first), slices.Insert(lines, 0, line)
		}
		for i, row := range rest {
			if err := t.add(row, lines[i]); err != nil {
				return nil, err
			}
		}
	}
	for err == nil {
		if row, line, err = read(); err == nil {
			err = t.add(row, line)
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

// maxLine bounds the text of a sample, so that a file without line ends costs no more than that.
const maxLine = 64 << 20

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

// separator is the most frequent candidate of the first line, outside of quotes.
func separator(in *bufio.Reader) rune {
	head, _ := in.Peek(1 << 16)
	var count [128]int
	quoted := false
	for _, c := range head {
		if c == '\n' && !quoted {
			break
		}
		if c == '"' {
			quoted = !quoted
		} else if c < 128 && !quoted {
			count[c]++
		}
	}
	best := ','
	for _, c := range ";\t" {
		if count[c] > count[best] {
			best = c
		}
	}
	return best
}

func (t *csvTable) explain(err error, fields int) error {
	var p *csv.ParseError
	switch {
	case errors.Is(err, csv.ErrFieldCount) && errors.As(err, &p):
		return fmt.Errorf("%s: line %d has %d columns where the first line has %d; give every line the same", t.from, p.StartLine, fields, t.width)
	case errors.As(err, &p):
		return fmt.Errorf("%s: line %d: %v; repair that line", t.from, p.StartLine, p.Err)
	}
	return &FileError{t.from, 0, err.Error()}
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
	case t.firstLine == HeaderPresent:
		numbers = 0
	case t.firstLine == HeaderAbsent:
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
		if i := slices.Index(lower, name); i >= 0 && named < 0 && t.firstLine != HeaderAbsent {
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
		return typed.Errorf("%s has no column %q for labels; its columns are %s", t.from, asked, some(trimmed))
	}
	return typed.Errorf("%s has no line of names, and so no column %q: give the number of the column of labels, 1 to %d", t.from, asked, t.width)
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

func (t *csvTable) add(row []string, line int) error {
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
		case (err != nil || v != v) && slices.Contains(missing(), strings.ToLower(f)):
			return fmt.Errorf("%s: line %d, column %s: the value is missing; fill it in or leave the line out", t.from, line, t.column(i))
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
