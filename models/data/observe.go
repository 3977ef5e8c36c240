package data

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// observe returns what a user may want to know about the columns of a table, a sentence each: those that are constant,
// that count the lines, or that repeat another column.
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
	var still, counting, twins []string
	first := map[uint64]int{}
	for c := range width {
		switch of, seen := first[sums[c]]; {
		case constant[c]:
			still = append(still, p.columnName(c))
		case counts[c]:
			counting = append(counting, p.columnName(c))
		case seen:
			twins = append(twins, p.columnName(c)+" (as "+p.columnName(of)+")")
		default:
			first[sums[c]] = c
		}
	}
	for _, x := range []struct {
		columns []string
		is      string
	}{{still, "constant"}, {counting, "counting the lines, which tells the samples apart and means nothing"}, {twins, "equal to another"}} {
		if len(x.columns) > 0 {
			notes = append(notes, fmt.Sprintf("%s %s", listed(x.columns), x.is))
		}
	}
	return notes
}

// columnName is the name of a feature's column, or its number from 1.
func (p *part) columnName(c int) string {
	if p.features != nil {
		return strconv.Quote(p.features[c])
	}
	return strconv.Itoa(c + 1)
}

// listed is "column a is" or "columns a, b and 7 more are".
func listed(names []string) string {
	const most = 5
	if len(names) == 1 {
		return "column " + names[0] + " is"
	}
	if len(names) > most {
		return fmt.Sprintf("columns %s and %d more are", strings.Join(names[:most], ", "), len(names)-most)
	}
	return "columns " + strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1] + " are"
}
