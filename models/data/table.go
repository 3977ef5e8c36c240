package data

import (
	"math"
	"strconv"
	"strings"

	"brood/models/usererr"
)

// Header says whether the first line of a table holds the names of its columns.
type Header int

const (
	HeaderGuessed Header = iota // by what the line holds, see isHeader
	HeaderPresent
	HeaderAbsent
)

// Table says how a table is read where its text does not decide that. The zero Table guesses the header and reads
// numbers.
type Table struct {
	Header Header
	Bytes  bool // its numbers are the pixels of pictures: bytes, scaled to 0..1
}

// TableWords are what ParseTable reads.
var TableWords = []string{"header", "no-header", "bytes"}

// ParseTable reads words of TableWords with commas between them; an empty text is the zero Table.
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

// headerRows is the number of lines behind the first that a guess looks at.
const headerRows = 64

// isHeader guesses whether a first line in which some cells are numbers holds names. It does if
//
//   - its cells count the columns from 0, as pandas names those of an unnamed frame, in a table of three or more; or
//   - a cell is no number where the rest of its column is numbers; or
//   - two cells or more, and half of the numbers, lie outside the rest of their columns by ten times their range, and
//     the numbers rise from cell to cell, as wavelengths and years do.
//
// rest holds the next lines; the reason is for people.
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
