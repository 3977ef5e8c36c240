package data

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// labelColumns are the names of a column of labels, the first that occurs counts.
func labelColumns() []string { return []string{"label", "class", "target"} }

// missing are the usual ways to write no value.
func missing() []string { return []string{"", "na", "n/a", "nan", "null", "none", "?"} }

func readTable(path string) (*part, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readCSV(f, path)
}

// csvTable gathers a table line by line.
type csvTable struct {
	part
	header []string // nil without one
	label  int      // its column
	intern map[string]string
}

// readCSV reads samples of numbers and their labels. The first line's most frequent of comma, semicolon and tab separates
// columns; a first line without a number, or with a label's column in it, is a header.
func readCSV(r io.Reader, file string) (*part, error) {
	plain, err := gunzip(r)
	if err != nil {
		return nil, &FileError{file, 0, err.Error()}
	}
	in := bufio.NewReaderSize(plain, 1<<16)
	if bom, _ := in.Peek(3); string(bom) == "\ufeff" {
		in.Discard(3)
	}
	c := csv.NewReader(in)
	c.Comma, c.ReuseRecord, c.TrimLeadingSpace = separator(in), true, true
	t := &csvTable{part: part{text: true, from: file, note: "labels in the last column"}, intern: map[string]string{}}
	for first := true; ; first = false {
		row, err := c.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, t.explain(err, len(row))
		}
		line, _ := c.FieldPos(0)
		if first {
			if isHeader, err := t.begin(row); err != nil {
				return nil, err
			} else if isHeader {
				continue
			}
		}
		if err := t.add(row, line); err != nil {
			return nil, err
		}
	}
	if len(t.names) == 0 {
		return nil, fmt.Errorf("%s has no samples: write one a line, numbers first, the label last", file)
	}
	return &t.part, nil
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
		return fmt.Errorf("%s: line %d has %d columns where the first line has %d; give every line the same", t.from, p.StartLine, fields, t.shape[0]+1)
	case errors.As(err, &p):
		return fmt.Errorf("%s: line %d: %v; repair that line", t.from, p.StartLine, p.Err)
	}
	return &FileError{t.from, 0, err.Error()}
}

// begin settles the columns by the first line.
func (t *csvTable) begin(row []string) (isHeader bool, err error) {
	if len(row) < 2 {
		return false, fmt.Errorf("%s has one column: a line is the numbers of a sample and its label, separated by commas, semicolons or tabs", t.from)
	}
	if len(row) > maxFeatures {
		return false, fmt.Errorf("%s has %d columns, at most %d can be read", t.from, len(row), maxFeatures)
	}
	t.shape, t.label = []int{len(row) - 1}, len(row)-1
	lower := make([]string, len(row))
	numbers := 0
	for i, f := range row {
		lower[i] = strings.ToLower(strings.TrimSpace(f))
		if _, err := strconv.ParseFloat(lower[i], 64); err == nil {
			numbers++
		}
	}
	named := -1
	for _, name := range labelColumns() {
		if i := slices.Index(lower, name); i >= 0 && named < 0 {
			named = i
		}
	}
	if named < 0 && numbers > 0 {
		return false, nil
	}
	t.header = slices.Clone(row)
	if i := slices.Index(lower, ""); i >= 0 {
		return true, fmt.Errorf("%s: column %d has no name; name it, or remove it when it only counts the lines", t.from, i+1)
	}
	if named >= 0 {
		t.label = named
	}
	t.note = fmt.Sprintf("labels in column %q", t.header[t.label])
	return true, nil
}

func (t *csvTable) column(i int) string {
	if t.header != nil {
		return strconv.Quote(t.header[i])
	}
	return strconv.Itoa(i + 1)
}

func (t *csvTable) add(row []string, line int) error {
	if 4*(len(t.Values)+len(row)) > maxBytes {
		return fmt.Errorf("%s is too large: more than %d bytes of samples; leave out lines or columns", t.from, maxBytes)
	}
	for i, f := range row {
		f = strings.TrimSpace(f)
		v, err := strconv.ParseFloat(f, 32)
		switch {
		case (err != nil || v != v) && slices.Contains(missing(), strings.ToLower(f)):
			return fmt.Errorf("%s: line %d, column %s: the value is missing; fill it in or leave the line out", t.from, line, t.column(i))
		case i == t.label:
			t.names = append(t.names, t.name(f))
		case err != nil || !finite(float32(v)):
			return fmt.Errorf("%s: line %d, column %s: %.40q is no number that can be trained on; write one, or leave the column out", t.from, line, t.column(i), f)
		default:
			t.Values = append(t.Values, float32(v))
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
