package data

import (
	"math"
	"strconv"
	"strings"

	"brood/models/usererr"
)

// Header specifies whether the first line of a table contains the column names.
type Header int

const (
	HeaderGuessed Header = iota // decided by the contents of the line, see isHeader
	HeaderPresent
	HeaderAbsent
)

// Table specifies how a table is read where its text is ambiguous. The zero Table guesses the header and reads numbers.
type Table struct {
	Header Header
	Bytes  bool // numbers are pixels: bytes, scaled to 0..1
}

// TableWords lists the words that ParseTable accepts.
var TableWords = []string{"header", "no-header", "bytes"}

// ParseTable parses the table option: words of TableWords separated by commas. An empty text is the zero Table.
func ParseTable(text string) (t Table, err error) {
	for word := range strings.SplitSeq(text, ",") {
		header := t.Header
		switch strings.TrimSpace(word) {
		case "":
		case "header":
			header = HeaderPresent
		case "no-header":
			header = HeaderAbsent
		case "bytes":
			t.Bytes = true
		default:
			return Table{}, usererr.Errorf("table = %q: %q is none of %s", text, word, strings.Join(TableWords, ", "))
		}
		if t.Header != HeaderGuessed && t.Header != header {
			return Table{}, usererr.Errorf("table = %q: give one of header and no-header", text)
		}
		t.Header = header
	}
	return t, nil
}

// headerRows is the number of lines after the first that header and dialect detection examine.
const headerRows = 64

// isHeader guesses whether a first line, in which some cells are numbers, contains column names. It does if
//
//   - its three or more cells count the columns from 0, the default column names of pandas; or
//   - a cell is not a number and the rest of its column is numbers; or
//   - at least two cells, and at least half of the numbers in numeric columns, are outside the range of the rest of
//     their columns by more than ten times that range, and the numbers increase from cell to cell, as years do.
//
// rest is the cells of the following lines. reason explains a true result to the user.
func isHeader(first []string, rest [][]string) (header bool, reason string) {
	counting := len(first) > 2
	for i, cell := range first {
		counting = counting && cell == strconv.Itoa(i)
	}
	if counting {
		return true, "its cells count the columns from 0"
	}
	if len(rest) < 2 {
		return false, ""
	}
	numbers, outside, last, rising := 0, 0, math.Inf(-1), true
	for i, cell := range first {
		low, high, all := math.Inf(1), math.Inf(-1), true
		for _, row := range rest {
			v, err := strconv.ParseFloat(strings.TrimSpace(row[i]), 64)
			all = all && err == nil
			low, high = min(low, v), max(high, v)
		}
		v, err := strconv.ParseFloat(cell, 64)
		switch {
		case !all:
			continue
		case err != nil && !isMissing(cell):
			return true, strconv.Quote(cell) + " is no number, and its column has numbers"
		case err != nil:
			continue
		}
		numbers++
		rising = rising && v > last
		last = v
		if reach := float64(10 * max(high-low, math.Abs(high)*1e-3)); v < low-reach || v > high+reach {
			outside++
		}
	}
	if rising && outside >= 2 && 2*outside >= numbers {
		return true, "its numbers rise and lie far from those below them"
	}
	return false, ""
}
