package data

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"brood/models/usererr"
)

// Bounds of the categories of a column.
const (
	maxCategories = 1000
	minOfCategory = 2 // rows; rarer texts are unknown
)

// unknownCategory stands for all texts that are no category in names of features. A cell with this text is missing, so
// no category has it.
const unknownCategory = "?"

// Column is a column of a table whose cells become one or several features.
type Column struct {
	Name string `json:"name"`
	// Categories are the texts that a feature each is 1 for, else 0. One more feature, the last, is 1 for any other text
	// and for a missing one. nil: the column has numbers, and its first feature is the number.
	Categories []string `json:"categories,omitempty"`
	Fill       bool     `json:"fill,omitempty"` // a missing number is the mean of the training samples
	Flag       bool     `json:"flag,omitempty"` // a second feature is 1 if the number is missing, else 0
}

// Features returns the names of the column's features.
func (c Column) Features() []string {
	if c.Categories == nil {
		if c.Flag {
			return []string{c.Name, c.Name + " missing"}
		}
		return []string{c.Name}
	}
	var out []string
	for _, text := range append(slices.Clone(c.Categories), unknownCategory) {
		out = append(out, c.Name+"="+text)
	}
	return out
}

// oneHot appends the features of a text to x.
func (c Column) oneHot(x []float64, text string) []float64 {
	at, found := slices.BinarySearch(c.Categories, text)
	if !found {
		at = len(c.Categories)
	}
	for i := range len(c.Categories) + 1 {
		if i == at {
			x = append(x, 1)
		} else {
			x = append(x, 0)
		}
	}
	return x
}

// number appends the features of a number to x; NaN stands for a missing one until [Set.fill].
func (c Column) number(x []float64, v float64) []float64 {
	x = append(x, v)
	switch {
	case c.Flag && v != v:
		x = append(x, 1)
	case c.Flag:
		x = append(x, 0)
	}
	return x
}

// expandedNames returns the names of the features of columns.
func expandedNames(columns []Column) (out []string) {
	for _, c := range columns {
		out = append(out, c.Features()...)
	}
	return out
}

// columnNames returns the names of columns.
func columnNames(columns []Column) (out []string) {
	for _, c := range columns {
		out = append(out, c.Name)
	}
	return out
}

// selectFeatures keeps the feature columns that Reading.Features names, or drops those of Reading.Drop. A word is a
// name, or a pattern such as cat_*.
func (t *csvTable) selectFeatures() error {
	for _, x := range []struct {
		option, text string
		keep         bool
	}{{"features", t.reading.Features, true}, {"drop", t.reading.Drop, false}} {
		if x.text == "" {
			continue
		}
		if t.header == nil {
			return usererr.Errorf("%s = %s: %s has no line of names; give it one, or read it with --table header",
				x.option, x.text, t.path)
		}
		named := map[int]bool{}
		for word := range strings.SplitSeq(x.text, ",") {
			word = strings.TrimSpace(word)
			found := false
			for i, name := range t.header {
				match, err := path.Match(word, name)
				if name == word || err == nil && match {
					named[i], found = true, true
				}
			}
			if !found {
				return usererr.Errorf("%s = %s: %s has no column %q%s; its columns are %s", x.option, x.text, t.path, word,
					usererr.Suggest(word, t.header), shorten(t.header))
			}
		}
		t.featureColumns = slices.DeleteFunc(t.featureColumns, func(i int) bool { return named[i] != x.keep })
		if len(t.featureColumns) == 0 {
			return usererr.Errorf("%s = %s: it leaves no feature of %s", x.option, x.text, t.path)
		}
	}
	return nil
}

// survey is the cells of the feature columns of a table, without the samples.
type survey struct {
	path    string
	rows    int
	columns []surveyed
	labels  *csvTable // for its label columns
}

// surveyed is the cells of a column.
type surveyed struct {
	name                  string // quoted, or its number
	text                  string // its name without quotes
	numbers               int
	texts, missing        int
	textLine, missingLine int // the first
	first                 string
	count                 map[string]int // of each cell, numbers too; nil once there are too many
}

// survey reads the feature columns of the table at path.
func (r Reading) survey(path string, want *columns, targets bool) (*survey, error) {
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := &survey{path: path}
	_, err = r.scan(f, path, want, targets, s)
	return s, err
}

func (s *survey) add(t *csvTable, l csvLine) {
	if s.columns == nil {
		s.labels = t
		for _, i := range t.featureColumns {
			x := surveyed{name: t.column(i), text: strconv.Itoa(i + 1), count: map[string]int{}}
			if t.header != nil {
				x.text = t.header[i]
			}
			s.columns = append(s.columns, x)
		}
	}
	s.rows++
	for k, i := range t.featureColumns {
		c, f := &s.columns[k], strings.TrimSpace(l.cells[i])
		v, err := strconv.ParseFloat(f, 64)
		switch {
		case (err != nil || v != v) && isMissing(f):
			if c.missing++; c.missing == 1 {
				c.missingLine = l.number
			}
			continue
		case err != nil || !finite(float32(v)):
			if c.texts++; c.texts == 1 {
				c.textLine, c.first = l.number, strings.Clone(f)
			}
		default:
			c.numbers++
		}
		if c.count == nil {
			continue
		}
		if _, known := c.count[f]; !known {
			f = strings.Clone(f) // it shares the memory of its line
		}
		if c.count[f]++; len(c.count) > 4*maxCategories {
			c.count = nil
		}
	}
}

// categories returns the texts that are frequent enough, sorted. It returns nil if there are too many, or if most cells
// are rare, as in a column of names.
func (c *surveyed) categories() []string {
	frequent, rows := []string(nil), 0
	for text, n := range c.count {
		if n >= minOfCategory {
			frequent, rows = append(frequent, text), rows+n
		}
	}
	if len(frequent) > maxCategories || 2*rows < c.texts+c.numbers {
		return nil
	}
	slices.Sort(frequent)
	return frequent
}

// problem returns why the column cannot be used with the options of r; "" if it can.
func (c *surveyed) problem(r Reading) string {
	var why []string
	if c.texts > 0 && (!r.Categories || c.categories() == nil) {
		text := fmt.Sprintf("text (%.20q in line %d)", c.first, c.textLine)
		if r.Categories {
			text = fmt.Sprintf("too many different texts for categories (%.20q in line %d)", c.first, c.textLine)
		}
		why = append(why, "has "+text)
	}
	if c.missing > 0 && (c.texts == 0 && !r.Fill || c.texts > 0 && !r.Categories || c.texts+c.numbers == 0) {
		values := "1 value"
		if c.missing > 1 {
			values = fmt.Sprintf("%d values", c.missing)
		}
		why = append(why, fmt.Sprintf("lacks %s (line %d)", values, c.missingLine))
	}
	return strings.Join(why, " and ")
}

// unusable returns an error that lists the columns that cannot be used, with the options that help; nil if there are
// none, or if a single cell is the only fault.
func (s *survey) unusable(r Reading) error {
	const most = 8
	var faults, drop []string
	cells, texts, missing := 0, false, false
	for i := range s.columns {
		c := &s.columns[i]
		why := c.problem(r)
		if why == "" {
			continue
		}
		cells += c.texts + c.missing
		texts, missing = texts || c.texts > 0 && !r.Categories, missing || c.missing > 0 && c.texts == 0 && !r.Fill
		if drop = append(drop, c.text); len(faults) < most {
			faults = append(faults, c.name+" "+why)
		}
	}
	if cells < 2 && !r.Categories && !r.Fill || len(drop) == 0 {
		return nil
	}
	if n := len(drop) - len(faults); n > 0 {
		faults = append(faults, fmt.Sprintf("and %d more", n))
	}
	if s.labels.header == nil {
		return usererr.Errorf("%s: %d of %d columns cannot be used: %s: write numbers, or give the table a line of names, "+
			"by which --drop leaves columns out", s.path, len(drop), len(s.columns), strings.Join(faults, "; "))
	}
	help := []string{"leave them out with --drop " + quoteWord(strings.Join(drop, ",")), "choose others with --features"}
	if texts {
		help = append(help, "predict one with --label", "read texts as categories with --categories onehot")
	}
	if missing {
		help = append(help, "fill in missing values with --fill mean")
	}
	help[len(help)-1] = "or " + help[len(help)-1]
	return usererr.Errorf("%s: %d of %d columns cannot be used: %s: %s", s.path, len(drop), len(s.columns),
		strings.Join(faults, "; "), strings.Join(help, ", "))
}

// quoteWord returns a word in quotes for a shell if it needs them.
func quoteWord(word string) string {
	if strings.ContainsAny(word, " '\"$&|;<>()*?[]{}!#`\\~") {
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return word
}

// encoding surveys the table at path and returns the columns to read with Categories and Fill. It fails if a column
// cannot be used.
func (r Reading) encoding(path string, want *columns, targets bool) (*columns, error) {
	s, err := r.survey(path, want, targets)
	if err != nil {
		return nil, err
	}
	if err := s.unusable(r); err != nil {
		return nil, err
	}
	if s.labels.header == nil {
		return nil, usererr.Errorf("%s has no line of names, which --categories and --fill need: give it one, or read it "+
			"with --table header", path)
	}
	out := &columns{owner: "the training samples", label: s.labels.labelColumnName()}
	out.requested = out.label
	for i := range s.columns {
		c := &s.columns[i]
		column := Column{Name: c.text}
		if c.texts > 0 {
			column.Categories = c.categories()
		} else if r.Fill {
			column.Fill, column.Flag = true, c.missing > 0
		}
		out.encoded = append(out.encoded, column)
	}
	out.features = columnNames(out.encoded)
	if sorted := slices.Sorted(slices.Values(out.features)); len(slices.Compact(sorted)) < len(out.features) {
		return nil, usererr.Errorf("%s has two columns of one name: rename one of them", path)
	}
	return out, nil
}

// fill replaces missing numbers, which are NaN, by the mean of their feature: that of the form, or else that of the
// training samples that have it.
func (s *Set) fill() {
	if s.columns.encoded == nil {
		return
	}
	for c := range s.features {
		switch {
		case s.doubles != nil:
			fillFeature(s, s.doubles, c)
		case s.values != nil:
			fillFeature(s, s.values, c)
		}
	}
}

func fillFeature[F float32 | float64](s *Set, all []F, c int) {
	mean, n := 0.0, 0.0
	for _, id := range s.train {
		if v := float64(all[int(id)*s.features+c]); v == v {
			mean, n = mean+v, n+1
		}
	}
	mean /= math.Max(1, n)
	if s.Mean != nil {
		mean = s.Mean[c]
	}
	for i := c; i < len(all); i += s.features {
		if all[i] != all[i] {
			all[i] = F(mean)
		}
	}
}
