package data

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// observe returns one sentence for the user per kind of suspicious feature columns of a table: constant ones, ones that
// count the lines, and ones equal to another column. Columns are compared by a 64-bit hash.
func (p *part) observe() (notes []string) {
	if p.Pixels != nil || len(p.shape) != 1 || p.samples() < 2 {
		return nil
	}
	width := p.shape[0]
	at := func(i int) float64 {
		if p.Doubles != nil {
			return p.Doubles[i]
		}
		return float64(p.Values[i])
	}
	constant, counts, sums := make([]bool, width), make([]bool, width), make([]uint64, width)
	for c := range width {
		constant[c], counts[c] = true, true
	}
	for i := range p.samples() * width {
		c, v := i%width, at(i)
		if i >= width {
			step := v - at(i-width)
			constant[c], counts[c] = constant[c] && step == 0, counts[c] && step == 1
		}
		sums[c] = (sums[c] ^ math.Float64bits(v)) * 0x100000001b3 // FNV
		sums[c] ^= sums[c] >> 29
	}
	var unvaried, counting, duplicates []string
	first := map[uint64]int{}
	for c := range width {
		switch of, seen := first[sums[c]]; {
		case constant[c] && p.encoded != nil: // such as the feature of unknown texts
		case constant[c]:
			unvaried = append(unvaried, p.columnName(c))
		case counts[c]:
			counting = append(counting, p.columnName(c))
		case seen:
			duplicates = append(duplicates, p.columnName(c)+" (as "+p.columnName(of)+")")
		default:
			first[sums[c]] = c
		}
	}
	for _, x := range []struct {
		columns []string
		is      string
	}{
		{unvaried, "constant"},
		{counting, "counting the lines, which tells the samples apart and means nothing"},
		{duplicates, "equal to another"},
	} {
		if len(x.columns) > 0 {
			notes = append(notes, fmt.Sprintf("%s %s", columnsPhrase(x.columns), x.is))
		}
	}
	return notes
}

// columnName returns the quoted name of feature c's column, or its number from 1.
func (p *part) columnName(c int) string {
	if p.featureNames != nil {
		return strconv.Quote(p.featureNames[c])
	}
	return strconv.Itoa(c + 1)
}

// columnsPhrase returns a phrase such as "column a is" or "columns a, b and 7 more are".
func columnsPhrase(names []string) string {
	const most = 5
	if len(names) == 1 {
		return "column " + names[0] + " is"
	}
	if len(names) > most {
		return fmt.Sprintf("columns %s and %d more are", strings.Join(names[:most], ", "), len(names)-most)
	}
	return "columns " + strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1] + " are"
}
