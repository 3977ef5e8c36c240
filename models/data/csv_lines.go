package data

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
)

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
