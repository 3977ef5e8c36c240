package data

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/encoding/unicode"
)

// headBytes is the number of bytes at the beginning of a file that encoding and dialect detection examine.
const headBytes = 1 << 16

// asUTF8 returns the text of a file as UTF-8 with line feeds at the ends of its lines: it removes a byte order mark,
// decodes UTF-16, and replaces the carriage returns of a file without line feeds. note describes a conversion for the
// user, or is empty. The buffer of in must have at least headBytes. It fails for a file that contains a zero byte and
// is not UTF-16.
func asUTF8(in *bufio.Reader) (out *bufio.Reader, note string, err error) {
	head, _ := in.Peek(headBytes)
	order := unicode.LittleEndian
	switch {
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		in.Discard(3)
	case bytes.HasPrefix(head, []byte("\xff\xfe")), zerosAt(head, 1):
		note = "the text is UTF-16"
	case bytes.HasPrefix(head, []byte("\xfe\xff")), zerosAt(head, 0):
		note, order = "the text is UTF-16", unicode.BigEndian
	case bytes.IndexByte(head, 0) >= 0:
		return nil, "", fmt.Errorf("byte %d is zero, so this is no text; save the table as CSV", bytes.IndexByte(head, 0))
	}
	if note != "" {
		in = bufio.NewReaderSize(unicode.UTF16(order, unicode.UseBOM).NewDecoder().Reader(in), headBytes)
		head, _ = in.Peek(headBytes)
	}
	if bytes.IndexByte(head, '\n') < 0 && bytes.IndexByte(bytes.TrimRight(head, "\r"), '\r') >= 0 {
		return bufio.NewReaderSize(crToLF{in}, headBytes), "lines end with a carriage return alone", nil
	}
	return in, note, nil
}

// zerosAt reports whether text looks like UTF-16 without a byte order mark: more than half of its byte pairs have a
// zero at index place (0 or 1), and none has one at the other index.
func zerosAt(text []byte, place int) bool {
	zeros := 0
	for i, b := range text {
		if b == 0 && i%2 != place {
			return false
		}
		if b == 0 {
			zeros++
		}
	}
	return zeros > 0 && 4*zeros > len(text)
}

// crToLF replaces carriage returns by line feeds.
type crToLF struct{ in io.Reader }

func (l crToLF) Read(p []byte) (int, error) {
	n, err := l.in.Read(p)
	for i, b := range p[:n] {
		if b == '\r' {
			p[i] = '\n'
		}
	}
	return n, err
}

// dialect is the notation of a table.
type dialect struct {
	separator    rune
	decimalComma bool
	hasSepLine   bool // the first line is sep=;, which names the separator
}

var (
	decimalComma = regexp.MustCompile(`^[+-]?\d*,\d+([eE][+-]?\d+)?$`)
	thousands    = regexp.MustCompile(`^[+-]?[1-9]\d{0,2},\d{3}$`)
)

// guessDialect detects the dialect of a table from its first lines. The separator is the one named by a line such as
// sep=;. Otherwise it is the one of tab, semicolon and comma that splits all lines into the same number of cells, two
// or more, with the largest share of numbers; the earlier of the three wins a tie. If none fits, it is the most
// frequent of the three in the first line. Numbers have decimal commas if the comma is not the separator, some cells
// are numbers only when read with a decimal comma, and no number has a decimal point. It fails if a decimal comma could
// also be a thousands separator.
func guessDialect(head []byte) (d dialect, err error) {
	if rest, named := bytes.CutPrefix(head, []byte("sep=")); named {
		line, after, _ := bytes.Cut(rest, []byte("\n"))
		if line = bytes.TrimRight(line, "\r"); len(line) == 1 && line[0] < 128 && line[0] != '"' {
			d.separator, d.hasSepLine = rune(line[0]), true
			head = after
		}
	}
	var rows [][]string
	best := 0.0
	for _, c := range "\t;," {
		if d.hasSepLine && c != d.separator {
			continue
		}
		if found, share := cells(head, c); found != nil && (rows == nil || share > best) {
			d.separator, rows, best = c, found, share
		}
	}
	if rows == nil && !d.hasSepLine {
		d.separator = mostFrequent(head)
	}
	if d.separator == ',' {
		return d, nil
	}
	commas, points, ambiguous := "", false, true
	for _, f := range slices.Concat(rows...) {
		f = strings.TrimSpace(f)
		switch _, err := strconv.ParseFloat(f, 64); {
		case err == nil:
			points = points || strings.Contains(f, ".")
		case decimalComma.MatchString(f):
			commas = f
			ambiguous = ambiguous && thousands.MatchString(f)
		}
	}
	switch {
	case commas == "" || points:
		return d, nil
	case ambiguous:
		return d, fmt.Errorf("%q may be %s or %s: write decimal points, and no separators of thousands",
			commas, strings.Replace(commas, ",", ".", 1), strings.Replace(commas, ",", "", 1))
	}
	d.decimalComma = true
	return d, nil
}

// cells splits the first lines of a table. It returns nil unless all have the same number of cells, two or more. share
// is the fraction of the cells that are numbers.
func cells(head []byte, separator rune) (rows [][]string, share float64) {
	c := csv.NewReader(bytes.NewReader(head))
	c.Comma, c.TrimLeadingSpace = separator, true
	total, numbers := 0, 0
	for len(rows) <= headerRows {
		row, err := c.Read()
		if err == io.EOF {
			break
		}
		if err != nil || len(row) < 2 {
			return nil, 0
		}
		rows = append(rows, row)
		for _, f := range row {
			f = strings.TrimSpace(f)
			_, err := strconv.ParseFloat(f, 64)
			if total++; err == nil || separator != ',' && decimalComma.MatchString(f) {
				numbers++
			}
		}
	}
	return rows, float64(numbers) / float64(max(1, total))
}

// wholeLines returns the text up to the end of its last complete line, or all of it if no line is complete.
func wholeLines(text []byte) []byte {
	if i := bytes.LastIndexByte(text, '\n'); i >= 0 {
		return text[:i+1]
	}
	return text
}

// mostFrequent returns the most frequent of comma, semicolon and tab in the first line, outside of quotation marks.
func mostFrequent(head []byte) rune {
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

// recorder is a reader that stores the bytes read through it until take returns them.
type recorder struct {
	in    io.Reader
	raw   []byte
	start int64 // offset of raw[0] in the stream
}

func (r *recorder) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	r.raw = append(r.raw, p[:n]...)
	return n, err
}

// take returns the stored bytes before stream offset to and removes them. They are valid until the next Read.
func (r *recorder) take(to int64) []byte {
	out := r.raw[:to-r.start]
	r.raw, r.start = r.raw[len(out):], to
	return out
}
