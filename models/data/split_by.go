package data

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"brood/models/noise"
	"brood/models/usererr"
)

// SplitBy selects the samples of drawn splits by a column of a table: rows with equal cells stay in one split. The zero
// SplitBy draws single samples.
type SplitBy struct {
	Time   bool   // the cells are times, of which the last are test samples and those before them validation samples
	Column string // its name; "" for the zero SplitBy
}

// ParseSplitBy parses the option split-by: time:COLUMN or group:COLUMN. An empty text is the zero SplitBy.
func ParseSplitBy(text string) (SplitBy, error) {
	kind, column, _ := strings.Cut(text, ":")
	if column = strings.TrimSpace(column); text != "" && (kind != "time" && kind != "group" || column == "") {
		return SplitBy{}, usererr.Errorf("split-by = %q: write time:COLUMN or group:COLUMN", text)
	}
	return SplitBy{Time: kind == "time", Column: column}, nil
}

// String returns the text that ParseSplitBy parses.
func (b SplitBy) String() string {
	switch {
	case b.Column == "":
		return ""
	case b.Time:
		return "time:" + b.Column
	}
	return "group:" + b.Column
}

// findSplit finds the column of Reading.SplitBy.
func (t *csvTable) findSplit() error {
	by := t.reading.splitBy()
	if by.Column == "" {
		return nil
	}
	i := slices.Index(t.header, by.Column)
	switch {
	case t.header == nil:
		return usererr.Errorf("split-by %s: %s has no line of names; give it one, or read it with --table header", by, t.path)
	case i < 0:
		return usererr.Errorf("split-by %s: %s has no column %q%s; its columns are %s", by, t.path, by.Column,
			usererr.Suggest(by.Column, t.header), shorten(t.header))
	case t.isLabel(i):
		return usererr.Errorf("split-by %s: the column holds the labels; name another column of labels with --label", by)
	}
	t.splitColumn = i
	return nil
}

// addSplitCell appends the cell of the column of Reading.SplitBy.
func (t *csvTable) addSplitCell(l csvLine) error {
	if t.reading.splitBy().Column == "" {
		return nil
	}
	f := strings.TrimSpace(l.cells[t.splitColumn])
	if isMissing(f) {
		return t.missing(l.number, t.splitColumn)
	}
	t.splitCells = append(t.splitCells, t.name(f))
	return nil
}

// moment is a number, or a time in seconds and nanoseconds.
type moment struct {
	x     float64
	nanos int
}

// timeLayouts are the accepted notations of times that are not numbers. Seconds may have a fraction.
var timeLayouts = []string{
	time.DateOnly, time.DateTime, "2006-01-02T15:04:05", time.RFC3339, "2006-01-02 15:04", "2006-01-02T15:04",
	"2006/01/02", "2006-01",
}

func parseMoment(cell string) (m moment, number, ok bool) {
	if x, err := strconv.ParseFloat(cell, 64); err == nil && finite(float32(x)) {
		return moment{x: x}, true, true
	}
	for _, layout := range timeLayouts {
		if t, err := time.Parse(layout, cell); err == nil {
			return moment{float64(t.Unix()), t.Nanosecond()}, false, true
		}
	}
	return m, false, false
}

// turns returns for each sample of p when a drawn split takes its group: 0 for the first group. The order of groups is
// that of their times, last first, or else a permutation of their sorted names. It fails if there are fewer than needed
// groups.
func (b SplitBy) turns(p *part, needed int) ([]int32, error) {
	names := slices.Compact(slices.Sorted(slices.Values(p.splitCells)))
	if b.Time {
		moments, numbers := map[string]moment{}, 0
		for i, cell := range p.splitCells {
			if _, known := moments[cell]; known {
				continue
			}
			m, number, ok := parseMoment(cell)
			if number {
				numbers++
			}
			if !ok || numbers > 0 && numbers < len(moments)+1 {
				return nil, usererr.Errorf("split-by %s: %s: %.40q is no time as in the other lines: write numbers, "+
					"or dates such as 2026-01-31 or 2026-01-31 12:30:00", b, p.sampleName(i), cell)
			}
			moments[cell] = m
		}
		byTime := func(x, y string) int {
			a, b := moments[x], moments[y]
			return cmp.Or(cmp.Compare(b.x, a.x), cmp.Compare(b.nanos, a.nanos))
		}
		slices.SortStableFunc(names, byTime)
		return b.number(p, names, needed, func(i int) bool { return byTime(names[i-1], names[i]) == 0 })
	}
	order := noise.Key{Purpose: noise.Split, Stream: 2}.Permutation(uint64(len(names)))
	drawn := make([]string, len(names))
	for i := range names {
		drawn[i] = names[order.At(uint64(i))]
	}
	return b.number(p, drawn, needed, func(int) bool { return false })
}

// number returns the turns of the samples of p for the cells in the order of their turns. same reports whether cell i
// has the turn of the one before it.
func (b SplitBy) number(p *part, cells []string, needed int, same func(i int) bool) ([]int32, error) {
	turn, n := map[string]int32{}, int32(0)
	for i, cell := range cells {
		if i == 0 || !same(i) {
			n++
		}
		turn[cell] = n - 1
	}
	switch {
	case n == 1:
		return nil, usererr.Errorf("split-by %s: the column has one value in all lines of %s: choose another column",
			b, p.path)
	case int(n) < needed:
		return nil, usererr.Errorf("split-by %s: %s has %d different values in this column, and the splits need %d: "+
			"choose another column", b, p.path, n, needed)
	}
	out := make([]int32, len(p.splitCells))
	for i, cell := range p.splitCells {
		out[i] = turn[cell]
	}
	return out, nil
}

// take returns which samples a drawn split of a share takes: whole groups in the order of their turns, one or more, so
// that their samples are as near to the share as the groups allow. Of times it takes the first groups without a gap. It
// leaves at least one of two or more groups.
func (b SplitBy) take(turns []int32, share float64) (taken []bool) {
	sizes := make([]int, slices.Max(turns)+1)
	for _, t := range turns {
		sizes[t]++
	}
	want, sum := validationCount(len(turns), share), 0
	chosen, smallest := make([]bool, len(sizes)), -1
	for t, n := range sizes {
		if n == 0 {
			continue
		}
		if smallest < 0 || n < sizes[smallest] {
			smallest = t
		}
		if fits := n <= 2*(want-sum) && sum+n < len(turns); fits || b.Time && sum == 0 {
			chosen[t], sum = true, sum+n
		} else if b.Time {
			break
		}
	}
	if sum == 0 {
		chosen[smallest] = true
	}
	for _, t := range turns {
		taken = append(taken, chosen[t])
	}
	return taken
}

// Row is the origin of a sample and its split.
type Row struct {
	File  string // that has the sample: a table, an array or a picture
	Row   int    // sample number in the file, from 1
	Split string // train, validation or test
}

// Rows returns the origins of all samples, in their order in the files. It fails for a text.
func (s *Set) Rows() ([]Row, error) {
	if s.Text {
		return nil, fmt.Errorf("data %s is a text, whose splits are its parts in order (docs/data.md)", s.Name)
	}
	out := make([]Row, s.Len())
	for _, split := range []struct {
		name string
		ids  []int32
	}{{"train", s.train}, {"validation", s.validation}, {"test", s.test}} {
		for _, id := range split.ids {
			at := int(id)
			if s.order != nil {
				at = s.order[id]
			}
			out[at] = Row{s.Name, at + 1, split.name}
			if s.source != nil {
				out[at].File, out[at].Row = s.source(at)
			}
		}
	}
	return out, nil
}
