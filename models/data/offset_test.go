package data

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// gathered returns the normalised values of the training samples.
func gathered(t *testing.T, s *Set) []float32 {
	t.Helper()
	x := make([]float32, len(s.Train())*s.Features())
	if err := s.Gather(s.Train(), x, make([]int32, len(s.Train()))); err != nil {
		t.Fatal(err)
	}
	return x
}

// TestLargeOffsets: features far from zero are standardised like those near zero, and the deviation is computed before
// rounding to float32.
func TestLargeOffsets(t *testing.T) {
	const n, offset = 60, 1.7e9
	table := func(offset float64) []byte {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "%.2f,%d,%d\n", offset+float64(20*(i%3))+0.25*float64(i%5), i%7, i%3)
		}
		return []byte(b.String())
	}
	array := func(offset float64) []byte {
		var x []float64
		for i := range n {
			x = append(x, offset+float64(20*(i%3))+0.25*float64(i%5), float64(i%7))
		}
		return npy("<f8", fmt.Sprintf("(%d, 2)", n), x)
	}
	labels := make([]int64, n)
	for i := range labels {
		labels[i] = int64(i % 3)
	}
	y := npy("<i8", fmt.Sprintf("(%d,)", n), labels)
	for name, write := range map[string]func(offset float64) string{
		"csv": func(o float64) string { return filepath.Join(put(t, map[string][]byte{"x.csv": table(o)}), "x.csv") },
		"npy": func(o float64) string { return put(t, map[string][]byte{"x.npy": array(o), "y.npy": y}) },
	} {
		r := Reading{}
		near, err := r.Load(write(0))
		if err != nil {
			t.Fatal(err)
		}
		far, err := r.Load(write(offset))
		if err != nil {
			t.Fatal(err)
		}
		if !far.Form().Wide() || near.Form().Wide() {
			t.Errorf("%s: the form of far numbers is wide: %t, of near ones: %t", name, far.Form().Wide(), near.Form().Wide())
		}
		if d := far.Mean[0] - near.Mean[0] - offset; math.Abs(d) > 1e-6 || math.Abs(far.Std[0]/near.Std[0]-1) > 1e-7 {
			t.Errorf("%s: mean %.9g and deviation %.9g, want %.9g and %.9g", name, far.Mean[0], far.Std[0], near.Mean[0]+offset,
				near.Std[0])
		}
		x, want := gathered(t, far), gathered(t, near)
		for i := range x {
			if math.Abs(float64(x[i]-want[i])) > 1e-5 {
				t.Fatalf("%s: value %d is %g, and %g where the offset is left out", name, i, x[i], want[i])
			}
		}
		if far.Digest() == near.Digest() {
			t.Errorf("%s: two data sets have one digest", name)
		}

		form := far.Form() // a model reads its samples the same way
		asked, err := Reading{Form: &form}.Ask(write(offset))
		if err != nil {
			t.Fatal(err)
		}
		mean := 0.0
		for _, v := range gathered(t, asked.Set) {
			mean += float64(v)
		}
		if mean /= 2 * n; math.Abs(mean) > 0.1 {
			t.Errorf("%s: asked samples have the mean %g", name, mean)
		}
	}
}

// TestConstantTable: a table of constants is refused, and one constant column is reported.
func TestConstantTable(t *testing.T) {
	load := func(line string) (*Set, error) {
		var b strings.Builder
		for i := range 30 {
			fmt.Fprintf(&b, "%s,%d\n", strings.ReplaceAll(line, "V", strconv.Itoa(i*i)), i%2)
		}
		path := filepath.Join(put(t, map[string][]byte{"x.csv": []byte(b.String())}), "x.csv")
		return Reading{}.Load(path)
	}
	if _, err := load("0.1,7"); err == nil || !strings.Contains(err.Error(), "no feature varies") {
		t.Errorf("constants: %v", err)
	}
	s, err := load("0.1,V,V")
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"column 1 is constant", "column 3 (as 2) is equal to another"}; !slices.Equal(s.Notes, want) {
		t.Errorf("notes %q, want %q", s.Notes, want)
	}
	if x := gathered(t, s); x[0] != 0 {
		t.Errorf("a constant feature becomes %g", x[0])
	}
}

// TestBytesAreAsked: the largest cell of a table does not determine how it is read; its numbers are pixels only if the
// user requests it.
func TestBytesAreAsked(t *testing.T) {
	table := func(largest int) string {
		var b strings.Builder
		for i := range 60 {
			fmt.Fprintf(&b, "%d,%d,%d\n", 100+i%50, min(largest, 10*i), i%3)
		}
		return filepath.Join(put(t, map[string][]byte{"x.csv": []byte(b.String())}), "x.csv")
	}
	for _, largest := range []int{254, 255, 256} {
		s, err := Reading{}.Load(table(largest))
		if err != nil {
			t.Fatal(err)
		}
		noted := slices.ContainsFunc(s.Notes, func(n string) bool { return strings.Contains(n, "--table bytes") })
		if s.Form().Bytes || s.Std[0] < 10 || noted != (largest == 255) {
			t.Errorf("largest %d: bytes %t, deviation %g, notes %q", largest, s.Form().Bytes, s.Std[0], s.Notes)
		}
		s, err = Reading{Table: Table{Bytes: true}}.Load(table(largest))
		switch {
		case largest > 255 && (err == nil ||
			!strings.Contains(err.Error(), "x.csv: line 27: the value 256 is no byte; leave out --table bytes")):
			t.Errorf("largest %d: %v", largest, err)
		case largest <= 255 && (err != nil || !s.Form().Bytes || s.Std[0] != 1):
			t.Errorf("largest %d: %v", largest, err)
		}
	}
}

// TestHeaders: a first line with numbers is a header if it numbers the columns, has a word in a column of numbers, or
// differs far from the other lines. Otherwise it is a sample, and --table overrides.
func TestHeaders(t *testing.T) {
	body := func(rows int) string {
		var b strings.Builder
		for i := range rows {
			fmt.Fprintf(&b, "%g,%g,%d\n", 1+0.5*float64(i%9), 2-0.25*float64(i%4), i%2)
		}
		return b.String()
	}
	for _, c := range []struct {
		name, first string
		table       Table
		header      bool
	}{
		{name: "a sample", first: "1.5,1.75,0"},
		{name: "pandas", first: "0,1,2", header: true},
		{name: "pandas, said to be a sample", first: "0,1,1", table: Table{Header: HeaderAbsent}},
		{name: "wavelengths", first: "400,410,kind", header: true},
		{name: "years", first: "1990,1991,1992", header: true},
		{name: "one outlier", first: "400,1.75,0"},
		{name: "a name among numbers", first: "size,2,1", header: true},
		{name: "names that are numbers of the data", first: "1.5,1.75,0", table: Table{Header: HeaderPresent}, header: true},
	} {
		path := filepath.Join(put(t, map[string][]byte{"x.csv": []byte(c.first + "\n" + body(40))}), "x.csv")
		s, err := Reading{Table: c.table}.Load(path)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if header := s.Len() == 40; header != c.header || !header && s.Len() != 41 {
			t.Errorf("%s: %d samples, header %t", c.name, s.Len(), header)
		}
		if noted := slices.ContainsFunc(s.Notes, func(n string) bool {
			return strings.HasPrefix(n, "the first line is taken for names")
		}); noted != (c.header && c.table.Header == HeaderGuessed) {
			t.Errorf("%s: notes %q", c.name, s.Notes)
		}
	}
}

func TestParseTable(t *testing.T) {
	for text, want := range map[string]Table{"": {}, "bytes": {Bytes: true}, "header": {Header: HeaderPresent},
		"no-header,bytes": {HeaderAbsent, true}} {
		if got, err := ParseTable(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"byte", "header,no-header", "no-header,header"} {
		if _, err := ParseTable(text); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}
